"""What encryption costs: processor time to seal a run that is handed in, and to open one that a worker has claimed."""

import time
from datetime import UTC, datetime
from typing import Final

from foliot.bench.produce import BATCH, PAYLOAD, specs_of
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.kit.sealing import new_key
from foliot.store.database import Line
from foliot.store.dispatch import Claimed
from foliot.store.sealed import opened_runs, sealed_run
from foliot.store.specs import SpecRef
from foliot.store.submission import NewRun
from foliot.store.vault import Lock, Vault

LARGE: Final = b'"' + b"y" * (16_384 - 2) + b'"'
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


class _OneKey(Vault):
    """Knows the key of one tenant, and asks nobody."""

    def __init__(self, lock: Lock) -> None:
        super().__init__(Line(""))
        self._keys[lock.tenant, lock.version] = lock.key


async def _once(trial: Trial) -> Found:
    ref, watch = (await specs_of(trial.bed.database, "noop"))[0], await trial.bed.watch()
    lock = Lock(ref.tenant, 1, new_key())
    small = await _cost(lock, ref, PAYLOAD, trial.seconds / 4)
    large = await _cost(lock, ref, LARGE, trial.seconds / 4)
    beside = await _cost(None, ref, PAYLOAD, trial.seconds / 4)
    found = {
        "sealed": small[0],
        "opened": small[1],
        "sealedLarge": large[0],
        "openedLarge": large[1],
        "beside": round(sum(beside), 2),
    }
    trial.say("encryption: " + ", ".join(f"{name} {micros} µs" for name, micros in found.items()))
    return {**found, "busy": watch.busy()}


async def _cost(lock: Lock | None, ref: SpecRef, payload: bytes, seconds: float) -> tuple[float, float]:
    """Microseconds of this process for each run: sealed, then opened; batch after batch, and all come back whole."""
    vault = _OneKey(lock or Lock(ref.tenant, 1, new_key()))
    runs, sealing, opening, count = [NewRun(ref, payload)] * BATCH, 0.0, 0.0, 0
    while sealing + opening < seconds:
        began = time.process_time()
        written = [sealed_run(lock, run, number) for number, run in enumerate(runs)]
        sealing += time.process_time() - began
        claimed = [_claimed(run, number) for number, run in enumerate(written)]
        began = time.process_time()
        opened = await opened_runs(vault, claimed)
        opening += time.process_time() - began
        count += BATCH
        if any(run.payload != payload for run in opened):
            raise AssertionError("what was sealed did not come back as it was")
    return round(1e6 * sealing / count, 2), round(1e6 * opening / count, 2)


def _claimed(run: NewRun, number: int) -> Claimed:
    return Claimed(
        fence=1,
        position=number,
        id=number,
        rank=0,
        tenant=run.spec.tenant,
        spec=run.spec.id,
        job=None,
        attempt=0,
        deaths=0,
        scheduled_at=_AT,
        target=None,
        payload=run.payload,
    )


SECTION: Final = Section(
    "encryption",
    "Encrypted payloads",
    f"The payloads of runs sealed as the API does, and opened as a worker does, {BATCH:,} at a time, for {{seconds}} s:"
    f" {len(PAYLOAD)} bytes as in the other sections, then {len(LARGE):,}. Processor time of one process, without the"
    " database; every payload must come back as it was.",
    _once,
    full=8,
)
