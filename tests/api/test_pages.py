"""The pages for machines and people: health, ready, metrics, OpenAPI, reference."""

import base64
import hashlib
import html.parser
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.calling import Caller, application, is_named
from foliot.api.app import OPERATIONS
from foliot.kit import telemetry
from foliot.store.database import Database
from world import World


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from refs(each)
    elif isinstance(value, list):
        for each in value:
            yield from refs(each)


async def test_health_needs_no_key_and_takes_a_first_jobs_post(api: Caller):
    nobody = Caller(api.app, None)
    assert (await nobody.get("/health")).json == {"status": "ok"}
    assert (await nobody.post("/health", {"runId": "x"})).status == 200


async def test_ready_says_so(api: Caller):
    assert (await Caller(api.app, None).get("/ready")).json == {"status": "ready"}


async def test_a_process_without_its_schema_is_not_ready_and_says_what_to_do(empty_dsn: str):
    database = await Database.open(empty_dsn)
    world = World(database, 0, "")
    answer = await Caller(application(world), None).get("/ready")
    await database.close()
    assert answer.status == 503
    assert "foliot migrate" in answer.json["hint"]


@pytest.fixture
def outage(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    async def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    return lambda: monkeypatch.setattr(type(world.database._pool), "_acquire", refuse)


async def test_who_cannot_see_the_database_does_not_say_that_all_is_well(world: World, outage: Callable[[], None]):
    async def told() -> set[str]:
        content = (await Caller(application(world), None).get("/metrics")).content.decode()
        return {family.name for family in text_string_to_metric_families(content)}

    seen = {family.name for family in telemetry.SEEN.collect()}
    own = {family.name for family in telemetry.REGISTRY.collect()}
    assert "foliot_overdue_schedules" in seen
    assert await told() >= seen | own
    outage()
    assert await told() & seen == set()
    assert await told() >= own


async def test_a_process_whose_database_went_away_is_not_ready(world: World, outage: Callable[[], None]):
    app = application(world)
    outage()
    assert (await Caller(app, None).get("/ready")).status == 503
    answer = await Caller(app, world.key).get("/v1/jobs")
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert "try again" in answer.json["hint"]


async def test_metrics_are_in_prometheus_format_and_count_calls(api: Caller):
    await api.get("/v1/jobs")
    answer = await Caller(api.app, None).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.content.decode())}
    assert {"foliot_runs_accepted", "foliot_http_request_seconds", "foliot_ready_runs"} <= families.keys()
    counted = [s for s in families["foliot_http_request_seconds"].samples if s.name.endswith("_count")]
    assert any(s.labels == {"operation": "listJobs", "status": "200"} and s.value >= 1 for s in counted)
    assert all(family.documentation for family in families.values())


async def test_the_openapi_document_shows_every_operation_with_its_shapes(api: Caller):
    document = (await Caller(api.app, None).get("/openapi.json")).json
    assert document["openapi"].startswith("3.1.")
    assert {"title", "version"} <= document["info"].keys()
    shown = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert shown.keys() == {(each.method, each.path) for each in OPERATIONS}
    for each in OPERATIONS:
        operation = shown[each.method, each.path]
        assert operation["operationId"] == each.name
        assert operation["x-scope"] == each.scope
        assert operation["summary"]
        assert ("requestBody" in operation) == (each.body is not None)
        assert str(each.status) in operation["responses"]
        assert "default" in operation["responses"]
        shared = document["components"]["responses"]
        for response in operation["responses"].values():
            assert shared.get(response.get("$ref", "").rpartition("/")[2], response)["description"]


async def test_refusals_are_named_with_the_headers_that_say_when_to_come_again(api: Caller):
    """That every answer of every test here is named, `calling.ask` makes sure of."""
    document = (await api.get("/openapi.json")).json
    named, told = {}, {}
    for methods in document["paths"].values():
        for operation in methods.values():
            named[operation["operationId"]] = {int(status) for status in operation["responses"] if status.isdigit()}
            told[operation["operationId"]] = operation["responses"]
    for each in OPERATIONS:
        assert named[each.name] >= {401, 413, 422, 431, 503}
        assert (429 in named[each.name]) == (each.needs_key and each.scope != "work")
        left = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
        assert (told[each.name][str(each.status)].get("headers", {}).keys() >= left) == (429 in named[each.name])
    shared = {name: answer.get("headers", {}).keys() for name, answer in document["components"]["responses"].items()}
    assert shared["TooMany"] == shared["Unavailable"] == left | {"Retry-After"}
    assert not is_named("GET", "/v1/jobs", 409)
    assert is_named("GET", "/v1/jobs", 429)


async def test_every_reference_in_the_openapi_document_leads_somewhere(api: Caller):
    document = (await api.get("/openapi.json")).json
    found = set(refs(document))
    assert found
    for ref in found:
        place = document
        for part in ref.removeprefix("#/").split("/"):
            place = place[part]
    names = [name.rpartition("/")[2] for name in found]
    assert {"JobBody", "JobPatch", "JobView", "RunBody", "RunBatch", "Problem"} <= set(names)


async def test_parameters_in_paths_are_declared_and_the_others_are_optional(api: Caller):
    document = (await api.get("/openapi.json")).json
    ids = [op["operationId"] for methods in document["paths"].values() for op in methods.values()]
    assert len(ids) == len(set(ids))
    for path, methods in document["paths"].items():
        for operation in methods.values():
            declared = [(each["name"], each["in"]) for each in operation["parameters"]]
            assert len(declared) == len(set(declared))
            in_path = {name for name, place in declared if place == "path"}
            assert in_path == set(re.findall(r"{(\w+)}", path))
            for each in operation["parameters"]:
                assert each["required"] == (each["in"] == "path")
                assert each["schema"]


async def test_only_a_run_by_hand_and_rotations_may_come_without_a_body(api: Caller):
    document = (await api.get("/openapi.json")).json
    optional = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if not operation.get("requestBody", {}).get("required", True)
    ]
    assert optional == ["runJob", "rotateKey", "rotateEncryption"]


class Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in {"href", "src", "action"}:
                self.links.add(value or "")
            if name == "id":
                self.ids.add(value or "")


async def test_the_reference_is_one_page_without_script_or_network(api: Caller):
    answer = await Caller(api.app, None).get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    text = answer.content.decode()
    page = Page()
    page.feed(text)
    assert not page.tags & {"script", "iframe", "img", "link", "object"}
    assert not re.search(r"(src|href|url)\s*[=(]\s*[\"']?(https?:)?//", text)
    assert {link.removeprefix("#") for link in page.links if link.startswith("#")} <= page.ids
    assert {link for link in page.links if not link.startswith("#")} == {"/openapi.json"}
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in answer.headers["content-security-policy"]
    assert "style=" not in text
    told = html.unescape(re.sub(r"</?code>", "`", text))
    for each in OPERATIONS:
        assert each.path in text
        assert each.summary in told


async def test_the_front_door_leads_to_the_reference(api: Caller):
    answer = await Caller(api.app, None).get("/")
    assert (answer.status, answer.headers["location"]) == (307, "/docs")
