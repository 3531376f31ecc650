"""Reading a request's JSON and query: all that can be wrong with them, before an operation sees them."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec
from starlette.requests import Request

from foliot.domain.errors import InvalidField, TooLarge

DEEPEST: Final = 64
"""Levels of nesting in a body."""
SMALL: Final = 1 << 20
"""Bytes: what most operations take at most."""
LARGE: Final = 64 << 20
"""Bytes: what batches take at most."""
MOST_NAMES: Final = 1_000
"""In one object of a body, payloads apart."""
LONGEST_QUERY: Final = 8 << 10
"""Bytes of what stands behind the question mark."""
_TWICE: Final = object()
"""Under what no name is, the name that an object has twice."""
_FLATTEN: Final = "flatten it, or send the inner part as a string"
# Possessive, and only ever applied to what is known to be well formed: without both, a body of quotes and
# backslashes takes time quadratic in its length.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TOKEN: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)"|[\[\]{}]', re.DOTALL)
_NAME: Final = re.compile(rb'"[^"\\]*+"(?=\s*+:)')
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")


def read_body(raw: bytes, decoder: "msgspec.json.Decoder[Any]", *, deeply: bool = True) -> Any:
    """The body as its type wants it. What msgspec refuses by type it says itself; the rest is InvalidField.

    `deeply`: also in the objects within it, but never inside a payload, no name may stand twice.
    """
    try:
        body = decoder.decode(raw)
        raw.decode()  # payloads are kept as they came: nothing else looks into their strings
    except RecursionError:
        raise _too_deep(raw) from None
    except UnicodeDecodeError as error:
        raise InvalidField("body", f"is not UTF-8 (byte {error.start})", "encode it as UTF-8") from None
    _refuse_depth(raw)
    if len(raw) <= SMALL:
        outer = _without_payload(raw, body) if deeply else raw
        if deeply and outer.count(b":") > MOST_NAMES:
            _refuse_repeats(outer, deeply=deeply)
        if _may_repeat(raw, _names(decoder)) or (outer.count(b"{") > 1 and deeply and _may_repeat(outer, _NAME)):
            _refuse_repeats(outer, deeply=deeply)
    return body


def refuse_repeats_within(raw: bytes, name: str, items: Sequence[msgspec.Struct]) -> None:
    """The same for each item of a batch, of which `name` is the field."""
    if not _may_repeat_within(raw, items):
        return
    texts = msgspec.json.decode(raw, type=dict[str, list[msgspec.Raw]])[name]
    for index, (text, item) in enumerate(zip(texts, items, strict=True)):
        outer = _without_payload(bytes(text), item)
        if _may_repeat(outer, _NAME):
            try:
                _refuse_repeats(outer, deeply=True)
            except InvalidField as error:
                raise error.within(f"{name}[{index}]") from None


def _may_repeat_within(raw: bytes, items: Sequence[msgspec.Struct]) -> bool:
    """Whether a name stands there more often than items have it: twice in one of them, or inside a payload."""
    if b"\\u" in raw:  # a name can be written so
        return True
    for field in msgspec.structs.fields(type(items[0])):
        if count := raw.count(msgspec.json.encode(field.encode_name)):
            usual = field.default
            have = len(items) if usual is msgspec.NODEFAULT else sum(getattr(i, field.name) != usual for i in items)
            if count > have:
                return True
    return False


def _without_payload(raw: bytes, body: Any) -> bytes:
    """What its handler reads is not ours to look into. Where the same stands before it, that is as empty of names."""
    payload = body.get("payload") if isinstance(body, dict) else getattr(body, "payload", None)
    if not isinstance(payload, msgspec.Raw):
        return raw
    text = bytes(payload)
    return raw.replace(text, b"null", 1) if text[:1] in {b"{", b"["} else raw


def read_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidField("body", f"is not UTF-8 (byte {error.start})", "encode it as UTF-8") from None


def read_query(request: Request, type_: Any) -> Any:
    if type_ is None and not request.scope["query_string"]:
        return None
    if len(request.scope["query_string"]) > LONGEST_QUERY:
        raise TooLarge(f"the query is longer than {LONGEST_QUERY:,} bytes", "ask for less at a time")
    given = request.query_params
    if type_ is None:
        if given:
            raise InvalidField(next(iter(given)), "this call takes no query parameters", "leave it out")
        return None
    seen = set[str]()
    for name, value in given.multi_items():
        if name in seen:
            raise InvalidField(name, "is given more than once", "give it once")
        seen.add(name)
        if "\0" in value:
            raise InvalidField(name, "contains a NUL character", "leave it out")
    return msgspec.convert(dict(given), type_, strict=False)


@cache
def _names(decoder: "msgspec.json.Decoder[Any]") -> re.Pattern[bytes] | None:
    """The names that such a body can have, as they stand in it; none if it is not known which."""
    type_: Any = decoder.type
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return None
    if not type_.__struct_config__.forbid_unknown_fields:
        return None
    return re.compile(
        b"|".join(re.escape(msgspec.json.encode(field.encode_name)) for field in msgspec.structs.fields(type_))
    )


def _may_repeat(raw: bytes, names: re.Pattern[bytes] | None) -> bool:
    """Whether it is worth a closer look, which takes longer than all the rest of a small call."""
    if names is None or b"\\" in raw:
        return True
    found = names.findall(raw)
    return len(set(found)) < len(found)


def _refuse_repeats(raw: bytes, *, deeply: bool) -> None:
    """The same name twice: which of the two was meant?"""

    def pairs(found: list[tuple[str, Any]]) -> dict[Any, Any]:
        if deeply and len(found) > MOST_NAMES:
            raise InvalidField(found[0][0], f"is one of more than {MOST_NAMES:,} names in one object", _FLATTEN)
        made: dict[Any, Any] = dict(found)
        if len(made) < len(found):
            made[_TWICE] = next(name for name, times in Counter(name for name, _ in found).items() if times > 1)
        return made

    # Numbers are not of interest here, and Python refuses to read those of more than 4,300 digits.
    read = json.loads(raw, object_pairs_hook=pairs, parse_int=len, parse_float=len)
    if (place := _twice(read, deeply=deeply)) is not None:
        raise InvalidField(place, "stands twice in the body", "leave one of them out")


def _twice(value: Any, *, deeply: bool) -> str | None:
    """Where a name stands that stands there twice."""
    if isinstance(value, dict) and _TWICE in value:
        return str(value[_TWICE])
    if not deeply or not isinstance(value, dict | list):
        return None
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if (place := _twice(inner, deeply=True)) is not None:
            within = "" if place.startswith("[") else "."
            return f"{name}{within}{place}" if isinstance(value, dict) else f"[{name}]{within}{place}"
    return None


def _refuse_depth(raw: bytes) -> None:
    """Peel the innermost brackets off, level by level: two C loops a level instead of a Python loop over the body."""
    if raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return
    left = _STRING.sub(b"", raw).translate(_ONE_KIND, _NOT_BRACKETS)
    for _ in range(DEEPEST):
        if not left:
            return
        left = left.replace(b"[]", b"")
    if left:
        raise _too_deep(raw)


def _too_deep(raw: bytes) -> InvalidField:
    """Names the outermost field under which the nesting is."""
    depth, name = 0, "body"
    for token in _TOKEN.finditer(raw):
        if token[1] is not None:
            name = token[1].decode(errors="replace") if depth == 1 else name
        else:
            depth += 1 if token[0] in b"[{" else -1
            if depth > DEEPEST:
                break
    return InvalidField(name, f"is nested deeper than {DEEPEST} levels", _FLATTEN)
