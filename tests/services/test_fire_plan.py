"""How a chunk of a large firing is made: no step may compare every row with every other."""

from foliot.domain.fairness import Priority, step
from foliot.services import fire
from foliot.store.dispatch import reserve
from foliot.store.schedules import firing_flows, open_firings
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
    counts, weights = await firing_flows(line, firings)
    ranks = await reserve(world.firer._ranks, counts, weights, fire.CHUNK)
    plan = await explain(
        line,
        "fire_chunk",
        [firing.schedule for firing in firings],
        [firing.at for firing in firings],
        [firing.done_through for firing in firings],
        [firing.upto for firing in firings],
        [False for _ in firings],
        ranks.ids[0],
        [flow.lane for flow in ranks.flows],
        [flow.tenant for flow in ranks.flows],
        [flow.priority for flow in ranks.flows],
        [ranks.base(flow) for flow in ranks.flows],
        [step(weights[flow.tenant], Priority(flow.priority)) for flow in ranks.flows],
    )
    compared = sum(node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"] for node in plan.nodes)
    assert compared < fire.CHUNK
    assert plan.rows_read("subscription") <= 2 * fire.CHUNK
    assert plan.rows_read("job") == 0  # nobody counts runs
