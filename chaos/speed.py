"""How long the checker takes for a large history: `python -m chaos.speed [effects]`.

3,000,000 effects of 1,000,000 runs (100,000 of them of 200 recurring jobs), every attempt in the dump: 23 s of CPU and
2.7 GB on the two-core machine (36 s by the clock, beside a test suite that took the rest).
"""

import random
import resource
import sys
import time

from chaos.records import Dump, Effect, Evidence, Fault, Operation, Outcome, Phase, digest
from chaos.synthetic.world import BEGIN, rfc3339
from chaos.verdict import check

BATCH = 100
JOBS = 200
PERIOD = 5


def generate(effects: int) -> Evidence:
    """Three effects to a run, one run in ten of a recurring job; all goes well, with a fault every minute."""
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
        dump=Dump(
            taken=BEGIN + seconds + 100, jobs={"north": []}, runs={"north": []}, attempts={"north": []}, missed={}
        ),
    )
    _ad_hoc(made, count - count // 10, seconds)
    _recurring(made, count // 10)
    made.effects.sort(key=lambda effect: effect.at)
    return made


def _ad_hoc(made: Evidence, count: int, seconds: float) -> None:
    for first in range(0, count, BATCH):
        at = BEGIN + 1 + first / count * seconds
        bodies = [{"handler": "quick", "payload": {"serial": f"{first + each}"}} for each in range(BATCH)]
        names = [f"run_{first + each:08d}" for each in range(BATCH)]
        made.operations.append(
            Operation(
                number=first,
                client=0,
                tenant="north",
                kind="createRuns",
                invoked=at,
                completed=at + 0.1,
                outcome=Outcome.OK,
                body={"runs": bodies},
                answer={"runIds": names},
                key=f"key {first}",
                status=201,
            )
        )
        for name, body in zip(names, bodies, strict=True):
            _run(made, name, None, at + 0.05, digest(body["payload"]))


def _recurring(made: Evidence, count: int) -> None:
    for job in range(JOBS):
        name, body = f"job_{job}", {"name": f"job {job}", "every": PERIOD, "overlap": "allow", "payload": job}
        view = {**body, "jobId": name, "tenant": "north", "status": "pending", "scheduleType": "recurring"}
        operation = Operation(
            number=-job - 1,
            client=0,
            tenant="north",
            kind="createJob",
            invoked=BEGIN + 0.1,
            completed=BEGIN + 0.2,
            outcome=Outcome.OK,
            body=body,
            answer=view,
            key=f"job {job}",
        )
        made.operations.append(operation)
        made.dump.jobs["north"].append({**view, "createdAt": rfc3339(BEGIN + 0.15), "nextRunAt": None})
        made.dump.occurrences[name] = rows = []
        for number in range(count // JOBS):
            at = BEGIN + (number + 1) * PERIOD
            _run(made, f"run_{job}_{number}", name, at, digest(job))
            run = {"runId": f"run_{job}_{number}", "runStatus": "completed", "dueAt": rfc3339(at)}
            rows.append({"at": rfc3339(at), "status": "fired", "reason": None, **run})


def _run(made: Evidence, name: str, job: str | None, due: float, payload: str) -> None:
    start = due + random.uniform(0.001, 0.1)  # noqa: S311 - a made-up time
    for phase, at in ((Phase.START, start), (Phase.EFFECT, start + 0.01), (Phase.END, start + 0.02)):
        made.effects.append(
            Effect(
                seq=0,
                at=at,
                phase=phase,
                tenant="north",
                run=name,
                attempt=1,
                fence=len(made.effects) // 300,
                worker="w1",
                job=job,
                scheduled_at=due,
                payload=payload,
                nonce=name,
            )
        )
    times = {"scheduledAt": rfc3339(due), "finishedAt": rfc3339(start + 0.03), "startedAt": rfc3339(start)}
    row = {**times, "runId": name, "jobId": job, "workerId": "wrk_1"}
    made.dump.runs["north"].append(
        {**row, "status": "completed", "dueAt": times["scheduledAt"], "createdAt": times["scheduledAt"], "attempts": 1}
    )
    fence = made.effects[-3].fence
    made.effects[-1].fence = made.effects[-2].fence = fence
    made.dump.attempts["north"].append({**row, "status": "completed", "attempt": 1, "fence": fence})


def main() -> None:
    evidence = generate(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000)
    began, used = time.monotonic(), time.process_time()
    verdict = check(evidence)
    took, spent = time.monotonic() - began, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(  # noqa: T201 - its output
        f"{verdict.effects:,} effects of {verdict.runs:,} runs: {took:.1f} s ({spent:.1f} s of CPU), "
        f"{verdict.violations} violations, {memory:.1f} GB"
    )


if __name__ == "__main__":
    main()
