"""Calls that schemathesis makes from the document, some of which lead somewhere; and what holds for all answers."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode, Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.calling import PLAIN, Answer, Caller, ask
from api.test_table import BODIES, CALENDAR, DEAD, IN_GRAPH, QUERIES
from burying import bury
from foliot.api.app import OPERATIONS
from foliot.api.openapi import document
from foliot.domain.ids import encode
from foliot.domain.outcome import Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.store import outside
from world import Hand, World

SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(document(OPERATIONS))))
FOUND = {each.ok().definition.raw["operationId"]: each.ok() for each in SCHEMA.get_all_operations()}
BY_NAME = {each.name: each for each in OPERATIONS}
BURIED = Spec(handler=FunctionHandler("buried"))
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
HOSTILE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=300) | st.sampled_from(
    ["", "*", '"1"', "W/", '"' * 99, "text/calendar", "application/json; charset=utf-16", "chunked", "' OR 1=1"]
)
HEADERS = st.sampled_from(
    ["Idempotency-Key", "If-Match", "If-None-Match", "X-Request-Id", "Content-Type", "Accept", "Authorization", "Range"]
)
AS_THEY_CAME, OWNED, ALIKE = range(3)
"""Ids of a path: what schemathesis made up, one's own, or what looks like one and is nobody's."""
REFRESHED = 60
"""After so many calls there is something new to call about: much of the old has been cancelled or erased."""


class Call(NamedTuple):
    name: str
    case: Any
    ids: int
    is_usual: bool
    headers: dict[str, str]
    cursor: str | None

    def __repr__(self) -> str:
        return f"{self.name} {self.case.path_parameters} {self.case.query} {self.case.body!r:.200} {self.headers}"


@st.composite
def calls(draw: st.DrawFn, names: Sequence[str]) -> Call:
    name = draw(st.sampled_from(names))
    mode = draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
    return Call(
        name,
        draw(FOUND[name].as_strategy(generation_mode=mode)),
        draw(st.sampled_from([AS_THEY_CAME, OWNED, OWNED, OWNED, ALIKE])),
        draw(st.integers(0, 3)) == 0,
        draw(st.dictionaries(HEADERS, HOSTILE, max_size=2)) if draw(st.integers(0, 3)) == 0 else {},
        draw(st.none() | st.none() | st.text(max_size=60)),
    )


class Fuzzer:
    """Sends calls, looks at each answer, and counts which operations have done something."""

    def __init__(self, world: World, api: Caller) -> None:
        self._world = world
        self._api = api
        self._ids: dict[str, str] = {}
        self._token = ""
        self._hands: dict[str, Hand] = {}
        self._drawn = 0
        self.sent = 0
        self.reached: Counter[str] = Counter()
        self.wanted: set[str] = set()
        """Operations that must have done something at the end."""
        self.findings: list[str] = []

    async def send(self, call: Call) -> bool:
        """Send it and look at the answer; false for what no client could send, which is no case."""
        if self._drawn % REFRESHED == 0:
            await self._refresh()
        self._drawn += 1
        request = self._request(call)
        if request is None:
            return False
        self.sent += 1
        try:
            answer = await self._ask(call, request)
            self._check(call, request, answer)
        except BaseException as error:
            self.findings.append(f"{call!r}: {error!s:.500}")
            raise
        if answer.status < 300:
            self.reached[call.name] += 1
        return True

    async def reach(self, names: Iterable[str]) -> None:
        """Call these as anybody would, about what there is just now."""
        for name in names:
            await self._refresh()
            given = dict.fromkeys(re.findall(r"{(\w+)}", BY_NAME[name].path), "x")
            await self.send(Call(name, FOUND[name].Case(path_parameters=given), OWNED, True, {}, None))

    async def _ask(self, call: Call, request: requests.PreparedRequest) -> Answer:
        body = request.body or b""
        content = body.encode() if isinstance(body, str) else bytes(body)
        key = self._token if call.name == "completeRun" else self._api.key
        headers = {"authorization": f"Bearer {key}", **{name.lower(): value for name, value in request.headers.items()}}
        return await ask(self._api.app, request.method or "", request.path_url, content, headers)

    def _request(self, call: Call) -> requests.PreparedRequest | None:
        """As a client would send it; none for what no client could."""
        operation, case = BY_NAME[call.name], call.case
        path = operation.path
        for name in re.findall(r"{(\w+)}", path):
            given = str((case.path_parameters or {}).get(name, ""))
            path = path.replace(f"{{{name}}}", requests.utils.quote(self._id(call, name, given), safe=""))
        query, body = dict(case.query or {}), case.body
        if call.is_usual:
            query, body = {}, BODIES.get(call.name)
            path += QUERIES.get(call.name, "")
        if call.cursor is not None and call.name.startswith("list"):
            query["cursor"] = call.cursor
        if isinstance(body, dict) and call.name == "claimWork":
            body = {**body, "wait": 0}
        is_left_out = body is None or type(body).__name__ == "NotSet"
        data = b"" if is_left_out else body if isinstance(body, bytes) else json.dumps(body).encode()
        made_up = {} if call.is_usual else case.headers or {}
        sent = {name: value for name, value in made_up.items() if name.lower() != "authorization"} | call.headers
        try:
            url = f"http://foliot{path}"
            return requests.Request(operation.method, url, headers=sent, params=query, data=data).prepare()
        except (requests.RequestException, UnicodeError):
            return None

    def _id(self, call: Call, name: str, given: str) -> str:
        kind = {"run": "dead"} if call.name in DEAD else {"run": "graph"} if call.name in IN_GRAPH else {}
        kind |= {"run": "outside"} if call.name == "completeRun" else {}
        own = self._ids.get(kind.get(name, name), "x")
        match call.ids:
            case 1:
                return own
            case 2:
                return own[:-2] + ("zz" if not own.endswith("zz") else "00")
            case _:
                return given or "x"

    def _check(self, call: Call, request: requests.PreparedRequest, answer: Answer) -> None:
        assert answer.status < 500, (call, answer.content[:500])
        if answer.status >= 400:
            problem = answer.json
            assert problem["status"] == answer.status
            assert problem["detail"], (call, problem)
            assert problem["hint"] or answer.status == 404, (call, problem)
        # A path of its own, such as one with an empty id, is not the operation's that the case was made for.
        if answer.status in {404, 405} and answer.json["type"] == "urn:foliot:problem:no-such-call":
            return
        headers = {name: [value] for name, value in answer.headers.items()}
        response = Response(answer.status, headers, answer.content, request, 0.0, verify=False)
        call.case.validate_response(response, checks=CHECKS)

    async def _refresh(self) -> None:
        """Something of every kind that is one's own."""
        api, world = self._api, self._world
        for queue in ("default", "mail"):
            await api.post(f"/v1/queues/{queue}:resume")
        await api.post("/v1/work/heartbeat", BODIES["heartbeat"])
        worker = encode("wrk", 1_000_000 + self._drawn)
        await api.post("/v1/work/heartbeat", {**BODIES["heartbeat"], "worker": worker})
        await api("PUT", f"/v1/calendars/{CALENDAR}", {"timezone": "UTC"})
        await api("PUT", "/v1/jobs/by-key/some-key", PLAIN)
        await api("PUT", "/v1/secrets/token", {"value": "one"})
        job = (await api.create(every=3600))["jobId"]
        range_ = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
        operation = (await api.post(f"/v1/jobs/{job}:backfill", range_)).json["operationId"]
        root = await api.create()
        await api.create(dependsOn=[root["jobId"]])
        graph = (await api.post(f"/v1/jobs/{root['jobId']}:run")).json["runId"]
        (dead,) = await bury(world, spec=BURIED, worker=await self._hand("buried"))
        key = (await api.post("/v1/keys", {"name": f"key {self._drawn}"})).json["keyId"]
        await self._entrust(await api.submit(handler="outside_only"))
        self._ids |= {
            "job": job, "run": await api.submit(delay=3600), "dead": encode("run", dead), "graph": graph,
            "operation": operation, "calendar": CALENDAR, "queue": "default", "worker": worker,
            "keyId": key, "tenant": "acme", "key": "some-key", "secret": "token",
        }  # fmt: skip

    async def _hand(self, function: str) -> Hand:
        """A worker for what nobody else runs."""
        if function not in self._hands:
            self._hands[function] = await self._world.worker(function)
        return self._hands[function]

    async def _entrust(self, run: str) -> None:
        """Let a run go on outside, and keep the token that ends it."""
        hand = await self._hand("outside_only")
        held = next(each for each in await hand.claim() if encode("run", each.id) == run)
        await hand.conclude([held], Outcome.entrusted(timedelta(hours=1)))
        voucher = await outside.voucher_of(self._world.database, hand.id)
        self._ids["outside"], self._token = run, voucher.token(held.id, held.tenant, held.fence)
