"""How a chunk of a large firing is made: no step may compare every row with every other."""

from foliot.services import fire
from foliot.store.flows import reserve
from foliot.store.schedules import chunk_terms, firing_flows, open_firings
from plans import explain
from world import World


async def test_a_chunk_compares_no_row_with_every_other(world: World):
    await world.job_id(every="PT24H", overlap="allow")
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, 9999) AS n"
    )
    line = world.firer._line
    await world.firer._advance(await world.next_at())
    firings = await open_firings(line, 10, fire.CHUNK)
    awaited = await firing_flows(line, firings)
    ranks = await reserve(world.firer._ranks, awaited.counts, awaited.weights, 1)
    plan = await explain(line, "fire_chunk", *chunk_terms(firings, ranks, awaited))
    compared = sum(node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"] for node in plan.nodes)
    assert compared < fire.CHUNK
    assert plan.rows_read("subscription") <= 2 * fire.CHUNK
    assert plan.rows_read("job") == 0  # nobody counts runs
