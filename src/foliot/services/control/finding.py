"""A job as it stands: read for its owner, or locked in the order in which firing locks."""

from foliot.domain.errors import Conflict, NotFound
from foliot.store import jobs
from foliot.store.database import Connection
from foliot.store.jobs import Standing
from foliot.store.reading import JobRow, find_job
from foliot.store.sealed import opened
from foliot.store.vault import Vault


async def read(connection: Connection, vault: Vault, tenant: int, job: int) -> JobRow:
    (shown,) = await opened(vault, tenant, [await read_sealed(connection, tenant, job)])
    return shown


async def read_sealed(connection: Connection, tenant: int, job: int) -> JobRow:
    """As it is stored: for all but its payload."""
    row = await find_job(connection, tenant, job)
    if row is None:
        raise NotFound("there is no such job")
    return row


async def lock(connection: Connection, tenant: int, job: int) -> Standing:
    """Lock the schedules, then the job: the order in which firing takes them.

    Also those of earlier definitions, which may be in the middle of a fire: what that makes must not be overlooked.
    """
    row = await read_sealed(connection, tenant, job)
    followed = await jobs.schedules_followed(connection, job, row.head)
    await jobs.lock_schedules(connection, [row.schedule, *followed])
    standing = await lock_alone(connection, tenant, job)
    if standing.schedule != row.schedule:
        raise Conflict("the job was changed at the same moment", "repeat the call")
    return standing


async def lock_alone(connection: Connection, tenant: int, job: int) -> Standing:
    """Lock the job; its schedule, if it is needed, must have been locked before."""
    standing = await jobs.lock_job(connection, tenant, job)
    if standing is None:
        raise NotFound("there is no such job")
    return standing
