"""Keys of tenants: made, given, used, rotated, expired and revoked."""

import asyncio
from datetime import timedelta

import pytest

from foliot.domain.access import AT_THE_DATABASE, GRANTS, Authority, NewKey, Role, Scope, scopes_of
from foliot.domain.bucket import RateLimit
from foliot.domain.errors import Conflict, Forbidden, NotFound
from foliot.kit.tokens import new_token, read_token
from foliot.services.keys import Keys
from foliot.services.tenants import REMEMBERED, Tenants
from foliot.services.terms import TermsKeeper
from foliot.store import keys as stored
from foliot.store.database import Database
from foliot.store.keys import KeyOwner
from world import World

DAY = timedelta(days=1)
PLAIN = NewKey("ci", Role.EDITOR)


def of(world: World, role: Role) -> Authority:
    return Authority(world.tenant, role, GRANTS[role])


async def test_a_key_is_shown_once_and_kept_as_a_digest(world: World):
    made = await Keys(world.database).create(of(world, Role.ADMIN), PLAIN)
    token = read_token(made.key)
    assert token is not None
    assert made.key_id == f"key_{token.id}"
    rows = await world.sql("SELECT api_key::text AS row FROM api_key")
    assert not any(made.key[17:] in row["row"] for row in rows)
    assert not hasattr(await Keys(world.database).read(of(world, Role.ADMIN), made.key_id), "key")


async def test_two_of_a_name_are_active_at_most_and_one_that_expired_or_was_revoked_makes_room(world: World):
    keys, admin = Keys(world.database), of(world, Role.ADMIN)
    first, second = [await keys.create(admin, PLAIN) for _ in range(2)]
    with pytest.raises(Conflict, match="two keys called 'ci'"):
        await keys.create(admin, PLAIN)
    with pytest.raises(Conflict):
        await keys.rotate(admin, second.key_id, overlap=DAY, life=None)
    await keys.create(admin, PLAIN._replace(name="other"))
    await keys.create(AT_THE_DATABASE, PLAIN, await _rival(world))
    await keys.revoke(admin, first.key_id)
    third = await keys.create(admin, PLAIN)
    await world.sql("UPDATE api_key SET expires_at = now() WHERE id = $1", third.key_id.removeprefix("key_"))
    await keys.create(admin, PLAIN)
    active = await keys.page(admin, name="ci", status="active", limit=10)
    assert len(active.items) == 2


async def _rival(world: World) -> str:
    await world.another_tenant("rival")
    return "rival"


async def test_of_rivals_for_the_last_place_one_gets_it(world: World):
    keys, admin = Keys(world.database), of(world, Role.ADMIN)
    await keys.create(admin, PLAIN)
    async with world.unfinished() as rival:
        await stored.make_key(await rival.connection(), world.tenant, new_token(), PLAIN)
        waiting = asyncio.ensure_future(keys.create(admin, PLAIN))
        await world.until_waiting()
    with pytest.raises(Conflict):
        await waiting
    assert len((await keys.page(admin, name="ci", limit=10)).items) == 2


async def test_rotating_makes_a_key_that_may_the_same_and_ends_the_former_one_in_time(world: World):
    keys, operator = Keys(world.database), of(world, Role.OPERATOR)
    new = NewKey("ci", Role.EDITOR, [Scope.RUNS_WRITE], ["mail"], 30 * DAY)
    former = await keys.create(operator, new)
    rotated = await keys.rotate(operator, former.key_id, overlap=DAY, life=None)
    for field in ("tenant", "name", "role", "scopes", "serves", "status"):
        assert getattr(rotated.key, field) == getattr(former, field)
    assert rotated.key.expires_at - rotated.key.created_at == pytest.approx(30 * DAY, abs=timedelta(minutes=1))
    assert rotated.former.expires_at - rotated.key.created_at == pytest.approx(DAY, abs=timedelta(minutes=1))
    tenants = Tenants(world.database)
    assert await tenants.whose(former.key)
    assert await tenants.whose(rotated.key.key)
    await keys.revoke(operator, former.key_id)
    last = await keys.rotate(operator, rotated.key.key_id, overlap=timedelta(0), life=DAY)
    assert last.former.status == "expired"
    with pytest.raises(Conflict, match="expired"):
        await keys.rotate(operator, rotated.key.key_id, overlap=DAY, life=None)


async def test_nobody_gives_what_they_have_not_nor_by_rotating_nor_takes_from_operators(world: World):
    keys, admin, operator = Keys(world.database), of(world, Role.ADMIN), of(world, Role.OPERATOR)
    modest = NewKey("modest", Role.OPERATOR, sorted(GRANTS[Role.ADMIN]))  # no scope that an admin has not
    for new in (NewKey("x", Role.OPERATOR), modest, NewKey("x", Role.WORKER, serves=["default"])):
        with pytest.raises(Forbidden):
            await keys.create(admin, new)
        made = await keys.create(operator, new)
        with pytest.raises(Forbidden):
            await keys.rotate(admin, made.key_id, overlap=DAY, life=None)
    listed = [each for each in (await keys.page(admin, limit=10)).items if each.name in {"x", "modest"}]
    for view in listed:
        if view.role == Role.OPERATOR:
            with pytest.raises(Forbidden, match="operator's key"):
                await keys.revoke(admin, view.key_id)
            with pytest.raises(Forbidden, match="operator's key"):
                await TermsKeeper(world.database).change_key(admin, view.key_id, RateLimit(1, 1))
        else:
            assert (await keys.revoke(admin, view.key_id)).status == "revoked"
    assert len(listed) == 3


async def test_another_tenants_key_is_one_that_never_was(world: World):
    await _rival(world)
    keys, admin = Keys(world.database), of(world, Role.ADMIN)
    theirs = await keys.create(AT_THE_DATABASE, PLAIN, "rival")
    said = set()
    for key in (theirs.key_id, "key_" + "a" * 12, "key_", "nonsense", "key_\0"):
        for call in (keys.read(admin, key), keys.revoke(admin, key), keys.rotate(admin, key, overlap=DAY, life=None)):
            with pytest.raises(NotFound) as refused:
                await call
            said.add(refused.value.args)
    assert len(said) == 1
    said = set()
    for name in ("rival", "nobody", "\0"):
        for call in (keys.create(admin, PLAIN, name), keys.page(admin, tenant=name, limit=5)):
            with pytest.raises(NotFound) as refused:
                await call
            said.add(refused.value.args)
    assert len(said) == 1
    assert (await keys.read(of(world, Role.OPERATOR), theirs.key_id)).status == "active"


async def test_an_expired_key_opens_nothing_and_is_believed_no_longer_than_it_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    now, left = [0.0], 2.0
    find = stored.find_key

    async def about_to_expire(database: Database, key: str) -> KeyOwner | None:
        found = await find(database, key)
        return None if found is None else found._replace(remaining=left)

    made = await Keys(world.database).create(of(world, Role.ADMIN), PLAIN._replace(life=DAY))
    tenants = Tenants(world.database, lambda: now[0])
    monkeypatch.setattr(stored, "find_key", about_to_expire)
    assert await tenants.whose(made.key)
    await world.sql("UPDATE api_key SET expires_at = now() WHERE label = 'ci'")
    now[0] = left - 0.1
    assert await tenants.whose(made.key), "it is remembered"
    now[0] = left + 0.1
    assert await tenants.whose(made.key) is None
    assert now[0] < REMEMBERED


async def test_when_a_key_was_used_is_written_down_at_most_once_a_minute_and_for_all_at_once(world: World):
    now = [1_000.0]
    tenants = Tenants(world.database, lambda: now[0])
    other = (await Keys(world.database).create(of(world, Role.ADMIN), PLAIN)).key
    used = "SELECT count(*) FROM api_key WHERE last_used_at > clock_timestamp() - interval '40 seconds'"
    for key in (world.key, other):
        assert await tenants.whose(key)
    assert await world.value(used) == 0, "a request waited for it"
    now[0] += 30
    await tenants.note_used()
    assert await world.value(used) == 2
    before = await world.value("SELECT array_agg(last_used_at ORDER BY id) FROM api_key")
    assert await tenants.whose(other)
    await tenants.note_used()
    assert await world.value("SELECT array_agg(last_used_at ORDER BY id) FROM api_key") == before
    await world.sql("UPDATE api_key SET last_used_at = last_used_at - interval '2 minutes'")
    now[0] += 60
    assert await tenants.whose(other)
    await tenants.note_used()
    assert await world.value(used) == 1


@pytest.mark.parametrize("narrowed", [None, [Scope.RUNS_WRITE], [Scope.RUNS_READ]], ids=str)
async def test_the_database_and_the_domain_agree_on_who_hands_runs_in(world: World, narrowed: list[Scope] | None):
    for role in Role:
        token = new_token()
        async with world.database.transaction() as connection:
            new = NewKey(role, role, narrowed, ["mail"])
            await stored.make_key(connection, world.tenant, token, new)
        may = await world.value("SELECT may_submit($1, $2) IS NOT NULL", token.id, token.digest)
        assert may == (Scope.RUNS_WRITE in scopes_of(role, narrowed, ["mail"])), role
        assert await world.value("SELECT may_submit($1, $2)", token.id, bytes(32)) is None
    await world.sql("UPDATE api_key SET expires_at = now()")
    assert await world.value("SELECT count(may_submit(id, digest)) FROM api_key") == 0
