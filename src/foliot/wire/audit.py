"""Entries of the audit trail on the wire."""

from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta

KEY_PREFIX: Final = "key_"
"""Of the ids of keys, as people see them."""


class AuditEntry(msgspec.Struct, kw_only=True, rename="camel"):
    """One change, or one attempt that was denied."""

    entry_id: str
    at: Annotated[datetime, Meta(tz=True)]
    actor: str
    """The tenant whose key it was, or the person at the command line."""
    key_id: str | None
    ip: str | None
    request_id: str | None
    action: str
    """The operation, such as `pauseJob`."""
    subject: str | None
    """What was changed: a job's id, a calendar's name."""
    outcome: str
    """`done` or `denied`."""
    before: msgspec.Raw | None
    after: msgspec.Raw | None
    """Payloads and headers are given as digests, which tell whether they changed."""
    position: int | None
    """Its place in the tenant's chain; none until it has been sealed, within seconds."""
    hash: str | None
