"""Operations on tenants: each sees itself, and no other."""

from msgspec import UNSET

from foliot.api.operation import Call, Operation, Reply
from foliot.domain.errors import NotFound
from foliot.store.tenants import TenantRow
from foliot.wire.limits import LimitsView, TenantPatch, TenantView, tenant_limit


def _own(call: Call) -> str:
    """The tenant that the path names; another one is as unknown as one that never was."""
    if call.path["tenant"] != call.tenant.name:
        raise NotFound("there is no such tenant", "a key speaks for one tenant, its own")
    return call.tenant.name


def _view(name: str, row: TenantRow) -> TenantView:
    limits = LimitsView(row.concurrency)
    return TenantView(tenant=name, weight=row.weight, limits=limits, going=row.going, waiting=row.waiting)


async def get_tenant(call: Call) -> Reply:
    name = _own(call)
    return Reply(_view(name, await call.services.tenants.read(name)))


async def change_tenant(call: Call) -> Reply:
    name, limit = _own(call), call.body.limits.concurrency
    if limit is UNSET:
        return await get_tenant(call)
    return Reply(_view(name, await call.services.tenants.set_limit(name, tenant_limit(limit))))


OPERATIONS = (
    Operation(
        name="getTenant",
        method="GET",
        path="/v1/tenants/{tenant}",
        scope="tenants:read",
        summary="Read a tenant: its weight, its limits, and how many runs wait for them",
        handler=get_tenant,
        result=TenantView,
    ),
    Operation(
        name="changeTenant",
        method="PATCH",
        path="/v1/tenants/{tenant}",
        scope="tenants:write",
        summary="Change the limits of a tenant, null takes one away; whoever waits goes by the new one at once",
        handler=change_tenant,
        body=TenantPatch,
        result=TenantView,
    ),
)
