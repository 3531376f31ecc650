"""How long the checker takes for a large history: `python -m chaos.speed [effects]`.

It makes them up in a temporary folder (1.3 GB for the usual 3 million), then reads and judges them. Measured alone on
the two-core machine: 3,113,724 effects of 999,908 runs, with every attempt in the dump, in 53.7 s, 8.5 of them to read,
with 5 GB of memory.
"""

import multiprocessing
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from chaos.records import Dump, Effect, Evidence, Fault, Operation, Outcome, Phase, digest, load
from chaos.synthetic.trails import trails_of
from chaos.synthetic.world import BEGIN, rfc3339
from chaos.verdict import check

BATCH = 100
PERIOD = 5
REST = 100
"""Seconds between the last submission and the final read."""
LINE = 5
"""Runs that wait for each other, of each key."""
GRAPH = ("top", "left", "join")
USES = 10
"""Calls with each key, before it is revoked and once afterwards."""
TENANT = "north"


def generate(effects: int) -> Evidence:
    """Three effects to an attempt; with a fault every minute, and nothing goes wrong.

    One run in ten is of a recurring job; one in twenty fails and is tried again; one in fifty is under a limit, one in
    a hundred in a graph, one in two hundred is cancelled, one in two hundred handed in with a key of its own. That is
    about what a chaos run has. All that changes something stands in the audit trail.
    """
    count = effects // 3
    seconds = count / 1500
    made = Evidence(
        seed=1,
        operations=[],
        effects=[],
        faults=[
            Fault(kind="kill", target="worker-0", began=BEGIN + at, ended=BEGIN + at + 1, workers=["none"])
            for at in range(0, int(seconds), 60)
        ],
        dump=Dump(taken=BEGIN + seconds + REST, jobs={TENANT: []}, runs={TENANT: []}, attempts={TENANT: []}, missed={}),
    )
    odd = count // 50 + count // 100 + 2 * (count // 200)
    _ad_hoc(made, count - count // 10 - odd, seconds)
    _recurring(made, count // 10, seconds)
    for number in range(count // 50 // LINE):
        _line(made, number, _moment(number, count // 50 // LINE, seconds))
    for number in range(count // 100 // len(GRAPH)):
        _graph(made, number, _moment(number, count // 100 // len(GRAPH), seconds))
    for number in range(count // 200):
        _cancelled(made, number, _moment(number, count // 200, seconds))
    for number in range(count // 200 // USES):
        _key(made, number, _moment(number, count // 200 // USES, seconds))
    made.effects.sort(key=lambda effect: effect.at)
    made.operations.sort(key=lambda operation: operation.completed)
    made.dump.audit = trails_of(made.operations)
    return made


def _moment(number: int, count: int, seconds: float) -> float:
    return BEGIN + 1 + number / count * seconds


def _call(made: Evidence, kind: str, at: float, **more: Any) -> Operation:
    """An answered call, numbered as they come."""
    number = len(made.operations) + 1
    told: dict[str, Any] = {"client": 0, "tenant": TENANT, "outcome": Outcome.OK, "completed": at + 0.02, "status": 200}
    done = Operation(number=number, kind=kind, invoked=at, **(told | more))
    made.operations.append(done)
    return done


def _line(made: Evidence, number: int, at: float) -> None:
    """A few of one key, one after the other."""
    limit = {"limit": 1, "key": "payload.account"}
    for turn in range(LINE):
        name, payload = f"run_l{number}_{turn}", {"serial": f"line {number} {turn}", "account": str(number)}
        body = {"handler": "strict", "payload": payload, "concurrency": limit}
        _call(made, "createRun", at, body=body, answer={"runId": name})
        _run(made, name, None, at + 0.01 + 0.15 * turn, digest(payload), created=at + 0.01, key=str(number))


def _graph(made: Evidence, number: int, at: float) -> None:
    """Three jobs, each waiting for all before it, made in one call and started by hand."""
    keys = [f"{node}-{number}" for node in GRAPH]
    bodies: list[dict[str, Any]] = [{"name": key, "key": key, "payload": key, "maxRetries": 0} for key in keys]
    for turn, body in enumerate(bodies[1:], 1):
        body["dependsOn"] = keys[:turn]
    names = [f"job_g{key}" for key in keys]
    _call(made, "createJobs", at, body={"jobs": bodies}, answer={"jobIds": names})
    shown = {"tenant": TENANT, "status": "pending", "scheduleType": "on_demand", "nextRunAt": None}
    for name, body in zip(names, bodies, strict=True):
        made.dump.jobs[TENANT].append({**body, **shown, "jobId": name, "createdAt": rfc3339(at + 0.01)})
    _call(made, "runJob", at + 0.1, job=names[0], body={}, answer={"runId": f"run_{names[0]}"})
    for turn, (name, body) in enumerate(zip(names, bodies, strict=True)):
        due = at + 0.11 + 0.2 * turn
        _run(made, f"run_{name}", name, due, digest(body["payload"]), created=at + 0.11, scheduled=at + 0.11)


def _cancelled(made: Evidence, number: int, at: float) -> None:
    name, over = f"run_c{number}", rfc3339(at + 0.5)
    body = {"handler": "quick", "payload": {"serial": f"cancelled {number}"}}
    _call(made, "createRun", at, body=body, answer={"runId": name})
    answer = {"runId": name, "status": "cancelled", "finishedAt": over}
    _call(made, "cancelRun", at + 0.49, run=name, answer=answer)
    due = rfc3339(at + 0.01)
    times = {"scheduledAt": due, "dueAt": due, "createdAt": due, "finishedAt": over}
    row = {"runId": name, "jobId": None, "status": "cancelled", "attempts": 0, "workerId": None}
    made.dump.runs[TENANT].append({**row, **times})


def _key(made: Evidence, number: int, at: float) -> None:
    """Made, used, revoked, and refused."""
    key = f"key_{number}"
    _call(made, "createKey", at, body={"name": key}, answer={"keyId": key})
    for turn in range(USES):
        name, payload = f"run_k{number}_{turn}", {"serial": f"key {number} {turn}"}
        began = at + 0.1 * (turn + 1)
        _call(made, "createRun", began, body={"handler": "quick", "payload": payload}, by=key, answer={"runId": name})
        _run(made, name, None, began + 0.01, digest(payload))
    _call(made, "revokeKey", at + 2, thing=key, answer={"keyId": key, "status": "revoked"})
    refused = {"handler": "quick", "payload": {"serial": f"key {number} too late"}}
    _call(made, "createRun", at + 10, body=refused, by=key, outcome=Outcome.FAIL, status=401)


def _ad_hoc(made: Evidence, count: int, seconds: float) -> None:
    for first in range(0, count, BATCH):
        at = BEGIN + 1 + first / count * seconds
        bodies = [{"handler": "quick", "payload": {"serial": f"{first + each}"}} for each in range(BATCH)]
        names = [f"run_{first + each:08d}" for each in range(BATCH)]
        _call(
            made,
            "createRuns",
            at,
            completed=at + 0.1,
            body={"runs": bodies},
            answer={"runIds": names},
            key=f"key {first}",
            status=201,
        )
        for turn, (name, body) in enumerate(zip(names, bodies, strict=True)):
            _run(made, name, None, at + 0.05, digest(body["payload"]), fails=turn % 20 == 0)


def _recurring(made: Evidence, count: int, seconds: float) -> None:
    """As many jobs as it takes, each with a run for every instant until the final read."""
    instants = int(seconds + REST) // PERIOD
    for job in range(count // instants):
        name, body = f"job_{job}", {"name": f"job {job}", "every": PERIOD, "overlap": "allow", "payload": job}
        view = {**body, "jobId": name, "tenant": TENANT, "status": "pending", "scheduleType": "recurring"}
        _call(made, "createJob", BEGIN + 0.1, body=body, answer=view, key=f"job {job}")
        made.dump.jobs[TENANT].append({**view, "createdAt": rfc3339(BEGIN + 0.15), "nextRunAt": None})
        made.dump.occurrences[name] = rows = []
        for number in range(instants):
            at = BEGIN + (number + 1) * PERIOD
            _run(made, f"run_{job}_{number}", name, at, digest(job))
            run = {"runId": f"run_{job}_{number}", "runStatus": "completed", "dueAt": rfc3339(at)}
            rows.append({"at": rfc3339(at), "status": "fired", "reason": None, **run})


def _run(
    made: Evidence,
    name: str,
    job: str | None,
    due: float,
    payload: str,
    *,
    created: float | None = None,
    scheduled: float | None = None,
    key: str | None = None,
    fails: bool = False,
) -> None:
    """One that ends well, at the second try if it `fails`."""
    at = rfc3339(due if scheduled is None else scheduled)
    about = {"runId": name, "jobId": job, "workerId": "wrk_1", "scheduledAt": at}
    start = due
    for number, failed in enumerate([True, False] if fails else [False], 1):
        start += random.uniform(0.001, 0.1)  # noqa: S311 - a made-up time
        fence = len(made.effects) // 300 if number == 1 else 1_000_000 + len(made.effects) // 300
        told: dict[str, Any] = {"tenant": TENANT, "run": name, "job": job, "attempt": number, "fence": fence}
        told |= {"scheduled_at": due if scheduled is None else scheduled, "worker": "w1"}
        told |= {"payload": payload, "concurrency_key": key}
        for phase, moment in ((Phase.START, start), (Phase.EFFECT, start + 0.01), (Phase.END, start + 0.02)):
            end = failed and phase is Phase.END
            made.effects.append(Effect(seq=0, at=moment, phase=phase, nonce=f"{name}.{number}", failed=end, **told))
        over = {"startedAt": rfc3339(start), "finishedAt": rfc3339(start + 0.03)}
        status = "failed" if failed else "completed"
        made.dump.attempts[TENANT].append({**about, **over, "status": status, "attempt": number, "fence": fence})
        start += 0.5 if failed else 0.0
    ended = {**over, "status": "completed", "attempts": number, "dueAt": at, "createdAt": rfc3339(created or due)}
    made.dump.runs[TENANT].append({**about, **ended})


def keep(evidence: Evidence, folder: Path) -> None:
    """Write it down as a chaos run leaves it, for `records.load`."""
    head = {"seed": evidence.seed, "settings": evidence.settings}
    (folder / "run.json").write_bytes(msgspec.json.encode(head))
    lines = msgspec.json.Encoder()
    for name, records in (
        ("operations.jsonl", evidence.operations),
        ("ledger.jsonl", evidence.effects),
        ("faults.jsonl", evidence.faults),
    ):
        with (folder / name).open("wb") as file:
            file.writelines(lines.encode(record) + b"\n" for record in records)
    (folder / "dump.json").write_bytes(lines.encode(evidence.dump))


def make(effects: int, folder: Path) -> None:
    keep(generate(effects), folder)


def judge(folder: Path) -> str:
    """What loading and checking took, by the clock and of a processor, in one line."""
    marks = [(time.monotonic(), time.process_time())]
    evidence = load(folder)
    marks.append((time.monotonic(), time.process_time()))
    verdict = check(evidence)
    marks.append((time.monotonic(), time.process_time()))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"{verdict.effects:,} effects of {verdict.runs:,} runs: checked in {_between(*marks[1:])},"
        f" loaded and checked in {_between(marks[0], marks[2])}, {verdict.violations} violations, {memory:.1f} GB"
    )


def _between(first: tuple[float, float], last: tuple[float, float]) -> str:
    return f"{last[0] - first[0]:.1f} s ({last[1] - first[1]:.1f} s of a processor)"


def main() -> None:
    effects = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    with tempfile.TemporaryDirectory(prefix="foliot-speed-") as folder:
        # In a process of its own: what it takes to make them up is no memory of the checker's.
        making = multiprocessing.get_context("spawn").Process(target=make, args=(effects, Path(folder)))
        making.start()
        making.join()
        if making.exitcode:
            sys.exit("the history could not be made up; its error stands above")
        print(judge(Path(folder)))  # noqa: T201 - its output


if __name__ == "__main__":
    main()
