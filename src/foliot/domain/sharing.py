"""How the runs that one claim took are shared among the workers that waited for it."""

from collections.abc import Sequence


def share(wants: Sequence[int], most: int, together: int = 1) -> list[int]:
    """For each place in the order of ranks, the index of the one who gets the run there; at most `most` places.

    In turns of `together` runs, first come first served: with fewer runs than wanted, nobody who wants more gets less
    than another, but for one turn.
    """
    if len(wants) == 1:
        return [0] * min(wants[0], most)
    owners: list[int] = []
    left = [(index, want) for index, want in enumerate(wants) if want > 0]
    while left and len(owners) < most:
        for index, want in left:
            owners += [index] * min(want, together)
        left = [(index, want - together) for index, want in left if want > together]
    return owners[:most]


def may_serve(serves: Sequence[str], queue: str) -> bool:
    """Whether a key that serves these queues may fetch the work of that one; `*` is every queue."""
    return "*" in serves or queue in serves
