"""What remote handlers tell of their work while it goes on."""

from collections.abc import Sequence

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.ids import decode, encode
from foliot.domain.report import LARGEST_CHECKPOINT, Progress, storable
from foliot.kit.clock import wall
from foliot.services.gateway.settlements import check_instants
from foliot.store import reports
from foliot.store.database import Line
from foliot.store.reports import Report
from foliot.store.sealed import CHECKPOINT, sealed_reports
from foliot.store.vault import NO_VAULT, Owner, Vault
from foliot.wire.reports import ReportAnswer, ReportBody, Told, Wanted
from foliot.wire.work import RunRef


class Reporting:
    """One worker at a time: this is rare beside claims and settlements."""

    def __init__(self, line: Line, vault: Vault = NO_VAULT) -> None:
        self._line = line
        self._vault = vault

    async def report(self, worker: int, body: ReportBody) -> ReportAnswer:
        told = [_report(each, f"told[{index}]") for index, each in enumerate(body.told)]
        if told and await self._vault.sealing():
            told = await self._sealed(told)
        held = await reports.report(self._line, worker, told) if told else set()
        return ReportAnswer(_lost(told, held), await self._last(worker, body.wanted))

    async def _last(self, worker: int, wanted: Wanted | None) -> msgspec.Raw | msgspec.UnsetType:
        if wanted is None:
            return msgspec.UNSET
        run = decode("run", wanted.run_id)
        state = await reports.last_checkpoint(self._line, worker, run, wanted.fence)
        if state is None:
            return msgspec.UNSET
        if state[:1] == b"\0":
            tenant = (await reports.tenants_of(self._line, [run])).get(run, 0)
            state = await self._vault.open(Owner(tenant, run), CHECKPOINT, state)
        return msgspec.Raw(state)

    async def _sealed(self, told: Sequence[Report]) -> list[Report]:
        """Whose runs they are is for the database to say."""
        owners = await reports.tenants_of(self._line, [each.run for each in told])
        owned = [each._replace(tenant=owners.get(each.run, 0)) for each in told]
        return list(await sealed_reports(self._vault, owned))


def _report(told: Told, place: str) -> Report:
    state = None if told.checkpoint is msgspec.UNSET else bytes(told.checkpoint)
    if state is not None and len(state) > LARGEST_CHECKPOINT:
        hint = "keep the data where it belongs, and where to find it here"
        raise InvalidField(f"{place}.checkpoint", f"is longer than {LARGEST_CHECKPOINT:,} bytes", hint)
    run, said = decode("run", told.run_id), told.progress
    if said is None:
        return Report(run, told.fence, None, wall(), state)
    check_instants([said.at], f"{place}.progress")
    message = None if said.message is None else storable(said.message)
    return Report(run, told.fence, Progress(said.fraction, said.done, said.total, message), said.at, state)


def _lost(told: Sequence[Report], held: set[tuple[int, int]]) -> list[RunRef]:
    return [RunRef(encode("run", each.run), each.fence) for each in told if (each.run, each.fence) not in held]
