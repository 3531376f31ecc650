"""How a chunk of a large firing is made: no step may compare every row with every other."""

from foliot.services import fire
from foliot.store.flows import reserve
from foliot.store.schedules import chunk_terms, firing_flows, open_firings
from plans import explain
from world import World


async def jobs_of_one_schedule(world: World, count: int) -> None:
    await world.job_id(every="PT24H", overlap="allow")
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, $1 - 1) AS n",
        count,
    )


async def test_a_chunk_compares_no_row_with_every_other(world: World):
    await jobs_of_one_schedule(world, 10_000)
    line = world.firer._line
    await world.advance(await world.next_at())
    firings = await open_firings(line, 10, fire.CHUNK)
    awaited = await firing_flows(line, firings)
    ranks = await reserve(world.firer._ranks, awaited.counts, awaited.weights, 1)
    plan = await explain(line, "fire_chunk", *chunk_terms(firings, ranks, awaited))
    compared = sum(node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"] for node in plan.nodes)
    assert compared < fire.CHUNK
    assert plan.rows_read("subscription") <= 2 * fire.CHUNK
    assert plan.rows_read("job") == 0  # nobody counts runs


async def test_a_chunk_is_counted_without_a_walk_through_all_of_its_schedule(world: World):
    await jobs_of_one_schedule(world, 50_000)
    line = world.firer._line
    await world.advance(await world.next_at())
    [firing] = await open_firings(line, 10, fire.CHUNK)
    plan = await explain(line, "firing_flows", [firing.schedule], [firing.at], [firing.done_through], [firing.upto])
    assert plan.pages_read < 100  # the index alone has 300
