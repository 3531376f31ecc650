"""From an operation to an endpoint: authorise, parse, call, render."""

import hashlib
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from foliot.api import problems
from foliot.api.operation import Call, Operation, Reply, Services, Tenant
from foliot.domain.errors import FoliotError, InvalidField
from foliot.kit import telemetry
from foliot.services.tenants import Tenants

log = structlog.get_logger("api")

DEEPEST: Final = 64
"""Levels of nesting in a body."""
_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))

Endpoint = Callable[[Request], Awaitable[Response]]


def endpoint(operation: Operation, services: Services, tenants: Tenants) -> Endpoint:
    decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)

    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        response = await _answer(request)
        telemetry.REQUESTS.labels(operation.name, response.status_code).observe(time.perf_counter() - started)
        return response

    async def _answer(request: Request) -> Response:
        try:
            owner = await tenants.whose(_token(request))
            if owner is None:
                return problems.unauthorised()
            raw = await _read(request, operation)
            call = Call(
                tenant=Tenant(owner.tenant, owner.name),
                services=services,
                path=request.path_params,
                query=_query(request, operation),
                body=None if decoder is None else _body(raw, decoder, operation),
                raw=raw,
                key=_key(request, operation),
                fingerprint=hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + raw).digest(),
            )
            return _render(await operation.handler(call), operation)
        except FoliotError as error:
            return problems.render(error)
        except msgspec.ValidationError as error:
            return problems.invalid(problems.field_error(error))
        except msgspec.DecodeError as error:
            return problems.problem(400, "malformed", "Malformed JSON", str(error), hint="send one JSON object")
        except Exception:
            log.exception("a call failed", operation=operation.name)
            return problems.problem(500, "internal", "Internal error", "something went wrong on our side")

    return answer


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _key(request: Request, operation: Operation) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None or not operation.idempotent_by_key:
        return None
    if not _KEY.fullmatch(key):
        raise InvalidField("Idempotency-Key", "is not 1 to 200 visible ASCII characters", "a random UUID does well")
    return key


async def _read(request: Request, operation: Operation) -> bytes:
    """The whole body, unless it is larger than this operation takes."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > operation.largest_body:
            limit = f"{operation.largest_body:,} bytes"
            raise InvalidField("body", f"is larger than {limit}", "payloads take at most 262,144 bytes each")
        parts.append(part)
    return b"".join(parts)


def _body(raw: bytes, decoder: "msgspec.json.Decoder[Any]", operation: Operation) -> Any:
    if not raw and operation.name == "runJob":
        return None
    _refuse_depth(raw)
    return decoder.decode(raw)


def _query(request: Request, operation: Operation) -> Any:
    if operation.query is None:
        if request.query_params:
            raise InvalidField(next(iter(request.query_params)), "this call takes no query parameters", "leave it out")
        return None
    return msgspec.convert(dict(request.query_params), operation.query, strict=False)


def _refuse_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return
    depth = 0
    for bracket in _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            raise InvalidField(_deep_field(raw), f"is nested deeper than {DEEPEST} levels", "flatten it")


def _deep_field(raw: bytes) -> str:
    """The top-level field under which the nesting is, for the error message."""
    depth, name = 0, "body"
    for token in re.finditer(rb'"((?:[^"\\]|\\.)*)"|[\[\]{}]', raw, re.DOTALL):
        if token[1] is not None:
            name = token[1].decode(errors="replace") if depth == 1 else name
        else:
            depth += 1 if token[0] in b"[{" else -1
            if depth > DEEPEST:
                break
    return name


def _render(reply: Reply, operation: Operation) -> Response:
    content = reply.value if isinstance(reply.value, bytes) else msgspec.json.encode(reply.value)
    headers = {} if reply.location is None else {"Location": reply.location}
    return Response(content, reply.status or operation.status, headers, "application/json")
