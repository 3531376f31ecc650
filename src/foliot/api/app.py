"""The web application: the table of operations as routes, and the pages for machines and people."""

from contextlib import suppress
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from foliot.api import calendars, dead_letters, fleet, jobs, ledger, operations, problems, runs, schedules, work
from foliot.api.endpoint import endpoint
from foliot.api.openapi import document
from foliot.api.operation import Operation, Services
from foliot.api.reference import page
from foliot.domain.errors import FoliotError, Unavailable
from foliot.kit import telemetry
from foliot.services.gauges import Gauges
from foliot.services.health import Health
from foliot.services.tenants import Tenants

OPERATIONS: Final[tuple[Operation, ...]] = (
    *ledger.OPERATIONS,
    *jobs.OPERATIONS,
    *operations.OPERATIONS,
    *dead_letters.OPERATIONS,
    *runs.OPERATIONS,
    *schedules.OPERATIONS,
    *calendars.OPERATIONS,
    *fleet.OPERATIONS,
    *work.OPERATIONS,
)


def build(services: Services, tenants: Tenants, health: Health, gauges: Gauges) -> Starlette:
    described = document(OPERATIONS)
    openapi, docs = msgspec.json.encode(described), page(described)

    async def is_alive(_: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def is_ready(_: Request) -> Response:
        try:
            await health.check()
        except FoliotError as error:
            return problems.problem(503, "unavailable", "Not ready", error.message, hint=error.hint)
        return Response(b'{"status":"ready"}', media_type="application/json")

    async def metrics(_: Request) -> Response:
        with suppress(Unavailable):  # the counters of this process are worth telling all the same
            await gauges.measure()
        return Response(telemetry.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi_json(_: Request) -> Response:
        return Response(openapi, media_type="application/json")

    async def reference(_: Request) -> Response:
        return Response(
            docs,
            media_type="text/html",
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
        )

    async def home(_: Request) -> Response:
        return RedirectResponse("/docs")

    routes = [
        Route("/", home),
        Route("/health", is_alive, methods=["GET", "POST"]),  # POST: a target for first jobs
        Route("/ready", is_ready),
        Route("/metrics", metrics),
        Route("/openapi.json", openapi_json),
        Route("/docs", reference),
        *(
            Route(operation.route, endpoint(operation, services, tenants), methods=[operation.method])
            for operation in sorted(OPERATIONS, key=_by_traffic)
        ),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _plain})


def _by_traffic(operation: Operation) -> bool:
    """Routes are tried one after the other: those that workers call all the time come first."""
    return operation.scope != "work"


async def _plain(_: Request, error: Exception) -> Response:
    """What no operation answers: unknown paths, wrong methods."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = {404: "there is nothing at this address", 405: "this address does not take that method"}
    return problems.problem(
        status, "no-such-call", "No such call", detail.get(status, "the call was refused"), hint="see /docs"
    )
