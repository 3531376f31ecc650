"""Which edition of the time zone database this process reads: the system's, or that of the `tzdata` package."""

import re
import zoneinfo
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

UNKNOWN: Final = "unknown"
_PROBE: Final = Path("Europe", "London")
"""A zone that every installation has."""
_VERSION: Final = re.compile(r"\d{4}[a-z]+")


class ZoneData(NamedTuple):
    """An edition such as `2026a`, or `unknown`, and where it is."""

    version: str
    source: str


@cache
def zone_data() -> ZoneData:
    """What `zoneinfo` finds first is in force: its folders in their order, then the package."""
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / _PROBE).is_file():
            return ZoneData(_version_in(folder), str(folder))
    try:
        package = import_module("tzdata")
    except ImportError:
        return ZoneData(UNKNOWN, "nowhere")
    return ZoneData(package.IANA_VERSION, "the package tzdata")


def _version_in(folder: Path) -> str:
    """Linux says it in the first line of `tzdata.zi`, BSD and macOS in `+VERSION`; some say it nowhere."""
    for name in ("tzdata.zi", "+VERSION"):
        try:
            with (folder / name).open(encoding="ascii") as file:
                found = _VERSION.search(file.readline())
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found[0]
    return UNKNOWN
