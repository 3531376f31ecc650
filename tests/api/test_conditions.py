"""Nobody overwrites what they have not seen: ETag, If-Match, If-None-Match."""

import asyncio

import pytest

from api.calling import PLAIN, Caller
from foliot.api.app import OPERATIONS
from foliot.domain.ids import decode
from world import World

THINGS = {
    "/v1/jobs/{job}": ("PATCH", {"name": "other"}),
    "/v1/jobs/by-key/mine": ("PUT", {**PLAIN, "maxRetries": 7}),
    "/v1/calendars/days": ("PUT", {"timezone": "Europe/Berlin"}),
    "/v1/tenants/acme": ("PATCH", {"weight": 3}),
}


@pytest.fixture
async def job(api: Caller) -> str:
    await api("PUT", "/v1/calendars/days", {"timezone": "UTC"})
    return (await api.create(key="mine"))["jobId"]


async def test_a_change_of_the_version_that_was_read_is_made_and_a_second_one_is_refused(
    api: Caller, job: str, subtests: pytest.Subtests
):
    for place, (method, body) in THINGS.items():
        with subtests.test(place):
            read = place.format(job=job).replace("by-key/mine", job)
            tag = (await api.get(read)).headers["etag"]
            changed = await api(method, place.format(job=job), body, if_match=tag)
            assert changed.status == 200, changed.content
            assert changed.headers["etag"] != tag
            again = await api(method, place.format(job=job), body, if_match=tag)
            assert again.status == 412
            assert again.json["type"] == "urn:foliot:problem:stale"
            assert "read it again" in again.json["hint"]
            assert (await api(method, place.format(job=job), body, if_match=again.headers["etag"])).status == 200


async def test_of_two_who_change_the_same_version_at_once_one_wins(api: Caller, job: str, world: World):
    tag = (await api.get(f"/v1/jobs/{job}")).headers["etag"]
    async with world.unfinished() as held:
        await held.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", decode("job", job))
        calls = [asyncio.create_task(api("PATCH", f"/v1/jobs/{job}", {"name": each}, if_match=tag)) for each in "ab"]
        await world.until_waiting(2)
    assert sorted([(await call).status for call in calls]) == [200, 412]


async def test_a_reader_who_has_seen_it_is_told_so_and_sees_what_changes_besides_the_version(
    api: Caller, job: str, world: World
):
    seen = await api.get(f"/v1/jobs/{job}")
    known = await api.get(f"/v1/jobs/{job}", if_none_match=f'"other", W/{seen.headers["etag"]}')
    assert (known.status, known.content, known.headers["etag"]) == (304, b"", seen.headers["etag"])
    await api.post(f"/v1/jobs/{job}:run")
    (run,) = await (await world.worker()).claim()
    going = await api.get(f"/v1/jobs/{job}", if_none_match=seen.headers["etag"])
    assert (going.status, going.json["status"], going.json["version"]) == (200, "running", seen.json["version"])
    assert run
    # What the job does has moved on; its definition is what was read, and may be changed.
    assert (await api("PATCH", f"/v1/jobs/{job}", {"name": "x"}, if_match=seen.headers["etag"])).status == 200


async def test_a_job_is_cancelled_only_at_the_version_that_was_named(api: Caller, job: str):
    for method, place in (("DELETE", f"/v1/jobs/{job}"), ("POST", f"/v1/jobs/{job}:cancel")):
        assert (await api(method, place, if_match='"99"')).status == 412
    assert (await api("DELETE", "/v1/calendars/days", if_match='"99"')).status == 412
    assert (await api.get(f"/v1/jobs/{job}")).json["status"] == "pending"
    assert (await api("DELETE", f"/v1/jobs/{job}", if_match='"8", "1"')).status == 200


async def test_put_creates_only_or_replaces_only_what_is_there(api: Caller, job: str):
    days = {"timezone": "UTC", "holidays": ["2026-12-24"]}
    for place, body in (("/v1/jobs/by-key/", PLAIN), ("/v1/calendars/", days)):
        old = "mine" if "jobs" in place else "days"
        assert (await api("PUT", place + old, body, if_none_match="*")).status == 412
        assert (await api("PUT", place + "new", body, if_match="*")).status == 412
        assert (await api("PUT", place + "new", body, if_none_match="*")).status == 201
        assert (await api("PUT", place + "new", body, if_match="*")).status == 200


async def test_a_condition_that_makes_no_sense_is_refused_and_never_passed_over(api: Caller, job: str):
    for tag in ("7", '"7', "W/7", '"a" "b"', '"7",', "", '"' + "1" * 2_000 + '"'):
        assert (await api("PATCH", f"/v1/jobs/{job}", {"name": "x"}, if_match=tag)).field == "If-Match", tag
    assert (await api("PATCH", f"/v1/jobs/{job}", {"name": "x"}, if_none_match='"1"')).field == "If-None-Match"
    assert (await api.post(f"/v1/jobs/{job}:pause", if_match='"1"')).field == "If-Match"
    for stranger in ('"v7"', '"-1"', '"1-x"', f'"{10**30}"'):
        assert (await api("PATCH", f"/v1/jobs/{job}", {"name": "x"}, if_match=stranger)).status == 412


def test_every_patch_and_put_takes_a_condition():
    unread = {"putSecret", "switchEncryption"}  # a value that nobody can read, and one of two
    for each in OPERATIONS:
        assert each.is_conditional or each.method not in {"PATCH", "PUT"} or each.name in unread, each.name
        assert each.is_versioned or not each.is_conditional, each.name
