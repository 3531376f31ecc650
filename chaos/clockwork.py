"""A client that minds the time: shared recurrences, edits while nobody fires, what is made up for twice, odd forms."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from chaos.chores import FIRST, Caller
from chaos.records import Outcome

OFTEN: Final = 1.5
"""Seconds between two of its deeds."""
SHARED: Final = "PT2S"
"""Many of its jobs repeat like this: whoever joins meets a schedule that may be behind."""
OWN: Final = "PT7S"
ALL: Final = {"mode": "all", "window": "PT3M"}
RECURRING: Final = {"handler": "quick", "overlap": "allow", "catchUp": ALL}
NARROW: Final = {"mode": "all", "window": "PT10S"}
"""Shorter than any time without schedulers: what is older must not be run any more."""
WALL: Final = {"cronExpression": "5-59/10 0-59 0-23 * * *", "timezone": "Europe/Berlin", "dst": {"gap": "end"}}
"""By the wall clock, and never at the full minute: the end of a gap is an instant of its own."""
FAILING: Final = {"handler": "flaky", "maxRetries": 4, "backoff": {"initial": "PT4S", "factor": 2.0, "max": "PT8S"}}
"""How a job of one instant is tried that takes its time to succeed."""
MOST: Final = 3
"""Jobs that came later, at a time."""
RULES: Final = (
    "FREQ=SECONDLY;BYSECOND=4,19,34,49",
    "FREQ=MINUTELY;BYSECOND=1,31",
    "FREQ=HOURLY;BYMINUTE=0,1,2,3,4,5,6,7",
)
STEPS: Final = ("P1D", "P1W", "P1M", "P2M", "P1Y", "P1DT24H")


class Timekeeper:
    def __init__(self, caller: Caller, seed: int, tenant: str, now: Callable[[], float]) -> None:
        """`now`: the time by which the product is asked."""
        self._caller = caller
        self._client = FIRST + 180
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/time")  # noqa: S311 - guards nothing
        self._seed = seed
        self._now = now
        self._serial = 0
        self._lasting: dict[str, str] = {}
        self._later: list[str] = []
        self._failing: str | None = None

    async def step(self) -> None:
        """Make the jobs that last; then let one come, move or mend one, make up for the past, or try an odd form."""
        lasting: dict[str, dict[str, Any]] = {
            "wall": WALL,
            "narrow": {"every": SHARED, "catchUp": NARROW},
            "wide": {"every": SHARED},
        }
        for name, timing in lasting.items():
            if name not in self._lasting and (made := await self._create(name, RECURRING | timing)):
                self._lasting[name] = made
        match self._chance.choices(("come", "move", "makeUp", "form", "mend"), (4, 2, 3, 2, 2))[0]:
            case "come":
                await self._come({"every": SHARED})
            case "move" if self._later:
                job, every = self._chance.choice(self._later), self._chance.choice((SHARED, SHARED, OWN))
                await self._tell("changeJob", job, {"every": every})
            case "makeUp" if "wide" in self._lasting:
                await self._make_up(self._lasting["wide"])
            case "mend":
                await self._mend()
            case _:
                await self._come(self._form())

    async def _come(self, timing: dict[str, Any]) -> None:
        if len(self._later) >= MOST:
            await self._tell("cancelJob", self._later.pop(0))
        if made := await self._create(f"later {self._serial}", RECURRING | timing):
            self._later.append(made)

    async def _make_up(self, job: str) -> None:
        """For what has been run: twice without running anything again, or all of it once more, one after the other."""
        since, until = (datetime.fromtimestamp(self._now() - ago, UTC).isoformat() for ago in (9.0, 1.0))
        body: dict[str, Any] = {"from": since, "until": until, "concurrency": 3, "order": "oldest", "reprocess": "none"}
        if self._chance.random() < 0.4:
            again = {"concurrency": 1, "order": self._chance.choice(("oldest", "newest")), "reprocess": "all"}
            await self._tell("backfillJob", job, body | again, self._key())
            return
        for _ in range(2):
            await self._tell("backfillJob", job, body, self._key())

    async def _mend(self) -> None:
        """Change a job of one instant when it has been tried in vain: what goes on is the run that was made for it."""
        if self._failing is None:
            soon = datetime.fromtimestamp(self._now() + 0.5, UTC).isoformat()
            self._failing = await self._create(f"failing {self._serial}", {"scheduleAt": soon, **FAILING}, fail=3)
        else:
            job, self._failing = self._failing, None
            await self._tell("changeJob", job, {"payload": self._payload()})

    def _form(self) -> dict[str, Any]:
        """A recurrence in other words, with an instant within the next seconds or the next minute."""
        dice = self._chance
        soon = datetime.fromtimestamp(self._now(), UTC) + timedelta(seconds=dice.randint(2, 12))
        zone = dice.choice(("UTC", "Europe/Berlin", "Asia/Kathmandu"))
        match dice.randrange(3):
            case 0:
                return {"rrule": dice.choice(RULES), "timezone": zone}
            case 1:
                local = (soon + timedelta(minutes=1)).astimezone(ZoneInfo(zone))
                phrases = ("every minute", f"every hour at :{local:%M}", f"every day at {local:%H:%M}")
                return {"when": dice.choice(phrases), "timezone": zone}
            case _:
                begin = soon.replace(microsecond=0) - timedelta(days=dice.choice((0, 7, 28, 364)))
                return {"every": dice.choice(STEPS), "timezone": zone, "scheduleAt": begin.isoformat()}

    async def _create(self, name: str, fields: dict[str, Any], **payload: int) -> str | None:
        body = {"name": f"{name} of {self._client}", "payload": self._payload(**payload), **fields}
        done = await self._caller.insist(self._client, self._tenant, "createJob", None, body, self._key())
        return None if done.outcome is not Outcome.OK or done.answer is None else done.answer["jobId"]

    async def _tell(self, kind: str, job: str, body: dict[str, Any] | None = None, key: str | None = None) -> None:
        await self._caller.insist(self._client, self._tenant, kind, job, body, key)

    def _payload(self, **more: int) -> dict[str, Any]:
        self._serial += 1
        return {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}", **more}

    def _key(self) -> str:
        self._serial += 1
        return f"time{self._seed}-{self._client}-{self._serial}"
