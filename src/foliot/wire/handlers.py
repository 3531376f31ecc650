"""Handlers on the wire: which functions and web addresses a job or a run may name."""

import re
from typing import Final

from foliot.domain.errors import InvalidField
from foliot.domain.spec import FUNCTION_NAME, FunctionHandler, Handler, HttpHandler
from foliot.domain.target import check_url
from foliot.wire.codec import CONTROL

_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS: Final = re.compile(
    r"(foliot-|webhook-|proxy-).*|accept-encoding|connection|content-(length|type)|expect|host|idempotency-key"
    r"|keep-alive|te|traceparent|trailer|transfer-encoding|upgrade",
    re.IGNORECASE,
)
"""Headers that say who calls, for which run, or how the connection is used."""
MOST_HEADERS: Final = 64
LONGEST_HEADER: Final = 4_096


def handler_of(handler: str | HttpHandler | FunctionHandler) -> Handler:
    """A string with :// is a web address, any other string a function's name."""
    match handler:
        case str() if "://" in handler:
            return HttpHandler(url=check_url(handler))
        case str():
            return _function(handler)
        case FunctionHandler(name=name):
            return _function(name)
        case HttpHandler(url=url, method=method, headers=headers):
            if url is None:
                raise InvalidField("handler.url", "is missing", "which address shall be called?")
            if method.upper() not in _METHODS:
                raise InvalidField("handler.method", f"{method[:20]!r} cannot be used", f"one of {sorted(_METHODS)}")
            _check_headers(headers)
            return HttpHandler(url=check_url(url, "handler.url"), method=method.upper(), headers=headers)


def _function(name: str) -> FunctionHandler:
    if not FUNCTION_NAME.fullmatch(name):
        hint = "a function's name (letters, digits, '.', '_', '-') or an http(s) address"
        raise InvalidField("handler", f"{name[:40]!r} is neither", hint)
    return FunctionHandler(name)


def _check_headers(headers: dict[str, str]) -> None:
    if len(headers) > MOST_HEADERS or len({name.lower() for name in headers}) < len(headers):
        raise InvalidField("handler.headers", f"more than {MOST_HEADERS}, or one twice", "send fewer")
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or len(value) > LONGEST_HEADER or CONTROL.search(value):
            hint = f"plain names; values without control characters, at most {LONGEST_HEADER:,} long"
            raise InvalidField("handler.headers", f"{name[:40]!r} cannot be sent as a header", hint)
        if _OURS.fullmatch(name):
            raise InvalidField("handler.headers", f"{name} is set by Foliot itself", "leave it out")
