"""A build of Foliot with one safeguard taken out, and the faults that the safeguard is there for."""

import os
import shutil
from pathlib import Path
from typing import Final, NamedTuple

from chaos.chores import USUAL, Odd
from chaos.nemesis import Burst, Strike
from chaos.topology import ROOT

PRODUCT: Final = ROOT / "src" / "foliot"


class Edit(NamedTuple):
    """`before` stands in the file exactly once, or the build fails: a mutant must not fade away unnoticed."""

    file: str
    before: str
    after: str


class Mutant(NamedTuple):
    name: str
    what: str
    """What is broken, the second nets included that would hide it."""
    edits: tuple[Edit, ...]
    bursts: list[Burst]
    seconds: float
    """That the clients work in one round."""
    rate: float = 400.0
    slowest: float = 8.0
    """Handlers take their time: what two run at once, or one runs without a right to, lasts long enough to be seen."""
    odd: Odd = USUAL
    chores: bool = True
    """Whether clients do odd things, too: so much of it that nobody is ever idle."""


class Stale(Exception):  # noqa: N818 - reads aloud
    """The source has changed under a mutation."""


def build(mutant: Mutant, folder: Path) -> Path:
    """A copy of Foliot's source with the mutation in it; the folder to import it from."""
    copy = folder / "foliot"
    # Nothing is copied but what is changed: the rest is there already, and compiled.
    half_written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(PRODUCT, copy, copy_function=os.symlink, ignore=half_written)
    for edit in mutant.edits:
        path = copy / edit.file
        text = path.read_text()
        if (count := text.count(edit.before)) != 1:
            raise Stale(f"{mutant.name}: {edit.file} has {count} times, and not once:\n{edit.before}")
        for unchanged in (path, *path.parent.glob(f"__pycache__/{path.stem}.*")):
            unchanged.unlink()
        path.write_text(text.replace(edit.before, edit.after))
    return folder


def burst(*strikes: tuple[float, str, str], warm_up: float = 8.0) -> Burst:
    return Burst(warm_up, [(after, Strike(kind, target)) for after, kind, target in strikes])


CUT_OFF: Final = [
    # Cut off for longer than its lease, a worker has results in hand of what others are running again.
    burst((0.0, "partition", "worker-2"), (9.0, "partition", "worker-0")),
]
SCHEDULERS: Final = [
    burst(
        (0.0, "stop", "scheduler-0"),
        (6.0, "kill", "scheduler-1"),
        (12.0, "stop", "scheduler-1"),
        (18.0, "kill", "scheduler-0"),
    ),
]
# Correctness must not depend on who looks after what, but rivals are rare while they keep to their own.
EVERYBODY: Final = Edit(
    "domain/shards.py", "return None if shards is not None and not shards else Look(shards)", "return Look()"
)
NOBODY_FIRES: Final = [burst((0.0, "misfire", "schedulers"), warm_up=15.0)]
NOT_UNIQUE: Final = (
    # The last net under every rule of time: an instant may have any number of runs. Only overlap stays guarded.
    Edit(
        "store/migrations/0001_foundation.sql",
        "run_occurrence ON run (job, occurrence, origin) WHERE job IS NOT NULL;",
        "run_occurrence ON run (job, occurrence, origin) WHERE job IS NOT NULL AND occurrence = '-infinity';",
    ),
    Edit(
        "store/sql/fire.sql",
        "ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL DO NOTHING",
        "ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL AND occurrence = '-infinity' DO NOTHING",
    ),
    Edit(
        "store/sql/operations.sql",
        "ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL DO NOTHING",
        "ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL AND occurrence = '-infinity' DO NOTHING",
    ),
)
