"""How an operation may be refused: by name, so that whoever writes a client need not find out by trying."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final

from foliot.api.operation import Operation
from foliot.api.paging import is_paged

Described = dict[str, Any]

_WHERE: Final = "#/components/{}/{}"
_WHOLE: Final[Described] = {"type": "integer", "minimum": 0}
HEADERS: Final = MappingProxyType(
    {
        "RateLimit-Limit": "How many calls the limit takes at once: that of the key or the tenant, the tighter one",
        "RateLimit-Remaining": "How many of them are left",
        "RateLimit-Reset": "Seconds until all of them are back, if nobody calls",
        "Retry-After": "Seconds after which the same call may succeed",
        "WWW-Authenticate": "`Bearer`",
    }
)
"""Headers that answers share. The first three come to callers that have a rate limit."""
LEFT: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_AGAIN: Final = (*LEFT, "Retry-After")
_REFUSALS: Final = MappingProxyType(
    {
        400: ("Malformed", "The body is no JSON, the cursor not of this list, or jobs would wait in a circle", LEFT),
        401: ("Unauthorised", "There is no valid key, or no valid token, with the call", ("WWW-Authenticate",)),
        403: ("Forbidden", "The key lacks the scope, or does not serve the queue", LEFT),
        404: ("NotFound", "There is no such thing, or it is another tenant's", LEFT),
        409: ("Conflict", "It contradicts how things stand", LEFT),
        413: ("TooLarge", "The body or the query is larger than is read", LEFT),
        422: ("Invalid", "A field, a parameter or a header cannot be taken as it is: `errors` names it", LEFT),
        429: ("TooMany", "A rate limit, a quota or a backlog is used up: nothing was done", _AGAIN),
        431: ("HeadTooLarge", "The address and the headers are larger than is read", ()),
        503: ("Unavailable", "Foliot cannot answer now, or others are changing the same", _AGAIN),
    }
)
_OTHERS: Final = frozenset({"tenant", "job", "worker"})
"""Fields of a query or a body that name something which may not be there."""


def refusals_of(operation: Operation) -> dict[str, Described]:
    """By status: all that the operation may answer instead of doing what it is for, and is no fault of ours."""
    may = {
        400: operation.body is not None or is_paged(operation.query),
        403: operation.needs_key,
        404: not operation.is_fixed or bool(_OTHERS.intersection(_fields(operation))),
        409: operation.method != "GET",
        429: operation.is_paced,
    }
    return {
        str(status): {"$ref": _WHERE.format("responses", name)}
        for status, (name, _, _) in _REFUSALS.items()
        if may.get(status, True)
    }


def _fields(operation: Operation) -> Iterator[str]:
    for shape in operation.shapes:
        yield from getattr(shape, "__struct_fields__", ())


def headers(*names: str) -> Described:
    return {name: {"$ref": _WHERE.format("headers", name)} for name in names}


def components(problem: Described) -> Described:
    """What operations refer to: each refusal once, with the shape of its body, and the headers."""
    content = {"application/problem+json": {"schema": problem}}
    texts = {"WWW-Authenticate"}
    return {
        "responses": {
            name: {"description": said, **({"headers": headers(*told)} if told else {}), "content": content}
            for name, said, told in _REFUSALS.values()
        },
        "headers": {
            name: {"description": said, "schema": {"type": "string"} if name in texts else _WHOLE}
            for name, said in HEADERS.items()
        },
    }
