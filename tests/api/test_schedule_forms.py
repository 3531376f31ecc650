"""Rules, repeating intervals, hashed cron expressions and numbers of runs, as owners write them."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from api.calling import PLAIN, Caller
from foliot.domain.ids import decode
from foliot.store import reading
from world import World

AFTER = "2030-01-01T00:00:00Z"
"""Where the clock does not come to while a test looks."""
SECOND_TUESDAY = {**PLAIN, "rrule": "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9", "timezone": "Europe/Berlin"}


def preview(**fields: object) -> str:
    return f"/v1/schedules:preview?{urlencode(fields)}"


async def test_a_rule_is_told_with_nothing_left_to_be_guessed_and_can_be_changed(api: Caller):
    job = (await api.post("/v1/jobs", SECOND_TUESDAY)).json
    assert (job["rrule"], job["timezone"], job["scheduleType"]) == (
        "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "Europe/Berlin",
        "recurring",
    )
    following = datetime.fromisoformat(job["nextRunAt"])
    assert following.weekday() == 1
    assert 8 <= following.day <= 14
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"rrule": "FREQ=DAILY"})).json
    assert changed["rrule"] == "FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0"
    changed = (await api("PATCH", address, {"cronExpression": "0 9 * * *"})).json
    assert changed["timezone"] == "Europe/Berlin"
    assert "rrule" not in changed
    changed = (await api("PATCH", address, {"rrule": "FREQ=DAILY"})).json
    assert "cronExpression" not in changed
    assert not (await api("PATCH", address, {"rrule": None})).json.keys() & {"rrule", "timezone"}


async def test_a_rule_begins_with_its_job_and_its_end_is_the_jobs(api: Caller):
    fields = {**PLAIN, "rrule": "FREQ=WEEKLY;INTERVAL=2;COUNT=5", "scheduleAt": "2030-01-01T09:30:00Z"}
    job = (await api.post("/v1/jobs", fields)).json
    assert job["rrule"] == "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;BYHOUR=9;BYMINUTE=30;BYSECOND=0"
    assert (job["endsAt"], job["nextRunAt"]) == ("2030-02-26T09:30:00Z", "2030-01-01T09:30:00Z")
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"rrule": "FREQ=DAILY;BYHOUR=1;UNTIL=20300301"})).json
    assert changed["endsAt"] == "2030-03-01T23:59:59Z"
    changed = (await api("PATCH", address, {"rrule": "FREQ=DAILY;BYHOUR=1;COUNT=7"})).json
    assert changed["endsAt"] == "2030-01-08T01:30:00Z"
    assert "endsAt" not in (await api("PATCH", address, {"endsAt": None})).json


async def test_without_a_start_a_number_counts_runs_and_a_new_number_replaces_the_old_in_either_field(api: Caller):
    job = (await api.post("/v1/jobs", {**PLAIN, "rrule": "FREQ=DAILY;COUNT=5"})).json
    assert (job["maxRuns"], "endsAt" in job) == (5, False)
    address = f"/v1/jobs/{job['jobId']}"
    change = {"rrule": "FREQ=DAILY;COUNT=7", "scheduleAt": "2030-01-01T00:00:00Z"}
    changed = (await api("PATCH", address, change)).json
    assert (changed["endsAt"], "maxRuns" in changed) == ("2030-01-07T00:00:00Z", False)
    changed = (await api("PATCH", address, {"every": "R3/PT1H", "scheduleAt": None})).json
    assert (changed["maxRuns"], changed.keys() & {"endsAt", "scheduleAt"}) == (3, set())


def ago(hours: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("form", ["R5/{start}/PT1H", "FREQ=HOURLY;COUNT=5"])
async def test_what_passed_before_the_job_was_made_counts(api: Caller, form: str):
    start = ago(2.5)
    fields = {"every": form.format(start=start)} if "start" in form else {"rrule": form, "scheduleAt": start}
    job = (await api.post("/v1/jobs", {**PLAIN, **fields})).json
    assert datetime.fromisoformat(job["endsAt"]) - datetime.fromisoformat(start) == timedelta(hours=4)
    assert len((await api.get(preview(**fields))).json["items"]) == 2
    assert len((await api.get(preview(**fields, after="2020-01-01T00:00:00Z"))).json["items"]) == 5


@pytest.mark.parametrize("form", ["R5/{start}/PT1H", "FREQ=HOURLY;COUNT=5"])
async def test_what_is_all_over_is_refused_unless_it_is_declared_again(api: Caller, form: str):
    start = ago(24 * 365)
    fields = {"every": form.format(start=start)} if "start" in form else {"rrule": form, "scheduleAt": start}
    body, (field, *_) = {**PLAIN, **fields}, fields
    refused = await api.post("/v1/jobs", body)
    assert (refused.field, "have passed" in refused.json["errors"][0]["message"]) == (field, True)
    assert (await api.post("/v1/jobs:batch", {"jobs": [PLAIN, body]})).field == f"jobs[1].{field}"
    job = (await api.post("/v1/jobs", {**PLAIN, "cronExpression": "0 9 * * *"})).json["jobId"]
    assert (await api("PATCH", f"/v1/jobs/{job}", fields)).field == field
    declared = (await api("PUT", "/v1/jobs/by-key/over", body)).json
    assert (declared["nextRunAt"], (await api("PUT", "/v1/jobs/by-key/over", body)).json["version"]) == (None, 1)
    assert (await api("PATCH", f"/v1/jobs/{declared['jobId']}", {"priority": "high"})).status == 200


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({"maxRuns": 3}, {"maxRuns": 3, "endsAt": "2030-01-01T04:00:00Z"}),
        ({"endsAt": "2030-01-01T02:00:00Z"}, {"endsAt": "2030-01-01T02:00:00Z"}),
        ({"endsAt": "2031-01-01T00:00:00Z"}, {"endsAt": "2030-01-01T04:00:00Z"}),
    ],
)
async def test_of_several_ends_the_earlier_one_ends_it(
    api: Caller, beside: dict[str, object], expected: dict[str, object]
):
    job = (await api.post("/v1/jobs", {**PLAIN, "every": "R5/2030-01-01T00:00:00Z/PT1H", **beside})).json
    assert {name: job[name] for name in ("maxRuns", "endsAt") if name in job} == expected


async def test_equal_rules_share_a_schedule_however_they_are_written(api: Caller, world: World):
    first = (await api.post("/v1/jobs", SECOND_TUESDAY)).json
    again = {**SECOND_TUESDAY, "rrule": "rrule:byminute=0;byhour=9;byday=+2tu;freq=monthly"}
    second = (await api.post("/v1/jobs", again)).json
    later = {**SECOND_TUESDAY, "rrule": first["rrule"], "scheduleAt": "2030-01-01T00:00:00Z"}
    third = (await api.post("/v1/jobs", later)).json
    assert third["nextRunAt"] == "2030-01-08T08:00:00Z"
    keys = {await schedule_key(world, job["jobId"]) for job in (first, second, third)}
    assert keys == {"rrule|FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0;BYSECOND=0|0|Europe/Berlin"}


async def test_what_fires_alike_in_utc_shares_a_schedule(api: Caller, world: World):
    alike = [
        {"cronExpression": "0 9 * * *"},
        {"cronExpression": "0 9 1-31 * MON-SUN", "timezone": "Etc/UTC"},
        {"cronExpression": "0 9 * * *", "timezone": "GMT", "dst": {"gap": "skip"}},
        {"when": "every day at 9:00", "timezone": "Zulu"},
    ]
    jobs = [(await api.post("/v1/jobs", {**PLAIN, **fields})).json for fields in alike]
    assert {await schedule_key(world, job["jobId"]) for job in jobs} == {"cron|0 9 * * *|UTC"}
    assert {job["timezone"] for job in jobs} == {"UTC"}
    assert jobs[2]["dst"] == {"gap": "skip", "fold": "once"}


async def schedule_key(world: World, job: str) -> str | None:
    async with world.database.connection() as connection:
        row = await reading.find_job(connection, world.tenant, decode("job", job))
    assert row is not None
    return row.schedule_key


async def test_a_repeating_interval_becomes_the_fields_that_it_says(api: Caller):
    job = (await api.post("/v1/jobs", {**PLAIN, "every": "R5/2030-01-01T01:00:00+01:00/P1M"})).json
    assert {name: job.get(name) for name in ("every", "scheduleAt", "endsAt", "maxRuns")} == {
        "every": "P1M",
        "scheduleAt": "2030-01-01T00:00:00Z",
        "endsAt": "2030-05-01T00:00:00Z",
        "maxRuns": None,
    }
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"every": "R2/2031-01-01T00:00:00Z/2031-01-01T01:30:00Z"})).json
    assert {name: changed[name] for name in ("every", "scheduleAt", "endsAt")} == {
        "every": "PT90M",
        "scheduleAt": "2031-01-01T00:00:00Z",
        "endsAt": "2031-01-01T01:30:00Z",
    }
    changed = (await api("PATCH", address, {"every": "PT1H"})).json
    assert (changed["every"], changed["scheduleAt"]) == ("PT1H", "2031-01-01T00:00:00Z")


async def test_a_hashed_expression_is_kept_as_written_and_fires_as_plain_cron(api: Caller, world: World):
    fields = {**PLAIN, "name": "a", "cronExpression": "H H(1-4) * * *", "scheduleAt": AFTER}
    job = (await api.post("/v1/jobs", fields)).json
    assert job["cronExpression"] == "H H(1-4) * * *"
    key = await schedule_key(world, job["jobId"])
    assert key is not None
    assert "H" not in key
    address = f"/v1/jobs/{job['jobId']}"
    assert (await api("PATCH", address, {"priority": "high"})).json["nextRunAt"] == job["nextRunAt"]
    assert (await api.post(f"{address}:pause")).status == 200
    assert (await api.post(f"{address}:resume")).json["nextRunAt"] == job["nextRunAt"]
    (seen,) = (await api.get(preview(cronExpression="H H(1-4) * * *", name="a", after=AFTER, count=1))).json["items"]
    assert seen["at"] == job["nextRunAt"]
    names = {(await api("PATCH", address, {"name": f"other-{n}"})).json["nextRunAt"] for n in range(8)}
    assert len(names) > 1


async def test_with_a_key_a_hashed_expression_outlives_a_rename(api: Caller):
    hashed = {**PLAIN, "cronExpression": "H H * * *", "scheduleAt": AFTER}
    job = (await api.post("/v1/jobs", {**hashed, "key": "nightly"})).json
    renamed = (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"name": "something else"})).json
    assert renamed["nextRunAt"] == job["nextRunAt"]
    again = (await api("PUT", "/v1/jobs/by-key/nightly", hashed)).json
    assert again["nextRunAt"] == job["nextRunAt"]


async def test_the_jobs_of_a_batch_spread(api: Caller, world: World):
    jobs = [{**PLAIN, "name": f"job-{n}", "cronExpression": "H * * * *"} for n in range(20)]
    made = (await api.post("/v1/jobs:batch", {"jobs": jobs})).json["jobIds"]
    assert len({await schedule_key(world, job) for job in made}) > 8


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "rrule"),
        ({"rrule": "FREQ=SOMETIMES"}, "rrule"),
        ({"rrule": "FREQ=DAILY", "every": 60}, "rrule"),
        ({"rrule": "FREQ=DAILY", "when": "every day"}, "when"),
        ({"rrule": "FREQ=DAILY;COUNT=5", "maxRuns": 6}, "maxRuns"),
        ({"rrule": "FREQ=DAILY;COUNT=1001", "scheduleAt": "2030-01-01T00:00:00Z"}, "rrule"),
        ({"rrule": "FREQ=DAILY;UNTIL=20300101", "endsAt": "2031-01-01T00:00:00Z"}, "endsAt"),
        ({"rrule": "FREQ=DAILY;UNTIL=20300101", "timezone": "Mars/Base"}, "timezone"),
        ({"every": "R5/PT1H", "maxRuns": 6}, "maxRuns"),
        ({"every": "R5/2030-01-01T00:00:00Z/PT1H", "scheduleAt": "2031-01-01T00:00:00Z"}, "scheduleAt"),
        ({"every": "R5/2030-01-01T00:00:00/PT1H"}, "every"),
        ({"every": "R/2030-01-01T00:00:00Z/PT1H", "timezone": "Europe/Berlin"}, "timezone"),
        ({"cronExpression": "H(9-3) * * * *"}, "cronExpression"),
        ({"maxRuns": 3}, "maxRuns"),
        ({"maxRuns": 3, "scheduleAt": "2030-01-01T00:00:00Z"}, "maxRuns"),
        ({"maxRuns": 0, "every": 60}, "maxRuns"),
    ],
)
async def test_what_contradicts_itself_or_has_no_meaning_is_refused_by_name(
    api: Caller, fields: dict[str, object], field: str
):
    assert (await api.post("/v1/jobs", {**PLAIN, **fields})).field == field


async def test_what_says_the_same_twice_is_taken(api: Caller):
    fields = {"every": "R5/2030-01-01T00:00:00Z/PT1H", "scheduleAt": "2030-01-01T01:00:00+01:00"}
    assert (await api.post("/v1/jobs", {**PLAIN, **fields})).json["endsAt"] == "2030-01-01T04:00:00Z"
    assert (await api.post("/v1/jobs", {**PLAIN, "every": "R5/PT1H", "maxRuns": 5})).json["maxRuns"] == 5


async def test_a_preview_stops_where_the_schedule_does(api: Caller):
    items = (await api.get(preview(every="R3/2030-01-01T00:00:00Z/PT1H"))).json["items"]
    assert [item["at"][11:16] for item in items] == ["00:00", "01:00", "02:00"]
    items = (await api.get(preview(rrule="FREQ=DAILY;UNTIL=20300102", scheduleAt="2030-01-01T12:00:00Z"))).json["items"]
    assert [item["at"] for item in items] == ["2030-01-01T12:00:00Z", "2030-01-02T12:00:00Z"]


async def test_a_preview_of_a_hashed_expression_needs_to_know_whose(api: Caller):
    refused = await api.get(preview(cronExpression="H * * * *"))
    assert refused.field == "cronExpression"
    assert "key or name" in refused.json["errors"][0]["message"]
    one, same = [(await api.get(preview(cronExpression="H * * * *", key="a", after=AFTER))).json for _ in range(2)]
    assert one == same


DAILY = {**PLAIN, "cronExpression": "0 9 * * *"}


async def test_a_preview_beside_a_job_shows_what_an_edit_would_change_and_changes_nothing(api: Caller):
    job = (await api.post("/v1/jobs", DAILY)).json
    asked = preview(job=job["jobId"], cronExpression="0 9,12 * * *", after=AFTER, count=3)
    assert [(item["at"], item["change"]) for item in (await api.get(asked)).json["items"]] == [
        ("2030-01-01T09:00:00Z", "same"),
        ("2030-01-01T12:00:00Z", "added"),
        ("2030-01-02T09:00:00Z", "same"),
    ]
    moved = preview(job=job["jobId"], timezone="Europe/Berlin", after=AFTER, count=2)
    assert [(item["local"], item["change"]) for item in (await api.get(moved)).json["items"]] == [
        ("2030-01-01T09:00:00+01:00", "added"),
        ("2030-01-01T09:00:00+00:00", "removed"),
    ]
    assert (await api.get(f"/v1/jobs/{job['jobId']}")).json == job


async def test_the_end_of_a_job_and_another_kind_of_schedule_are_part_of_the_comparison(api: Caller):
    job = (await api.post("/v1/jobs", DAILY)).json
    asked = preview(job=job["jobId"], endsAt="2030-01-02T00:00:00Z", after=AFTER, count=2)
    assert [item["change"] for item in (await api.get(asked)).json["items"]] == ["same", "removed"]
    once = (await api.post("/v1/jobs", {**PLAIN, "scheduleAt": "2030-01-01T10:00:00Z"})).json
    asked = preview(job=once["jobId"], scheduleAt="2030-01-01T11:00:00Z", after=AFTER)
    assert [item["change"] for item in (await api.get(asked)).json["items"]] == ["removed", "added"]
    alone = (await api.get(preview(job=job["jobId"], after=AFTER, count=2))).json["items"]
    assert [item["change"] for item in alone] == ["same", "same"]


async def test_a_preview_beside_a_job_is_refused_as_the_edit_would_be(api: Caller):
    job = (await api.post("/v1/jobs", DAILY)).json["jobId"]
    assert (await api.get(preview(job=job, cronExpression="61 * * * *"))).field == "cronExpression"
    assert (await api.get(preview(job=job, key="other"))).field == "key"
    assert (await api.get(preview(job="job_nonsense"))).status == 404
    assert (await api.get(preview(job="job_0000000000000"))).status == 404
