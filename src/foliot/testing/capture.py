"""Stands between an application's clients and the network: what they hand in stays in the test."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from foliot.domain.errors import FoliotError, InvalidField
from foliot.sdk.aio.transport import AsyncTransport
from foliot.sdk.client.transport import Transport
from foliot.sdk.protocol import Answer, Request
from foliot.testing.runs import InlineRun
from foliot.wire.problems import FieldError, Problem

Take = Callable[[Request], InlineRun]
_ACCESS = {"FOLIOT_URL": "http://inline.invalid", "FOLIOT_KEY": f"fol_{'0' * 12}_{'0' * 43}"}
"""For clients that are made meanwhile; those made before keep theirs, and reach nobody either."""


@contextmanager
def capturing(take: Take, runs: Sequence[InlineRun], taken: list[InlineRun]) -> Iterator[None]:
    """Answer the requests of all clients: runs are taken, looked at and cancelled; nothing else is known here."""

    def answer(request: Request) -> Answer:
        try:
            return _answer(request, take, runs, taken)
        except InvalidField as error:
            fault = FieldError(error.field, error.message, error.hint)
            return _problem(422, "invalid", f"{error.field}: {error.message}", error.hint, [fault])

    def send(_: Transport, request: Request, seconds: float) -> Answer:  # noqa: ARG001 - it takes none
        return answer(request)

    async def send_async(_: AsyncTransport, request: Request, seconds: float) -> Answer:  # noqa: ARG001 - as above
        return answer(request)

    environment = {name: value for name, value in _ACCESS.items() if name not in os.environ}
    with (
        patch.dict(os.environ, environment),
        patch.object(Transport, "send", send),
        patch.object(AsyncTransport, "send", send_async),
    ):
        yield


def _answer(request: Request, take: Take, runs: Sequence[InlineRun], taken: list[InlineRun]) -> Answer:
    path = request.path.removeprefix("/v1/runs")
    if (request.method, path) == ("POST", ""):
        return _said({"runId": _taken(take(request), taken)})
    if (request.method, path) == ("POST", ":batch"):
        batch = msgspec.json.decode(request.body or b"", type=dict[str, list[msgspec.Raw]])
        made = [take(Request("POST", "/v1/runs", bytes(body))) for body in batch["runs"]]
        return _said({"runIds": [_taken(run, taken) for run in made]})
    run = next((run for run in runs if path.removeprefix("/").partition(":")[0] == run.id), None)
    if path == request.path or (run is not None and path not in {f"/{run.id}", f"/{run.id}:cancel"}):
        raise FoliotError(
            f"a test asked for {request.method} {request.path}", "foliot.testing knows runs only: submit, get, cancel"
        )
    if run is None:
        return _problem(404, "not-found", "there is no such run", "")
    if path.endswith(":cancel"):
        run.cancel()
    return _said(run.values)


def _taken(run: InlineRun, taken: list[InlineRun]) -> str:
    if run not in taken:  # the same key stands for the same run
        taken.append(run)
    return run.id


def _said(value: Any) -> Answer:
    return Answer(200, msgspec.json.encode(value))


def _problem(status: int, kind: str, detail: str, hint: str, errors: list[FieldError] | None = None) -> Answer:
    problem = Problem(
        type=f"urn:foliot:problem:{kind}", title=kind, status=status, detail=detail, hint=hint, errors=errors or []
    )
    return Answer(status, msgspec.json.encode(problem))
