"""What every client will do, from the seed alone: no clock, no answer, no other client has a say in it."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

import msgspec

from chaos.oracle import closed

CLIENTS: Final = (
    ("acme", "bulk"),
    ("globex", "bulk"),
    ("acme", "mixed"),
    ("acme", "mixed"),
    ("globex", "mixed"),
    ("globex", "mixed"),
)
MOST_JOBS: Final = 10
"""Jobs that one client keeps alive at a time."""
SLOWEST: Final = 2.0
"""Seconds that a handler takes at most, if nothing else is asked for."""
LONG: Final = (19.5, 21.0)
"""Seconds that a handler in a process of its own takes: longer than a lease, so that it would outlive one."""
ONCE: Final = 3
"""One in so many slow runs is delivered at most once."""
QUICKLY: Final = {"initial": "PT0.2S", "factor": 2.0, "max": "PT2S"}
_CRONS: Final = (
    "*/2 * * * * *",
    "*/3 * * * * *",
    "*/5 * * * * *",
    "1-59/7 * * * * *",
    "0,10,25,40 * * * * *",
    "* * * * *",
)
_ZONES: Final = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns")
_MANNERS: Final = {"catchUp": 0.5, "jitter": 0.25, "maxRuns": 0.2}
"""What a recurring job may be given, and how often."""
_MODES: Final = ("all", "all", "latest", "none")
_WINDOWS: Final = ("PT10S", "PT45S", "PT2M", "PT3M")
_JITTERS: Final = ("PT1S", "PT2.5S", "PT5S", "PT12S")
"""Longer than most periods, some of them: never past the next instant all the same."""
CALENDAR: Final = "thirds"
_RULES: Final = ("skip", "next", "previous")


def calendar(now: float) -> dict[str, Any]:
    """Closed in every third minute, from a little while ago until long after the usual campaigns are over."""
    first = int(now // 60) - 30
    minutes = (minute for minute in range(first, first + 16 * 60) if closed(minute))
    windows = [{"from": _instant(minute * 60), "until": _instant(minute * 60 + 60)} for minute in minutes]
    return {"timezone": "UTC", "blackouts": windows}


def _instant(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


class Step(msgspec.Struct, frozen=True):
    """One call. Instants stand as {"$in": seconds} from the moment of the call."""

    kind: str
    pause: float
    """Seconds to wait before it."""
    job: int | None = None
    """The client's how-manyth job it acts on."""
    body: dict[str, Any] | None = None
    key: str | None = None
    again: bool = False
    """Sent once more with the same key after it succeeded: the answer must be the same."""
    expected: list[Any] = []
    """Payloads of those of its runs that will end well."""


class Planner:
    """The endless plan of one client."""

    caged: ClassVar[float] = 0.09
    """The share of single runs that have a process of their own: about two are under way all the time."""

    def __init__(self, seed: int, client: int, target: str, *, slowest: float = SLOWEST) -> None:
        self.tenant, self.role = CLIENTS[client]
        self._chance = random.Random(f"{seed}/{client}")  # noqa: S311 - guards nothing
        self._client = client
        self._seed = seed
        self._target = target
        self._slowest = slowest
        self._serial = 0
        self._jobs: dict[int, str] = {}
        """Live jobs and their timing: once, cron, every, none."""
        self._paused: set[int] = set()
        self._made = 0

    def steps(self) -> Iterator[Step]:
        while True:
            yield self._batch() if self.role == "bulk" else self._mixed()

    def _key(self) -> str:
        self._serial += 1
        return f"k{self._seed}-{self._client}-{self._serial}"

    def _act(self, *, http: float) -> tuple[dict[str, Any], int]:
        """Handler, payload and policy of something to do; 1 if it will end well."""
        dice, self._serial = self._chance, self._serial + 1
        payload: dict[str, Any] = {"tenant": self.tenant, "serial": f"{self._client}.{self._serial}"}
        roll = dice.random()
        policy: dict[str, Any] = {}
        if roll < 0.93:
            name, well = "quick", 1
        elif roll < 0.96:
            name, well = "slow", 1
            payload["slow"] = round(dice.uniform(0.2, self._slowest), 2)
            if self._serial % ONCE == 0:
                policy, well = {"delivery": "atMostOnce"}, 0  # a lost worker leaves its end unknown
        elif roll < 0.99:
            name, well = "flaky", 1
            payload["fail"] = dice.choice((1, 1, 2))
            policy = {"maxRetries": 4, "backoff": QUICKLY}
        elif roll < 0.995:
            name, well = "flaky", 0
            payload["fail"] = 9
            policy = {"maxRetries": 1, "backoff": QUICKLY}
        else:
            name, well = "stuck", 0
            payload["slow"] = 30.0
            policy = {"maxRetries": 1, "backoff": QUICKLY, "timeoutSeconds": 0.5}
        handler = self._target if dice.random() < http else name
        return {"handler": handler, "payload": payload, **policy}, well

    def _batch(self) -> Step:
        dice = self._chance
        runs, expected = list[dict[str, Any]](), list[Any]()
        for _ in range(dice.randint(100, 500)):
            run, well = self._act(http=0.02)
            if dice.random() < 0.03:
                run["delay"] = round(dice.uniform(0.5, 8.0), 2)
            runs.append(run)
            expected += [run["payload"]] * well
        return Step(
            "createRuns", 0.0, body={"runs": runs}, key=self._key(), again=dice.random() < 0.03, expected=expected
        )

    def _mixed(self) -> Step:
        dice = self._chance
        pause = min(dice.expovariate(1 / 0.7), 5.0)
        if len(self._jobs) < MOST_JOBS // 2 or (len(self._jobs) < MOST_JOBS and dice.random() < 0.4):
            return self._create(pause)
        job = dice.choice(sorted(self._jobs))
        kind = dice.choices(
            ("changeJob", "pauseJob", "resumeJob", "cancelJob", "deleteJob", "runJob", "createRun", "createRuns",
             "backfillJob"),
            (4, 2, 3, 1, 1, 5, 5, 1, 2),
        )[0]  # fmt: skip
        if kind == "backfillJob" and self._jobs[job] not in {"cron", "every"}:
            kind = "runJob"
        match kind:
            case "createRun" if self.caged and dice.random() < self.caged:
                payload = {**self._payload(), "slow": round(dice.uniform(*LONG), 2), "fail": 0}
                caged = {"handler": "caged", "payload": payload}
                return Step(kind, pause, body=caged, key=self._key(), expected=[payload])
            case "createRun":
                run, well = self._act(http=0.3)
                if dice.random() < 0.3:
                    run |= dice.choice(({"delay": "PT1.5S"}, {"runAt": {"$in": round(dice.uniform(0, 5), 2)}}))
                expected = [run["payload"]] * well
                return Step(kind, pause, body=run, key=self._key(), again=dice.random() < 0.2, expected=expected)
            case "createRuns":
                return msgspec.structs.replace(self._batch(), pause=pause)
            case _:
                return self._of_job(kind, pause, job)

    def _of_job(self, kind: str, pause: float, job: int) -> Step:
        dice = self._chance
        match kind:
            case "changeJob":
                return Step(kind, pause, job=job, body=self._change(job))
            case "backfillJob":
                return Step(kind, pause, job=job, body=self._backfill(), key=self._key(), again=dice.random() < 0.2)
            case "runJob":
                body = {"payload": self._payload()} if dice.random() < 0.3 else None
                return Step(kind, pause, job=job, body=body, key=self._key(), again=dice.random() < 0.1)
            case "resumeJob":
                job = dice.choice(sorted(self._paused & self._jobs.keys()) or [job])
                self._paused.discard(job)
            case "pauseJob":
                self._paused.add(job)
            case _:
                del self._jobs[job]
        return Step(kind, pause, job=job)

    def _create(self, pause: float) -> Step:
        dice = self._chance
        body, _ = self._act(http=0.25)
        timing = dice.choices(("once", "cron", "every", "none"), (4, 3, 4, 2))[0]
        body |= {"name": f"client-{self._client}-job-{self._made}", **self._timing(timing)}
        if timing in {"cron", "every"}:
            body["overlap"] = dice.choice(("skip", "allow"))
            body |= {name: self._manner(name) for name, share in _MANNERS.items() if dice.random() < share}
        job, self._made = self._made, self._made + 1
        if timing != "once" or dice.random() < 0.3:  # most one-time jobs are left to themselves
            self._jobs[job] = timing
        return Step("createJob", pause, job=job, body=body, key=self._key(), again=dice.random() < 0.1)

    def _timing(self, timing: str) -> dict[str, Any]:
        dice = self._chance
        match timing:
            case "once":
                return {"scheduleAt": {"$in": round(dice.uniform(0.5, 20.0), 2)}}
            case "cron":
                zone = {"timezone": dice.choice(_ZONES)} if dice.random() < 0.5 else {}
                return {"cronExpression": dice.choice(_CRONS), **zone, **self._calendar()}
            case "every":
                anchor = {"scheduleAt": {"$in": round(dice.uniform(0.5, 6.0), 2)}} if dice.random() < 0.3 else {}
                return {"every": f"PT{dice.randint(1, 9)}S", **anchor, **self._calendar()}
            case _:
                return {}

    def _calendar(self) -> dict[str, Any]:
        dice = self._chance
        return {"calendar": {"name": CALENDAR, "rule": dice.choice(_RULES)}} if dice.random() < 0.2 else {}

    def _backfill(self) -> dict[str, Any]:
        """A range of the last seconds, some of which were run."""
        dice = self._chance
        since = round(dice.uniform(4.0, 25.0), 2)
        return {
            "from": {"$in": -since},
            "until": {"$in": -round(dice.uniform(2.0, since), 2)},
            "concurrency": dice.randint(1, 3),
            "order": dice.choice(("oldest", "newest")),
            "reprocess": dice.choice(("none", "none", "failed", "all")),
        }

    def _change(self, job: int) -> dict[str, Any]:
        dice = self._chance
        if self._jobs[job] not in {"cron", "every"} or dice.random() < 0.3:
            return {"payload": self._payload()}
        if dice.random() < 0.5:
            name = dice.choice(sorted(_MANNERS))
            return {name: None if dice.random() < 0.2 else self._manner(name)}
        self._jobs[job] = dice.choice(("cron", "every"))
        return self._timing(self._jobs[job])

    def _manner(self, name: str) -> Any:
        """How a recurring job takes its instants: which late ones it wants, where in a window, how many of them."""
        match name:
            case "catchUp":
                return {"mode": self._chance.choice(_MODES), "window": self._chance.choice(_WINDOWS)}
            case "jitter":
                return self._chance.choice(_JITTERS)
            case _:
                return self._chance.randint(2, 6)

    def _payload(self) -> dict[str, Any]:
        """Something else for a job to do, whatever its policy: nothing that needs a time-out to end."""
        self._serial += 1
        payload: dict[str, Any] = {"tenant": self.tenant, "serial": f"{self._client}.{self._serial}"}
        more: dict[str, Any] = self._chance.choice(({}, {}, {"slow": 0.7}, {"fail": 1}))
        return payload | more
