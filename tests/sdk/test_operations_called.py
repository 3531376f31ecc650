"""Every operation of the API can be called from Python, by either client."""

import asyncio
import inspect
import re
from typing import Any

import pytest
from starlette.routing import compile_path

from foliot import AsyncFoliot, Foliot
from foliot.api.app import OPERATIONS
from foliot.sdk.protocol import Request

WITHOUT = {
    "completeRun": "called by the target of an HTTP handler, with the token of the call and without a key",
    **{
        each.name: "said by workers, which speak the protocol themselves" for each in OPERATIONS if each.scope == "work"
    },
}
CALLED = {
    "createRun": "submit", "createRuns": "submit_many", "putJobByKey": "put_job", "backfillJob": "backfill",
    "listOperations": "operations", "getOperation": "operation", "listDeadLetters": "dead_letters",
    "getDeadLetter": "dead_letter", "replayDeadLetters": "replay", "discardDeadLetters": "discard",
    "previewSchedule": "preview", "listWorkers": "workers", "listQueues": "queues", "listTenants": "tenants",
    "listKeys": "keys", "listAudit": "audit", "getSigningSecret": "signing_secret", "listSecrets": "secrets",
    "putSecret": "set_secret",
}  # fmt: skip
"""Methods that are not called as their operation is."""
GIVEN: dict[str, Any] = {
    "runs": [{"handler": "noop"}], "jobs": [{"name": "x", "handler": "noop"}],
    "start": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", "enabled": True,
    "rate_limit": None,
}  # fmt: skip


class Asked(Exception):  # noqa: N818 - it is no error
    """What a method would have sent."""


def _name(operation: str) -> str:
    return CALLED.get(operation) or re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", operation)


def _asked(client: Any, method: str) -> Request:
    async def tells(request: Request, **_: Any) -> Any:
        raise Asked(request)

    def tells_at_once(request: Request, **_: Any) -> Any:
        raise Asked(request)

    client.request = tells if isinstance(client, AsyncFoliot) else tells_at_once
    call = getattr(client, method)
    needed = [each for each in inspect.signature(call).parameters.values() if each.default is each.empty]
    named = {each.name: GIVEN.get(each.name, "x") for each in needed if each.kind is not each.VAR_KEYWORD}
    try:
        asyncio.run(call(**named))
    except Asked as asked:
        return asked.args[0]
    raise AssertionError(f"{method} asks for nothing")


@pytest.mark.parametrize("kind", [Foliot, AsyncFoliot])
def test_every_operation_has_a_method_that_calls_it(kind: type[Any], subtests: pytest.Subtests):
    for each in OPERATIONS:
        if each.name in WITHOUT:
            continue
        with subtests.test(each.name):
            request = _asked(kind("http://127.0.0.1:1", "fol_x"), _name(each.name))
            assert request.method == each.method
            assert compile_path(each.route)[0].fullmatch(request.path.partition("?")[0]), request.path


def test_what_has_no_method_says_why():
    assert set(WITHOUT) < {each.name for each in OPERATIONS}
    assert not [name for name in WITHOUT if hasattr(Foliot, _name(name))]
