"""Faults that others have had, and what shows that they are not ours; each test names whose it was."""

import base64
import json
from typing import Any

import pytest
from starlette.routing import Route

from api.calling import PLAIN, Caller, rows
from api.test_table import BODIES, address
from foliot.api.app import OPERATIONS
from foliot.domain.ids import encode
from foliot.store.database import Database
from world import World

OPEN = {"/", "/health", "/ready", "/metrics", "/openapi.json", "/docs"}
"""What tells nothing of anybody's and may be looked at without a key."""
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE job; --",
    "' OR '1'='1",
    "{{7*7}} ${7*7} #{7*7}",
    "=HYPERLINK(1)",
    "%00%0a",
    "../../../../etc/passwd",
)


async def test_a_fresh_install_opens_nothing_to_who_has_no_key(api: Caller, subtests: pytest.Subtests):
    """Airflow CVE-2020-13927: the API was open by default. Windmill CVE-2026-72542: handlers that nobody guarded."""
    nobody = Caller(api.app, None)
    assert all(isinstance(route, Route) for route in api.app.routes), "a mount would bring what is not in the table"
    assert {route.path for route in api.app.routes} == OPEN | {each.route for each in OPERATIONS}
    for path in OPEN:
        assert (await nobody.get(path)).status < 400, path
    for each in OPERATIONS:
        with subtests.test(each.name):
            assert (await nobody(each.method, address(each), BODIES.get(each.name))).status == 401


class _Anything(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "x"


async def test_there_are_no_keys_until_somebody_makes_one(fresh: Database, subtests: pytest.Subtests):
    """XXL-JOB shipped an access token, Rundeck CVE-2022-29186 a key pair."""
    for table in ("tenant", "api_key"):
        with subtests.test(table):
            assert await _count(fresh, table) == 0


async def _count(database: Database, table: str) -> int:
    async with database.connection() as connection:
        return await connection.fetchval(f"SELECT count(*) FROM {table}")  # type: ignore[no-any-return]


@pytest.fixture
async def fresh(world: World) -> Database:
    """As it is after `foliot migrate`: what the tests put into it is taken out again."""
    await world.sql("TRUNCATE tenant CASCADE")
    return world.database


async def test_who_reads_the_whole_database_finds_nothing_that_opens_it(api: Caller, world: World):
    """Kestra CVE-2026-38428: an injection read what signs tokens. Windmill kept tokens as they were until 2026."""
    told = {api.key, "the value of a secret"}
    made = (await api.post("/v1/keys", {"name": "one"}, idempotency_key="a")).json
    told |= {made["key"], (await api.post(f"/v1/keys/{made['keyId']}:rotate", idempotency_key="b")).json["key"]["key"]}
    told.add((await api.post("/v1/tenants", {"name": "new"}, idempotency_key="c")).json["key"]["key"])
    assert (await api("PUT", "/v1/secrets/token", {"value": "the value of a secret"})).status == 201
    tables = await world.sql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'p')"
    )
    everything = ""
    for each in tables:
        everything += "".join(row[0] for row in await world.sql(f"SELECT t::text FROM {each['relname']} t"))
    assert made["keyId"].removeprefix("key_") in everything, "it was looked for where it would be"
    for text in told:
        secret = text.encode() if " " in text else text.encode()[17:60]
        for form in (secret.decode(), secret.hex(), base64.b64encode(secret).decode().rstrip("=")):
            assert form not in everything


async def test_what_is_anothers_under_the_same_name_is_not_written(api: Caller, stranger: Caller):
    """Rundeck CVE-2021-41112: calendars of projects that were not one's own could be changed."""
    for place, mine, theirs in (
        ("calendars/days", {"timezone": "UTC"}, {"timezone": "Europe/Berlin"}),
        ("secrets/token", {"value": "mine"}, {"value": "theirs"}),
        ("jobs/by-key/load", PLAIN, {**PLAIN, "every": 60}),
    ):
        assert (await api("PUT", f"/v1/{place}", mine)).status == 201
        before = await api.get(f"/v1/{place}")
        assert (await stranger("PUT", f"/v1/{place}", theirs)).status == 201, "one of its own"
        assert await api.get(f"/v1/{place}") == before


async def test_no_spelling_of_an_address_leads_past_the_door(api: Caller, world: World, subtests: pytest.Subtests):
    """Kestra CVE-2026-53576: paths that ended like a public one were not asked for a key."""
    nobody, job = Caller(api.app, None), (await api.create())["jobId"]
    before = await rows(world)
    for path in ("/v1/jobs", f"/v1/jobs/{job}", "/v1/keys", "/v1/tenants/acme"):
        for spelt in (
            f"{path}/health", f"{path}/configs", f"{path}/docs", f"{path}/openapi.json", f"{path}/", f"/{path}",
            f"{path};/health", f"{path}%2f..%2fhealth", f"/health/..{path}", f"/docs{path}", f"{path}?x=/health",
            f"{path}%00/health", path.upper(), path.replace("/v1/", "/v1//"), path.replace("/v1/", "/./v1/"),
            f"{path}.json", f"{path}#/health", path.replace("v1", "%76%31"),
        ):  # fmt: skip
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
                with subtests.test(f"{method} {spelt}"):
                    answer = await nobody(method, spelt, {"name": "x", "handler": "noop"})
                    assert answer.status in {401, 404, 405}, answer.content
    assert await rows(world) == before


async def test_what_the_operator_decides_cannot_be_sent_along(api: Caller, subtests: pytest.Subtests):
    """Cronicle CVE-2026-58255 and -85076: unknown fields such as uid, gid and env were taken, and jobs ran as root."""
    command = {"type": "command", "argv": ["/bin/true"]}
    for name in ("uid", "gid", "user", "env", "cwd", "limits", "shell", "tenant", "role"):
        for body in ({**PLAIN, name: 0}, {**PLAIN, "handler": {**command, name: 0}}):
            with subtests.test(f"{name} {'in the handler' if name not in body else ''}"):
                for place in ("/v1/jobs", "/v1/runs"):
                    sent = body if place == "/v1/jobs" else {k: v for k, v in body.items() if k != "name"}
                    assert (await api.post(place, sent)).field.rpartition(".")[2] == name


async def test_prefixes_are_compared_and_not_stripped_of_their_letters(api: Caller, world: World):
    """Airflow CVE-2026-45426: `lstrip` took more off a name than its prefix, and let it match another's."""
    key = (await api.post("/v1/keys", {"name": "one"})).json["keyId"]
    job, run = (await api.create())["jobId"], await api.submit()
    for kind, own in (("keys", key), ("jobs", job), ("runs", run)):
        assert (await api.get(f"/v1/{kind}/{own}")).status == 200
        bare = own.partition("_")[2]
        for other in (bare, f"{own[:3]}_{own}", f"_{own}", own.replace("_", "__"), f"{own} ", own.upper(), f"x{own}"):
            assert (await api.get(f"/v1/{kind}/{other.replace(' ', '%20')}")).status == 404, other


async def test_texts_are_texts_wherever_they_stand(api: Caller, world: World, subtests: pytest.Subtests):
    """Kestra CVE-2026-38428, Windmill CVE-2026-23696: SQL in a filter. Sidekiq CVE-2023-1892, Cronicle 755: markup."""
    for text in HOSTILE:
        with subtests.test(text):
            made = await api.create(name=text, labels={"team": text}, payload=text)
            found = await api.get("/v1/jobs?" + _query(name=text, label=f"team={text}"))
            assert [each["jobId"] for each in found.json["items"]] == [made["jobId"]]
            assert found.json["items"][0]["name"] == found.json["items"][0]["payload"] == text
            assert found.headers["content-type"] == "application/json"
            for query in ("runs?", "dead-letters?", "operations?", "audit?", "keys?", "workers?"):
                field = {"runs?": "text", "dead-letters?": "text", "audit?": "actor", "keys?": "name"}.get(
                    query, "cursor"
                )
                answer = await api.get(f"/v1/{query}{_query(**{field: text})}")
                assert answer.headers["content-type"] in {"application/json", "application/problem+json"}
                assert answer.status in {200, 400}, answer.content
                assert answer.status == 400 or answer.json["items"] == []
    assert "script" not in (await Caller(api.app, None).get("/docs")).content.decode()


def _query(**values: str) -> str:
    from urllib.parse import urlencode

    return urlencode(values)


async def test_a_browser_that_is_somebody_elses_tool_gets_nowhere(api: Caller, world: World, subtests: pytest.Subtests):
    """Rundeck CVE-2021-39133, Flower CVE-2022-51020: a page elsewhere had a browser call with its owner's session."""
    nobody, before = Caller(api.app, None), await rows(world)
    for each in ("authorization", "key", "session", "token"):
        with subtests.test(each):
            foreign = {"cookie": f"{each}={api.key}", "origin": "https://elsewhere.example"}
            answer = await nobody.post("/v1/jobs", PLAIN, **foreign)
            assert answer.status == 401
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    for query in (f"?key={api.key}", f"?access_token={api.key}", f"?authorization=Bearer%20{api.key}"):
        assert (await nobody.post(f"/v1/jobs{query}", PLAIN)).status == 401
    assert (await nobody("OPTIONS", "/v1/jobs", origin="https://elsewhere.example")).status == 405
    assert await rows(world) == before


async def test_looking_changes_nothing(api: Caller, world: World, subtests: pytest.Subtests):
    """Flower, Sidekiq: links that did something when they were followed, or fetched ahead."""
    await api.create(every=3600)
    job, run = encode("job", 7), await api.submit(delay=3600)
    before = [await rows(world), await world.count("api_key"), await world.count("queue_pause")]
    for each in OPERATIONS:
        if each.method == "GET":
            with subtests.test(each.name):
                place = each.path.replace("{job}", job).replace("{run}", run).format_map(_Anything())
                await api.get(place + ("?every=60" if "preview" in each.path else ""))
    assert [await rows(world), await world.count("api_key"), await world.count("queue_pause")] == before


async def test_what_goes_wrong_tells_nothing_of_how_we_are_made(api: Caller, monkeypatch: pytest.MonkeyPatch):
    """Airflow CVE-2025-54831: side views showed what they should not. Errors of ours have no statement and no path."""

    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("SELECT secret FROM api_key -- /srv/foliot/store.py line 7")

    monkeypatch.setattr("foliot.services.insights.Insights.jobs", fail)
    answer = await api.get("/v1/jobs")
    assert answer.status == 500
    assert not any(word in answer.content.decode() for word in ("SELECT", "/srv", "Runtime", "Traceback"))
    assert json.loads(answer.content)["type"] == "urn:foliot:problem:internal"
