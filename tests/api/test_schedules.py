"""Schedules: their daylight-saving rules, and a look at what they will do."""

import asyncio
import threading

import pytest

from api.calling import PLAIN, Caller
from foliot.api import schedules
from foliot.kit.zonedata import zone_data
from world import PATIENCE, World

NIGHTLY = {**PLAIN, "cronExpression": "30 2 * * *", "timezone": "Europe/Berlin"}
SPRING = "/v1/schedules:preview?cronExpression=30+2+*+*+*&timezone=Europe/Berlin&after=2026-03-28T12:00:00Z&count=1"


async def test_a_preview_flags_the_day_on_which_the_clocks_change(api: Caller):
    answer = await api.get(SPRING)
    assert answer.status == 200
    assert answer.json == {
        "items": [{"at": "2026-03-29T01:00:00Z", "local": "2026-03-29T03:00:00+02:00", "transition": "gap"}],
        "zoneData": zone_data().version,
    }
    (skipped,) = (await api.get(f"{SPRING}&gap=skip")).json["items"]
    assert skipped == {"at": "2026-03-30T00:30:00Z", "local": "2026-03-30T02:30:00+02:00", "transition": None}


async def test_a_preview_begins_now_and_shows_ten(api: Caller):
    items = (await api.get("/v1/schedules:preview?every=PT1H")).json["items"]
    assert len(items) == 10
    assert [item["at"] for item in items] == sorted({item["at"] for item in items})
    assert all(item["transition"] is None for item in items)


async def test_others_are_answered_while_a_long_preview_is_reckoned(api: Caller, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()

    def reckon(*_: object) -> list[object]:
        begun.set()
        assert may_end.wait(PATIENCE)
        return []

    monkeypatch.setattr(schedules, "look_ahead", reckon)
    long = asyncio.ensure_future(api.get("/v1/schedules:preview?every=PT1H"))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    assert (await api.get("/v1/jobs")).status == 200
    assert not long.done()
    may_end.set()
    assert (await long).json["items"] == []


async def test_a_preview_with_an_anchor_begins_at_it(api: Caller):
    items = (await api.get("/v1/schedules:preview?every=PT90S&scheduleAt=2030-01-01T00:00:10Z&count=2")).json["items"]
    assert [item["at"] for item in items] == ["2030-01-01T00:00:10Z", "2030-01-01T00:01:40Z"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "cronExpression"),
        ("cronExpression=61+*+*+*+*", "cronExpression"),
        ("cronExpression=0+9+*+*+*&timezone=Mars/Base", "timezone"),
        ("cronExpression=0+9+*+*+*&every=60", "every"),
        ("every=60&timezone=UTC", "timezone"),
        ("every=60&gap=skip", "dst"),
        ("every=60&count=0", "count"),
        ("every=60&count=1001", "count"),
        ("every=60&after=yesterday", "after"),
        ("cronExpression=0+9+*+*+*&gap=jump", "gap"),
        ("every=60&colour=red", "colour"),
    ],
)
async def test_what_cannot_be_previewed_is_refused_by_name(api: Caller, query: str, field: str):
    assert (await api.get(f"/v1/schedules:preview?{query}")).field == field


async def test_a_job_keeps_its_rules_and_a_change_of_them_is_a_change_of_its_schedule(api: Caller):
    job = (await api.post("/v1/jobs", {**NIGHTLY, "dst": {"fold": "twice"}})).json
    assert job["dst"] == {"gap": "end", "fold": "twice"}
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"dst": {"gap": "skip"}})).json
    assert changed["dst"] == {"gap": "skip", "fold": "once"}
    assert "dst" not in (await api("PATCH", address, {"dst": None})).json
    assert "dst" not in (await api.post("/v1/jobs", NIGHTLY)).json


async def test_rules_outlive_an_expression_to_which_they_mean_nothing(api: Caller):
    job = (await api.post("/v1/jobs", {**NIGHTLY, "dst": {"gap": "skip"}})).json
    address = f"/v1/jobs/{job['jobId']}"
    assert (await api("PATCH", address, {"cronExpression": "*/5 * * * *"})).json["dst"]["gap"] == "skip"
    assert (await api("PATCH", address, {"cronExpression": "0 3 * * *"})).json["dst"]["gap"] == "skip"


@pytest.mark.parametrize("recurrence", [{"every": "P2D"}, {"when": "every 2 days at 02:30"}])
async def test_steps_of_a_calendar_have_rules_too(api: Caller, recurrence: dict[str, object]):
    anchor = {"scheduleAt": "2027-03-26T01:30:00Z"} if "every" in recurrence else {}
    body = {**PLAIN, **recurrence, **anchor, "timezone": "Europe/Berlin", "dst": {"gap": "skip"}}
    job = (await api.post("/v1/jobs", body)).json
    assert job["dst"] == {"gap": "skip", "fold": "once"}
    changed = (await api("PATCH", f"/v1/jobs/{job['jobId']}", dict.fromkeys(recurrence))).json
    assert "dst" not in changed


async def test_rules_leave_with_the_expression_that_they_belong_to(api: Caller):
    job = (await api.post("/v1/jobs", {**NIGHTLY, "dst": {"gap": "skip"}})).json
    changed = (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"every": "PT1H"})).json
    assert not changed.keys() & {"dst", "timezone", "cronExpression"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"every": 60, "dst": {"gap": "skip"}}, "dst"),
        ({"every": "P1D", "dst": {"gap": "skip"}}, "dst"),
        ({"cronExpression": "0 9 * * *", "dst": {"gap": "jump"}}, "dst.gap"),
        ({"cronExpression": "0 9 * * *", "dst": {"hour": 2}}, "dst.hour"),
    ],
)
async def test_rules_that_mean_nothing_are_refused(api: Caller, fields: dict[str, object], field: str):
    assert (await api.post("/v1/jobs", {**PLAIN, **fields})).field == field


async def test_plain_words_are_kept_in_their_canonical_form_and_can_be_changed(api: Caller):
    fields = {"when": "Weekdays at 9am", "timezone": "Europe/Berlin"}
    job = (await api.post("/v1/jobs", {**PLAIN, **fields})).json
    assert (job["when"], job["timezone"], job["scheduleType"]) == (
        "every weekday at 09:00",
        "Europe/Berlin",
        "recurring",
    )
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"when": "every month on the last day at 17:00"})).json
    assert (changed["when"], changed["timezone"]) == ("every month on the last day at 17:00", "Europe/Berlin")
    changed = (await api("PATCH", address, {"cronExpression": "0 9 * * *"})).json
    assert changed["timezone"] == "Europe/Berlin"
    assert "when" not in changed
    assert not (await api("PATCH", address, {"cronExpression": None})).json.keys() & {"cronExpression", "timezone"}


async def test_steps_may_be_years_long(api: Caller):
    fields = {"every": "P18M", "timezone": "Europe/Berlin", "scheduleAt": "2030-03-31T07:00:00Z"}
    job = (await api.post("/v1/jobs", {**PLAIN, **fields})).json
    assert (job["every"], job["nextRunAt"]) == ("P1Y6M", "2030-03-31T07:00:00Z")
    query = "every=P10Y&scheduleAt=2029-12-20T00:00:00Z&count=1000"
    items = (await api.get(f"/v1/schedules:preview?{query}")).json["items"]
    assert [items[0]["at"], items[-1]["at"]] == ["2029-12-20T00:00:00Z", "9989-12-20T00:00:00Z"]


async def test_so_many_steps_that_lead_to_an_end_are_told_from_their_start(api: Caller):
    fields = {"every": "R3/P1M/2030-04-30T09:00:00+02:00", "timezone": "Europe/Berlin"}
    job = (await api.post("/v1/jobs", {**PLAIN, **fields})).json
    assert {name: job[name] for name in ("every", "scheduleAt", "endsAt")} == {
        "every": "P1M",
        "scheduleAt": "2030-01-30T08:00:00Z",
        "endsAt": "2030-03-30T08:00:00Z",
    }


async def test_calendar_steps_keep_the_time_of_day_of_their_zone(api: Caller):
    fields = {"every": "P1M", "timezone": "Europe/Berlin", "scheduleAt": "2030-01-31T08:00:00Z"}
    job = (await api.post("/v1/jobs", {**PLAIN, **fields})).json
    assert {name: job[name] for name in fields} == fields
    assert job["nextRunAt"] == "2030-01-31T08:00:00Z"
    items = (
        await api.get("/v1/schedules:preview?every=P1M&timezone=Europe/Berlin&scheduleAt=2030-01-31T08:00:00Z")
    ).json
    assert [item["local"] for item in items["items"][:4]] == [
        "2030-01-31T09:00:00+01:00",
        "2030-02-28T09:00:00+01:00",
        "2030-03-31T09:00:00+02:00",
        "2030-04-30T09:00:00+02:00",
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"when": "every mondey"}, "when"),
        ({"when": "every day", "every": 60}, "when"),
        ({"when": "every day", "cronExpression": "0 9 * * *"}, "when"),
        ({"every": "PT1H", "timezone": "Europe/Berlin"}, "timezone"),
        ({"every": "P0M"}, "every"),
        ({"every": "P11Y"}, "every"),
        ({"every": "R/P1D/2030-01-31T08:00:00Z"}, "every"),
        ({"every": "R5/P1D/2030-01-31T08:00:00Z", "timezone": "Mars/Base"}, "timezone"),
        ({"every": "R9999/P1Y/2030-01-31T08:00:00Z"}, "every"),
        ({"every": "R99/P1Y/2030-01-31T08:00:00Z"}, "scheduleAt"),
        ({"timezone": "Europe/Berlin"}, "timezone"),
    ],
)
async def test_what_contradicts_itself_or_has_no_meaning_is_refused_by_name(
    api: Caller, fields: dict[str, object], field: str
):
    assert (await api.post("/v1/jobs", {**PLAIN, **fields})).field == field


async def _changes(api: Caller, job: str, query: str) -> list[str]:
    answer = await api.get(f"/v1/schedules:preview?job={job}&count=4&{query}")
    assert answer.status == 200, answer.json
    return [item["change"] for item in answer.json["items"]]


async def test_the_runs_that_are_left_bound_what_an_edit_is_compared_with(api: Caller, world: World):
    job = (await api.post("/v1/jobs", {**PLAIN, "every": "PT1H", "maxRuns": 5})).json["jobId"]
    await world.sql("UPDATE job SET runs_left = 2")
    assert await _changes(api, job, "maxRuns=5") == ["same"] * 2
    assert await _changes(api, job, "maxRuns=1") == ["same", "removed"]
    assert await _changes(api, job, "maxRuns=3") == ["same", "same", "added"]
    assert (await _changes(api, job, "every=PT2H")).count("added") == 1
    await world.sql("UPDATE job SET runs_left = 0")
    assert await _changes(api, job, "name=other") == []
    assert await _changes(api, job, "maxRuns=2") == ["added"] * 2


async def test_what_a_job_would_do_without_a_field_can_be_looked_at(api: Caller):
    await api("PUT", "/v1/calendars/never-again", {"timezone": "UTC", "holidays": ["2030-01-02"]})
    body = {**PLAIN, "every": "PT24H", "scheduleAt": "2030-01-01T09:00:00Z"}
    bounds = {"endsAt": "2030-01-03T12:00:00Z", "maxRuns": 2, "calendar": "never-again"}
    job = (await api.post("/v1/jobs", {**body, **bounds})).json["jobId"]
    assert await _changes(api, job, "without=maxRuns") == ["same"] * 2
    assert await _changes(api, job, "without=calendar") == ["same", "added", "removed"]
    assert await _changes(api, job, "without=endsAt,maxRuns") == ["same", "same", "added", "added"]
    assert await _changes(api, job, "without=every,scheduleAt,endsAt,maxRuns") == ["removed"] * 2
    changed = (await api("PATCH", f"/v1/jobs/{job}", dict.fromkeys(bounds))).json
    assert not bounds.keys() & changed.keys()


async def test_what_cannot_be_lost_is_refused_by_name(api: Caller):
    job = (await api.post("/v1/jobs", {**PLAIN, "every": "PT1H"})).json["jobId"]
    for query in (
        "every=60&without=endsAt",
        f"job={job}&without=payload",
        f"job={job}&without=",
        f"job={job}&without=maxRuns&maxRuns=3",
    ):
        assert (await api.get(f"/v1/schedules:preview?{query}")).field == "without"
