"""Operations on tenants: each sees itself, and no other; operators see all."""

import msgspec
from msgspec import UNSET

from foliot.api.keys import sealed
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import PageQuery
from foliot.domain.access import NewKey, Role, check_may_give, parse_role
from foliot.domain.errors import NotFound
from foliot.services.keys import created
from foliot.services.tenants import FIRST_KEY, Change, view
from foliot.store.keys import KeyRow
from foliot.store.tenants import TenantRow
from foliot.wire.keys import CreatedTenant, TenantBody
from foliot.wire.limits import LimitsPatch, TenantPatch, TenantView, tenant_limit
from foliot.wire.pages import Page, page_of
from foliot.wire.terms import changed_terms


def meant(call: Call, name: str) -> str:
    """The tenant of this name; another than one's own is as unknown as one that never was, but to operators."""
    if name != call.tenant.name and not (call.tenant.role is Role.OPERATOR and name.isprintable()):
        raise NotFound("there is no such tenant", "a key speaks for one tenant, its own")
    return name


async def list_tenants(call: Call) -> Reply:
    limit, after = call.query.limit, call.query.cursor or ""
    rows = await call.services.tenants.seen_by(call.tenant.authority, after=after, limit=limit + 1)
    return Reply(page_of(rows, limit, view, lambda row: row.name))


async def create_tenant(call: Call) -> Reply:
    name, first = call.body.name, NewKey(FIRST_KEY, parse_role(call.body.role), serves=call.body.serves)
    check_may_give(first, call.tenant.authority)

    def render(tenant: TenantRow, key: KeyRow, token: str) -> bytes:
        return msgspec.json.encode(CreatedTenant(tenant=view(tenant), key=created(key, token)))

    made = await call.services.tenants.found_once(name, first, sealed(call), render)
    return Reply(made, location=f"/v1/tenants/{name}")


async def get_tenant(call: Call) -> Reply:
    row = await call.services.tenants.read(meant(call, call.path["tenant"]))
    used = await call.services.terms.used(row.name, call.services.backlog.of(row.id))
    return Reply(view(row, used))


async def change_tenant(call: Call) -> Reply:
    body: TenantPatch = call.body
    limits = LimitsPatch() if body.limits is UNSET else body.limits
    change = Change(
        weight=None if body.weight is UNSET else body.weight,
        concurrency=UNSET if limits.concurrency is UNSET else tenant_limit(limits.concurrency),
        terms=lambda before: changed_terms(before, limits.rate_limit, limits.backlog, body.quotas),
    )
    await call.services.tenants.change(meant(call, call.path["tenant"]), change, call.condition)
    return await get_tenant(call)


OPERATIONS = (
    Operation(
        name="listTenants",
        method="GET",
        path="/v1/tenants",
        scope="tenants:read",
        summary="List tenants by name: all of them for operators, its own for any other key",
        handler=list_tenants,
        query=PageQuery,
        result=Page[TenantView],
    ),
    Operation(
        name="createTenant",
        method="POST",
        path="/v1/tenants",
        scope="tenants:write",
        summary="Create a tenant and its first key, which is shown only now",
        handler=create_tenant,
        body=TenantBody,
        result=CreatedTenant,
        status=201,
        keeps_first_answer=True,
    ),
    Operation(
        name="getTenant",
        method="GET",
        path="/v1/tenants/{tenant}",
        scope="tenants:read",
        summary="Read a tenant: its weight, its limits and quotas, and how it stands with them",
        handler=get_tenant,
        result=TenantView,
        is_versioned=True,
    ),
    Operation(
        name="changeTenant",
        method="PATCH",
        path="/v1/tenants/{tenant}",
        scope="tenants:write",
        summary="Change a tenant's weight, limits or quotas, null takes one away; what waits goes by it at once",
        handler=change_tenant,
        body=TenantPatch,
        result=TenantView,
        is_versioned=True,
        is_conditional=True,
    ),
)
