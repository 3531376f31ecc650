"""Cursors: only Foliot writes them, each leads through one list of one tenant, and shows nothing twice."""

from urllib.parse import quote

import pytest

from api.calling import Answer, Caller, application
from foliot.api.app import OPERATIONS
from foliot.api.paging import is_paged
from world import World


def refused(answer: Answer) -> None:
    assert answer.status == 400
    assert answer.json["type"] == "urn:foliot:problem:foreign-cursor"
    assert "nextCursor" in answer.json["hint"]
    (error,) = answer.json["errors"]
    assert error["field"] == "cursor"


async def test_what_is_no_cursor_is_refused_by_every_list(api: Caller, subtests: pytest.Subtests):
    job, run = (await api.create())["jobId"], await api.submit()
    for each in OPERATIONS:
        if is_paged(each.query):
            for text in ("", "x", "c_0000000000000", "acme", "A" * 30, "\u00e9", "%ff", "' OR 1=1 --"):
                with subtests.test(f"{each.name} {text}"):
                    place = each.path.replace("{job}", job).replace("{run}", run)
                    refused(await api.get(f"{place}?cursor={quote(text)}"))


async def test_a_cursor_belongs_to_one_tenant_one_list_and_one_question(api: Caller, stranger: Caller):
    for _ in range(3):
        await api.create(every=60)
        await stranger.create(every=60)
    cursor = (await api.get("/v1/jobs?limit=1&scheduleType=recurring")).json["nextCursor"]
    refused(await api.get(f"/v1/jobs?cursor={cursor}"))
    refused(await api.get(f"/v1/jobs?cursor={cursor}&scheduleType=one_time"))
    refused(await api.get(f"/v1/jobs?cursor={cursor}&scheduleType=recurring&name=report"))
    refused(await stranger.get(f"/v1/jobs?cursor={cursor}&scheduleType=recurring"))
    refused(await api.get(f"/v1/operations?cursor={cursor}"))
    refused(await api.get(f"/v1/jobs?cursor={cursor[:-1]}&scheduleType=recurring"))
    # Of another size, and after a restart of the process, it leads on.
    rest = await api.get(f"/v1/jobs?limit=7&scheduleType=recurring&cursor={cursor}")
    assert len(rest.json["items"]) == 2


async def test_of_two_runs_the_cursor_of_one_does_not_lead_through_the_other(api: Caller, world: World):
    first, second = (await api.create())["jobId"], (await api.create())["jobId"]
    for job in (first, second):
        for _ in range(2):
            await api.post(f"/v1/jobs/{job}:run")
    hand = await world.worker()
    await hand.settle(await hand.claim())
    cursor = (await api.get(f"/v1/jobs/{first}/executions?limit=1")).json["nextCursor"]
    assert (await api.get(f"/v1/jobs/{first}/executions?cursor={cursor}")).status == 200
    refused(await api.get(f"/v1/jobs/{second}/executions?cursor={cursor}"))


async def test_every_process_of_a_deployment_reads_what_another_wrote(api: Caller, world: World):
    made = [(await api.create())["jobId"] for _ in range(3)]
    cursor = (await api.get("/v1/jobs?limit=1")).json["nextCursor"]
    other = Caller(application(world), api.key)
    assert [each["jobId"] for each in (await other.get(f"/v1/jobs?cursor={cursor}")).json["items"]] == made[-2::-1]


async def test_what_is_made_while_somebody_turns_pages_moves_nothing(api: Caller):
    made = [(await api.create())["jobId"] for _ in range(5)]
    seen, address = [], "/v1/jobs?limit=2"
    while address:
        page = (await api.get(address)).json
        seen += [each["jobId"] for each in page["items"]]
        await api.create(name="a newcomer")
        address = page["nextCursor"] and f"/v1/jobs?limit=2&cursor={page['nextCursor']}"
    assert seen == made[::-1]
