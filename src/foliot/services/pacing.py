"""How fast keys and tenants may call: decided in microseconds, and shared with other processes every second."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Final

import structlog

from foliot.domain.bucket import Bucket, RateLimit, tightest
from foliot.domain.errors import TooMany
from foliot.kit import telemetry
from foliot.store import terms
from foliot.store.database import Database
from foliot.store.keys import KeyOwner
from foliot.store.terms import Level, Report

log = structlog.get_logger("api")

SHARED_EVERY: Final = 1.0
"""Seconds between two reports of what was let in."""
FORGOTTEN: Final = 60.0
"""Seconds without a call after which a bucket is not kept any longer."""
SWEPT_EVERY: Final = 600.0
Buckets = Sequence[Bucket]
Headers = Iterator[tuple[bytes, bytes]]


class _Kept:
    """A bucket, and what was known of it when its process last told of it."""

    __slots__ = ("asked", "bucket", "used")

    def __init__(self, bucket: Bucket, now: float) -> None:
        self.bucket = bucket
        self.used = now
        self.asked: int | None = None


class Pacing:
    """One bucket for each key and each tenant that has a limit and calls here.

    Every process lets in what it believes is left, and once a second tells the database what it has let in: what is
    left there is what it goes on from. So nobody waits for the database, the average is exact over any number of
    processes, and what one does not know of the others it can exceed by is what they let in within that second.
    """

    def __init__(
        self, database: Database, usual: RateLimit | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._usual = usual
        self._monotonic = monotonic
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._swept = monotonic()

    def of(self, owner: KeyOwner) -> Buckets:
        """What a call with this key takes from: nothing, if neither it nor its tenant has a limit."""
        limit = owner.rate or self._usual
        if limit is None:
            return () if owner.key_rate is None else (self._bucket(owner.tenant, owner.key, owner.key_rate),)
        mine = self._bucket(owner.tenant, "", limit)
        if owner.key_rate is None:
            return (mine,)
        return (mine, self._bucket(owner.tenant, owner.key, owner.key_rate))

    def admit(self, buckets: Buckets, cost: int = 1, paid: int = 0) -> None:
        """Take what a call costs, less what it has paid already, or TooMany."""
        now = self._monotonic()
        waits = []
        for bucket in buckets:
            bucket.note_asked(cost - paid)
            waits.append(bucket.wait(now, cost, paid))
        if wait := max(waits):
            telemetry.CALLS_REFUSED.labels("rate").inc()
            raise _too_fast(buckets[waits.index(wait)].limit, cost, wait)
        for bucket in buckets:
            bucket.spend(cost - paid)

    def _bucket(self, tenant: int, key: str, limit: RateLimit) -> Bucket:
        now = self._monotonic()
        kept = self._kept.get((tenant, key))
        if kept is None:
            kept = self._kept[tenant, key] = _Kept(Bucket(limit, now), now)
        kept.used = now
        kept.bucket.change(limit, now)
        return kept.bucket

    async def run(self) -> None:
        """Share what was let in every second, until cancelled. While the database is away, each process goes alone."""
        while True:
            await asyncio.sleep(SHARED_EVERY)
            try:
                await self.share()
            except Exception as error:  # noqa: BLE001 - nobody shall be refused because of it
                log.warning("limits are not shared with other processes just now", error=str(error))

    async def share(self) -> None:
        """Tell what was let in since the last time, and go on from what is left for all."""
        now = self._monotonic()
        for name in [name for name, kept in self._kept.items() if now - kept.used > FORGOTTEN]:
            del self._kept[name]
        reports = [
            Report(*name, kept.bucket.limit, *told)
            for name, kept in self._kept.items()
            if (told := kept.bucket.report()) != (0, 0)
        ]
        if reports:
            await self._settle(reports)
        if now - self._swept > SWEPT_EVERY:
            self._swept = now
            await terms.drop_allowances(self._database)

    async def _settle(self, reports: Sequence[Report]) -> None:
        try:
            levels = await terms.settle_allowances(self._database, reports)
        except BaseException:
            for report in reports:
                if kept := self._kept.get((report.tenant, report.key)):
                    kept.bucket.take_back(report.spent, report.asked)
            raise
        for report in reports:
            name = (report.tenant, report.key)
            if (kept := self._kept.get(name)) and (level := levels.get(name)):
                self._adopt(kept, report, level)

    def _adopt(self, kept: _Kept, report: Report, level: Level) -> None:
        """Of what fills the bucket until the next time, each process lets in the part that was asked for there."""
        asked = report.asked if kept.asked is None else level.asked - kept.asked
        kept.asked = level.asked
        kept.bucket.adopt(level.left, min(1.0, report.asked / max(1, asked)), self._monotonic())


def headers(buckets: Buckets) -> Headers:
    """What is left of the limit that will be reached first."""
    bucket = tightest(buckets)
    yield b"ratelimit-limit", b"%d" % bucket.limit.burst
    yield b"ratelimit-remaining", b"%d" % bucket.remaining
    yield b"ratelimit-reset", b"%d" % bucket.reset


def _too_fast(limit: RateLimit, cost: int, wait: float) -> TooMany:
    whole = f"{limit.per_second:g} a second, {limit.burst:,} at once"
    asked = "calls come" if cost == 1 else f"calls come, and this one hands in {cost:,},"
    seconds = ceil(wait)
    hint = f"nothing was done: repeat the call in {seconds:,} s, or let an operator raise the limit"
    return TooMany(f"{asked} faster than {whole}", hint, after=wait)
