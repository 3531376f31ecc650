"""Where the backlog of a flow moves when the weight of its tenant changes.

A flow is dealt with in pages, and between two pages it is in a valid order: claims go on, and whoever dies leaves
nothing half done. So a tenant that gains is drawn together from the head on, towards V, and one that loses is spread
out from the tail on: the other way about, what has moved would lie among what has not.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Rerank(NamedTuple):
    """How far one flow has got.

    `place` is where the part that is done meets the part that is not, by the ranks that were, and `image` the same spot
    by the ranks that are.
    """

    before: int
    """The weight by which the backlog was ranked."""
    after: int
    boundary: int
    """The last rank given out by the weight before; what lies behind it keeps its distances."""
    place: int
    image: int

    @property
    def draws_together(self) -> bool:
        return self.after > self.before


def begin(before: int, after: int, virtual: int, last: int) -> Rerank | None:
    """How to go about a flow whose last rank is `last`; none if nothing of it can be waiting.

    A flow that is spread out ends at the new `image` from now on: what comes meanwhile must rank behind it.
    """
    if last <= virtual or before == after:
        return None
    if after > before:
        return Rerank(before, after, boundary=last, place=virtual, image=virtual)
    end = virtual - (virtual - last) * before // after  # rounded up: nobody moves forward
    return Rerank(before, after, boundary=last, place=last, image=end)


def catch_up(work: Rerank, virtual: int) -> Rerank:
    """Nothing is moved below V: what claims have passed meanwhile is left alone, and no credit is given for it."""
    if not work.draws_together:
        return work
    return work._replace(place=max(work.place, virtual), image=max(work.image, virtual))


def draw_together(work: Rerank, ranks: Sequence[int], through: int) -> tuple[list[int], Rerank]:
    """New ranks for a page that ends at `through`: the next `ranks` above `place`, in order. None rises.

    Different ranks stay different and in their order, also where there is less than one unit for each.
    """
    moved: list[int] = []
    latest, newest = work.place, work.image
    for rank in ranks:
        if rank > latest:
            latest, newest = rank, max(_closer(work, rank), newest + 1)
        moved.append(newest)
    return moved, work._replace(place=through, image=max(_closer(work, through), newest))


def _closer(work: Rerank, rank: int) -> int:
    ranked_before = min(rank, work.boundary) - min(work.place, work.boundary)
    ranked_since = max(rank, work.boundary) - max(work.place, work.boundary)
    return work.image + ranked_before * work.before // work.after + ranked_since


def spread_out(work: Rerank, virtual: int, ranks: Sequence[int], through: int) -> tuple[list[int], Rerank]:
    """New ranks for a page that goes down to `through`: the next `ranks` up to `place`, all above V. None falls.

    What is left is spread evenly between V and what has been done, so the head stays at V: no debt for what was
    claimed meanwhile.
    """
    length, room = work.place - virtual, work.image - virtual

    def further(rank: int) -> int:
        return virtual + (rank - virtual) * room // length

    return [further(rank) for rank in ranks], work._replace(place=through - 1, image=further(through - 1))
