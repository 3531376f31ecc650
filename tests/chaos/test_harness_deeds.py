"""A fault counts when it bit: who had nothing to lose has lost nothing."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from chaos import client, deeds
from chaos.deeds import Deeds
from chaos.nemesis import BURST, KINDS, Burst, Nemesis, Strike
from chaos.proxy import Tally
from chaos.records import NO_ROOM, Fault
from chaos.topology import Topology
from chaos.watch import Seen, Watch
from foliot.kit.postgres import PostgresServer
from foliot.store import members

PID, SERVER = 4_711, 4_712
NAME = "worker-0"
LIVE, DEAD = False, True
TAKEN = [Seen(LIVE, 3), Seen(DEAD, 3), Seen(DEAD, 0)]
"""What a worker held is taken from it."""
EMPTY = [Seen(LIVE, 3), Seen(LIVE, 0), Seen(DEAD, 0)]
"""It had settled everything before it was struck."""
KEPT = [Seen(LIVE, 3), Seen(LIVE, 3)]
"""Nobody declares it dead."""


class Still(random.Random):
    """All lengths are none."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


class Asked(Still):
    """Remembers between what bounds it was to choose."""

    def __init__(self) -> None:
        super().__init__(1)
        self.bounds: list[tuple[float, float]] = []

    def uniform(self, a: float, b: float) -> float:
        self.bounds.append((a, b))
        return super().uniform(a, b)


class Script(Watch):
    """Sees the next of these at every look, and the last one for ever."""

    def __init__(self, looks: list[Seen]) -> None:
        super().__init__(cast("PostgresServer", None))
        self._looks = iter(looks)
        self._seen = {PID: next(self._looks)}

    def overtaken(self, pid: int) -> bool:
        self._seen[pid] = next(self._looks, self._seen[pid])
        return super().overtaken(pid)

    async def connect(self) -> Any:
        async def close() -> None: ...

        return SimpleNamespace(close=close)


class Member:
    """A process that is started again whenever it ends, or never."""

    def __init__(self, name: str, *, comes_back: bool = True) -> None:
        self.name, self.kind, self.pid, self.boot = name, name.partition("-")[0], PID, f"{name}.1"
        self._comes_back = comes_back

    def signal(self, number: signal.Signals) -> int:
        return self.pid

    async def until_reborn(self, boot: str, seconds: float) -> bool:
        return self._comes_back


class Server:
    """Ends when it is told to, or never; `hold.clear` has it come up again."""

    def __init__(self, *, heeds: bool = True) -> None:
        self.pid: int | None = SERVER
        self._heeds = heeds
        self.hold = SimpleNamespace(set=lambda: None, clear=self._start)

    def end(self, pid: int, number: int) -> None:
        self.pid = None if pid == SERVER and self._heeds else self.pid

    def _start(self) -> None:
        self.pid = self.pid or SERVER + 1


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LONGEST", "UP_AGAIN", "OUTLIVED", "SETTLE"):
        monkeypatch.setattr(deeds, name, 0.2)
    monkeypatch.setattr(deeds, "freeze", lambda pid: [pid])
    monkeypatch.setattr(deeds, "thaw", lambda _: None)
    monkeypatch.setattr(os, "kill", lambda *_: None)


async def done(kind: str, target: str, looks: list[Seen] = TAKEN, **more: Any) -> list[Fault]:
    """Do it, in a world in which a worker is seen like this; what was logged."""
    noted: list[Fault] = []
    tally = Tally(cuts={NAME: 0}, held={NAME: 0})

    async def wire(*_: Any) -> Tally:
        return tally

    async def ready() -> None: ...

    server, chance = more.pop("server", Server()), more.pop("chance", Still(1))
    world = {
        "nodes": {NAME: Member(NAME)},
        "watch": Script(looks),
        "networks": {},
        "proxies": SimpleNamespace(set=wire, tally=wire),
        "workers": lambda _, *names: list(names),
        "mark": "",
        "ready": ready,
        "server": server,
        "hold_database": server.hold,
    }
    topology = cast("Topology", SimpleNamespace(**world | more))
    await Deeds(topology, noted.append).do(kind, target, chance)
    return noted


@pytest.fixture
def captive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that begins something in a process of its own at every look."""
    begun: Iterator[int] = iter(range(1, 100))
    monkeypatch.setattr(deeds, "captives", lambda *_: {*range(next(begun))})


@pytest.mark.usefixtures("captive")
@pytest.mark.parametrize(("looks", "idle"), [(TAKEN, False), (EMPTY, True), (KEPT, True)])
@pytest.mark.parametrize("kind", ["stop", "stall", "partition", "stopSupervisor"])
async def test_a_worker_was_struck_if_others_took_over_what_it_held(kind: str, looks: list[Seen], idle: bool):
    (fault,) = await done(kind, NAME, looks)
    assert (fault.kind, fault.target, fault.idle) == (kind, NAME, idle)


@pytest.mark.parametrize(
    ("name", "waits"), [("scheduler-0", members.LEASE.total_seconds()), ("api-0", client.PATIENCE)]
)
async def test_whoever_is_no_worker_stands_still_for_longer_than_others_wait_for_it(name: str, waits: float):
    chance = Asked()
    (fault,) = await done("stop", name, nodes={name: Member(name)}, chance=chance)
    ((least, most),) = chance.bounds
    assert waits < least < most <= BURST / 2
    assert not fault.idle


@pytest.mark.parametrize(("refused", "idle"), [((2, 5), False), ((2, 2), True)])
async def test_a_disk_was_full_if_it_refused_a_write(refused: tuple[int, int], idle: bool):
    counts = iter(refused)
    disk = SimpleNamespace(fill=lambda: 1 << 30, free=lambda: None)
    (fault,) = await done("diskFull", "postgres", disk=disk, without_room=lambda: next(counts))
    assert fault.idle is idle


def test_writes_without_room_are_counted_in_the_log_of_a_database_that_runs(tmp_path: Path):
    system = Topology.__new__(Topology)
    system._home = tmp_path
    assert system.without_room() == 0
    (tmp_path / "postgres.log.1").write_text(f"PANIC:  could not write to file: {NO_ROOM}\n")
    (tmp_path / "postgres.log").write_text(f"LOG:  checkpoint starting\nERROR:  could not extend file: {NO_ROOM}\n")
    assert system.without_room() == 2


@pytest.mark.parametrize("kind", ["postgresKill", "postgresStop"])
@pytest.mark.parametrize("heeds", [True, False])
async def test_the_database_was_ended_if_it_was_gone(kind: str, heeds: bool, monkeypatch: pytest.MonkeyPatch):
    server = Server(heeds=heeds)
    monkeypatch.setattr(os, "kill", server.end)
    (fault,) = await done(kind, "postgres", server=server)
    assert (fault.kind, fault.idle) == (kind, not heeds)


@pytest.mark.parametrize(("node", "database"), [(True, True), (False, True), (True, False)])
async def test_a_rolling_restart_is_one_if_everybody_came_back(
    node: bool, database: bool, monkeypatch: pytest.MonkeyPatch
):
    server = Server(heeds=database)
    monkeypatch.setattr(os, "kill", server.end)
    nodes = {"api-0": Member("api-0"), "scheduler-0": Member("scheduler-0", comes_back=node)}
    stop, restart = await done("rollingRestart", "all", server=server, nodes=nodes)
    assert (stop.kind, stop.detail) == ("postgresStop", "SIGINT")
    assert (restart.kind, restart.idle) == ("rollingRestart", not (node and database))


def test_a_kind_has_happened_when_it_has_hurt_somebody(tmp_path: Path):
    topology = cast("Topology", SimpleNamespace(folder=tmp_path, nodes={}, lacking={}))
    nemesis = Nemesis(topology, 1, 600)

    def strike(kind: str, **more: Any) -> None:
        nemesis._log(Fault(kind=kind, target="worker-0", began=1.0, ended=2.0, **more))

    for kind in KINDS:
        strike(kind, idle=kind in {"stall", "diskFull"}, detail="SIGINT" if kind == "postgresStop" else "")
    assert nemesis.unused() == ["postgresStop", "stall", "diskFull"]
    strike("stall")
    strike("diskFull")
    strike("postgresStop", detail="SIGQUIT")
    assert nemesis.unused() == []


async def lengths(folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int, *moments: float) -> dict[str, list[float]]:
    """What each of three strikes draws, of which each strikes in its moment."""
    drawn: dict[str, list[float]] = {}

    async def do(self: Deeds, kind: str, target: str, chance: random.Random) -> None:
        drawn[target] = [chance.random(), chance.uniform(5.0, 9.0)]

    monkeypatch.setattr(Deeds, "do", do)
    strikes = [(after, Strike("stop", f"worker-{number}")) for number, after in enumerate(moments)]
    topology = cast("Topology", SimpleNamespace(folder=folder, nodes={}, lacking={}))
    await Nemesis(topology, seed, 600, bursts=[Burst(0.0, strikes), Burst(0.0, [(0.0, Strike("stop", "api-0"))])]).run(
        float("inf")
    )
    return drawn


async def test_the_dice_of_a_strike_are_its_own_whoever_draws_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = await lengths(tmp_path, monkeypatch, 7, 0.0, 0.05, 0.1)
    assert first == await lengths(tmp_path, monkeypatch, 7, 0.1, 0.0, 0.05)
    assert first != await lengths(tmp_path, monkeypatch, 8, 0.0, 0.05, 0.1)
    assert len({tuple(each) for each in first.values()}) == 4


def test_a_fault_that_bit_is_written_as_it_always_was():
    fault = Fault(kind="kill", target="worker-0", began=1.0, ended=2.0)
    assert msgspec.json.decode(msgspec.json.encode(fault)).keys() == {"kind", "target", "began", "ended"}
