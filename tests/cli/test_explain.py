"""`foliot run explain` and `foliot job explain`, and the same by both clients."""

from cli.conftest import Shell
from sdk.serving import Served
from sdk.test_clients import away
from world import World


async def test_what_holds_a_run_or_a_job_is_said_first_with_what_to_do(shell: Shell, foliot: Served, world: World):
    job = (await shell.json("job", "create", "sync", "noop", "--concurrency", "1"))["jobId"]
    first, second = [(await shell.json("job", "run", job))["runId"] for _ in range(2)]
    told = await shell.json("run", "explain", second)
    assert (told["blocking"], told["gates"][0]["gate"], told["ahead"]) == ("concurrency", "concurrency", 0)
    said = (await shell("run", "explain", second)).splitlines()
    assert said[0] == f"{second} is blocked"
    assert said[1] == told["sentence"]
    assert said[1].startswith("Waits for a seat: 1 of 1 run of job 'sync' is going.")
    blocking = next(line for line in said if line.startswith("✗"))
    assert blocking.split()[1:3] == ["concurrency", "blocking"]
    assert any(line.startswith("✓  due") for line in said)
    assert (await shell.json("run", "explain", first))["blocking"] == "queueWorkers"
    whole = await shell("job", "explain", job)
    assert f"`foliot job run {job}`" in whole
    assert "RUNS THAT WAIT FOR" in whole
    assert "there is no such run" in await shell("run", "explain", "run_0000000000000", code=1)
    client = foliot.client()
    assert (await away(client.explain_run, second)).sentence == told["sentence"]
    assert (await away(client.explain_job, job)).blocking == "schedule"
    async with foliot.aio() as aio:
        assert (await aio.explain_run(second)).blocking == "concurrency"
        assert (await (await aio.get_run(first)).explain()).blocking == "queueWorkers"
        assert [each["gate"] for each in (await aio.explain_job(job)).runs] == ["queueWorkers", "concurrency"]
