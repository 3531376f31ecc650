"""The web application: the table of operations as routes, and the pages for machines and people."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from foliot.api import (
    audit,
    calendars,
    dead_letters,
    explain,
    fleet,
    job_gates,
    jobs,
    keys,
    ledger,
    operations,
    problems,
    runs,
    schedules,
    secrets,
    submission,
    tenants,
    work,
)
from foliot.api.endpoint import Endpoint, endpoint
from foliot.api.openapi import document
from foliot.api.operation import Operation, Services
from foliot.api.reference import page
from foliot.api.style import HEADERS
from foliot.domain.errors import FoliotError, Unavailable
from foliot.kit import telemetry
from foliot.services.gauges import Gauges
from foliot.services.health import Health

OPERATIONS: Final[tuple[Operation, ...]] = (
    *ledger.OPERATIONS,
    *explain.OPERATIONS,
    *jobs.OPERATIONS,
    *job_gates.OPERATIONS,
    *operations.OPERATIONS,
    *dead_letters.OPERATIONS,
    *submission.OPERATIONS,
    *runs.OPERATIONS,
    *schedules.OPERATIONS,
    *calendars.OPERATIONS,
    *fleet.OPERATIONS,
    *tenants.OPERATIONS,
    *keys.OPERATIONS,
    *secrets.OPERATIONS,
    *audit.OPERATIONS,
    *work.OPERATIONS,
)


@cache
def _described() -> tuple[bytes, bytes]:
    """The document for machines and the page for people: made for the first who asks, it is most of a start."""
    described = document(OPERATIONS)
    return msgspec.json.encode(described), page(described)


def build(services: Services, health: Health, gauges: Gauges) -> Starlette:
    async def is_alive(_: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def is_ready(_: Request) -> Response:
        try:
            await health.check()
        except FoliotError as error:
            return problems.problem(503, "unavailable", "Not ready", error.message, hint=error.hint)
        return Response(b'{"status":"ready"}', media_type="application/json")

    async def metrics(_: Request) -> Response:
        seen = False
        with suppress(Unavailable):  # the counters of this process are worth telling all the same
            await gauges.measure()
            seen = True
        return Response(telemetry.exposition(seen=seen), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi_json(_: Request) -> Response:
        return Response(_described()[0], media_type="application/json")

    async def reference(_: Request) -> Response:
        return Response(_described()[1], media_type="text/html", headers=HEADERS)

    async def home(_: Request) -> Response:
        return RedirectResponse("/docs")

    endpoints = [(each, endpoint(each, services, services.tenants)) for each in OPERATIONS]
    routes = [
        Route("/", home),
        Route("/health", is_alive, methods=["GET", "POST"]),  # POST: a target for first jobs
        Route("/ready", is_ready),
        Route("/metrics", metrics),
        Route("/openapi.json", openapi_json),
        Route("/docs", reference),
        *(Route(each.route, answer, methods=[each.method]) for each, answer in endpoints),
    ]
    application = Application(routes=routes, exception_handlers={HTTPException: _plain})
    application.router.redirect_slashes = False  # an address is one of ours or it is not
    application.straight = {(each.method, each.path): answer for each, answer in endpoints if each.is_fixed}
    return application


class Application(Starlette):
    """Calls whose address has no parameters go straight to their endpoints, which answer whatever goes wrong.

    Trying routes one after the other, behind two layers that catch errors, is a fifth of the price of a call.
    """

    straight: Mapping[tuple[str, str], Endpoint] = MappingProxyType({})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (answer := self.straight.get((scope["method"], scope["path"]))):
            response = await answer(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def _plain(_: Request, error: Exception) -> Response:
    """What no operation answers: unknown paths, wrong methods."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = {404: "there is nothing at this address", 405: "this address does not take that method"}
    return problems.problem(
        status, "no-such-call", "No such call", detail.get(status, "the call was refused"), hint="see /docs"
    )
