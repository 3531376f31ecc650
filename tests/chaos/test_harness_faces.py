"""What the harness reads past the API: audit trails that it proves by itself, payloads and secrets in clear text."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
from hypothesis import given
from hypothesis import strategies as st

from chaos import trails
from chaos.check.audit import FIELDS, NOTHING, broken, link
from chaos.records import CONFIDED, CONFIDING, RATIONED, WHISPER, Trail
from chaos.trails import audit_trails, exposed, let_out
from foliot.domain.access import AT_THE_DATABASE
from foliot.domain.audit import Entry, Link
from foliot.services.seal import Sealer
from foliot.store.audit import DOING, Deed, note
from foliot.store.submission import NewRun
from world import NOOP, World

TEXTS = st.none() | st.text(max_size=20)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.fixed_dictionaries(dict.fromkeys(("key", "ip", "request", "subject", "before", "after"), TEXTS)))
def test_both_who_seal_and_who_check_mean_the_same_chain(texts: dict[str, Any]):
    at = datetime(2026, 11, 16, 12, 30, 0, 123_456, tzinfo=UTC)
    entry = Entry(id=7, tenant=3, at=at, actor="acme", action="pauseJob", outcome="done", **texts)
    row = {name: getattr(entry, name) for name in FIELDS} | {"at": (at - _EPOCH) // timedelta(microseconds=1)}
    assert link(NOTHING, row) == Link().then(entry).hash.hex()


async def read(dsn: str) -> dict[str, Trail]:
    connection = await asyncpg.connect(dsn)
    try:
        return await audit_trails(connection)
    finally:
        await connection.close()


async def test_a_trail_that_was_rewritten_does_not_hold(dsn: str, world: World):
    DOING.set(Deed(world.tenant, "acme", "key1", "10.0.0.1", "chaos-1", "pauseJob"))
    for number in range(3):
        async with world.database.transaction() as connection:
            await note(connection, f"job_{number}", {"gate": "open"}, {"gate": "paused"})
    DOING.set(None)
    assert await Sealer(world.database).run_once() == 3
    whole = (await read(dsn))["acme"]
    assert [each["request"] for each in whole.entries] == ["chaos-1"] * 3
    assert not [*broken("acme", whole)]
    await world.sql("ALTER TABLE audit DISABLE TRIGGER ALL")
    await world.sql("UPDATE audit SET actor = 'nobody' WHERE position = 2")
    assert [each.rule for each in broken("acme", (await read(dsn))["acme"])] == ["broken"]


async def test_a_payload_in_clear_text_is_found_wherever_it_stands(dsn: str, sealed: World):
    world = sealed
    tenant = await world.another_tenant(RATIONED)
    payload = f'{{"serial":"{WHISPER}1"}}'.encode()
    await world.encryption.switch(AT_THE_DATABASE, RATIONED, enabled=True)
    world.vault.forget()
    spec = await world.specs.intern(tenant, NOOP)
    await world.submitter.submit([NewRun(spec, payload)])
    connection = await asyncpg.connect(dsn)
    assert not await exposed(connection)
    await connection.execute("UPDATE foliot.run SET payload = $1 WHERE tenant = $2", payload, tenant)
    assert await exposed(connection) == {"foliot.run": 1}
    assert await trails.sealed(connection) == 0  # neither a job nor a dead letter
    await connection.close()


async def test_a_secret_is_found_wherever_it_stands(dsn: str, world: World):
    tenant = await world.another_tenant(CONFIDING)
    spec = await world.specs.intern(tenant, NOOP)
    await world.submitter.submit([NewRun(spec, b'{"secret":{"$secret":"confided"}}')])
    connection = await asyncpg.connect(dsn)
    assert not await let_out(connection)  # a reference to it is none
    await connection.execute("UPDATE foliot.run SET payload = $1 WHERE tenant = $2", f"{CONFIDED}1".encode(), tenant)
    assert await let_out(connection) == {"foliot.run": 1}
    await connection.close()
