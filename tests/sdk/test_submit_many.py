"""Many runs at once: as many calls as it takes, each once."""

import json
from datetime import timedelta

from foliot.sdk import calls
from sdk.serving import Served
from world import World


def test_they_go_in_calls_of_ten_thousand_and_of_what_is_read_at_most():
    sizes = [len(json.loads(each.body or b"")["runs"]) for each in calls.submit_many([{"handler": "f"}] * 20_001, "k")]
    assert sizes == [10_000, 10_000, 1]
    large = [{"handler": "f", "payload": "x" * 200_000}] * 700
    assert [len(each.body or b"") < 64 << 20 for each in calls.submit_many(large, None)] == [True] * 3
    assert list(calls.submit_many([], "k")) == []


def test_each_call_has_a_key_of_its_own_that_is_the_same_the_next_time():
    keys = [[each.key for each in calls.submit_many([{"handler": "f"}] * 10_001, "k")] for _ in range(2)]
    assert keys == [["k-0", "k-1"]] * 2
    assert [each.key for each in calls.submit_many([{"handler": "f"}], None)] == [None]


async def test_they_come_back_in_order_and_once(foliot: Served, world: World):
    async with foliot.aio() as client:
        runs = [{"handler": f"f{n}", "max_retries": n, "delay": timedelta(hours=1)} for n in range(3)]
        made = await client.submit_many(runs, idempotency_key="import")
        assert await client.submit_many(runs, idempotency_key="import") == made
        assert [(await client.get_run(each)).values["handler"] for each in made] == ["f0", "f1", "f2"]
    assert await world.count("timer") == 3
