"""Many seeds, shared out among processes; each has a database of its own on one server."""

import hashlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final, cast

import msgspec

from chaos.simulation.mode import Mode

ELSEWHERE: Final = frozenset(
    {
        "effects in the run's transaction",
        "effects taken back",
        "attempts of a remote worker",
        "committed by its caller",
        "rolled back by its caller",
        "cut when its caller committed",
        "tenants weighed anew",
        "quarantines",
        "keys used",
        "revoked keys refused",
        "replaced keys refused",
        "keys of others refused",
        "keys refused beyond their role",
        "changes of the version that was meant",
        "changes refused as stale",
        "audit entries in their chains",
        "denied calls in the audit trail",
        "jobs refused by a quota",
        "calls refused by a rate limit",
        "payloads stored encrypted",
        "data keys replaced",
        "calls that the guard refused",
        "secrets said in a result",
        "secrets said in an error",
    }
)
"""Rare paths that need what the simulation lacks: a wire of the handler's own, the gateway, HTTP targets, a command
line; or clients with keys and secrets of their own."""


class Report(msgspec.Struct, frozen=True):
    """What the campaign keeps of a seed."""

    seed: int
    mode: Mode
    seconds: float
    """Of virtual time."""
    took: float
    """Real seconds."""
    statements: int
    acknowledged: int
    effects: int
    faults: int
    rare: dict[str, int]
    failures: list[str]
    fingerprint: str
    story: list[str]


def _share(dsn: str, name: str, seeds: list[int], wanted: Mode | None, core: int, pipe: Connection) -> None:
    # Only here: who shares out has no need of Foliot, and to import it takes as long as a seed.
    from chaos.simulation.share import share  # noqa: PLC0415

    share(dsn, name, seeds, wanted, core, pipe)


def campaign(
    dsn: str, seeds: list[int], wanted: Mode | None, processes: int, name: str, core: int = 0
) -> Iterator[Report]:
    """Run all seeds, in databases of that name; reports come as they are ready. Each process keeps to one core."""
    # A set of texts has another order in every process, unless it is told not to.
    os.environ["PYTHONHASHSEED"] = "0"
    spawning = multiprocessing.get_context("spawn")
    shares: dict[Connection, SpawnProcess] = {}
    for number in range(processes):
        ours, theirs = spawning.Pipe(duplex=False)
        arguments = (dsn, f"{name}_{number}", seeds[number::processes], wanted, core + number, theirs)
        share = spawning.Process(target=_share, args=arguments, daemon=True)
        share.start()
        theirs.close()
        shares[ours] = share
    decoder = msgspec.msgpack.Decoder(Report)
    try:
        while shares:
            for pipe in cast("list[Connection]", wait(shares)):
                try:
                    yield decoder.decode(pipe.recv_bytes())
                except EOFError:
                    share = shares.pop(pipe)
                    share.join()
                    if share.exitcode:
                        raise RuntimeError(f"a simulating process ended with {share.exitcode}") from None
    finally:
        for share in shares.values():
            share.kill()
            share.join()


class Tally:
    """What all seeds together saw."""

    def __init__(self) -> None:
        self.seeds: Counter[Mode] = Counter()
        self.rare: Counter[str] = Counter()
        self.acknowledged = self.effects = self.faults = self.statements = 0
        self.virtual = self.took = 0.0
        self.failed: list[Report] = []
        self._fingerprints: dict[int, str] = {}

    def add(self, each: Report) -> None:
        self.seeds[each.mode] += 1
        self.rare.update(each.rare)
        self.acknowledged += each.acknowledged
        self.effects += each.effects
        self.faults += each.faults
        self.statements += each.statements
        self.virtual += each.seconds
        self.took += each.took
        self._fingerprints[each.seed] = each.fingerprint
        if each.failures:
            self.failed.append(each)

    @property
    def never(self) -> list[str]:
        return sorted(path for path, times in self.rare.items() if not times and path not in ELSEWHERE)

    @property
    def fingerprint(self) -> str:
        """The same for two campaigns of the same seeds in which the same happened."""
        text = " ".join(self._fingerprints[seed] for seed in sorted(self._fingerprints))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def line(self) -> str:
        return (
            f"simulation: {self.seeds.total():,} seeds, {self.acknowledged:,} acknowledged, {self.faults:,} faults,"
            f" {len(self.failed)} failed"
        )


def keep_story(folder: Path, failed: Report) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed-{failed.seed}-{failed.mode}.txt"
    path.write_text("\n".join([*failed.failures, "", *failed.story]) + "\n")
    return path
