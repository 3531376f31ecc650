"""What an adapter says about its peer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Self

from bench.peers.installing import node_environment, python_environment

SCRIPTS: Final = Path(__file__).parent / "scripts"
Runtime = Literal["python", "node", "own"]
StoreName = Literal["postgres", "redis"]
OWN_WORKER: Final = ("{python}", "{script}", "work")


@dataclass(frozen=True)
class Candidate:
    """One documented way to run a peer, of several among which only a try can tell the fastest."""

    settings: str
    """What sets it apart, in words; the settings that all of them share follow."""
    worker: tuple[str, ...] = OWN_WORKER
    workers: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """One row of the table. Commands are words; `{python}` and `{script}` stand for the peer's own."""

    name: str
    title: str
    store: StoreName
    runtime: Runtime
    packages: tuple[str, ...]
    """What is installed, pinned; the first names the version that the table shows."""
    script: str
    settings: str
    """The documented settings that were chosen, in words."""
    durability: str
    """What a crash of the server's machine can take, in words."""
    bulk: str
    """How many runs (of a mere scheduler, schedules) a call makes when many are made, in words."""
    not_chosen: str = ""
    """Another documented way to run it that is not measured, and why not, in words."""
    worker: tuple[str, ...] = OWN_WORKER
    workers: int = 2
    """How many of this command run at once; some start processes of their own."""
    runs: int = 100_000
    """A drain begins with so many at most."""
    most_waiting: int = 20_000
    """Under sustained load the producer holds back above this."""
    environment: Mapping[str, str] = field(default_factory=dict)
    runs_queue: bool = True
    """Whether it is measured as a queue; a mere scheduler is not."""
    beside: tuple[tuple[str, ...], ...] = ()
    """Commands that run beside the workers while schedules are measured."""
    schedules: bool = False
    """Whether its schedules are measured."""
    candidates: tuple[Candidate, ...] = ()
    """Tried before it is measured: the fastest under sustained load is. Until then, the first."""

    @property
    def version(self) -> str:
        first = self.packages[0]
        return first.rpartition("@" if self.runtime == "node" else "==")[2]

    def running(self, candidate: Candidate) -> Self:
        environment = {**self.environment, **candidate.environment}
        return replace(self, worker=candidate.worker, workers=candidate.workers, environment=environment)


@dataclass(frozen=True)
class Home:
    """A peer that is installed: how its commands are called."""

    peer: Peer
    python: str
    environment: dict[str, str]

    @classmethod
    def made(cls, peer: Peer, cache: Path, own_python: str) -> "Home":
        if peer.runtime == "node":
            folder = node_environment(cache, peer.packages)
            return cls(peer, "node", {**peer.environment, "PEER_HOME": str(folder)})
        if peer.runtime == "python":
            folder = python_environment(cache, peer.packages)
            return cls(peer, str(folder / "bin/python"), dict(peer.environment))
        return cls(peer, own_python, dict(peer.environment))

    def running(self, candidate: Candidate) -> "Home":
        return Home(self.peer.running(candidate), self.python, {**self.environment, **candidate.environment})

    def script(self, *arguments: object) -> list[str]:
        return [self.python, str(SCRIPTS / self.peer.script), *map(str, arguments)]

    def workers(self) -> list[list[str]]:
        return [self._filled(self.peer.worker, number) for number in range(self.peer.workers)]

    def beside(self) -> list[list[str]]:
        return [self._filled(command, 0) for command in self.peer.beside]

    def _filled(self, command: tuple[str, ...], number: int) -> list[str]:
        places = {"python": self.python, "script": str(SCRIPTS / self.peer.script), "number": str(number)}
        return [word.format(**places) for word in command]
