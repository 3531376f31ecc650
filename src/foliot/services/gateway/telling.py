"""What a remote worker is told of the runs that it took."""

from typing import Final

import msgspec

from foliot.domain.ids import encode
from foliot.kit.clock import Steady
from foliot.store.database import Line, Row
from foliot.store.gateway import spec_bodies
from foliot.store.jobs import fetch_names
from foliot.store.sealed import PAYLOAD, TARGET
from foliot.store.vault import NO_VAULT, Owner, Vault
from foliot.wire.work import ClaimAnswer, RunColumns, ToldSpec

NAMES_ARE_FRESH: Final = 60.0
"""Seconds that the names of jobs are remembered: so long may they lag an edit."""
MOST_REMEMBERED: Final = 100_000

_NULL: Final = msgspec.Raw(b"null")
NOTHING: Final = ClaimAnswer(RunColumns(*([] for _ in range(12))), [], {})
NEWS: Final = msgspec.structs.replace(NOTHING, news=True)


class Teller:
    """Remembers specs, which never change, and for a while the names of jobs."""

    def __init__(self, line: Line, clock: Steady, vault: Vault = NO_VAULT) -> None:
        self._line = line
        self._vault = vault
        self._clock = clock
        self._specs: dict[int, ToldSpec] = {}
        self._names: dict[int, str] = {}
        self._names_since = float("-inf")

    async def learn(self, rows: list[Row]) -> dict[int, int]:
        """Make sure that `tell` knows all it needs; the lane of each spec."""
        specs = {row["spec"] for row in rows}
        if unknown := specs - self._specs.keys():
            self._forget_if_many(self._specs)
            for number, lane, body, tenant, signing in await spec_bodies(self._line, sorted(unknown | specs)):
                self._specs[number] = ToldSpec(number, lane, msgspec.Raw(body), tenant, signing)
        if jobs := {row["job"] for row in rows} - {None}:
            await self._learn_names(jobs)
        for row in rows:
            if row["payload"][:1] == b"\0":
                await self._vault.learn(row["tenant"], row["payload"])
        return {number: self._specs[number].lane for number in specs}

    async def _learn_names(self, jobs: set[int]) -> None:
        if self._clock() - self._names_since > NAMES_ARE_FRESH:
            self._names.clear()
            self._names_since = self._clock()
        self._forget_if_many(self._names)
        if unnamed := jobs - self._names.keys():
            self._names |= await fetch_names(self._line, sorted(unnamed))

    @staticmethod
    def _forget_if_many(known: dict[int, ToldSpec] | dict[int, str]) -> None:
        if len(known) > MOST_REMEMBERED:
            known.clear()

    def tell(self, rows: list[Row]) -> ClaimAnswer:
        """The answer for these runs, of which `learn` was told."""
        if not rows:
            return NOTHING
        _, _, fences, positions, ids, _, tenants, specs, jobs, attempts, deaths, at, targets, payloads, forgiven = map(
            list, zip(*rows, strict=True)
        )
        for at_, payload in enumerate(payloads):
            if payload[:1] == b"\0":
                owner = Owner(tenants[at_], ids[at_], jobs[at_])
                payloads[at_] = self._vault.opened_now(owner, PAYLOAD, payload)
                targets[at_] = targets[at_] and self._vault.opened_now(owner, TARGET, targets[at_])
        names = {job: encode("job", job) for job in {*jobs} - {None}}
        columns = RunColumns(
            run_id=[encode("run", number) for number in ids],
            fence=fences,
            position=positions,
            tenant=tenants,
            spec=specs,
            job_id=[names.get(job) for job in jobs],
            attempt=attempts,
            deaths=deaths,
            forgiven=forgiven,
            scheduled_at=at,
            target=[_NULL if target is None else msgspec.Raw(target) for target in targets],
            payload=[msgspec.Raw(payload) for payload in payloads],
        )
        told = {names[job]: self._names[job] for job in names if job in self._names}
        return ClaimAnswer(columns, [self._specs[number] for number in {*specs}], told)
