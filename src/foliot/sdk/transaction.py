"""Handing work in on the caller's own connection: it is there if the caller commits, and never was if not.

All that is asked of the database is one function of Foliot's schema. The libraries are known by what their connections
can do; none of them is needed here.
"""

import hashlib
import inspect
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

import msgspec

from foliot.domain.errors import InvalidField
from foliot.kit.settings import Access
from foliot.sdk.errors import NotConfigured
from foliot.sdk.protocol import Request, check_key
from foliot.sdk.settling import BlockingConnection
from foliot.wire.codec import fingerprint, rfc3339
from foliot.wire.jobs import payload_of
from foliot.wire.runs import RunBody, spec_and_target, start_of

# Instants and durations travel as text: the libraries differ in what they make of Python's own.
_PARAMETERS: Final = (
    ("caller", "CAST({} AS text)"),
    ("proof", "CAST({} AS bytea)"),
    ("spec", "CAST({} AS bytea)"),
    ("payload", "CAST({} AS bytea)"),
    ("target", "CAST({} AS bytea)"),
    ("due_at", "CAST(CAST({} AS text) AS timestamptz)"),
    ("delay", "CAST(CAST({} AS text) AS interval)"),
    ("key", "CAST({} AS text)"),
    ("fingerprint", "CAST({} AS bytea)"),
)


def _call(mark: str) -> str:
    """The one statement, with a library's own way to mark a parameter."""
    marks = [cast.format(mark.format(name=name, number=number)) for number, (name, cast) in enumerate(_PARAMETERS, 1)]
    return f"SELECT foliot.submit({', '.join(marks)})"


_NUMBERED: Final = _call("${number}")
_NAMED: Final = _call("%({name})s")
_COLON: Final = _call(":{name}")


def values_of(access: Access, request: Request) -> dict[str, Any]:
    """What the function is to be told: the same checks as the API's, and the same spec for the same words."""
    raw = request.body or b""
    try:
        body = msgspec.json.decode(raw, type=RunBody)
    except msgspec.ValidationError as error:
        raise InvalidField("run", str(error), "see /docs for a run's fields") from None
    due, delay = start_of(body)
    spec, target = spec_and_target(body)
    payload = payload_of(body)
    spec.key_of(payload)  # what lacks it is refused here, where somebody hears it
    caller = access.key.split("_", 2)
    if len(caller) != 3:
        raise NotConfigured("the key is not one of Foliot's", "correct FOLIOT_KEY")
    return {
        "caller": caller[1],
        "proof": hashlib.sha256(access.key.encode()).digest(),
        "spec": spec.body(),
        "payload": payload,
        "target": target,
        "due_at": None if due is None else rfc3339(due),
        "delay": None if delay is None else f"{delay // timedelta(microseconds=1)} microseconds",
        "key": None if request.key is None else check_key(request.key),
        "fingerprint": None if request.key is None else fingerprint(request.method, request.path, raw),
    }


def submit(access: Access, connection: Any, request: Request) -> str:
    """The new run's id. `connection`: of psycopg, SQLAlchemy (also a session), or any that speaks their dialect."""
    if isinstance(connection, BlockingConnection):
        return str(connection.fetchval(_NUMBERED, *values_of(access, request).values()))
    if _is_async(connection):
        raise InvalidField("connection", "is an asynchronous one", "hand it to AsyncFoliot, with await")
    values = values_of(access, request)
    if _is_sqlalchemy(connection):
        return str(connection.execute(_text(), values).scalar_one())
    _check(connection, "cursor")
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, values)
        return _only(cursor.fetchone())


async def submit_async(access: Access, connection: Any, request: Request) -> str:
    """The new run's id. `connection`: of asyncpg, or an asynchronous one of psycopg or SQLAlchemy (also a session)."""
    if _is_asyncpg(connection):
        if hasattr(connection, "acquire"):
            raise InvalidField("connection", "is a pool", "acquire a connection, and begin a transaction on it")
        return str(await connection.fetchval(_NUMBERED, *values_of(access, request).values()))
    if not _is_async(connection):
        raise InvalidField("connection", "is not an asynchronous one", "hand it to Foliot, without await")
    values = values_of(access, request)
    if _is_sqlalchemy(connection):
        return str((await connection.execute(_text(), values)).scalar_one())
    _check(connection, "cursor")
    async with connection.cursor() as cursor:
        await cursor.execute(_NAMED, values)
        return _only(await cursor.fetchone())


def _is_async(connection: Any) -> bool:
    return _is_asyncpg(connection) or inspect.iscoroutinefunction(getattr(connection, "execute", None))


def _is_asyncpg(connection: Any) -> bool:
    return hasattr(connection, "fetchval") and not isinstance(connection, BlockingConnection)


def _is_sqlalchemy(connection: Any) -> bool:
    return any(each.__module__.partition(".")[0] == "sqlalchemy" for each in type(connection).__mro__)


def _text() -> Any:
    return import_module("sqlalchemy").text(_COLON)


def _check(connection: Any, verb: str) -> None:
    if not hasattr(connection, verb):
        hint = "pass a connection of asyncpg, psycopg or SQLAlchemy"
        raise InvalidField("connection", f"a {type(connection).__name__} cannot carry a run", hint)


def _only(row: Any) -> str:
    """The one value of a row, whichever shape the connection gives its rows."""
    return str(next(iter(row.values())) if isinstance(row, Mapping) else row[0])
