"""A process that ends though nobody has told it to is noticed, unless it must."""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from chaos.crashes import crashes, fell_over
from chaos.ends import ENDS, FAILED, LOST, End
from chaos.mutant import PRODUCT
from chaos.node import Boot, Node
from chaos.patience import until
from chaos.places import NODES
from chaos.records import POISON, Effect, Operation, Outcome, Phase, read_lines

PATIENCE = 30.0
UP = "up"
LASTING = ["sh", "-c", f"echo {UP}; exec sleep 60"]
STUMBLING = f"""
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGSEGV))
print("{UP}", flush=True)
while True:
    time.sleep(0.1)
"""
Deed = Callable[[Node, asyncio.Event], object]


def leave_alone(node: Node, stop: asyncio.Event) -> None: ...


def sent(number: signal.Signals) -> Deed:
    return lambda node, _: node.signal(number)


async def first_life(folder: Path, command: list[str], deed: Deed) -> tuple[Boot, list[End]]:
    """Have a process live once; how it ended, and what was written down of that."""
    log, ends, stop = folder / "worker-0.log", folder / ENDS, asyncio.Event()
    log.write_text(f"{LOST}\n")  # said by somebody else, before
    node = Node("worker-0", command, {}, log, folder=folder, ends=ends)
    keeping = asyncio.create_task(node.keep(stop))
    if deed is not leave_alone:
        assert await until(lambda: UP in log.read_text(), PATIENCE)
    deed(node, stop)
    assert await until(lambda: bool(node.boots) and node.boots[0].ended is not None, PATIENCE)
    stop.set()
    await keeping
    return node.boots[0], [each for each in read_lines(ends, End) if each.name == "worker-0.1"] if ends.exists() else []


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("echo farewell; kill -SEGV $$", -signal.SIGSEGV),
        ("echo farewell; kill -KILL $$", -signal.SIGKILL),
        ("echo farewell; exit 1", 1),
        ("echo farewell", 0),
    ],
)
async def test_an_end_that_nobody_asked_for_is_written_down_with_its_last_words(
    script: str, status: int, tmp_path: Path
):
    boot, (end,) = await first_life(tmp_path, ["sh", "-c", script], leave_alone)
    assert (end.name, end.pid, end.status) == (boot.name, boot.pid, boot.status) == ("worker-0.1", boot.pid, status)
    assert boot.began <= end.at
    assert end.words == "farewell\n"


@pytest.mark.parametrize(
    ("deed", "status"),
    [
        (sent(signal.SIGKILL), -signal.SIGKILL),
        (sent(signal.SIGTERM), -signal.SIGTERM),
        (lambda _, stop: stop.set(), -signal.SIGTERM),
    ],
    ids=["killed", "told to leave", "at the end of the run"],
)
async def test_an_end_that_was_asked_for_is_not_written_down(deed: Deed, status: int, tmp_path: Path):
    boot, ends = await first_life(tmp_path, LASTING, deed)
    assert (boot.status, ends) == (status, [])


async def test_who_falls_over_while_it_leaves_was_not_told_to(tmp_path: Path):
    _, (end,) = await first_life(tmp_path, [sys.executable, "-c", STUMBLING], sent(signal.SIGTERM))
    assert end.status == -signal.SIGSEGV


def left(folder: Path, *ends: End) -> list[str]:
    """Who fell over by itself, if that is what was written down."""
    (folder / ENDS).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in ends))
    return fell_over(folder)


def end(name: str, status: int, words: str = "") -> End:
    return End(name=name, pid=4_711, status=status, at=1.0, words=words)


def test_a_worker_that_has_lost_its_lease_must_end_and_nobody_else_may(tmp_path: Path):
    assert fell_over(tmp_path) == []
    said = f"12:00:00 worker     error: {LOST} (it is started again by itself)\n"
    assert left(tmp_path, end("worker-0.2", FAILED, said)) == []
    assert left(tmp_path, end("scheduler-1.1", FAILED, said), end("worker-2.1", -signal.SIGSEGV, said)) == [
        "scheduler-1",
        "worker-2",
    ]


@pytest.mark.parametrize("status", [0, 1, 3, 5, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGABRT])
@pytest.mark.parametrize("name", NODES)
def test_every_other_end_is_one_too_many(name: str, status: int, tmp_path: Path):
    assert left(tmp_path, end(f"{name}.3", status, "the database cannot be reached")) == [name]
    assert name in crashes(tmp_path)


def test_a_worker_may_be_killed_by_a_run_that_was_handed_in_for_that(tmp_path: Path):
    common = {"client": 1, "tenant": "acme", "kind": "createRun", "invoked": 1.0, "completed": 2.0}
    poison, well = {"handler": POISON, "payload": {}}, {"handler": "quick", "payload": {"serial": POISON}}
    asked = [
        Operation(number=1, outcome=Outcome.UNKNOWN, body=poison, **common),
        Operation(number=2, outcome=Outcome.OK, body=poison, answer={"runId": "run_a"}, **common),
        Operation(number=3, outcome=Outcome.OK, body=well, answer={"runId": "run_b"}, **common),
    ]

    def start(worker: str, run: str, **more: bool) -> Effect:
        said = {"seq": 1, "at": 1.0, "phase": Phase.START, "tenant": "acme", "attempt": 1, "fence": 1}
        return Effect(worker=worker, run=run, **said, **more)

    begun = [start("worker-0.1", "run_a"), start("worker-1.1", "run_a", isolated=True), start("worker-2.1", "run_b")]
    for name, records in (("operations", asked), ("ledger", begun)):
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
    killed = [end(f"worker-{number}.1", -signal.SIGKILL) for number in range(4)]
    assert left(tmp_path, *killed) == ["worker-1", "worker-2", "worker-3"]
    assert left(tmp_path, end("worker-0.1", -signal.SIGABRT)) == ["worker-0"]


def test_the_last_words_that_excuse_an_end_are_still_said():
    assert f'LeaseLost("{LOST}"' in (PRODUCT / "worker" / "process.py").read_text()
