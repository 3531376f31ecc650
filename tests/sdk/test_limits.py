"""Limits by both clients."""

from sdk.serving import Served
from sdk.test_clients import away
from world import World


async def test_limits_are_set_by_both_clients(foliot: Served, world: World):
    client = foliot.client()
    job = await away(client.create_job, "sync", "noop", concurrency=3)
    assert job.concurrency == {"limit": 3}
    assert (await away(client.change_job, job.id, concurrency=None)).values.get("concurrency") is None
    run = await away(client.submit, "noop", {"account": 7}, concurrency={"limit": 1, "key": "payload.account"})
    assert (await away(run.refresh)).concurrency == {"limit": 1, "key": "payload.account"}
    assert (await away(client.limit_tenant, "acme", concurrency=5)).limits["concurrency"] == 5
    async with foliot.aio() as aio:
        assert (await aio.get_tenant("acme")).limits["concurrency"] == 5
        assert (await aio.limit_tenant("acme", concurrency=None)).limits["concurrency"] is None
        changed = await aio.change_job(job.id, every=60, overlap="queueOne", concurrency=1)
        assert (changed.overlap, changed.concurrency) == ("queueOne", {"limit": 1})


async def test_rates_and_quotas_are_set_by_both_clients(foliot: Served):
    client = foliot.client()
    paced = await away(client.change_tenant, "acme", rate_limit=(500, 1_000), quotas={"jobs": 9})
    assert (paced.limits["rateLimit"], paced.quotas["jobs"]) == ({"perSecond": 500, "burst": 1_000}, 9)
    async with foliot.aio() as aio:
        freed = await aio.change_tenant("acme", rate_limit=None, backlog=7, quotas={"jobs": None})
        assert (freed.limits["rateLimit"], freed.limits["backlog"], freed.quotas["jobs"]) == (None, 7, None)
        key = await aio.create_key("ci", rate_limit=(5, 10))
        assert key.values["rateLimit"] == {"perSecond": 5, "burst": 10}
        assert (await aio.limit_key(key.values["keyId"], rate_limit=None)).values["rateLimit"] is None
