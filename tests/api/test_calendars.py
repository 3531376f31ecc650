"""Calendars over HTTP: written, imported, previewed, followed, refused."""

import json
from datetime import timedelta
from time import process_time

import pytest

from api.calling import PLAIN, Caller
from world import utc

BERLIN = {
    "timezone": "Europe/Berlin",
    "businessDays": ["fri", "MON", "TUE", "WED", "THU"],
    "holidays": ["2031-01-01", {"date": "2030-12-25", "name": "Christmas"}],
    "blackouts": [
        {"weekly": "sat 22:00/SUN 06:00", "name": "backup"},
        {"from": "2030-12-24T12:00:00", "until": "2030-12-24T18:00:00", "name": "party"},
        {"from": "2030-06-01T00:00:00Z", "until": "2030-06-01T04:00:00+02:00"},
    ],
}
MANY_WEEKLY = [{"weekly": f"MON {n // 20:02}:{n % 20 * 2:02}/MON {n // 20:02}:{n % 20 * 2 + 1:02}"} for n in range(201)]
ICS = (
    "BEGIN:VCALENDAR\r\nX-WR-TIMEZONE:Europe/Berlin\r\n"
    "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20301225\r\nDTEND;VALUE=DATE:20301227\r\nSUMMARY:Weihnachten\r\nEND:VEVENT\r\n"
    "BEGIN:VEVENT\r\nDTSTART:20301231T200000Z\r\nDURATION:PT4H\r\nEND:VEVENT\r\n"
    "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20301301\r\nEND:VEVENT\r\n"
    "END:VCALENDAR\r\n"
)


async def test_a_calendar_is_said_back_in_order_and_replaced_by_another(api: Caller):
    made = await api("PUT", "/v1/calendars/de", BERLIN)
    assert made.status == 201
    assert made.json["businessDays"] == ["MON", "TUE", "WED", "THU", "FRI"]
    assert made.json["holidays"] == [{"date": "2030-12-25", "name": "Christmas"}, {"date": "2031-01-01"}]
    assert made.json["blackouts"] == [
        {"from": "2030-06-01T00:00:00Z", "until": "2030-06-01T02:00:00Z"},
        {"from": "2030-12-24T12:00:00", "until": "2030-12-24T18:00:00", "name": "party"},
        {"weekly": "SAT 22:00/SUN 06:00", "name": "backup"},
    ]
    assert (await api.get("/v1/calendars/de")).json == made.json
    written = {name: made.json[name] for name in BERLIN}
    again = await api("PUT", "/v1/calendars/de", written)
    assert (again.status, again.json) == (200, made.json)
    other = await api("PUT", "/v1/calendars/de", {"timezone": "UTC"})
    assert (other.status, other.json["version"], other.json["holidays"]) == (200, 2, [])


async def test_calendars_are_listed_by_name_in_pages(api: Caller):
    for name in ("b", "c", "a"):
        await api("PUT", f"/v1/calendars/{name}", BERLIN)
    page = (await api.get("/v1/calendars?limit=2")).json
    assert [(each["name"], each["holidayCount"], each["blackoutCount"]) for each in page["items"]] == [
        ("a", 2, 3),
        ("b", 2, 3),
    ]
    rest = (await api.get(f"/v1/calendars?limit=2&cursor={page['nextCursor']}")).json
    assert ([each["name"] for each in rest["items"]], rest["nextCursor"]) == (["c"], None)


async def test_an_ics_file_is_imported_as_text_or_as_json_and_unread_lines_are_told(api: Caller):
    made = await api.post("/v1/calendars/de:import", raw=ICS.encode(), content_type="text/calendar; charset=utf-8")
    assert made.status == 201
    assert made.json["events"] == 2
    assert [line["line"] for line in made.json["unread"]] == [13]
    calendar = made.json["calendar"]
    assert (calendar["source"], calendar["timezone"]) == ("ics", "Europe/Berlin")
    assert [each["date"] for each in calendar["holidays"]] == ["2030-12-25", "2030-12-26"]
    assert calendar["blackouts"] == [{"from": "2030-12-31T20:00:00Z", "until": "2031-01-01T00:00:00Z"}]
    again = await api.post("/v1/calendars/de:import", {"ics": ICS})
    assert (again.status, again.json["calendar"]) == (200, calendar)


async def test_an_import_replaces_events_or_adds_to_them_and_leaves_the_week_alone(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    added = (await api.post("/v1/calendars/de:import?mode=add", {"ics": ICS})).json["calendar"]
    assert len(added["holidays"]) == 3
    assert {"date": "2030-12-25", "name": "Christmas"} in added["holidays"]
    replaced = (await api.post("/v1/calendars/de:import", {"ics": ICS})).json["calendar"]
    assert [each["date"] for each in replaced["holidays"]] == ["2030-12-25", "2030-12-26"]
    assert replaced["businessDays"] == ["MON", "TUE", "WED", "THU", "FRI"]
    assert [each.get("weekly") for each in replaced["blackouts"]] == [None, "SAT 22:00/SUN 06:00"]


async def test_a_preview_shows_the_closed_times_joined_and_named(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    address = "/v1/calendars/de:preview?from=2030-12-24T00:00:00Z&until=2030-12-29T00:00:00Z"
    assert (await api.get(address)).json["items"] == [
        {"from": "2030-12-24T11:00:00Z", "until": "2030-12-24T17:00:00Z", "names": ["party"]},
        {"from": "2030-12-24T23:00:00Z", "until": "2030-12-25T23:00:00Z", "names": ["Christmas"]},
        {"from": "2030-12-27T23:00:00Z", "until": "2030-12-29T00:00:00Z", "names": []},
    ]


async def test_a_preview_names_thousands_of_windows_without_comparing_all_with_all(api: Caller):
    first = utc("2026-01-01")
    hours = [first + timedelta(hours=4 * number) for number in range(9_000)]
    windows = [
        {"from": at.isoformat(), "until": (at + timedelta(hours=1)).isoformat(), "name": f"{number}"}
        for number, at in enumerate(hours)
    ]
    assert (await api("PUT", "/v1/calendars/many", {"timezone": "UTC", "blackouts": windows})).status == 201
    begin = process_time()
    seen = (await api.get("/v1/calendars/many:preview?from=2026-01-01T00:00:00Z&until=2030-12-31T00:00:00Z")).json
    assert process_time() - begin < 3
    assert [each["names"] for each in seen["items"]] == [[f"{number}"] for number in range(9_000)]


async def test_a_job_follows_a_calendar_and_says_so(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    timing = {"cronExpression": "0 9 * * *", "timezone": "Europe/Berlin", "scheduleAt": "2030-12-25T00:00:00Z"}
    made = await api.create(**timing, calendar="de")
    assert (made["calendar"], made["nextRunAt"]) == ("de", "2030-12-26T08:00:00Z")
    where = f"/v1/jobs/{made['jobId']}"
    moved = await api("PATCH", where, {"calendar": {"name": "de", "rule": "previous"}})
    assert moved.json["calendar"] == {"name": "de", "rule": "previous"}
    assert (await api("PATCH", where, {"name": "other"})).json["calendar"] == moved.json["calendar"]
    assert (await api.post(f"{where}:pause")).status == 200
    assert (await api.post(f"{where}:resume")).json["calendar"] == moved.json["calendar"]
    assert (await api.get("/v1/calendars/de")).json["jobs"] == 1
    refused = await api("DELETE", "/v1/calendars/de")
    assert (refused.status, made["jobId"] in refused.json["detail"]) == (409, True)
    assert "calendar" not in (await api("PATCH", where, {"calendar": None})).json
    assert (await api("DELETE", "/v1/calendars/de")).status == 200
    assert (await api.get("/v1/calendars/de")).status == 404


async def test_a_job_that_no_longer_recurs_follows_no_calendar(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    made = await api.create(every=3600, calendar="de")
    changed = await api("PATCH", f"/v1/jobs/{made['jobId']}", {"every": None})
    assert (changed.status, changed.json["scheduleType"]) == (200, "on_demand")
    assert (await api.get("/v1/calendars/de")).json["jobs"] == 0


async def test_jobs_of_a_batch_and_by_key_follow_calendars_too(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    job = {**PLAIN, "every": 3600, "calendar": "de"}
    assert (await api.post("/v1/jobs:batch", {"jobs": [job, {**job, "name": "other"}]})).status == 201
    assert (await api("PUT", "/v1/jobs/by-key/load", job)).status == 201
    assert (await api("PUT", "/v1/jobs/by-key/load", {**job, "name": "again"})).json["calendar"] == "de"
    assert (await api.get("/v1/calendars/de")).json["jobs"] == 3
    assert (await api.post("/v1/jobs:batch", {"jobs": [job, {**job, "calendar": "fr"}]})).field == "jobs[1].calendar"


async def test_a_schedule_is_previewed_on_a_calendar(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    address = (
        "/v1/schedules:preview?cronExpression=0+9+25+*+*&timezone=Europe/Berlin&after=2030-12-20T00:00:00Z&count=1"
    )
    for rule, expected in (("skip", "2031-02-25"), ("next", "2030-12-26"), ("previous", "2030-12-24")):
        found = await api.get(f"{address}&calendar=de&calendarRule={rule}")
        assert [each["at"][:10] for each in found.json["items"]] == [expected], rule
    assert (await api.get(f"{address}&calendar=fr")).field == "calendar"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "timezone"),
        ({"timezone": "Berlin"}, "timezone"),
        ({"timezone": "UTC", "businessDays": []}, "businessDays"),
        ({"timezone": "UTC", "businessDays": ["MONDAY"]}, "businessDays"),
        ({"timezone": "UTC", "holidays": ["2030-02-30"]}, "holidays[0]"),
        ({"timezone": "UTC", "holidays": [{"date": "2030-02-01", "name": "a\nb"}]}, "name"),
        ({"timezone": "UTC", "blackouts": [{}]}, "blackouts[0].from"),
        ({"timezone": "UTC", "blackouts": [{"weekly": "SAT 25:00/SUN 06:00"}]}, "blackouts[0].weekly"),
        ({"timezone": "UTC", "blackouts": [{"weekly": "SAT 22:00/SAT 22:00"}]}, "blackouts[0].weekly"),
        ({"timezone": "UTC", "blackouts": MANY_WEEKLY}, "blackouts"),
        (
            {"timezone": "UTC", "blackouts": [{"weekly": "SAT 22:00/SUN 06:00", "until": "2030-01-01T00:00:00"}]},
            "blackouts[0].weekly",
        ),
        (
            {"timezone": "UTC", "blackouts": [{"from": "2030-01-02T00:00:00", "until": "2030-01-01T00:00:00"}]},
            "blackouts[0].until",
        ),
        ({"timezone": "UTC", "colour": "red"}, "colour"),
    ],
)
async def test_what_makes_no_calendar_is_refused_by_its_field(api: Caller, body, field):
    assert (await api("PUT", "/v1/calendars/x", body)).field == field
    assert (await api.get("/v1/calendars/x")).status == 404


@pytest.mark.parametrize(
    ("address", "body", "field"),
    [
        ("/v1/calendars/x:import", {"ics": "<html>"}, "ics"),
        ("/v1/calendars/x:import", {"ics": "BEGIN:VCALENDAR\nEND:VCALENDAR"}, "timezone"),
        ("/v1/calendars/x:import?timezone=Mars", {"ics": "BEGIN:VCALENDAR\nEND:VCALENDAR"}, "timezone"),
        ("/v1/calendars/x:import?mode=guess", {"ics": ICS}, "mode"),
        ("/v1/calendars/Straße:import", {"ics": ICS}, "name"),
    ],
)
async def test_what_cannot_be_imported_is_refused(api: Caller, address, body, field):
    assert (await api.post(address, body)).field == field


async def test_text_that_is_not_utf8_is_refused(api: Caller):
    assert (await api.post("/v1/calendars/x:import", raw=b"\xff", content_type="text/calendar")).field == "body"


async def test_a_time_that_is_too_long_to_preview_is_refused(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    where = "/v1/calendars/de:preview?from=2030-01-01T00:00:00Z&until="
    assert (await api.get(f"{where}2039-01-01T00:00:00Z")).field == "until"
    assert (await api.get(f"{where}2030-01-01T00:00:00Z")).field == "until"


@pytest.mark.parametrize("calendar", ["", "x" * 5000, {"name": "de", "rule": "later"}, {"rule": "next"}, 7])
async def test_what_names_no_calendar_is_refused(api: Caller, calendar):
    refused = await api.post("/v1/jobs", {**PLAIN, "every": 60, "calendar": calendar})
    assert refused.field.startswith("calendar"), json.dumps(calendar)


async def test_a_job_that_does_not_recur_cannot_follow_a_calendar(api: Caller):
    await api("PUT", "/v1/calendars/de", BERLIN)
    assert (await api.post("/v1/jobs", {**PLAIN, "calendar": "de"})).field == "calendar"


async def test_a_back_fill_makes_up_for_what_the_calendar_allowed(api: Caller):
    await api("PUT", "/v1/calendars/de", {**BERLIN, "holidays": ["2026-01-06"]})
    made = await api.create(cronExpression="0 9 * * *", timezone="Europe/Berlin", calendar="de")
    days = {"from": "2026-01-05T00:00:00Z", "until": "2026-01-12T00:00:00Z", "dryRun": True}
    planned = await api.post(f"/v1/jobs/{made['jobId']}:backfill", days)
    assert planned.json["plan"]["toRun"] == 4, planned.json
