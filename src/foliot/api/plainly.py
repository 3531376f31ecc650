"""What msgspec says of a value that it cannot take, in words for people."""

import re
from types import MappingProxyType
from typing import Final

_BOUND: Final = re.compile(r"Expected `(?P<kind>\w+)`(?P<length> of length)? (?P<sign>[<>])=? (?P<bound>[\d.]+)")
_KIND: Final = re.compile(r"Expected `(?P<wanted>[\w| ]+)`, got `(?P<sent>\w+)`")
_KINDS: Final = MappingProxyType(
    {
        "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list",
        "object": "an object", "null": "null", "date": "a date", "datetime": "an instant",
    }
)  # fmt: skip
_OF: Final = MappingProxyType({"str": " characters", "array": " of them", "object": " of them"})


def plainly(message: str) -> tuple[str, str] | None:
    """What is wrong, and what would be right; none where the message is no more than that anyway."""
    if match := _BOUND.search(message):
        is_least = match["sign"] == ">"
        wrong = ("short" if is_least else "long") if match["length"] else ("small" if is_least else "large")
        unit = _OF.get(match["kind"], "") if match["length"] else ""
        return f"is too {wrong}", f"at {'least' if is_least else 'most'} {_number(match['bound'])}{unit}"
    if match := _KIND.search(message):
        wanted = [_KINDS.get(each, each) for each in match["wanted"].split(" | ") if each != "null"]
        return f"is {_KINDS.get(match['sent'], match['sent'])}", f"write {' or '.join(wanted)}"
    return None


def _number(text: str) -> str:
    return f"{float(text):,.10g}"
