"""`foliot worker …` and `foliot queue …`"""

import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Shell
from foliot.cli import serve_worker
from foliot.domain.ids import encode
from foliot.store import fleet
from foliot.store.specs import ensure_lanes
from world import World


async def test_workers_are_listed_and_drained(shell: Shell, world: World):
    assert "no worker was seen for a day" in await shell("worker", "list")
    hand = await world.worker()
    name = encode("wrk", hand.id)
    said = await shell("worker", "list")
    assert name in said
    assert "live" in said
    assert [each["workerId"] for each in await shell.json("worker", "list", "--state", "live")] == [name]
    assert "draining" in await shell("worker", "drain", name)
    assert "no such workers" in await shell("worker", "list", "--state", "live")
    assert "there is no such worker" in await shell("worker", "drain", "wrk_0000000000009", code=1)


async def test_labels_are_listed_where_there_are_some(shell: Shell, world: World):
    hand = await world.worker()
    assert "LABELS" not in await shell("worker", "list")
    lanes = await ensure_lanes(hand.line, ["default"], ["fn:noop"], ("eu", "gpu"))
    await fleet.register(hand.line, 9, "rich", [*lanes])
    said = await shell("worker", "list", COLUMNS="120")
    assert "LABELS" in said
    assert "eu, gpu" in said
    assert [each["labels"] for each in await shell.json("worker", "list")] == [["eu", "gpu"], []]


async def test_a_worker_is_told_what_it_carries(lost: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch):
    served: list[Any] = []
    monkeypatch.setattr(serve_worker, "run_process", lambda _, settings, main, **__: served.append(main.args))
    (folder / "labelled.py").write_text("from foliot import Worker\nworker = Worker(labels=['code'])\n")

    async def carried(*words: str, **environment: str) -> tuple[str, ...]:
        await lost("worker", "labelled:worker", *words, **environment)
        settings, app, *_ = served[-1]
        sys.modules.pop("labelled")
        assert settings.labels in {(), app.labels}
        return app.labels  # type: ignore[no-any-return]

    assert await carried() == ("code",)
    assert await carried(FOLIOT_LABELS="here, there") == ("here", "there")
    assert await carried("--label", "gpu", "--label", "eu", FOLIOT_LABELS="here") == ("eu", "gpu")
    assert "'GPU' is not a label of a worker" in await lost("worker", "--label", "GPU", code=2)
    assert "'a b' is not a label of a worker" in await lost("worker", code=1, FOLIOT_LABELS="a b")


async def test_queues_are_listed_paused_and_resumed(shell: Shell, world: World):
    assert "no queues yet" in await shell("queue", "list")
    await world.submit(2)
    said = await shell("queue", "list", COLUMNS="120")
    assert "open" in said
    assert "fn:noop" in said
    assert "foliot queue resume default" in await shell("queue", "pause", "default")
    assert "paused" in await shell("queue", "list")
    assert "default goes on: 2 ready, 0 workers" in await shell("queue", "resume", "default")
    assert (await shell.json("queue", "pause", "default"))["holdsBy"]
    assert "there is no such queue\n  → " in await shell("queue", "resume", "nowhere", code=1)


@pytest.mark.parametrize("words", [(), ("serve",)], ids=["short", "long"])
async def test_a_worker_is_served_without_saying_so(
    lost: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    served: list[Any] = []
    monkeypatch.setattr(serve_worker, "serve_worker", lambda *given: served.append(given))
    shop = f"shop_{len(words)}"  # a module is loaded once
    (folder / f"{shop}.py").write_text("from foliot import Worker\nworker = Worker(processes=3)\nother = Worker()\n")
    await lost("worker", *words)
    await lost("worker", *words, "--concurrency", "7")
    await lost("worker", *words, f"{shop}:other", "--queue", "a", "--queue", "b", "--processes", "1..8")
    await lost("worker", *words, shop)
    plain, wide, ranged, three = (app for app, *_ in served)
    assert (plain.processes, plain.concurrency) == (1, 100)
    assert wide.concurrency == 7
    assert (ranged.queues, ranged.processes) == ({"a": 1, "b": 1}, "1..8")
    assert three.processes == 3
    assert [name for _, _, name, _ in served] == [None, None, f"{shop}:other", shop]


async def test_how_many_processes_must_be_a_number_or_a_range(lost: Shell):
    for command in ("worker", "up"):
        said = await lost(command, "--processes", "many", code=2)
        assert "'many' does not say how many" in said
        assert "1..8" in said
