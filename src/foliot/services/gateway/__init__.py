"""Work for workers that have only a URL and a key: what many of them ask is done for all of them at once."""

import asyncio
from collections.abc import Callable

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.ids import encode
from foliot.domain.scaling import DEEP
from foliot.kit.clock import Steady, steady
from foliot.kit.tasks import background
from foliot.services.gateway.claims import Claims
from foliot.services.gateway.entrusting import Entrusting
from foliot.services.gateway.leases import Leases
from foliot.services.gateway.membership import Bearer, Membership, worker_number
from foliot.services.gateway.news import News
from foliot.services.gateway.promoting import Promoting
from foliot.services.gateway.reaching import reaching
from foliot.services.gateway.reporting import Reporting
from foliot.services.gateway.settlements import Settlements, settling_of
from foliot.services.gateway.taking import Gone, Taking
from foliot.services.gateway.telling import Teller
from foliot.store.database import Database
from foliot.store.outside import voucher_of
from foliot.store.roster import look_at_processes
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.reports import ReportAnswer, ReportBody
from foliot.wire.work import (
    ClaimAnswer,
    ClaimBody,
    Heartbeat,
    HeartbeatAnswer,
    LookAnswer,
    LookBody,
    SecretsAnswer,
    SecretsBody,
    SettleAnswer,
    SettleBody,
    ToldLane,
)

__all__ = ["Bearer", "Gateway"]


class Gateway:
    """Three connections, however many workers there are. What it remembers of them, any other gateway can find out."""

    def __init__(
        self, database: Database, hint: Callable[[str], None], clock: Steady = steady, vault: Vault = NO_VAULT
    ) -> None:
        self._claim_line = database.line()
        # As workers do that speak to the database themselves: what sits behind somebody's lock is said again later.
        self._settle_line = database.line(statement_timeout="10s", lock_timeout="200ms")
        self._lease_line = database.line(statement_timeout="5s")
        self._membership = Membership(database, self._lease_line)
        teller = Teller(self._claim_line, clock, vault)
        self._promoting = Promoting(self._settle_line, self.wake, clock)
        self._claims = Claims(self._claim_line, teller.learn, clock, self._promoting.claimed)
        self._taking = Taking(self._claims, teller, self._claim_line, self._settle_line, hint)
        self._settlements = Settlements(self._settle_line, hint, vault)
        self._leases = Leases(self._lease_line, self._settle_line)
        self._news = News(self._lease_line, self._claims)
        self._reporting = Reporting(self._settle_line, vault)
        self._entrusting = Entrusting(self._lease_line, vault)

    async def run(self) -> None:
        """Serve until cancelled. One task of this must run for calls to be answered."""
        try:
            beside = (self._settlements, self._leases, self._membership, self._taking, self._news, self._promoting)
            async with background(*(each.run() for each in beside)):
                await self._claims.run()
        finally:
            for line in (self._claim_line, self._settle_line, self._lease_line):
                await line.close()

    def wake(self) -> None:
        """There may be work."""
        self._claims.wake()

    def hear(self) -> None:
        """Something changed about workers, queues, or runs that workers hold."""
        self._news.hear()

    def dismiss(self) -> None:
        """Let nobody wait any longer: this process is about to end."""
        self._claims.dismiss()

    async def heartbeat(self, bearer: Bearer, body: Heartbeat) -> HeartbeatAnswer:
        with reaching():
            lanes: list[ToldLane] = []
            voucher = b""
            worker = worker_number(body.worker)
            if body.register is not None:
                lanes = await self._membership.register(bearer, worker, body.register)
                voucher = (await voucher_of(self._lease_line, worker)).key
            await self._membership.check_owner(bearer, worker)
            lost = await self._leases.note_started(worker, body)
            standing = await self._leases.renew(worker, body)
            if body.wider and standing is not None:
                lanes = await self._membership.wider(worker)
            if body.leaving:
                await self._leases.end(worker)
                standing = None
            if standing is None:
                return HeartbeatAnswer(alive=False, lanes=lanes, lost=lost)
            astray = body.known is not None and standing.is_astray
            stop, recalled = ([encode("run", run) for run in told] for told in (standing.stop, standing.recalled))
            paused = sorted(standing.paused)
            return HeartbeatAnswer(True, lanes, lost, standing.draining, paused, astray, stop, recalled, voucher)

    async def claim(self, bearer: Bearer, body: ClaimBody, gone: Gone) -> ClaimAnswer:
        """Wait for work; `gone` returns when the worker has hung up. What it cannot be told of is handed back.

        Unauthorised, and everything handed back, if its key has ended while it waited.
        """
        with reaching():
            worker = worker_number(body.worker)
            await self._membership.check_owner(bearer, worker)
            if body.known is not None:
                return await self._taking.strays(worker, body.known)
            await self._membership.check_lanes(bearer, body.lanes)
            if body.settle is not None:
                return await self._settle_and_claim(bearer, worker, body, gone)
            return await self._taking.take(worker, body, gone, bearer.is_good)

    async def settle(self, bearer: Bearer, body: SettleBody) -> SettleAnswer:
        with reaching():
            worker = worker_number(body.worker)
            await self._membership.check_owner(bearer, worker)
            return await self._settlements.settle(settling_of(worker, body))

    async def report(self, bearer: Bearer, body: ReportBody) -> ReportAnswer:
        """Keep what handlers tell of their work, and tell what was kept before."""
        with reaching():
            worker = worker_number(body.worker)
            await self._membership.check_owner(bearer, worker)
            return await self._reporting.report(worker, body)

    async def look(self, bearer: Bearer, body: LookBody) -> LookAnswer:
        """For who starts and stops the processes of a machine: only of those that came with this key."""
        with reaching():
            found = await look_at_processes(self._lease_line, body.host, body.pids, DEEP + 1, bearer.key)
            return LookAnswer(found.busy, found.backlog)

    async def secrets(self, bearer: Bearer, body: SecretsBody) -> SecretsAnswer:
        """Those that a run refers to, for the worker that holds it."""
        with reaching():
            worker = worker_number(body.worker)
            await self._membership.check_owner(bearer, worker)
            return await self._entrusting.secrets(worker, body)

    async def _settle_and_claim(self, bearer: Bearer, worker: int, body: ClaimBody, gone: Gone) -> ClaimAnswer:
        """Both at once. If one fails so does the call, to be repeated in parts: what was done is found again."""
        ended = body.settle
        if ended is None or ended.worker != body.worker:
            raise InvalidField("settle.worker", "is another than the one that claims", "call for each by itself")
        settling = settling_of(worker, ended)
        claiming = asyncio.ensure_future(self._taking.take_at_once(worker, body, gone, bearer.is_good))
        try:
            settled = await self._settlements.settle(settling)
            return msgspec.structs.replace(await claiming, settled=settled)
        finally:
            claiming.cancel()
