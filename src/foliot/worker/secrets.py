"""Puts secrets in the place of references to them while an attempt goes on, and keeps them out of its answer."""

import asyncio
import traceback
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from foliot.domain.discretion import hushed
from foliot.domain.errorclass import classes_of
from foliot.domain.errors import FenceLost
from foliot.domain.outcome import Answer, Ending, Failure
from foliot.domain.redaction import Redaction
from foliot.domain.secret import SecretRef, names_in, resolved
from foliot.domain.spec import ContainerHandler, Handler, HttpHandler
from foliot.kit.hush import HUSH
from foliot.store.dispatch import Claimed
from foliot.store.recovery import is_contended, is_gone
from foliot.store.specs import StoredSpec
from foliot.store.vault import UNOPENED
from foliot.worker.executor import Assignment, Executor, Given
from foliot.worker.port import Carrier

MISSING: Final = "SecretMissing"
UNREADABLE: Final = "PayloadUnreadable"
_MARK: Final = b'"$'


def may_refer(run: Claimed, stored: StoredSpec) -> bool:
    """Whether a run has to be looked at more closely before it begins. Asked of every run."""
    return _MARK in run.payload or stored.refers or (run.target is not None and _MARK in run.target)


class Secretive:
    """Executors whose attempts may refer to secrets."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._around: dict[Executor, Executor] = {}

    def around(self, executor: Executor) -> Executor:
        """The same for the same: the runner knows by the executor which handlers have to wait."""
        if executor not in self._around:

            async def execute(assignment: Assignment) -> Answer:
                return await self._execute(assignment, executor)

            self._around[executor] = execute
        return self._around[executor]

    async def _execute(self, assignment: Assignment, executor: Executor) -> Answer:
        run = assignment.run
        for what, text in (("payload", run.payload), ("target", run.target)):
            if text is not None and text.startswith(UNOPENED):
                why = msgspec.json.decode(text)["$unopened"]
                return Failure(f"the {what} cannot be opened: {why}", classes=(UNREADABLE,))
        names = sorted(set(_names(assignment)))
        if not names:
            return await executor(assignment)
        try:
            secrets = await self._carrier.secrets(run, names)
        except Exception as error:
            if is_gone(error) or is_contended(error) or isinstance(error, FenceLost):
                return Failure("its secrets could not be fetched", ending=Ending.RELEASED)
            raise
        if missing := [name for name in names if name not in secrets]:
            said = f"there is no secret called {', '.join(map(repr, missing))}; `foliot secret set` makes it"
            return Failure(said, permanent=True, classes=(MISSING,))
        redaction = Redaction(secrets.values())
        hide = redaction.hide
        with HUSH.using(hide):
            return await _quietly(executor, _given(assignment, secrets), redaction)


async def _quietly(executor: Executor, assignment: Assignment, redaction: Redaction) -> Answer:
    """What it answers, without the secrets that it was given."""
    try:
        answer = await executor(assignment)
    except asyncio.CancelledError as cancelled:
        raise asyncio.CancelledError(*(redaction.hide(str(word)) for word in cancelled.args)) from None
    except Exception as error:  # noqa: BLE001 - whatever an executor raises is the answer to its attempt
        answer = Failure(traceback.format_exc(), classes=classes_of(type(error)))
    return hushed(answer, redaction)


def _names(assignment: Assignment) -> Iterable[str]:
    run = assignment.run
    for text in (run.payload, run.target):
        if text is not None and _MARK in text:
            yield from names_in(msgspec.json.decode(text))
    yield from names_in(msgspec.to_builtins(assignment.spec.handler))


def _given(assignment: Assignment, secrets: dict[str, str]) -> Assignment:
    run = assignment.run
    given = Given(
        payload=_filled(run.payload, secrets),
        target=None if run.target is None else _filled(run.target, secrets),
        handler=_handler(assignment.spec.handler, secrets),
        secrets=tuple(secrets.values()),
    )
    return msgspec.structs.replace(assignment, given=given)


def _filled(text: bytes, secrets: dict[str, str]) -> bytes:
    return msgspec.json.encode(resolved(msgspec.json.decode(text), secrets)) if _MARK in text else text


def _handler(handler: Handler, secrets: dict[str, str]) -> Handler:
    match handler:
        case HttpHandler(headers=headers):
            return msgspec.structs.replace(handler, headers=_texts(headers, secrets))
        case ContainerHandler(env=env):
            return msgspec.structs.replace(handler, env=_texts(env, secrets))
        case _:
            return handler


def _texts(values: dict[str, Any], secrets: dict[str, str]) -> dict[str, Any]:
    return {name: secrets[value.name] if isinstance(value, SecretRef) else value for name, value in values.items()}
