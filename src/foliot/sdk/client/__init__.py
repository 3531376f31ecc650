# Written by `make sdk` from sdk/aio/__init__.py: change that.
"""The client that waits for each answer: the same names as `AsyncFoliot`, without `await`."""

from foliot.sdk.client.calendars import CalendarCalls
from foliot.sdk.client.dead_letters import DeadLetterCalls
from foliot.sdk.client.fleet import FleetCalls
from foliot.sdk.client.jobs import JobCalls
from foliot.sdk.client.operations import OperationCalls
from foliot.sdk.client.runs import RunCalls
from foliot.sdk.client.tenants import TenantCalls


class Foliot(
    JobCalls,
    RunCalls,
    OperationCalls,
    DeadLetterCalls,
    CalendarCalls,
    FleetCalls,
    TenantCalls,
):
    """Talks to Foliot: `with Foliot() as client`, or without closing it. Finds a local instance by itself."""
