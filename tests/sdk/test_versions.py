"""Changing what was read, and what was before, through the clients."""

import pytest

from foliot import ApiError
from sdk.serving import Served
from sdk.test_clients import away


async def test_a_change_is_made_to_the_version_that_was_read_and_to_no_other(foliot: Served):
    client = foliot.client()
    job = await away(client.create_job, "report", "noop", payload={"n": 1})
    changed = await away(client.change_job, job.id, if_version=job.version, payload={"n": 2})
    with pytest.raises(ApiError, match="changed since") as refused:
        await away(client.change_job, job.id, if_version=job.version, payload={"n": 3})
    assert refused.value.status == 412
    versions = await away(client.list_versions, job.id)
    assert [(each["version"], each["definition"]["payload"]) for each in versions] == [(2, {"n": 2}), (1, {"n": 1})]
    with pytest.raises(ApiError):
        await away(client.delete_job, job.id, if_version=job.version)
    gone = await away(client.delete_job, job.id, purge=True, if_version=changed.version)
    assert gone.status == "cancelled"
    with pytest.raises(ApiError, match="no such job"):
        await away(client.get_job, job.id)


async def test_a_run_tells_what_happened_to_it(foliot: Served):
    client = foliot.client()
    run = await away(client.submit, "noop", {}, delay=60)
    await away(client.cancel_run, run.id)
    told = await away(client.list_transitions, run.id)
    assert [(each["event"], each["state"]) for each in told] == [("accepted", "scheduled"), ("cancelled", "cancelled")]
