"""The application under test: functions that do what their payload says and report all of it to the ledger."""

import os
from pathlib import Path
from typing import Any

import msgspec

from chaos.act import Act, new_nonce
from chaos.records import Effect, Phase, digest
from chaos.reporter import Reporter
from foliot import Worker
from foliot.sdk.context import Context

BOOT = os.environ.get("CHAOS_BOOT", "")
"""Who this process is: one name per start."""

worker = Worker(concurrency=int(os.environ.get("CHAOS_CONCURRENCY", "100")))
ledger = Reporter(Path(os.environ.get("CHAOS_LEDGER", "ledger.sock")))


class OnPurpose(Exception):  # noqa: N818 - reads aloud
    """The payload asked for a failure."""


class Report:
    """One attempt as it is reported."""

    def __init__(self, context: Context, payload: Any) -> None:
        self.act = msgspec.convert(payload, Act)
        self._context = context
        self._digest = digest(payload)
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
            payload=self._digest,
            nonce=self._nonce,
            failed=failed,
            isolated=not Worker.may_serve,
        )


async def _act(context: Context, payload: Any) -> None:
    report = Report(context, payload)
    act = report.act
    await ledger.say(report.phase(Phase.START))
    await act.take_time(lambda: ledger.say(report.phase(Phase.BEAT)))
    failing = act.fails(context.attempt)
    await ledger.say(report.phase(Phase.EFFECT), report.phase(Phase.END, failed=failing))
    if failing:
        raise OnPurpose(f"attempt {context.attempt} of {act.fail} that fail on purpose")


for name in ("quick", "slow", "flaky", "stuck"):
    worker.task(_act, name=name)
worker.task(_act, name="caged", isolation="process")
