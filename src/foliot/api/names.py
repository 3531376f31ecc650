"""Which name was meant: the fields that a body or a query has at a place, and those that are like the one given."""

import difflib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from msgspec import inspect

_PARTS: Final = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_MOST: Final = 3
_LONGEST: Final = 100
"""Characters of a name that somebody may have mistyped: to compare one of a megabyte takes a fifth of a second."""


def nearest(shapes: tuple[Any, ...], place: str, given: str) -> list[str]:
    """Fields that bodies or queries of these types have at that place, the likest first."""
    if len(given) > _LONGEST:
        return []
    known = {name.lower(): name for shape in shapes for name in _names(shape, place)}
    wanted = given.lower()
    alike = difflib.get_close_matches(wanted, known, n=_MOST, cutoff=0.6)
    within = [name for name in known if len(wanted) > 2 and (wanted in name or name in wanted) and name not in alike]
    return [known[name] for name in [*alike, *within][:_MOST]]


@cache
def _names(shape: Any, place: str) -> frozenset[str]:
    found = [inspect.type_info(shape)]
    for part in _PARTS.findall(place):
        found = [inner for each in found for inner in _within(each, part)]
    return frozenset(field.encode_name for each in found for struct in _structs(each) for field in struct.fields)


def _within(found: inspect.Type, part: str) -> Iterator[inspect.Type]:
    """What stands at the next part of a path."""
    for each in _choices(found):
        match each:
            case inspect.StructType() if not part.startswith("["):
                yield from (field.type for field in each.fields if field.encode_name == part)
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) if part.startswith("["):
                yield item
            case inspect.DictType(value_type=item) if part.startswith("["):
                yield item


def _structs(found: inspect.Type) -> Iterator[inspect.StructType]:
    yield from (each for each in _choices(found) if isinstance(each, inspect.StructType))


def _choices(found: inspect.Type) -> Iterator[inspect.Type]:
    match found:
        case inspect.UnionType():
            for each in found.types:
                yield from _choices(each)
        case inspect.Metadata():
            yield from _choices(found.type)
        case _:
            yield found
