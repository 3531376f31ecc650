"""Handlers on the wire: which functions, web addresses and commands a job or a run may name."""

import re
from collections.abc import Mapping
from typing import Final

from foliot.domain.errors import InvalidField, one_of
from foliot.domain.secret import SecretRef, Text, check_name
from foliot.domain.spec import FUNCTION_NAME, CommandHandler, ContainerHandler, FunctionHandler, Handler, HttpHandler
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
MOST_WORDS: Final = 1_000
LARGEST_ARGV: Final = 32 * 1024
"""Bytes of all words of a command together. More belongs into the payload, which it reads from its standard input."""
MOST_VARIABLES: Final = 256
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_IMAGE: Final = re.compile(r"[a-z0-9][a-zA-Z0-9._:/@-]{0,254}")
"""Looser than the grammar of references: engines know that one. It must not look like one of their options."""
_AS_WORDS: Final = 'write it as a list of words, such as ["/usr/local/bin/report", "--day", "2026-11-16"]'

Given = str | HttpHandler | FunctionHandler | CommandHandler | ContainerHandler
"""What may stand as `handler`."""


def handler_of(handler: Given) -> Handler:
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
                raise InvalidField("handler.method", f"{method[:20]!r} cannot be used", one_of(_METHODS))
            _check_headers(headers)
            return HttpHandler(url=check_url(url, "handler.url"), method=method.upper(), headers=headers)
        case CommandHandler():
            return _command(handler)
        case ContainerHandler():
            return _container(handler)


def _function(name: str) -> FunctionHandler:
    if not FUNCTION_NAME.fullmatch(name):
        hint = "a function's name has letters, digits, '.', '_' and '-'; an address begins with https:// or http://"
        raise InvalidField("handler", f"{name[:40]!r} is neither a function's name nor an address", hint)
    return FunctionHandler(name)


def _command(handler: CommandHandler) -> CommandHandler:
    if not handler.argv or not handler.argv[0]:
        raise InvalidField("handler.argv", "names no program", _AS_WORDS)
    _check_words(handler.argv, "handler.argv")
    return handler


def _container(handler: ContainerHandler) -> ContainerHandler:
    if not _IMAGE.fullmatch(handler.image):
        hint = "such as ghcr.io/acme/report:1.2"
        raise InvalidField("handler.image", f"{handler.image[:80]!r} names no image", hint)
    _check_words(handler.args, "handler.args")
    _check_env(handler.env)
    return handler


def _check_words(words: tuple[str, ...], field: str) -> None:
    if len(words) > MOST_WORDS:
        raise InvalidField(field, f"has more than {MOST_WORDS:,} words", "put them into the payload")
    size = sum(len(word.encode(errors="surrogatepass")) + 1 for word in words)
    if size > LARGEST_ARGV:
        hint = "put it into the payload, which is read from standard input"
        raise InvalidField(field, f"is {size:,} bytes; at most {LARGEST_ARGV:,} are taken", hint)
    for place, word in enumerate(words):
        if "\0" in word:
            raise InvalidField(f"{field}[{place}]", "contains a NUL character", "no argument of a program can")


def _check_env(env: dict[str, Text]) -> None:
    plain = plain_texts(env, "handler.env")
    if len(env) > MOST_VARIABLES or sum(map(len, (*env, *plain.values()))) > LARGEST_ARGV:
        hint = "put it into the payload, which is read from standard input"
        raise InvalidField("handler.env", f"more than {MOST_VARIABLES} variables, or too large", hint)
    for name in env:
        value = plain.get(name, "")
        if not _VARIABLE.fullmatch(name) or name.startswith("FOLIOT_"):
            hint = "letters, digits and '_'; names that begin with FOLIOT_ are ours"
            raise InvalidField("handler.env", f"{name[:40]!r} cannot be set", hint)
        if CONTROL.search(value):
            raise InvalidField("handler.env", f"{name} contains control characters", "put it into the payload")


def plain_texts(values: Mapping[str, Text], field: str) -> dict[str, str]:
    """Those that are no secrets; the names of those that are have been looked at."""
    for value in values.values():
        if isinstance(value, SecretRef):
            try:
                check_name(value.name)
            except InvalidField as error:
                raise InvalidField(field, error.message, error.hint) from None
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _check_headers(headers: dict[str, Text]) -> None:
    plain = plain_texts(headers, "handler.headers")
    if len(headers) > MOST_HEADERS or len({name.lower() for name in headers}) < len(headers):
        raise InvalidField("handler.headers", f"more than {MOST_HEADERS}, or one twice", "send fewer")
    for name in headers:
        value = plain.get(name, "")
        if not _HEADER.fullmatch(name) or len(value) > LONGEST_HEADER or CONTROL.search(value):
            hint = f"plain names; values without control characters, at most {LONGEST_HEADER:,} long"
            raise InvalidField("handler.headers", f"{name[:40]!r} cannot be sent as a header", hint)
        if _OURS.fullmatch(name):
            raise InvalidField("handler.headers", f"{name} is set by Foliot itself", "leave it out")
