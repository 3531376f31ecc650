"""Calls the application as a web server would, without the sockets."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.applications import Starlette
from starlette.routing import compile_path

from foliot.api.app import OPERATIONS, build
from foliot.api.openapi import document
from foliot.api.operation import Services
from foliot.domain.address import Network
from foliot.domain.egress import EVERYWHERE, Egress
from foliot.services.audit import AuditTrail
from foliot.services.backlog import Backlog
from foliot.services.calendars import CalendarKeeper
from foliot.services.cancel import Canceller
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.explain import Explainer
from foliot.services.gauges import Gauges
from foliot.services.graphs import Graphs
from foliot.services.health import Health
from foliot.services.insights import Insights
from foliot.services.keys import Keys
from foliot.services.ledger import Ledger
from foliot.services.once import Once
from foliot.services.operations import Operations
from foliot.services.pacing import Pacing
from foliot.services.paging import Paging
from foliot.services.secrets import Secrets
from foliot.services.tenants import Tenants
from foliot.services.terms import TermsKeeper
from foliot.store.database import Database
from world import World

DOCUMENT = document(OPERATIONS)
PLAIN = {"name": "report", "handler": "noop"}
"""The shortest job."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def field(self) -> str:
        """The field that a 422 speaks of; it must also say what to do."""
        assert self.status == 422, (self.status, self.content[:500])
        assert self.headers["content-type"] == "application/problem+json"
        (error,) = self.json["errors"]
        assert error["message"]
        assert error["hint"]
        return error["field"]


class Caller:
    """One tenant's way to the application."""

    def __init__(self, app: Starlette, key: str | None) -> None:
        self.app = app
        self.key = key

    async def __call__(
        self, method: str, address: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            given.setdefault("authorization", f"Bearer {self.key}")
        return await ask(self.app, method, address, content, given)

    async def post(self, address: str, body: Any = None, **more: Any) -> Answer:
        return await self("POST", address, body, **more)

    async def get(self, address: str, **more: Any) -> Answer:
        return await self("GET", address, **more)

    async def create(self, **fields: Any) -> Any:
        """A job that was made, as the API shows it."""
        made = await self.post("/v1/jobs", {**PLAIN, **fields})
        assert made.status == 201, made.content
        return made.json

    async def submit(self, **fields: Any) -> str:
        made = await self.post("/v1/runs", {"handler": "noop", **fields})
        assert made.status == 201, made.content
        return made.json["runId"]


async def ask(
    app: Starlette,
    method: str,
    address: str,
    content: bytes,
    headers: Mapping[str, str],
    hung_up: asyncio.Event | None = None,
) -> Answer:
    parts = urlsplit(address)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    told: list[dict[str, Any]] = []

    given = [content]

    async def receive() -> dict[str, Any]:
        if not given:
            await (hung_up or asyncio.Event()).wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": given.pop(), "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    await app(scope, receive, send)
    start = next(message for message in told if message["type"] == "http.response.start")
    assert is_named(method, unquote(parts.path), start["status"]), f"{method} {address} was answered {start['status']}"
    answered = b"".join(message.get("body", b"") for message in told if message["type"] == "http.response.body")
    return Answer(start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, answered)


_NAMED = [
    (compile_path(each.route)[0], each.method, DOCUMENT["paths"][each.path][each.method.lower()]["responses"].keys())
    for each in OPERATIONS
]


def is_named(method: str, path: str, status: int) -> bool:
    """Whether the document names this answer of the operation that gave it; a fault of ours needs no name."""
    for address, takes, statuses in _NAMED:
        if takes == method and address.fullmatch(path):
            return status == 500 or str(status) in statuses
    return True


def application(
    world: World,
    tenants: Tenants | None = None,
    own: Database | None = None,
    egress: Egress = EVERYWHERE,
    pacing: Pacing | None = None,
    backlog: Backlog | None = None,
    proxies: Sequence[Network] = (),
) -> Starlette:
    """With `own`, what belongs to one tenant is reached through that: as the API process does."""
    services = Services(
        world.control,
        world.insights,
        world.ledger,
        world.submitter,
        world.specs,
        world.operations,
        world.calendars,
        world.dead_letters,
        world.fleet,
        world.gateway,
        tenants or Tenants(world.database),
        world.canceller,
        world.completer,
        world.graphs,
        Keys(world.database),
        world.audit,
        Paging(world.database),
        world.explainer,
        TermsKeeper(world.database),
        pacing or Pacing(world.database),
        backlog or Backlog(world.database),
        world.secrets,
        world.encryption,
        Once(world.database, world.vault_in_use),
        egress=egress,
        proxies=proxies,
    )
    if own is not None:
        services = services._replace(
            control=Control(own, world.specs, world.hints.append, world.vault_in_use),
            insights=Insights(own, world.vault_in_use),
            ledger=Ledger(own),
            operations=Operations(own, world.hints.append),
            calendars=CalendarKeeper(own),
            dead_letters=DeadLetters(own, world.hints.append, world.vault_in_use),
            canceller=Canceller(own, world.specs, world.hints.append),
            audit=AuditTrail(world.database, own),
            graphs=Graphs(own, world.hints.append, world.vault_in_use),
            explainer=Explainer(own, world.vault_in_use),
            secrets=Secrets(own, world.vault),
        )
    return build(services, Health(world.database), Gauges(world.database))


async def rows(world: World) -> dict[str, int]:
    """How many rows every table that a call could write to has."""
    names = ("job", "run", "timer", "ready", "schedule", "subscription", "spec", "lane", "idempotency", "history")
    names += ("operation", "operation_item", "dead_letter", "dependency")
    return {name: await world.count(name) for name in names}
