"""From an operation to an endpoint: authorise, parse, call, render."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import structlog
from prometheus_client import Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from foliot.api import problems
from foliot.api.doing import REQUEST_ID, deed_of, header, request_id
from foliot.api.door import Door
from foliot.api.operation import Call, Operation, Reply, Services, Tenant
from foliot.api.paging import is_paged, list_of
from foliot.api.reading import read_body, read_query, read_text, refuse_repeats_within
from foliot.domain.access import Scope, check_may
from foliot.domain.condition import UNCONDITIONAL, Condition, condition_of, is_known, tag_of
from foliot.domain.errors import FoliotError, Forbidden, InvalidField, TooLarge, Unauthorised, Unavailable
from foliot.kit import telemetry
from foliot.services.tenants import Tenants
from foliot.store.audit import DOING
from foliot.store.database import ACTING_FOR, LOOKING
from foliot.store.keys import KeyOwner
from foliot.store.recovery import is_contended
from foliot.store.submission import Asked
from foliot.wire.codec import IDEMPOTENCY_KEY, fingerprint

log = structlog.get_logger("api")

Endpoint = Callable[[Request], Awaitable[Response]]
NOBODY = KeyOwner(b"", 0, "", "", ())
"""Who calls an operation that needs no key."""


def endpoint(operation: Operation, services: Services, tenants: Tenants) -> Endpoint:
    decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)
    observed: dict[int, Histogram] = {}
    is_change, only_looks = operation.is_change, operation.method == "GET"
    door, carry_out, proxies = Door(operation, services), _way(operation), services.proxies
    scope = Scope(operation.scope) if operation.needs_key else None

    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        response = await _answer(request)
        if (name := request_id(request)) is not None:
            response.raw_headers.append((REQUEST_ID, name.encode()))
        door.tell(request, response)
        if (taken := observed.get(response.status_code)) is None:
            taken = observed[response.status_code] = telemetry.REQUESTS.labels(operation.name, response.status_code)
        taken.observe(time.perf_counter() - started)
        return response

    async def _answer(request: Request) -> Response:
        caller, token = None, _token(request)
        try:
            owner = await tenants.whose(token) if operation.needs_key else NOBODY
            if owner is None:
                services.audit.denied(deed_of(request, operation, None, token, proxies), "no valid key")
                return problems.unauthorised()
            caller = Tenant(owner.tenant, owner.name, owner.key, owner.serves, owner.role, owner.scopes, owner.backlog)
            ACTING_FOR.set(owner.tenant)
            LOOKING.set(only_looks)
            door.let_in(request, owner)
            if scope is not None and scope not in caller.scopes:
                check_may(scope, caller.authority)  # says why not
            raw = await _read(request, operation)
            key = _key(request, operation)
            call = Call(
                tenant=caller,
                services=services,
                path=request.path_params,
                query=read_query(request, operation.query),
                body=None if decoder is None else _body(request, raw, decoder, operation),
                raw=raw,
                key=key,
                fingerprint=b"" if key is None else _fingerprint(request, operation, raw, token),
                gone=partial(_gone, request),
                token=token,
                condition=_condition(request, operation) if is_change else UNCONDITIONAL,
            )
            door.charge(request, call.body)
            return _render(request, await carry_out(request, operation, call), operation)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the caller gets an answer
            if isinstance(error, (Forbidden, Unauthorised)):
                known = caller if operation.needs_key else None
                services.audit.denied(deed_of(request, operation, known, token, proxies), error.message)
            return _explained(error, operation)

    return answer


def _way(operation: Operation) -> Callable[[Request, Operation, Call], Awaitable[Reply]]:
    """How its calls are carried out."""
    if is_paged(operation.query):
        return _page
    if not operation.is_change:
        return _straight
    return _noted if operation.keeps_first_answer else _once


async def _straight(_: Request, operation: Operation, call: Call) -> Reply:
    return await operation.handler(call)


async def _noted(request: Request, operation: Operation, call: Call) -> Reply:
    """Make a change, of which the audit trail tells who wanted it."""
    doing = DOING.set(deed_of(request, operation, call.tenant, "", call.services.proxies))
    try:
        return await operation.handler(call)
    finally:
        DOING.reset(doing)


class _Kept(msgspec.Struct, array_like=True):
    """An answer as it is kept for who asks again."""

    status: int
    location: str | None
    version: int | None
    content: msgspec.Raw


async def _once(request: Request, operation: Operation, call: Call) -> Reply:
    """Make a change, or say again what was said of it the first time."""
    if call.key is None:
        return await _noted(request, operation, call)

    async def deed() -> bytes:
        reply = await _noted(request, operation, call)
        version = _version(reply) if operation.is_versioned else None
        content = msgspec.Raw(_content(reply))
        return msgspec.json.encode(_Kept(reply.status or operation.status, reply.location, version, content))

    asked = Asked(call.tenant.id, call.key, call.fingerprint)
    kept = msgspec.json.decode(await call.services.once.do(asked, deed), type=_Kept)
    return Reply(bytes(kept.content), kept.status, kept.location, kept.version)


async def _page(_: Request, operation: Operation, call: Call) -> Reply:
    """One page of a list. Within, cursors are plain positions; outside nobody can tell, or write one."""
    cursors = await call.services.paging.cursors()
    place = list_of(operation.name, call.tenant.id, call.path, call.query)
    if call.query.cursor is not None:
        call.query.cursor = cursors.read(place, call.query.cursor)
    reply = await operation.handler(call)
    if reply.value.next_cursor is not None:
        reply.value.next_cursor = cursors.write(place, reply.value.next_cursor)
    return reply


def _explained(error: Exception, operation: Operation) -> Response:
    match error:
        case FoliotError():
            return problems.render(error)
        case msgspec.ValidationError():
            return problems.invalid(problems.field_error(error, operation.shapes))
        case msgspec.DecodeError():
            return problems.problem(400, "malformed", "Malformed JSON", str(error), hint="send one JSON object")
        case ClientDisconnect():
            return Response(status_code=400)  # nobody is there to read it
        case _ if is_contended(error):
            log.warning("a call had to give way", operation=operation.name, error=str(error))
            return problems.render(Unavailable("others are changing the same, and it had to give way", "try again"))
        case _:
            log.error("a call failed", operation=operation.name, exc_info=error)
            return problems.problem(500, "internal", "Internal error", "something went wrong on our side")


def _token(request: Request) -> str:
    scheme, _, token = (header(request, b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _key(request: Request, operation: Operation) -> str | None:
    if not operation.takes_key or (key := header(request, b"idempotency-key")) is None:
        return None
    if not IDEMPOTENCY_KEY.fullmatch(key):
        raise InvalidField("Idempotency-Key", "is not 1 to 200 visible ASCII characters", "a random UUID does well")
    return key


def _fingerprint(request: Request, operation: Operation, raw: bytes, token: str) -> bytes:
    query = request.scope["query_string"].decode("latin-1")
    path = f"{request.scope['path']}?{query}" if query else request.scope["path"]
    return fingerprint(request.method, path, raw, token if operation.takes_secret else "")


async def _gone(request: Request) -> None:
    """Once the body has been read, all that can still come is the end of the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read(request: Request, operation: Operation) -> bytes:
    """The whole body, unless it is larger than this operation takes."""
    parts, size, more = [], 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > operation.largest_body:
            limit = f"{operation.largest_body:,} bytes"
            raise TooLarge(f"the body is larger than {limit}", "payloads take at most 262,144 bytes each: send less")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _body(request: Request, raw: bytes, decoder: "msgspec.json.Decoder[Any]", operation: Operation) -> Any:
    if operation.text is not None:
        kind, made_from = operation.text
        if (header(request, b"content-type") or "").partition(";")[0].strip().lower() == kind:
            return made_from(read_text(raw))
    if not raw and operation.body_is_optional:
        return None
    body = read_body(raw, decoder, deeply=not operation.is_many)
    if operation.costs is not None:
        (name,) = body.__struct_fields__
        refuse_repeats_within(raw, name, getattr(body, name))
    return body


def _condition(request: Request, operation: Operation) -> Condition:
    """A condition is looked at or refused, never passed over."""
    match, none_match = header(request, b"if-match"), header(request, b"if-none-match")
    if match is None and none_match is None:
        return UNCONDITIONAL
    if not operation.is_conditional:
        name = "If-Match" if match is not None else "If-None-Match"
        raise InvalidField(name, "this call takes no condition", "leave it out")
    return condition_of(match, none_match)


def _content(reply: Reply) -> bytes:
    return reply.value if isinstance(reply.value, bytes) else msgspec.json.encode(reply.value)


def _version(reply: Reply) -> int:
    return reply.value.version if reply.version is None else reply.version


def _render(request: Request, reply: Reply, operation: Operation) -> Response:
    content = _content(reply)
    status = reply.status or operation.status
    if reply.location is None and not operation.is_versioned:
        return Plain(content, status)
    headers = {} if reply.location is None else {"Location": reply.location}
    if operation.is_versioned:
        headers["ETag"] = tag = tag_of(_version(reply), content)
        seen = header(request, b"if-none-match")
        if operation.method == "GET" and seen is not None and is_known(seen, tag):
            return Response(status_code=304, headers=headers)
    return Response(content, status, headers, "application/json")


class Plain(Response):
    """JSON and nothing else to say, made in a third of the time."""

    def __init__(self, content: bytes, status: int) -> None:
        self.status_code = status
        self.background = None
        self.body = content
        self.raw_headers = [(b"content-length", b"%d" % len(content)), (b"content-type", b"application/json")]
