"""The audit trail: written once, sealed in order by however many, signed elsewhere, and every tampering found."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from foliot.domain.audit import NOBODY, Checkpoint
from foliot.domain.errors import Unavailable
from foliot.kit.objects import Folder
from foliot.services.audit import MOST_DENIALS, AuditTrail
from foliot.services.seal import Notary, Sealer
from foliot.services.verify import Auditor
from foliot.store import audit
from foliot.store.audit import DOING, Deed, note
from world import World

KEY = b"a key of at least thirty-two bytes"


def deed(tenant: int, action: str = "pauseJob", **fields: Any) -> Deed:
    return Deed(tenant, "acme", "key1", "10.0.0.1", "r1", action)._replace(**fields)


@pytest.fixture
def notary(tmp_path: Path) -> Notary:
    return Notary(Folder(tmp_path), [KEY])


async def change(world: World, count: int = 1, tenant: int | None = None) -> None:
    """Somebody changes something, so many times."""
    token = DOING.set(deed(tenant or world.tenant))
    try:
        for number in range(count):
            async with world.database.transaction() as connection:
                await note(connection, f"job_{number}", {"gate": "open"}, {"gate": "paused"})
    finally:
        DOING.reset(token)


async def faults(world: World, notary: Notary | None = None) -> list[str]:
    proof = await Auditor(world.database, notary and notary.objects, tuple(notary.keys) if notary else ()).prove()
    return proof.faults


async def seal(world: World) -> None:
    sealer = Sealer(world.database)
    while await sealer.run_once():
        pass


async def as_owner(world: World, *statements: str) -> None:
    """Somebody who owns the database, and takes its guards away."""
    for guard in ("ALTER TABLE audit DISABLE TRIGGER ALL", *statements, "ALTER TABLE audit ENABLE TRIGGER ALL"):
        await world.sql(guard)


async def test_a_change_that_is_taken_back_leaves_no_entry(world: World):
    async def fail() -> None:
        async with world.database.transaction() as connection:
            DOING.set(deed(world.tenant))
            await note(connection, "job_1", None, {})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.create_task(fail())
    async with world.database.transaction() as connection:
        await note(connection, "job_1", None, {})  # nobody asked for it
    assert await world.count("audit") == 0


async def test_what_is_written_stays(world: World, notary: Notary, subtests: pytest.Subtests):
    await change(world, 2)
    await seal(world)
    await Sealer(world.database).checkpoint(notary)
    for statement in (
        "UPDATE audit SET actor = 'somebody else'",
        "UPDATE audit SET position = NULL, hash = NULL",
        "UPDATE audit SET position = position + 100",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "UPDATE audit_checkpoint SET body = ''",
        "DELETE FROM audit_checkpoint",
        "TRUNCATE audit_checkpoint",
    ):
        with subtests.test(statement), pytest.raises(asyncpg.InsufficientPrivilegeError, match="written once"):
            await world.sql(statement)
    assert await faults(world, notary) == []


async def test_what_waits_to_be_sealed_cannot_be_changed_by_sealing_it(world: World):
    await change(world)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await world.sql("UPDATE audit SET position = 1, hash = decode(repeat('00', 32), 'hex'), actor = 'x'")


async def test_sealers_side_by_side_make_one_chain_without_gap_or_fork(world: World):
    other = await world.another_tenant()
    await change(world, 30)
    await change(world, 20, other)
    sealers = [Sealer(world.database) for _ in range(4)]
    writing = asyncio.gather(*(change(world, 10) for _ in range(3)))
    while not writing.done() or await world.value("SELECT EXISTS (SELECT FROM audit WHERE position IS NULL)"):
        await asyncio.gather(*(sealer.run_once() for sealer in sealers))
    await writing
    assert [(each.tenant, each.head.position) for each in await audit.chains(world.database)] == [
        (world.tenant, 60),
        (other, 20),
    ]
    assert await faults(world) == []


async def test_a_sealer_that_dies_half_way_leaves_the_chain_where_it_was(world: World):
    """C14: whoever comes next goes on from the last sealed position."""
    await change(world, 3)
    await seal(world)
    await change(world, 3)
    async with world.database.connection() as connection:
        dying = connection.transaction()
        await dying.start()
        head = await audit.hold_chain(connection, world.tenant)
        entries = await audit.unsealed(connection, world.tenant, 2)
        await audit.seal(
            connection, world.tenant, entries, [head.then(entries[0]), head.then(entries[0]).then(entries[1])]
        )
        next_one = asyncio.create_task(seal(world))
        await world.until_waiting()
        await dying.rollback()
    await asyncio.wait_for(next_one, 30)
    proof = await Auditor(world.database).prove()
    assert (proof.entries, proof.faults, proof.unsealed) == (6, [], 0)


async def test_an_entry_that_commits_late_is_sealed_late_and_not_forgotten(world: World):
    token = DOING.set(deed(world.tenant, "slow"))
    async with world.database.transaction() as connection:
        await note(connection, "job_slow", None, {})
        await change(world, 2)
        await seal(world)
    DOING.reset(token)
    await seal(world)
    assert await world.value("SELECT position FROM audit WHERE action = 'slow'") == 3
    assert await faults(world) == []


async def test_each_tampering_is_found(world: World, notary: Notary):
    await change(world, 5)
    await seal(world)
    assert (await Sealer(world.database).checkpoint(notary)).number == 1
    await as_owner(world, "UPDATE audit SET after = '{}' WHERE position = 3")
    assert await faults(world) == [f"tenant {world.tenant}: the entry at position 3 is not what was sealed"]
    await as_owner(world, "DELETE FROM audit WHERE position = 2")
    assert "position 2 is missing" in (await faults(world))[0]


async def test_a_tail_that_was_cut_off_is_found_and_so_is_a_chain_that_was_sealed_anew(world: World, notary: Notary):
    await change(world, 5)
    await seal(world)
    await Sealer(world.database).checkpoint(notary)
    await as_owner(world, "DELETE FROM audit WHERE position = 5")
    assert f"tenant {world.tenant}: the chain ends at 4, not at 5" in await faults(world)
    # Whoever has the database can mend that; what is signed elsewhere remains.
    await as_owner(world, "UPDATE audit SET actor = 'forged', position = NULL, hash = NULL", "DELETE FROM audit_chain")
    await change(world)
    await seal(world)
    assert await faults(world) == []
    assert f"the chain of tenant {world.tenant} was rewritten" in (await faults(world, notary))[0]


async def test_a_checkpoint_that_its_maker_could_not_tell_of_is_taken_over(world: World, notary: Notary):
    """C14: it was put, and the process died before it said so in the database."""
    await change(world)
    await seal(world)
    sealer = Sealer(world.database)
    lost = await sealer.checkpoint(notary)
    await world.sql("ALTER TABLE audit_checkpoint DISABLE TRIGGER ALL")
    await world.sql("DELETE FROM audit_checkpoint")
    await world.sql("UPDATE audit_chain SET marked = 0")
    await change(world)
    await seal(world)
    assert await sealer.checkpoint(notary) == lost
    second = await sealer.checkpoint(notary)
    assert (second.number, second.previous) == (2, lost.signature)
    assert await sealer.checkpoint(notary) is None, "nothing went on since"
    assert await faults(world, notary) == []


async def test_checkpoints_are_made_now_and_then_by_the_duty(world: World, notary: Notary):
    sealer = Sealer(world.database, notary)
    for _ in range(3):
        await change(world)
        while await sealer.run_once():
            pass
    (name,) = await notary.objects.list("audit/")
    found = Checkpoint.parse(await notary.objects.get(name) or b"")
    assert found.heads[str(world.tenant)][0] == 1, "the next one is due in an hour"
    (Path(notary.objects._root) / name).unlink()
    assert await faults(world, notary) == ["checkpoint 1 was made, and is gone from where it was kept"]


async def test_a_flood_of_denials_is_counted_instead_of_written(world: World):
    trail = AuditTrail(world.database)
    assert await trail.flush() == 0
    for number in range(MOST_DENIALS + 100):
        for request in ("r1", "r2"):
            trail.denied(deed(NOBODY, ip=f"10.0.{number // 250}.{number % 250}", request=request), "no valid key")
    assert await trail.flush() == MOST_DENIALS + 1
    total = await world.value("SELECT sum((after::json ->> 'attempts')::int) FROM audit WHERE outcome = 'denied'")
    assert total == 2 * (MOST_DENIALS + 100)
    assert await trail.flush() == 0


async def test_who_floods_the_trail_hides_nothing_in_it(world: World):
    """Five hundred keys that never were, each second, and what a key of a tenant's was denied was nobody's any more."""
    trail = AuditTrail(world.database)
    for number in range(10 * MOST_DENIALS):
        trail.denied(deed(NOBODY, key=f"k{number}"), "no valid key")
        trail.denied(deed(world.tenant), f"this key does not serve the queue {number}")
    rival = world.tenant + 1
    trail.denied(deed(rival), "has not the scope")
    assert await trail.flush() == 2 * (MOST_DENIALS + 1) + 1
    found = await world.sql(
        "SELECT tenant, sum((after::json ->> 'attempts')::int)::int AS attempts FROM audit GROUP BY 1"
    )
    assert {row["tenant"]: row["attempts"] for row in found} == {
        NOBODY: 10 * MOST_DENIALS,
        world.tenant: 10 * MOST_DENIALS,
        rival: 1,
    }


async def test_denials_that_cannot_be_written_are_kept(world: World, monkeypatch: pytest.MonkeyPatch):
    trail = AuditTrail(world.database)
    trail.denied(deed(NOBODY), "no valid key")

    async def fail(*_: Any) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as broken:
        broken.setattr(audit, "write", fail)
        with pytest.raises(Unavailable):
            await trail.flush()
    trail.denied(deed(NOBODY), "no valid key")
    assert await trail.flush() == 1
    assert await world.value("SELECT after::json ->> 'attempts' FROM audit") == "2"
