"""The client for the event loop: the same names as `Foliot`, with `await`."""

from foliot.sdk.aio.calendars import AsyncCalendarCalls
from foliot.sdk.aio.dead_letters import AsyncDeadLetterCalls
from foliot.sdk.aio.fleet import AsyncFleetCalls
from foliot.sdk.aio.jobs import AsyncJobCalls
from foliot.sdk.aio.operations import AsyncOperationCalls
from foliot.sdk.aio.runs import AsyncRunCalls
from foliot.sdk.aio.tenants import AsyncTenantCalls


class AsyncFoliot(
    AsyncJobCalls,
    AsyncRunCalls,
    AsyncOperationCalls,
    AsyncDeadLetterCalls,
    AsyncCalendarCalls,
    AsyncFleetCalls,
    AsyncTenantCalls,
):
    """Talks to Foliot: `async with AsyncFoliot() as client`. Finds a local instance by itself."""
