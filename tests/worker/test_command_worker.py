"""Workers that may run commands, and workers that may not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

import foliot
from foliot.domain.errorclass import RetryRule
from foliot.domain.outcome import Ending
from foliot.domain.spec import CommandHandler, Spec
from foliot.wire.runs import RunBody, spec_and_target
from kit.launching import needs_root
from worker.crew import Crew
from worker.lab import OWN, living, open_lab
from world import World

POLICY = """
[tenants.acme]
allow = ["/bin/sh"]
"""


@contextmanager
def worker(dsn: str, *options: str) -> "Iterator[subprocess.Popen[str]]":
    environment = {**os.environ, "PYTHONPATH": str(Path(foliot.__file__).parents[1]), "FOLIOT_DATABASE_URL": dsn}
    command = [sys.executable, "-m", "foliot", "worker", *options]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def sh(script: str, **fields: Any) -> Spec:
    return Spec(handler=CommandHandler(("/bin/sh", "-c", script)), max_retries=0, **fields)


async def test_a_worker_that_may_not_run_commands_does_not_claim_them(world: World, dsn: str):
    (run,) = await world.submit(1, sh("exit 0"))
    async with Crew(dsn).work({}):
        await world.until("SELECT count(*) = 1 FROM worker WHERE state = 0")
        shown = await world.insights.run(world.tenant, run)
    assert (shown.state, shown.attempts) == ("blocked", 0)
    assert shown.waiting_for == "a worker: none that lives offers 'command' on queue 'default'"


@needs_root
async def test_a_worker_that_may_runs_what_is_allowed_and_tells_how_it_ended(world: World, dsn: str, tmp_path: Path):
    async with open_lab(walls=None):
        pass  # here it can be had
    (tmp_path / "commands.toml").write_text(POLICY)
    asked = {"handler": {"type": "command", "argv": ["/bin/sh", "-c", 'grep -qF "{}" && test "$0" = x', "x"]}}
    spec, target = spec_and_target(msgspec.convert(asked, RunBody))
    (adhoc,) = await world.submit(1, spec, target=target)
    (failed,) = await world.submit(1, sh("echo why >&2; exit 3", retry=(RetryRule(("exit:3",), never=True),)))
    marker = f"27182.{OWN}"
    left = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {marker} & wait' &); exec sleep {marker}"
    (late,) = await world.submit(1, sh(left, timeout=timedelta(seconds=0.2)))
    (refused,) = await world.submit(1, sh("exit 0"), tenant=await world.another_tenant())
    with worker(dsn, "--commands", str(tmp_path / "commands.toml")):
        await world.until("SELECT count(*) = 4 FROM history")
        assert not living(marker), "time-outs leave nobody behind, however they hide"
    rows = await world.sql("SELECT run, ending, error, error_class FROM history")
    found = {row["run"]: (Ending(row["ending"]), row["error_class"], row["error"]) for row in rows}
    assert found[adhoc] == (Ending.COMPLETED, None, None)
    assert found[failed] == (Ending.FAILED, "exit:3", "the command ended with status 3\nwhy")
    assert found[late][:2] == (Ending.TIMED_OUT, "timeout")
    assert found[late][2].startswith("timed out after 0.2 s")
    assert found[refused][1] == "CommandNotAllowed"
    assert await world.count("dead_letter") == 3
