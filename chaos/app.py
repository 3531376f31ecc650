"""The application under test: functions that do what their payload says and report all of it to the ledger."""

import logging
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from chaos.act import BEAT, Act, as_handed_in, new_nonce
from chaos.records import BOOKING, LIMITS, POISON, SIDE, SNOOZE, Effect, Phase, digest
from chaos.reporter import Reporter, say_plainly
from foliot import Snooze, Worker
from foliot.sdk.context import Context

BOOT = os.environ.get("CHAOS_BOOT", "")
"""Who this process is: one name per start."""

REMOTE = "CHAOS_REMOTE" in os.environ
"""It comes through the gateway, and has no database to write to."""

worker = Worker(queues=("default", SIDE), concurrency=int(os.environ.get("CHAOS_CONCURRENCY", "100")))
ledger = Reporter(Path(os.environ.get("CHAOS_LEDGER", "ledger.sock")))

BOOK = "INSERT INTO public.booked (run, fence) VALUES ($1, $2)"

_snoozed: Counter[str] = Counter()
log = logging.getLogger(__name__)


class OnPurpose(Exception):  # noqa: N818 - reads aloud
    """The payload asked for a failure."""


class Report:
    """One attempt as it is reported."""

    def __init__(self, context: Context, payload: Any) -> None:
        self.act = msgspec.convert(payload, Act)
        self._context = context
        self._digest = digest(as_handed_in(payload))
        self._nonce = new_nonce()

    def phase(self, phase: Phase, *, failed: bool = False) -> Effect:
        context = self._context
        return Effect(
            seq=0,
            at=0.0,
            phase=phase,
            tenant=self.act.tenant,
            run=context.run,
            attempt=context.attempt,
            fence=context.fence,
            worker=BOOT,
            job=context.job,
            scheduled_at=context.scheduled_at.timestamp(),
            concurrency_key=self.act.account,
            payload=self._digest,
            nonce=self._nonce,
            failed=failed,
            isolated=not Worker.may_serve,
        )


async def _act(context: Context, payload: Any) -> dict[str, str] | None:
    report = Report(context, payload)
    act = report.act
    await ledger.say(report.phase(Phase.START))
    if act.snoozes(_snoozed[context.run], time.time() - context.scheduled_at.timestamp()):
        _snoozed[context.run] += 1
        raise Snooze(SNOOZE, "on purpose")
    await act.take_time(lambda: ledger.say(report.phase(Phase.BEAT)))
    failing = act.fails(context.attempt)
    await ledger.say(report.phase(Phase.EFFECT), report.phase(Phase.END, failed=failing))
    if act.secret is not None:
        log.warning("was told %s", act.secret)
    if failing:
        raise OnPurpose(f"attempt {context.attempt} of {act.fail} that fail on purpose {act.secret or ''}")
    return None if act.secret is None else {"said": act.secret}


async def _book(context: Context, payload: Any) -> None:
    """Its effect is a row in the transaction of its success: there once, or not at all."""
    report = Report(context, payload)
    await ledger.say(report.phase(Phase.START))
    async with context.transaction() as connection:
        await connection.execute(BOOK, context.run, context.fence)
        await report.act.take_time(lambda: ledger.say(report.phase(Phase.BEAT)))
        failing = report.act.fails(context.attempt)
        await ledger.say(report.phase(Phase.EFFECT), report.phase(Phase.END, failed=failing))
        if failing:
            raise OnPurpose("the row must be gone with it")


def _book_plainly(context: Context, payload: Any) -> None:
    """The same in a thread, which nobody can stop: it asks."""
    report = Report(context, payload)
    say_plainly(ledger.socket, report.phase(Phase.START))
    with context.transaction() as connection:
        connection.execute(BOOK, context.run, context.fence)
        ready = time.monotonic() + report.act.slow
        while (left := ready - time.monotonic()) > 0:
            time.sleep(min(left, BEAT))
            if context.cancelled:
                raise OnPurpose(f"told to end: {context.stop_reason}")
            if time.monotonic() < ready:
                say_plainly(ledger.socket, report.phase(Phase.BEAT))
        failing = report.act.fails(context.attempt)
        say_plainly(ledger.socket, report.phase(Phase.EFFECT), report.phase(Phase.END, failed=failing))
        if failing:
            raise OnPurpose("the row must be gone with it")


async def _poison(context: Context, payload: Any) -> None:
    """Takes everybody along who is in the same process."""
    await ledger.say(Report(context, payload).phase(Phase.START))
    os.kill(os.getpid(), signal.SIGKILL)


for name in ("quick", "slow", "flaky", "stuck", "snoozing", *LIMITS):
    worker.task(_act, name=name)
if not REMOTE:
    for name, book in zip(BOOKING, (_book, _book_plainly), strict=True):
        worker.task(book, name=name)
    worker.task(_act, name="patient")
    worker.task(_poison, name=POISON)
    worker.task(_act, name="caged", isolation="process")
