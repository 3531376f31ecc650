"""`foliot dead …` and `foliot run retry`"""

from burying import bury, names
from cli.conftest import Shell
from operating import served_operations
from worker.crew import Crew, noop
from world import World


async def test_they_are_listed_and_shown(shell: Shell, world: World):
    assert "nothing failed for good" in await shell("dead", "list")
    (run,) = names(*await bury(world))
    said = await shell("dead", "list", "--error-class", "ValueError", COLUMNS="200")
    assert run in said
    assert "ValueError" in said
    assert "no such dead letters" in await shell("dead", "list", "--text", "nothing like it")
    shown = await shell("dead", "get", run)
    assert "payload" in shown
    assert "failed" in shown
    assert (await shell.json("dead", "get", run))["executions"][0]["status"] == "failed"


async def test_named_ones_are_done_at_once(shell: Shell, world: World):
    first, second, third = names(*await bury(world, 3))
    assert "1 replayed" in await shell("dead", "replay", first)
    said = await shell("dead", "discard", first, second, code=1)
    assert "1 discarded" in said
    assert f"{first} refused: there is no such dead letter" in said
    assert (await shell.json("dead", "replay", third))["runIds"] == [third]
    assert "not both" in await shell("dead", "replay", first, "--text", "x", code=2)
    assert "say which" in await shell("dead", "replay", code=2)


async def test_many_are_asked_about_first(shell: Shell, world: World):
    await bury(world, 3)
    assert "3 dead letters would be discarded" in await shell("dead", "discard", "--all", "--dry-run")
    said = await shell("dead", "discard", "--error-class", "ValueError", code=1)  # nobody says yes
    assert "discard 3 dead letters?" in said
    assert await world.count("operation") == 0
    said = await shell("dead", "discard", "--error-class", "ValueError", "--yes")
    assert "foliot operation cancel op_" in said
    assert "discard of dead letters" in await shell("operation", "list", COLUMNS="200")


async def test_a_replay_is_watched_to_its_end(shell: Shell, world: World, crew: Crew):
    await bury(world, 3)
    async with served_operations(world), crew.work({"noop": noop}):
        said = await shell("dead", "replay", "--all", "--yes", "--wait", "--per-second", "1000")
    assert "completed: 3/3, 0 failed" in said


async def test_a_run_is_retried(shell: Shell, world: World):
    (run,) = names(*await bury(world))
    assert f"{run} pending" in await shell("run", "retry", run)
    assert "no such dead letter" in await shell("run", "retry", run, code=1)


async def test_rules_about_retries_are_given_as_json(shell: Shell):
    words = ("job", "create", "a", "noop", "--retry", '[{"on": ["http:404"], "maxRetries": 2}]')
    assert (await shell.json(*words))["retry"] == [{"on": ["http:404"], "maxRetries": 2}]
    assert "not JSON" in await shell("job", "create", "a", "noop", "--retry", "404", "--retry", "{", code=2)
