"""Compares what should have fired with what did. Knows nothing of Foliot's own arithmetic."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

SECOND: Final = 1_000_000
"""Instants are whole microseconds since 1970."""
MINTED: Final = SECOND
"""How long before its run was made a number may have been drawn."""
PROMISED: Final = 10 * SECOND
"""Within which a shard that lost its scheduler fires again."""


class Job(NamedTuple):
    """Fires every second at `phase`, from the first instant after `after`."""

    id: int
    schedule: int
    phase: int
    after: int

    def instants(self, until: int) -> range:
        first = self.after - (self.after - self.phase) % SECOND + SECOND
        return range(first, until + 1, SECOND)


class Run(NamedTuple):
    job: int
    at: int
    made: int


class Missed(NamedTuple):
    """A range of instants of a schedule that the ledger says were not fired."""

    schedule: int
    at: int
    through: int


class Spell(NamedTuple):
    """One scheduler was down, stopped, or out of the database's reach."""

    node: str
    began: int
    ended: int


class Verdict(NamedTuple):
    expected: int
    fired: int
    explained: int
    lost: list[tuple[int, int]]
    doubled: list[tuple[int, int]]
    invented: list[tuple[int, int]]
    late: list[tuple[int, int]]
    """Later than promised, though a scheduler lived that could have taken over."""
    early: list[tuple[int, int]]
    """Before its time, by more than the database's clock was ever ahead."""
    lateness: list[int]
    """Of every run, rising; those apart that lay in a jump of the clock: that was late, and not they."""

    @property
    def violations(self) -> int:
        return len(self.lost) + len(self.doubled) + len(self.invented) + len(self.late) + len(self.early)

    def percentile(self, share: float) -> float:
        """Seconds."""
        return self.lateness[min(int(share * len(self.lateness)), len(self.lateness) - 1)] / SECOND


def judge(
    jobs: Sequence[Job],
    runs: Iterable[Run],
    missed: Iterable[Missed],
    until: int,
    spells: Sequence[Spell] = (),
    nodes: Sequence[str] = ("one",),
    jumps: Sequence[Spell] = (),
    ahead: int = 0,
) -> Verdict:
    """What became of each instant up to `until`; later ones may still be under way and are left out.

    `jumps`: when the clock that decides what is due was wrong, and `ahead` by how much at most.
    """
    mine = [run for run in runs if run.at <= until]
    seen = Counter((run.job, run.at) for run in mine)
    ranges: dict[int, list[Missed]] = defaultdict(list)
    for each in missed:
        ranges[each.schedule].append(each)
    expected, explained, lost = 0, 0, []
    for job in jobs:
        for at in job.instants(until):
            expected += 1
            if seen.pop((job.id, at), 0):
                continue
            if any(each.at <= at <= each.through for each in ranges[job.schedule]):
                explained += 1
            else:
                lost.append((job.id, at))
    times = Counter((run.job, run.at) for run in mine)
    return Verdict(
        expected=expected,
        fired=len(mine),
        explained=explained,
        lost=lost,
        doubled=[each for each, count in times.items() if count > 1],
        invented=list(seen),
        late=[
            (run.job, run.at)
            for run in mine
            if run.made - run.at > PROMISED and _could_have(run.at, run.made, spells, nodes)
        ],
        early=[(run.job, run.at) for run in mine if run.at - run.made > ahead + MINTED],
        lateness=sorted(
            run.made - run.at for run in mine if not any(jump.began <= run.at <= jump.ended for jump in jumps)
        )
        or [0],
    )


def _could_have(at: int, made: int, spells: Sequence[Spell], nodes: Sequence[str]) -> bool:
    """Whether somebody was well in between for as long as we promise, without a break."""
    for node in nodes:
        well_from = at
        for spell in sorted((each for each in spells if each.node == node), key=lambda each: each.began):
            if min(spell.began, made) - well_from > PROMISED:
                return True
            well_from = max(well_from, spell.ended)
        if made - well_from > PROMISED:
            return True
    return False
