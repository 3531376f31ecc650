"""Every role against every operation, and what a key is told that may not."""

import asyncio
from typing import Any

import pytest

from api.calling import PLAIN, Caller, application
from api.test_table import BODIES, address
from foliot.api.app import OPERATIONS
from foliot.api.operation import Operation
from foliot.domain.access import AT_THE_DATABASE, GRANTS, NewKey, Role, Scope
from foliot.services.keys import Keys
from foliot.services.tenants import REMEMBERED, Tenants
from foliot.store.database import Database
from foliot.store.migrate import migrate
from world import World


async def key_of(world: World, role: Role, **fields: Any) -> str:
    new = NewKey(f"{role} {fields}", role, **fields)
    return (await Keys(world.database).create(AT_THE_DATABASE, new, "acme")).key


WITH_KEY = [operation for operation in OPERATIONS if operation.needs_key]


async def call(caller: Caller, operation: Operation) -> Any:
    return await caller(operation.method, address(operation), BODIES.get(operation.name))


@pytest.mark.parametrize("role", Role)
async def test_a_role_may_do_what_its_scopes_say_and_nothing_else(
    world: World, api: Caller, role: Role, subtests: pytest.Subtests
):
    caller = Caller(api.app, await key_of(world, role))
    for operation in WITH_KEY:
        with subtests.test(operation.name):
            answer = await call(caller, operation)
            may = operation.scope in GRANTS[role]
            assert (answer.status != 403) == may, answer.content
            if not may:
                assert answer.headers["content-type"] == "application/problem+json"
                assert operation.scope in answer.json["detail"]
                having = [each for each in Role if operation.scope in GRANTS[each]]
                assert all(each in answer.json["hint"] for each in having or ["--serve"])


async def test_scopes_narrow_what_a_key_may_do(world: World, api: Caller, subtests: pytest.Subtests):
    caller = Caller(api.app, await key_of(world, Role.OPERATOR, scopes=[Scope.RUNS_WRITE, Scope.FLEET_READ]))
    for operation in WITH_KEY:
        with subtests.test(operation.name):
            may = operation.scope in {Scope.RUNS_WRITE, Scope.FLEET_READ}
            assert ((await call(caller, operation)).status != 403) == may


async def test_a_key_is_made_rotated_and_revoked_by_an_admin(world: World, api: Caller):
    now = [0.0]
    admin = Caller(application(world, Tenants(world.database, lambda: now[0])), await key_of(world, Role.ADMIN))
    made = await admin.post("/v1/keys", {"name": "ci", "role": "viewer", "expiresIn": "P30D"})
    assert made.status == 201
    ci = Caller(admin.app, made.json["key"])
    assert made.headers["location"] == f"/v1/keys/{made.json['keyId']}"
    assert (await ci.get("/v1/jobs")).status == 200
    assert (await ci.post("/v1/jobs", PLAIN)).status == 403
    rotated = (await admin.post(f"/v1/keys/{made.json['keyId']}:rotate", {"overlap": 0})).json
    assert (rotated["former"]["status"], rotated["key"]["role"]) == ("expired", "viewer")
    assert (await Caller(admin.app, rotated["key"]["key"]).get("/v1/jobs")).status == 200
    assert (await admin("DELETE", f"/v1/keys/{rotated['key']['keyId']}")).json["status"] == "revoked"
    now[0] = REMEMBERED + 0.1
    for gone in (made.json["key"], rotated["key"]["key"]):
        assert (await Caller(admin.app, gone).get("/v1/jobs")).status == 401
    listed = (await admin.get("/v1/keys?name=ci")).json["items"]
    assert [each["status"] for each in listed] == ["revoked", "expired"]
    assert not any("key" in each for each in listed)


async def test_an_admin_makes_nobody_an_operator_and_so_reaches_no_other_tenant(
    world: World, api: Caller, stranger: Caller
):
    """Not with as few scopes as it has itself either: it is the role that reaches every tenant."""
    admin = Caller(api.app, await key_of(world, Role.ADMIN))
    body = {"name": "x", "role": "operator", "scopes": sorted(GRANTS[Role.ADMIN])}
    refused = await admin.post("/v1/keys", body)
    assert (refused.status, "operator" in refused.json["detail"]) == (403, True)
    theirs = (await stranger.get("/v1/keys")).json["items"][0]["keyId"]
    narrowed = await key_of(world, Role.OPERATOR, scopes=sorted(GRANTS[Role.ADMIN]))
    (known,) = [
        each
        for each in (await admin.get("/v1/keys")).json["items"]
        if each["role"] == "operator" and len(each["scopes"]) == len(GRANTS[Role.ADMIN])
    ]
    for way in (":rotate", ":limit"):
        answer = await admin.post(f"/v1/keys/{known['keyId']}{way}", {"rateLimit": None} if way == ":limit" else {})
        assert answer.status == 403, way
    assert (await admin("DELETE", f"/v1/keys/{known['keyId']}")).status == 403
    assert (await admin.get(f"/v1/keys/{theirs}")).status == 404
    assert (await admin.post("/v1/keys", {"name": "y", "tenant": "rival"})).status == 404
    assert (await Caller(api.app, narrowed).get(f"/v1/keys/{theirs}")).status == 200, "what it would have meant"


async def test_what_makes_no_sense_of_a_key_is_refused(api: Caller):
    bad = {
        "name": [{"name": ""}, {"name": "a\x00"}, {"name": "x" * 101}],
        "role": [{"role": "root"}],
        "scopes": [{"scopes": ["jobs:erase"]}, {"role": "viewer", "scopes": ["jobs:write"]}, {"scopes": ["work"]}],
        "serves": [{"serves": [""]}, {"serves": ["\x00"]}, {"role": "worker"}, {"serves": ["q"] * 101}],
        "expiresIn": [{"expiresIn": 0}, {"expiresIn": "P4000D"}, {"expiresIn": "soon"}],
    }
    for field, bodies in bad.items():
        for body in bodies:
            assert (await api.post("/v1/keys", {"name": "ci", **body})).field == field, body
    assert (await api.post("/v1/keys", {"name": "ci", "digest": "x"})).field == "digest"
    assert (await api.post("/v1/keys", {"name": "ci", "tenant": "\x00"})).status == 404
    assert (await api.get("/v1/keys?status=lost")).field == "status"
    for cursor in ("nonsense", "2026-01-01.x", "0001-01-01T00:00:00+23:59.x"):
        assert (await api.get(f"/v1/keys?cursor={cursor}")).status == 400
    made = (await api.post("/v1/keys", {"name": "ci"})).json["keyId"]
    assert (await api.post(f"/v1/keys/{made}:rotate", {"overlap": "P91D"})).field == "overlap"


async def test_an_operator_makes_and_sees_tenants_and_others_only_themselves(api: Caller, stranger: Caller):
    made = await api.post("/v1/tenants", {"name": "growth", "role": "editor", "serves": ["mail"]})
    assert (made.status, made.headers["location"]) == (201, "/v1/tenants/growth")
    assert made.json["tenant"]["tenant"] == made.json["key"]["tenant"] == "growth"
    assert (made.json["key"]["role"], made.json["key"]["serves"]) == ("editor", ["mail"])
    assert (await Caller(api.app, made.json["key"]["key"]).get("/v1/jobs")).status == 200
    names = [each["tenant"] for each in (await api.get("/v1/tenants")).json["items"]]
    assert names == ["acme", "growth", "rival"]
    first = (await api.get("/v1/tenants?limit=1")).json
    assert [each["tenant"] for each in first["items"]] == ["acme"]
    second = (await api.get(f"/v1/tenants?limit=1&cursor={first['nextCursor']}")).json
    assert [each["tenant"] for each in second["items"]] == ["growth"]
    assert [each["tenant"] for each in (await stranger.get("/v1/tenants")).json["items"]] == ["rival"]
    assert (await api("PATCH", "/v1/tenants/rival", {"weight": 3})).json["weight"] == 3
    assert (await stranger("PATCH", "/v1/tenants/rival", {"weight": 9})).status == 403
    assert (await api.post("/v1/tenants", {"name": "growth"})).status == 409
    assert (await api.post("/v1/tenants", {"name": "No"})).field == "name"
    assert (await api("PATCH", "/v1/tenants/rival", {"weight": 0})).field == "weight"
    for path in ("nobody", "%00"):
        assert (await api.get(f"/v1/tenants/{path}")).status == 404


@pytest.mark.parametrize(
    "trick", ["{}/health", "{}/docs", "{}/", "{};/health", "{}%2fhealth", "/{}", "/health/..{}", "{}?/openapi.json"]
)
async def test_no_way_of_writing_an_address_needs_no_key(api: Caller, trick: str):
    nobody = Caller(api.app, None)
    for operation in WITH_KEY:
        answer = await nobody(operation.method, trick.format(address(operation).partition("?")[0]))
        assert answer.status in {307, 401, 404, 405}, operation.name


async def test_nothing_that_ships_is_a_key(empty_dsn: str):
    await migrate(empty_dsn)
    database = await Database.open(empty_dsn, size=1)
    try:
        assert not await database.fetch("list_keys", None, None, None, None, None, 10)
        assert not await Tenants(database).seen_by(AT_THE_DATABASE, after="", limit=10)
    finally:
        await database.close()


async def test_fifty_tenants_over_two_connections_never_see_each_other(dsn: str):
    small = await Database.open(dsn, size=2)
    try:
        async with World.begin(small) as world:
            own = await small.guarded(size=2)
            assert own is not None
            app = application(world, own=own)
            keys = {f"team-{number}": await Tenants(small).create(f"team-{number}") for number in range(50)}
            await asyncio.gather(*(_live(Caller(app, key), name) for name, key in keys.items()))
            await own.close()
    finally:
        await small.close()


async def _live(caller: Caller, name: str) -> None:
    """Make things that bear one's name, give some calls up half way, and find one's own only."""
    for number in range(2):
        await caller.create(name=f"canary {name} {number}", payload={"secret": name})
        hasty = asyncio.ensure_future(caller.create(name=f"canary {name} hasty"))
        await asyncio.sleep(0)
        hasty.cancel()
    await caller.submit(payload={"secret": name}, delay=3600)
    for address_ in ("/v1/jobs", "/v1/runs", "/v1/keys", "/v1/tenants"):
        listed = await caller.get(address_)
        assert listed.status == 200
        assert name.encode() in listed.content or address_ == "/v1/runs"
    jobs = (await caller.get("/v1/jobs")).json["items"]
    assert {each["name"].rpartition(" ")[0] for each in jobs} == {f"canary {name}"}
    for each in jobs:
        assert (await caller.get(f"/v1/jobs/{each['jobId']}")).json["payload"] in ({"secret": name}, None, {})
    (run,) = (await caller.get("/v1/runs")).json["items"]
    assert (await caller.get(f"/v1/runs/{run['runId']}")).json["payload"] == {"secret": name}
