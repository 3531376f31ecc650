"""A cancelled job forgotten for good, with its history: bit by bit, the job itself last."""

from typing import Final

from foliot.domain.errors import Conflict
from foliot.domain.ids import encode
from foliot.services.control.finding import lock_alone
from foliot.store import past
from foliot.store.audit import note
from foliot.store.database import Connection
from foliot.store.past import Lingering

_ERASED_AT_ONCE: Final = 5_000


async def erase_some(connection: Connection, tenant: int, job: int) -> bool:
    """Forget a bit, and say whether that was the last."""
    await lock_alone(connection, tenant, job)
    _refuse_if_it_lingers(await past.lingers(connection, job))
    if await past.erase_history(connection, tenant, job, _ERASED_AT_ONCE):
        return False
    await past.erase_job(connection, tenant, job)
    await note(connection, encode("job", job), {"gate": "cancelled"}, None)
    return True


def _refuse_if_it_lingers(lingering: Lingering) -> None:
    if lingering.goes_on:
        hint = "it is cancelled: repeat the call when its runs have stopped, which takes at most a minute"
        raise Conflict("runs of the job still go on", hint)
    if lingering.children:
        named = ", ".join(encode("job", child) for child in lingering.children)
        raise Conflict(f"other jobs wait for it: {named}", "it is cancelled: change them, or cancel them, first")
