"""Secrets reach handlers in the place of references, and nobody else; whoever quotes them is not quoted."""

import asyncio
import base64
import io
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from aiohttp import web

from foliot.domain.errors import FenceLost
from foliot.domain.redaction import Redaction
from foliot.domain.secret import SecretRef
from foliot.domain.spec import FunctionHandler, HttpHandler, Spec
from foliot.kit.hush import HUSH
from foliot.kit.sealing import CannotOpen
from foliot.sdk import Context
from foliot.store.submission import NewRun
from foliot.store.vault import Vault
from foliot.worker.child.answer import Frames, frame, unpack_assignment
from foliot.worker.executor import Given
from foliot.worker.secrets import MISSING
from services.test_encryption import in_plain
from worker.carrying import through_http, through_sql
from worker.conftest import Serve
from worker.crew import Crew
from worker.making import assignment
from world import MASTER, PATIENCE, World

VALUE = "tr0ub4dor&3/ü"
FUNCTION = Spec(handler=FunctionHandler("use"), max_retries=0)


@pytest.fixture
async def entrusted(sealed: World) -> World:
    await sealed.secrets.put(sealed.tenant, "api-key", VALUE)
    return sealed


@pytest.fixture
def crew(entrusted: World) -> Crew:
    return Crew(entrusted.database.dsn, vault=partial(Vault, master=MASTER))


async def submit(world: World, payload: Any, spec: Spec = FUNCTION, target: Any = None) -> int:
    ref = await world.specs.intern(world.tenant, spec)
    encoded = None if target is None else msgspec.json.encode(target)
    return (await world.submitter.submit([NewRun(ref, msgspec.json.encode(payload), encoded)])).ids[0]


async def ended(world: World, run: int) -> Any:
    await world.until("SELECT EXISTS (SELECT FROM history WHERE run = $1 AND state > 3)", run)
    return await world.insights.run(world.tenant, run)


async def test_a_handler_gets_the_secret_and_what_it_says_of_it_is_hidden(
    entrusted: World, crew: Crew, written: io.StringIO
):
    seen: list[Any] = []

    async def use(ctx: Context, payload: Any) -> Any:
        seen.append(payload)
        ctx.log.info("calling", key=payload["key"], nested={"again": payload["key"]})
        ctx.progress(message=f"sent {payload['key']}")
        if payload["mode"] == "returns":
            return {"echo": payload["key"], "encoded": base64.b64encode(VALUE.encode()).decode()}
        raise ValueError(f"401 for {payload['key']} and {quote(payload['key'], safe='')}")

    references = {"key": {"$secret": "api-key"}, "list": [{"$secret": "api-key"}]}
    returns = await submit(entrusted, {**references, "mode": "returns"})
    raises = await submit(entrusted, {**references, "mode": "raises"})
    async with crew.work({"use": use}):
        good, bad = await ended(entrusted, returns), await ended(entrusted, raises)
    assert [each["key"] for each in seen] == [VALUE, VALUE]
    assert seen[0]["list"] == [VALUE]
    echoed = msgspec.json.decode(good.result)
    assert echoed["echo"] == "[secret]"
    assert echoed["encoded"].startswith("[secret]")  # its last letter depends on what comes behind it
    assert "401 for [secret] and [secret]" in bad.error_message
    assert b"$secret" in bytes(bad.payload)
    assert good.progress.message == "sent [secret]"
    assert "key=[secret]" in written.getvalue()
    for form in (VALUE, quote(VALUE, safe=""), base64.b64encode(VALUE.encode()).decode()):
        assert form not in written.getvalue()
        assert form not in str((good, bad))
    assert await in_plain(entrusted, VALUE) == set()


async def test_headers_of_calls_may_be_secrets(entrusted: World, crew: Crew, serve: Serve):
    heard: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append((request.headers["Authorization"], await request.json()))
        return web.Response(status=400, text=f"bad key: {request.headers['Authorization']}")

    await entrusted.secrets.put(entrusted.tenant, "bearer", "Bearer very-secret-indeed")
    url = await serve(answer)
    reference = {"Authorization": {"$secret": "bearer"}}
    handler = msgspec.convert({"type": "http", "url": url, "headers": reference}, HttpHandler)
    of_job = await submit(entrusted, {"k": {"$secret": "api-key"}}, Spec(handler=handler, max_retries=0))
    by_run = await submit(entrusted, {}, Spec(handler=HttpHandler(), max_retries=0), {"url": url, "headers": reference})
    async with crew.work({}):
        for run in (of_job, by_run):
            assert (await ended(entrusted, run)).error_message == "answered 400: bad key: [secret]"
    assert {each for each, _ in heard} == {"Bearer very-secret-indeed"}
    assert {"k": VALUE} in [body["payload"] for _, body in heard]


async def test_a_secret_that_is_missing_fails_for_good_and_names_it(entrusted: World, crew: Crew):
    called: list[Any] = []

    async def use(ctx: Context, payload: Any) -> None:
        called.append(payload)

    run = await submit(
        entrusted, {"a": {"$secret": "api-key"}, "b": {"$secret": "gone"}}, Spec(handler=FunctionHandler("use"))
    )
    async with crew.work({"use": use}):
        told = await ended(entrusted, run)
    assert (told.state, told.attempts, told.error_class) == ("dead", 1, MISSING)
    assert "'gone'" in told.error_message
    assert not called


async def test_another_tenants_secret_is_none(entrusted: World, crew: Crew):
    rival = await entrusted.another_tenant()
    ref = await entrusted.specs.intern(rival, FUNCTION)
    payload = msgspec.json.encode({"a": {"$secret": "api-key"}})
    (run,) = (await entrusted.submitter.submit([NewRun(ref, payload)])).ids
    async with crew.work({"use": lambda ctx, payload: None}):
        await entrusted.until("SELECT EXISTS (SELECT FROM history WHERE run = $1 AND state > 3)", run)
    assert (await entrusted.insights.run(rival, run)).error_class == MISSING
    # Nor does one that somebody copies in the database open for another tenant.
    await entrusted.secrets.put(rival, "own", "other-value")
    await entrusted.sql(
        "UPDATE secret SET value = (SELECT value FROM secret WHERE name = 'api-key') WHERE name = 'own'"
    )
    with pytest.raises(CannotOpen):
        await entrusted.vault.secrets(rival, ["own"])


@pytest.fixture(params=["sql", "http"])
async def carriers(request: pytest.FixtureRequest, entrusted: World) -> AsyncIterator[Any]:
    vault = partial(Vault, master=MASTER)
    way = through_sql(entrusted.database.dsn, vault) if request.param == "sql" else through_http(entrusted)
    async with way as new:
        yield request.param, new


async def test_a_worker_reads_what_its_runs_refer_to_either_way(entrusted: World, carriers: Any):
    way, new = carriers
    await entrusted.secrets.put(entrusted.tenant, "unmentioned", "never-told")
    carrier = new(7)
    lanes = await carrier.register(["default"], ["fn:use"])
    await submit(entrusted, {"a": {"$secret": "api-key"}})
    async with asyncio.timeout(PATIENCE):
        (run,) = await carrier.claim(1, list(lanes), [0], 5, [5])
    assert await carrier.secrets(run, ["api-key", "nothing"]) == {"api-key": VALUE}
    if way == "http":
        # What it has only a key for, it learns no more of than its run says.
        assert await carrier.secrets(run, ["unmentioned"]) == {}
        stranger = new(8)
        await stranger.register(["default"], ["fn:use"])
        with pytest.raises(FenceLost):
            await stranger.secrets(run, ["api-key"])
        with pytest.raises(FenceLost):
            await carrier.secrets(msgspec.structs.replace(run, fence=run.fence + 1), ["api-key"])


async def test_a_payload_that_cannot_be_opened_is_not_run(entrusted: World, crew: Crew):
    called: list[Any] = []

    async def use(ctx: Context, payload: Any) -> None:
        called.append(payload)

    run = await submit(entrusted, {"who": 1})
    await entrusted.sql(
        "UPDATE run SET payload = set_byte(payload, 40, 255 - get_byte(payload, 40)) WHERE id = $1", run
    )
    async with crew.work({"use": use}):
        told = await ended(entrusted, run)
    assert "the payload cannot be opened" in told.error_message
    assert not called


def test_what_a_child_process_is_given_arrives_whole_and_shows_nothing():
    handler = HttpHandler(headers={"Authorization": SecretRef("bearer")})
    given = Given(b'"v"', None, msgspec.structs.replace(handler, headers={"Authorization": VALUE}), (VALUE,))
    sent = assignment(spec=Spec(handler=handler))
    sent = msgspec.structs.replace(sent, given=given)
    ((kind, body),) = Frames().feed(frame("assign", sent))
    assert (kind, unpack_assignment(body)) == ("assign", sent)
    assert VALUE not in repr(sent)


def test_the_standard_librarys_log_is_hushed_too(written: io.StringIO):
    hide = Redaction([VALUE]).hide
    with HUSH.using(hide):
        logging.getLogger("library").warning("refused %s", VALUE)
    assert "refused [secret]" in written.getvalue()
