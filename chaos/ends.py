"""How the processes under test ended, and which of them nobody had told to."""

import signal
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from chaos.records import POISON, Effect, Operation, Phase, read_lines

ENDS: Final = "ends.jsonl"
LOST: Final = "this worker was declared dead while it was out of reach"
"""The last words of a worker that has lost its lease: it must end, and come back as another one."""
FAILED: Final = 1
"""The status with which it does so."""

Record = TypeVar("Record", bound=msgspec.Struct)


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process that nobody had asked for."""

    name: str
    """Its boot id."""
    pid: int
    status: int
    """What it exited with; or the signal that killed it, negative."""
    at: float
    words: str = ""
    """The last that it had logged."""


def asked_for(status: int, sent: Collection[int]) -> bool:
    """Whether a process that was sent these signals was killed by one of them, or has left because it was told to.

    Who is told to leave, and falls over while it does so, was not told to do that.
    """
    return -status in sent if status < 0 else signal.SIGTERM in sent


def by_itself(folder: Path) -> list[End]:
    """The ends in a run's records that nothing explains: neither a lost lease, nor a run that kills its worker.

    Nobody else has a reason: that the database is away, for one, is to be waited out.
    """
    path = folder / ENDS
    ends = read_lines(path, End) if path.exists() else []
    unexplained = [each for each in ends if not _has_lost_its_lease(each)]
    killed = any(map(_is_killed_worker, unexplained))
    poisoned = _poisoned(folder) if killed else frozenset()
    return [each for each in unexplained if not (_is_killed_worker(each) and each.name in poisoned)]


def _has_lost_its_lease(end: End) -> bool:
    return end.name.startswith("worker") and end.status == FAILED and LOST in end.words


def _is_killed_worker(end: End) -> bool:
    return end.name.startswith("worker") and end.status == -signal.SIGKILL


def _poisoned(folder: Path) -> frozenset[str]:
    """Whom a run has killed that was handed in to do so; a process of its own is none of ours."""
    asked = _about(folder / "operations.jsonl", Operation, [f'"{POISON}"'])
    answers = (each.answer or {} for each in asked if (each.body or {}).get("handler") == POISON)
    runs = {answer["runId"] for answer in answers if "runId" in answer}
    begun = _about(folder / "ledger.jsonl", Effect, runs)
    return frozenset(
        each.worker for each in begun if each.phase is Phase.START and each.run in runs and not each.isolated
    )


def _about(path: Path, kind: type[Record], words: Iterable[str]) -> Iterator[Record]:
    """Whole lines that name one of these, one by one: after an hour the ledger has gigabytes."""
    decoder, named = msgspec.json.Decoder(kind), [each.encode() for each in words]
    if named and path.exists():
        with path.open("rb") as file:
            yield from (decoder.decode(line) for line in file if line.endswith(b"\n") and any(n in line for n in named))
