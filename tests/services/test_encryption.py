"""What an encrypted tenant has stored is nowhere in plain text, opens only where it belongs, and outlives its keys."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg
import msgspec
import pytest

from foliot.domain.access import AT_THE_DATABASE
from foliot.domain.errors import Conflict, Unavailable
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.report import Progress
from foliot.domain.spec import FunctionHandler, HttpHandler, Spec
from foliot.kit.master import LocalMaster
from foliot.kit.tokens import read_token
from foliot.services.insights.jobs import job_view
from foliot.services.reseal import Resealer
from foliot.store.database import Line
from foliot.store.dispatch import Settlement
from foliot.store.reports import Report
from foliot.store.submission import Asked, NewRun
from foliot.store.vault import UNOPENED, Vault, WrongMasterKey
from foliot.wire.jobs import JobBody, draft_of
from foliot.wire.operations import OperationView
from foliot.wire.work import Ended, SettleBody
from foliot.worker.carrier import SqlCarrier
from services.remotes import MINE, Remote
from world import MASTER, NOOP, World

MARK = "Zebra4711"
PAYLOAD = msgspec.json.encode({"who": MARK})
CALL = Spec(handler=HttpHandler(), max_retries=0)
ONCE = Spec(handler=FunctionHandler("noop"), max_retries=0)


@pytest.fixture
async def carrier(sealed: World) -> AsyncIterator[SqlCarrier]:
    carrier = SqlCarrier(partial(Line, sealed.database.dsn), 4711, "test", vault=partial(Vault, master=MASTER))
    await carrier.register(["default"], ["fn:noop", "http"])
    yield carrier
    await carrier.close()


async def claim(carrier: SqlCarrier, number: int = 1):
    lanes = carrier._lanes
    return await carrier.claim(number, lanes, [0] * len(lanes), 10, [10] * len(lanes))


async def submit(world: World, spec: Spec = NOOP, payload: bytes = PAYLOAD, target: bytes | None = None) -> int:
    ref = await world.specs.intern(world.tenant, spec)
    return (await world.submitter.submit([NewRun(ref, payload, target)])).ids[0]


def failed(run, error: str = f"no {MARK}") -> Settlement:
    return Settlement(run, datetime.now(UTC), for_good(error))


def for_good(error: str) -> Outcome:
    return Outcome.dead(Ending.FAILED, error)


async def in_plain(world: World, mark: str = MARK) -> set[str]:
    """The tables in which a text stands, as such or in the hexadecimal digits of its bytes."""
    tables = await world.sql(
        "SELECT c.oid::regclass::text AS name FROM pg_class c"
        " WHERE c.relnamespace = 'foliot'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    )
    found = set()
    for name in (row["name"] for row in tables):
        seen = f"SELECT EXISTS (SELECT FROM {name} AS t WHERE t::text LIKE $1 OR t::text LIKE $2)"
        if await world.value(seen, f"%{mark}%", f"%{mark.encode().hex()}%"):
            found.add(name.removeprefix("foliot."))
    return found


async def reseal(world: World) -> None:
    resealer = Resealer(world.database, world.vault)
    pages = 0
    while await resealer.run_once():
        pages += 1
        assert pages < 1_000
    await resealer.close()


async def test_a_job_that_is_declared_again_as_it_is_makes_no_new_version(sealed: World):
    draft = draft_of(JobBody(name="j", key="j", handler="noop", payload=msgspec.Raw(PAYLOAD), every="PT1M"))
    _, is_new = await sealed.control.put(sealed.tenant, "j", lambda _: draft)
    again, _ = await sealed.control.put(sealed.tenant, "j", lambda _: draft)
    assert (is_new, again.version, again.payload) == (True, 1, PAYLOAD)


async def test_after_a_whole_life_nothing_is_in_plain_text_and_all_can_be_read(sealed: World, carrier: SqlCarrier):
    wanted = msgspec.json.encode({"name": "j", "handler": "noop", "payload": {"who": MARK}, "every": "PT1M"})
    draft = draft_of(msgspec.json.decode(wanted, type=JobBody))
    render = lambda row: msgspec.json.encode(job_view("acme", row))  # noqa: E731
    body = await sealed.control.create(sealed.tenant, draft, key="once", fingerprint=b"1", render=render)
    again = await sealed.control.create(sealed.tenant, draft, key="once", fingerprint=b"1", render=render)
    assert body == again
    job = decode("job", msgspec.json.decode(body)["jobId"])
    await sealed.change(job, name="k")
    await sealed.fire(datetime.fromisoformat(str(await sealed.next_at())))
    dies = await submit(sealed, ONCE)
    calls = await submit(sealed, CALL, target=msgspec.json.encode({"url": f"https://example.com/{MARK}"}))
    (by_hand,) = (
        await sealed.submitter.submit([NewRun(await sealed.specs.intern(sealed.tenant, NOOP), PAYLOAD, job=job)])
    ).ids
    held = {run.id: run for run in await claim(carrier)}
    fired = next(run for run in held.values() if run.job == job and run.id != by_hand)
    assert {run.payload for run in held.values()} == {PAYLOAD}
    assert MARK.encode() in held[calls].target
    now = datetime.now(UTC)
    told = Report(dies, held[dies].fence, Progress(message=f"at {MARK}"), now, PAYLOAD, sealed.tenant)
    assert await carrier.report([told]) == {(dies, held[dies].fence)}
    assert await carrier.last_checkpoint(held[dies]) == PAYLOAD
    endings = [
        failed(held[dies]),
        Settlement(held[by_hand], now, Outcome.succeeded(PAYLOAD)),
        Settlement(held[calls], now, SUCCEEDED),
        Settlement(fired, now, SUCCEEDED),
    ]
    assert not await carrier.settle(endings)
    await carrier.settle([failed(held[calls], f"late {MARK}")])
    assert await in_plain(sealed) == set()
    found = await sealed.insights.runs(
        sealed.tenant, status=None, state=None, job=None, limit=9, cursor=None, text="noop"
    )
    assert {encode("run", dies), encode("run", by_hand)} <= {each.run_id for each in found.items}

    assert bytes((await sealed.insights.job(sealed.tenant, "acme", job)).payload) == PAYLOAD
    assert bytes((await sealed.insights.run(sealed.tenant, by_hand)).result) == PAYLOAD
    dead = await sealed.insights.run(sealed.tenant, dies)
    assert (dead.error_message, bytes(dead.payload), dead.progress.message) == (f"no {MARK}", PAYLOAD, f"at {MARK}")
    assert (await sealed.dead_letters.read(sealed.tenant, dies)).payload == PAYLOAD
    assert "sealed:" not in str(await sealed.explainer.run(sealed.tenant, dies))
    assert MARK in (await sealed.insights.run(sealed.tenant, calls)).handler
    page = await sealed.insights.attempts(sealed.tenant, run=calls, limit=5, cursor=None)
    assert page.items[0].late_result.error_message == f"late {MARK}"


async def test_a_quarantine_puts_words_around_an_error_and_it_opens_all_the_same(sealed: World, carrier: SqlCarrier):
    run = await submit(sealed)
    for number in range(1, 4):
        (held,) = await claim(carrier, number)
        lost = Outcome.again(Ending.LOST, f"by {MARK}", timedelta())
        await carrier.settle([Settlement(held, datetime.now(UTC), lost)])
        await sealed.promoter.run_once()
    assert MARK in (await sealed.insights.run(sealed.tenant, run)).error_message


async def test_what_is_moved_to_another_row_or_tenant_is_not_opened(sealed: World, carrier: SqlCarrier):
    one, other = await submit(sealed), await submit(sealed, payload=b'{"who":"other"}')
    await sealed.sql("UPDATE run SET payload = (SELECT payload FROM run WHERE id = $1) WHERE id = $2", one, other)
    held = {run.id: run for run in await claim(carrier)}
    assert held[one].payload == PAYLOAD
    assert held[other].payload.startswith(UNOPENED)

    rival = await sealed.another_tenant()
    await sealed.encryption.switch(AT_THE_DATABASE, "globex", enabled=True)
    await sealed.sql("UPDATE run SET tenant = $2 WHERE id = $1", one, rival)
    assert b"$unopened" in bytes((await sealed.insights.run(rival, one)).payload)
    assert MARK not in str(await sealed.insights.run(rival, one))


async def test_switched_on_what_was_stored_follows_and_rotation_changes_every_key(database, dsn):
    async with World.begin(database, sealed=True) as world:
        carrier = SqlCarrier(partial(Line, dsn), 4711, "test", vault=partial(Vault, master=MASTER))
        await carrier.register(["default"], ["fn:noop"])
        job = await world.job_id(payload={"who": MARK})
        dead, waits = await submit(world, ONCE), None
        (held,) = await claim(carrier)
        await carrier.settle([failed(held)])
        waits = await submit(world)
        await world.change(job, name="renamed")
        assert await in_plain(world) >= {"job", "job_version", "subscription", "run", "dead_letter", "history"}

        for version in (1, 2, 3):
            if version == 1:
                view = await world.encryption.switch(AT_THE_DATABASE, "acme", enabled=True)
            else:
                view = await world.encryption.rotate(AT_THE_DATABASE, "acme")
            assert (view.enabled, view.key_version) == (True, version)
            await reseal(world)
            operation: OperationView = await world.operations.operation(world.tenant, decode("op", view.operation_id))
            assert operation.progress.succeeded == operation.progress.total > 4
            assert await in_plain(world) == set()
            prefix = b"\0\1" + version.to_bytes(4, "big")
            for table in ("job", "job_version", "subscription", "run", "dead_letter"):
                old = f"SELECT count(*) FROM {table} WHERE tenant = $1 AND substring(payload FROM 1 FOR 6) <> $2"
                assert await world.value(old, world.tenant, prefix) == 0
            assert bytes((await world.insights.job(world.tenant, "acme", job)).payload) == PAYLOAD
            assert (await world.insights.run(world.tenant, dead)).error_message == f"no {MARK}"
            versions = (await world.insights.versions(world.tenant, job, limit=9, cursor=None)).items
            assert [bytes(each.definition["payload"]) for each in versions] == [PAYLOAD] * 2
        fresh = await submit(world)
        # Claimed by one who knew the keys of before: it asks for the new one.
        assert {(run.id, run.payload) for run in await claim(carrier, 2)} == {(waits, PAYLOAD), (fresh, PAYLOAD)}
        await carrier.close()


async def test_a_rotation_while_runs_are_held_harms_none_of_them(sealed: World, carrier: SqlCarrier):
    runs = [await submit(sealed) for _ in range(5)]
    held = await claim(carrier)
    await sealed.encryption.rotate(AT_THE_DATABASE, "acme")
    assert await carrier.report([Report(held[0].id, held[0].fence, None, datetime.now(UTC), PAYLOAD, sealed.tenant)])
    await reseal(sealed)
    assert await carrier.last_checkpoint(held[0]) == PAYLOAD
    settled = [Settlement(run, datetime.now(UTC), Outcome.succeeded(PAYLOAD)) for run in held]
    assert not await carrier.settle(settled)
    for run in runs:
        assert bytes((await sealed.insights.run(sealed.tenant, run)).result) == PAYLOAD


async def test_a_new_master_key_wraps_all_at_once_and_the_old_one_is_refused(sealed: World):
    old, new = MASTER, LocalMaster([bytes(reversed(range(32)))])
    both = LocalMaster([bytes(reversed(range(32))), bytes(range(32))])
    run = await submit(sealed)
    vault = Vault(sealed.database, both)
    assert await vault.check() == old.current
    sealed.encryption._vault = vault
    assert await sealed.encryption.rewrap() == 1
    assert await Vault(sealed.database, new).check() == new.current
    with pytest.raises(WrongMasterKey, match=new.current):
        await Vault(sealed.database, old).check()
    with pytest.raises(WrongMasterKey, match="has none"):
        await Vault(sealed.database, None).check()
    sealed.insights._vault = Vault(sealed.database, new)
    assert bytes((await sealed.insights.run(sealed.tenant, run)).payload) == PAYLOAD


async def test_a_canary_that_was_tampered_with_is_noticed(sealed: World):
    await sealed.sql("UPDATE canary SET wrapped = set_byte(wrapped, 30, 255 - get_byte(wrapped, 30))")
    with pytest.raises(WrongMasterKey, match="canary"):
        await sealed.vault.check()


async def test_without_the_master_key_nothing_is_written_in_plain_text_instead(sealed: World):
    sealed.submitter._vault = Vault(sealed.database, None)
    with pytest.raises(Unavailable, match="encrypted"):
        await submit(sealed)
    assert await sealed.count("run") == 0
    sealed.encryption._vault = Vault(sealed.database, None)
    with pytest.raises(Conflict, match="master key"):
        await sealed.encryption.rotate(AT_THE_DATABASE, "acme")


async def test_remote_workers_get_payloads_opened_and_their_words_are_sealed(sealed: World):
    run = await submit(sealed, ONCE)
    remote = await Remote(sealed, 1).register()
    answer = await remote.claim()
    assert [bytes(each) for each in answer.runs.payload] == [PAYLOAD]
    ended = Ended(
        run_id=encode("run", run),
        fence=answer.runs.fence[0],
        position=1,
        tenant=sealed.tenant,
        attempt=0,
        scheduled_at=answer.runs.scheduled_at[0],
        started_at=None,
        outcome=for_good(f"no {MARK}"),
    )
    await sealed.gateway.settle(MINE, SettleBody(remote.id, ended=[ended]))
    assert await in_plain(sealed) == set()
    assert (await sealed.insights.run(sealed.tenant, run)).error_message == f"no {MARK}"


@pytest.mark.parametrize("late", [False, True])
async def test_a_remote_worker_that_names_another_tenant_keeps_nothing_from_being_sealed(sealed: World, late: bool):
    run, rival = await submit(sealed), await sealed.another_tenant()
    remote = await Remote(sealed, 12).register()
    held = (await remote.claim()).runs
    if late:
        await sealed.sql("UPDATE run SET fence = $2 WHERE id = $1", run, held.fence[0])
    ended = Ended(
        run_id=encode("run", run),
        fence=held.fence[0],
        position=1,
        tenant=rival,
        attempt=0,
        scheduled_at=held.scheduled_at[0],
        started_at=None,
        outcome=for_good(f"no {MARK}"),
    )
    await sealed.gateway.settle(MINE, SettleBody(remote.id, ended=[ended]))
    assert await sealed.value("SELECT count(*) FROM late_result") == late
    assert await in_plain(sealed) == set()
    (attempt,) = (await sealed.insights.attempts(sealed.tenant, run=run, limit=5, cursor=None)).items
    assert f"no {MARK}" in str(attempt)


async def test_graphs_started_by_hand_carry_what_they_were_given(sealed: World, carrier: SqlCarrier):
    root = await sealed.job(name="a", key="a", onDemand=True, payload={"who": "nobody"})
    await sealed.job(name="b", key="b", onDemand=True, payload={"who": MARK}, dependsOn=["a"])
    row = await sealed.control.read(sealed.tenant, decode("job", root.job_id))
    ref = await sealed.specs.intern(sealed.tenant, row.spec)
    await sealed.graphs.start(NewRun(ref, PAYLOAD, job=row.id), Asked(sealed.tenant))
    (first,) = await claim(carrier)
    assert first.payload == PAYLOAD
    await carrier.settle([Settlement(first, datetime.now(UTC), SUCCEEDED)])
    (second,) = await claim(carrier, 2)
    assert second.payload == PAYLOAD
    assert await in_plain(sealed) == set()


async def test_tenants_without_it_are_stored_as_before(sealed: World):
    await sealed.another_tenant()
    other = await sealed.value("SELECT id FROM tenant WHERE name = 'globex'")
    ref = await sealed.specs.intern(other, NOOP)
    await sealed.submitter.submit([NewRun(ref, b'{"plain":1}')])
    assert await sealed.value("SELECT payload FROM run WHERE tenant = $1", other) == b'{"plain":1}'


async def test_a_transaction_of_ones_own_has_no_key_and_is_refused(sealed: World):
    token = read_token(sealed.key)
    submit_ = "SELECT submit($1, $2, $3, $4, NULL, NULL, NULL, NULL, NULL)"
    with pytest.raises(asyncpg.FeatureNotSupportedError, match="encrypted"):
        await sealed.sql(submit_, token.id, token.digest, NOOP.body(), PAYLOAD)
    await sealed.encryption.switch(AT_THE_DATABASE, "acme", enabled=False)
    await sealed.sql(submit_, token.id, token.digest, NOOP.body(), PAYLOAD)
