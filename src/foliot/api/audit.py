"""Reading the audit trail."""

from typing import Literal

import msgspec

from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit
from foliot.wire.audit import KEY_PREFIX, AuditEntry
from foliot.wire.pages import Page
from foliot.wire.timing import Instant, check_instant


class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    tenant: str | None = None
    subject: str | None = None
    action: str | None = None
    actor: str | None = None
    key: str | None = None
    ip: str | None = None
    request: str | None = None
    outcome: Literal["done", "denied"] | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: Limit = 50
    cursor: str | None = None


async def list_audit(call: Call) -> Reply:
    query: AuditQuery = call.query
    sought = {name: getattr(query, name) for name in ("subject", "action", "actor", "ip", "request", "outcome")}
    page = await call.services.audit.page(
        call.tenant.authority,
        tenant=query.tenant,
        since=check_instant(query.since, "since"),
        until=check_instant(query.until, "until"),
        limit=query.limit,
        cursor=query.cursor,
        key=None if query.key is None else query.key.removeprefix(KEY_PREFIX),
        **sought,
    )
    return Reply(page)


OPERATIONS = (
    Operation(
        name="listAudit",
        method="GET",
        path="/v1/audit",
        scope="audit:read",
        summary="List changes and denied attempts, newest first; operators may name a tenant, or - for unknown callers",
        handler=list_audit,
        query=AuditQuery,
        result=Page[AuditEntry],
    ),
)
