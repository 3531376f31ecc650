"""Dead letters by both clients, and rules about retries as Python writes them."""

import json
from typing import Any

import pytest

from burying import bury, names
from foliot import ApiError, Snooze
from foliot.sdk.calls import create_job
from operating import operator, served_operations
from sdk.serving import Served
from sdk.test_clients import away
from worker.crew import Crew, noop
from world import World


async def test_they_are_looked_at_replayed_and_discarded(foliot: Served, world: World):
    client = foliot.client()
    first, second, third, fourth = names(*await bury(world, 4))
    assert [each["runId"] for each in await away(client.dead_letters, error_class="ValueError", limit=2)] == [
        fourth,
        third,
    ]
    assert (await away(client.dead_letter, first))["payload"] == {}
    assert (await away(client.replay, [first]))["runIds"] == [first]
    assert (await away(client.discard, second))["runIds"] == [second]  # one alone needs no list
    assert (await away(client.retry_run, third)).state == "ready"
    with pytest.raises(ApiError, match="no such dead letter"):
        await away(client.retry_run, third)
    async with foliot.aio() as aio:
        assert [each["runId"] for each in await aio.dead_letters(text="BOOM")] == [fourth]
        planned = await aio.replay_where(text="boom", dry_run=True)
        assert (planned.status, planned.is_over, planned.progress["total"]) == ("planned", True, 1)
        begun = await aio.discard_where(text="boom", name="clean up")
        async with operator(world) as duty:
            while not (await begun.refresh()).is_over:
                await duty.run_once()
        assert (begun.kind, begun.status, begun.progress["succeeded"]) == ("discard", "completed", 1)
        assert await aio.dead_letters() == []


async def test_a_replay_is_waited_for(foliot: Served, world: World, crew: Crew):
    client = foliot.client()
    await bury(world, 3)
    async with served_operations(world), crew.work({"noop": noop}):
        begun = await away(client.replay_where, per_second=1000)
        assert (await away(begun.wait, 10)).progress["succeeded"] == 3


async def test_a_handler_snoozes_and_a_rule_decides(foliot: Served, world: World, crew: Crew):
    calls: list[int] = []

    async def wait_once(ctx: Any, payload: Any) -> None:
        calls.append(ctx.attempt)
        if len(calls) == 1:
            raise Snooze(3600, "not yet")
        raise ValueError("no such team")

    client = foliot.client()
    async with crew.work({"wait": wait_once}):
        run = await away(client.submit, "wait", retry=[{"on": [ValueError], "never": True}], max_retries=9)
        number = await world.value("SELECT id FROM run WHERE id > 0")
        await world.until("SELECT EXISTS (SELECT FROM history WHERE run = $1)", number)
        await world.sql("UPDATE run SET due_at = now() WHERE id = $1", number)
        await world.promoter.run_once()
        done = await away(run.wait, 10, check=False)
    assert (calls, done.status, done.attempts, done.error_class) == ([1, 1], "failed", 1, "ValueError")
    tries = await away(client.list_attempts, run.id)
    assert [(each["attempt"], each["status"]) for each in tries] == [(1, "failed"), (1, "snoozed")]


def test_rules_may_be_written_as_python_does():
    rules = [{"on": [ConnectionError, ApiError, "http:503"], "max_retries": 5}, {"on": ("timeout",), "never": True}]
    body = json.loads(create_job("a", "b", None, {"retry": rules}).body or b"")
    assert body["retry"] == [
        {"on": ["ConnectionError", "foliot.sdk.errors.ApiError", "http:503"], "maxRetries": 5},
        {"on": ["timeout"], "never": True},
    ]
