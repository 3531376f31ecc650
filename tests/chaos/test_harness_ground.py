"""What a machine cannot do is left out, and named; a full disk, a wrong clock and a cut do what they are called."""

import errno
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos import ground
from chaos.deeds import Deeds
from chaos.ground import Clocks, Disk, Lacking, Network
from chaos.nemesis import KINDS, Burst, Nemesis, Strike
from chaos.records import Fault
from chaos.site import Site
from chaos.topology import Topology

ROOT = os.geteuid() == 0
HOUR = 3_600
CLOSE = 60
"""Seconds that may pass between two looks at a clock, on a busy machine."""
BRIEF = 0.3
"""Seconds in which something arrives that nothing holds up."""
CLOCK = "import sys, time\nfor _ in sys.stdin: print(time.time(), flush=True)"
CALLER = """
import errno, socket, sys
for line in sys.stdin:
    try:
        host, port = line.split()
        socket.create_connection((host, int(port)), 2).close()
        print("reached", flush=True)
    except OSError as error:
        print("timed out" if error.errno is None else errno.errorcode[error.errno], flush=True)
"""
TALKER = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
for line in sys.stdin:
    connection.sendall(line.encode())
    print("sent", flush=True)
"""


@pytest.fixture
def unprivileged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)


@pytest.mark.usefixtures("unprivileged")
async def test_what_needs_root_is_left_out_without_it_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []

    async def do(self: Deeds, kind: str, target: str, chance: random.Random) -> None:
        done.append(kind)
        self._log(Fault(kind=kind, target=target, began=1.0, ended=2.0))

    monkeypatch.setattr(Deeds, "do", do)
    topology = Topology(tmp_path)
    try:
        lacking = {kind: why for kind, why in topology.lacking.items() if why == "this needs root"}
        assert lacking.keys() == {"diskFull", "partition by network namespace"}
        strikes = [(0.0, Strike("kill", "worker-0")), (0.0, Strike("diskFull", "postgres"))]
        nemesis = Nemesis(topology, 1, 600, bursts=[Burst(0.0, strikes)])
        await nemesis.run(float("inf"))
        assert done == ["kill"]
        # What was not done is missed, unless it cannot be done: a partition can, by the wire.
        assert nemesis.unused() == [kind for kind in KINDS if kind != "kill" and kind not in topology.lacking]
        assert "partition" in nemesis.unused()
    finally:
        await topology.stop()


@pytest.mark.skipif(not ROOT, reason="to mount a disk takes root")
def test_a_full_disk_has_no_room_until_it_is_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ground, "SIZE", 64 << 20)
    place = tmp_path / "disk"
    try:
        disk = Disk(tmp_path / "disk.img", place)
    except Lacking as lacking:
        pytest.skip(str(lacking))
    try:
        before = shutil.disk_usage(place).free
        assert disk.fill() > before * 0.9
        with pytest.raises(OSError, match="No space left") as full, (place / "more").open("wb", buffering=0) as file:
            file.write(bytes(1 << 16))
        assert full.value.errno == errno.ENOSPC
        disk.free()
        assert (place / "more").write_bytes(bytes(1 << 20)) == 1 << 20
    finally:
        disk.close()
    assert not os.path.ismount(place)
    assert not (tmp_path / "disk.img").exists()


@contextmanager
def asked(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Callable[[str], str]]:
    """A process that answers each line with a line."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as process:
        ask, answer = process.stdin, process.stdout
        assert ask is not None
        assert answer is not None

        def asking(line: str) -> str:
            ask.write(f"{line}\n")
            ask.flush()
            return answer.readline().strip()

        try:
            yield asking
        finally:
            ask.close()  # for which it waits


def test_the_clock_of_a_process_is_wrong_by_as_much_as_it_was_set_and_right_again(tmp_path: Path):
    try:
        clocks = Clocks(tmp_path)
    except Lacking as lacking:
        pytest.skip(str(lacking))
    environment = {**os.environ, **clocks.environment("worker-0")}
    clocks.set("worker-1", HOUR)
    with asked([sys.executable, "-c", CLOCK], environment) as ask:

        def wrong() -> float:
            return float(ask("")) - time.time()

        assert abs(wrong()) < CLOSE
        for jump in (HOUR, -HOUR, 0):
            clocks.set("worker-0", jump)
            assert abs(wrong() - jump) < CLOSE


@pytest.fixture
def network() -> Iterator[Network]:
    site = Site()
    try:
        made = Network(site.number, 0)
        try:
            yield made
        finally:
            made.close()
    except Lacking as lacking:
        pytest.skip(str(lacking))
    finally:
        site.close()


def listening(host: str) -> tuple[socket.socket, int]:
    listener = socket.create_server((host, 0))
    return listener, listener.getsockname()[1]


@pytest.mark.skipif(not ROOT, reason="a network of one's own takes root")
def test_the_database_is_out_of_reach_from_a_network_that_is_cut_and_the_ledger_is_not(network: Network):
    (database, door), (ledger, desk) = listening(network.database), listening(network.ledger)
    with database, ledger, asked(network.inside([sys.executable, "-c", CALLER])) as ask:

        def reached() -> tuple[str, str]:
            return ask(f"{network.database} {door}"), ask(f"{network.ledger} {desk}")

        assert reached() == ("reached", "reached")
        network.cut()
        called, written = reached()
        assert called in {"EINVAL", "EHOSTUNREACH", "ENETUNREACH", "timed out"}
        assert written == "reached"
        network.heal()
        assert reached() == ("reached", "reached")


@pytest.mark.skipif(not ROOT, reason="a network of one's own takes root")
def test_what_is_sent_on_an_open_connection_arrives_when_the_network_is_whole_again(network: Network):
    listener, port = listening(network.database)
    with listener, asked(network.inside([sys.executable, "-c", TALKER, network.database, str(port)])) as ask:
        connection, _ = listener.accept()
        with connection:
            ask("before")
            assert connection.recv(64) == b"before\n"
            network.cut()
            connection.settimeout(BRIEF)
            assert ask("meanwhile") == "sent"
            with pytest.raises(TimeoutError):
                connection.recv(64)
            network.heal()
            connection.settimeout(CLOSE)
            assert connection.recv(64) == b"meanwhile\n"
