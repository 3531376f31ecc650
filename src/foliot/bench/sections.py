"""What a measurement of dispatch is: so many repeats of one trial, held to its targets."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from foliot.bench.bed import Bed
from foliot.bench.targets import DISPATCH, Found, summarise

REPEATS: Final = 3
FULL: Final = 8.0
"""Seconds per measurement from which on a run is one of full length, and a section takes the time it needs."""

Say = Callable[[str], None]


class Trial(NamedTuple):
    """One repeat is about to be made: where, for how long, and whether in small."""

    bed: Bed
    seconds: float
    small: bool
    say: Say


class Skipped(Exception):  # noqa: N818 - reads aloud
    """What a section needs is not on this machine; says what."""


class Section(NamedTuple):
    name: str
    title: str
    about: str
    """What was done, in a sentence or two; `{seconds}` is how long."""
    once: Callable[[Trial], Awaitable[Found]]
    full: float
    """Seconds that a repeat takes in a run of full length; a shorter run takes its own."""
    repeats: int = REPEATS


async def measure_section(section: Section, bed: Bed, seconds: float, say: Say) -> dict[str, Any]:
    small = seconds < FULL
    taken = seconds if small else max(section.full, seconds)
    told = {"title": section.title, "about": section.about.format(seconds=f"{taken:g}"), "seconds": taken}
    repeats = []
    try:
        for number in range(1, section.repeats + 1):
            say(f"{section.name}: repeat {number} of {section.repeats}, {taken:g} s")
            repeats.append(await section.once(Trial(bed, taken, small, say)))
    except Skipped as skipped:
        say(f"{section.name}: skipped, {skipped}")
        return {**told, "skipped": str(skipped)}
    return {**told, **summarise(repeats, DISPATCH[section.name]), "repeats": repeats}
