"""The lines of an iCalendar file (RFC 5545): unfolded, taken apart, and numbered as an editor would."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

_PARAMETER: Final = re.compile(r';([A-Za-z-]+)=("[^"]*"|[^;:,"]*)')
_FURTHER_VALUE: Final = re.compile(r',("[^"]*"|[^;:,"]*)')
_NAME: Final = re.compile(r"[A-Za-z0-9-]+")


class Trouble(NamedTuple):
    """What could not be read."""

    line: int
    message: str


class Line(msgspec.Struct, frozen=True):
    number: int
    name: str
    parameters: dict[str, str]
    value: str


class UnreadableError(Exception):
    """Something in one line that nobody understands."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__()
        self.trouble = Trouble(line, message)


def read_lines(text: str, troubles: list[Trouble]) -> Iterator[Line]:
    """Logical lines: a line that begins with a blank goes on with the one before."""
    first, parts = 0, list[str]()
    for number, line in enumerate([*re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), ""], start=1):
        if line[:1] in {" ", "\t"} and parts:
            parts.append(line[1:])
            continue
        if parts and (whole := "".join(parts)).strip():
            if read := _line(first, whole):
                yield read
            else:
                troubles.append(Trouble(first, f"is not NAME:VALUE: {whole[:40]!r}"))
        first, parts = number, [line]


def _line(number: int, whole: str) -> Line | None:
    name = _NAME.match(whole)
    if name is None:
        return None
    place, parameters = name.end(), dict[str, str]()
    while match := _PARAMETER.match(whole, place):
        parameters[match[1].upper()] = match[2].strip('"')
        place = match.end()
        while more := _FURTHER_VALUE.match(whole, place):
            place = more.end()
    return Line(number, name[0].upper(), parameters, whole[place + 1 :]) if whole[place : place + 1] == ":" else None
