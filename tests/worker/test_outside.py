"""The receiver of the guide, called by a worker that leaves before it is done."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from docs.pages import blocks
from foliot.store.submission import NewRun
from sdk.serving import served
from worker.crew import Crew, noop
from worker.making import call
from world import NOOP, World


@contextmanager
def receiver(folder: Path, foliot: str, secret: str) -> Iterator[str]:
    (block,) = blocks("python", "docs/guides/http-targets.md")
    (folder / "receiver.py").write_text(block.text)
    environment = {"FOLIOT_URL": foliot, "SIGNING_SECRET": secret, "PORT": "0"}
    with subprocess.Popen(
        [sys.executable, "-I", folder / "receiver.py"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def test_the_receiver_of_the_guide_ends_its_runs_later_and_no_worker_waits_for_it(
    world: World, dsn: str, tmp_path: Path
):
    secret = await world.insights.signing_secret(world.tenant)
    async with served(world) as foliot:
        with receiver(tmp_path, foliot.url, secret) as url:
            async with Crew(dsn).work({"noop": noop}, concurrency=1):
                ref = await world.specs.intern(world.tenant, call(url))
                (run,) = (await world.submitter.submit([NewRun(ref, b'{"rows":[1,2,3]}')])).ids
                await world.submit(1, NOOP)
                await world.until("SELECT count(*) = 2 FROM history")
        with receiver(tmp_path, foliot.url, "whsec_AAAA") as url:
            async with Crew(dsn).work({}):
                (refused,) = await world.submit(1, call(url))
                await world.until("SELECT count(*) = 1 FROM dead_letter")
    view = await world.insights.run(world.tenant, run)
    assert (view.status, view.attempts, bytes(view.result)) == ("completed", 1, b'{"rows": 3}')
    assert (await world.insights.run(world.tenant, refused)).error_message.startswith("answered 401")
