"""`foliot calendar …`"""

from pathlib import Path

from cli.conftest import Shell

ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20301225
SUMMARY:Christmas
END:VEVENT
BEGIN:VEVENT
SUMMARY:never
END:VEVENT
END:VCALENDAR
"""
SET = ("calendar", "set", "work", "--timezone", "Europe/Berlin", "--business-days", "MON-FRI")


async def test_a_calendar_is_set_shown_listed_and_deleted(shell: Shell):
    shown = await shell(
        *SET, "--holiday", "2030-12-25=Christmas", "--weekly", "SAT 22:00/SUN 06:00", "--holiday", "2031-01-01"
    )
    assert "2030-12-25 Christmas\n" in shown
    assert "SAT 22:00/SUN 06:00" in shown
    values = await shell.json("calendar", "get", "work")
    assert values["businessDays"] == ["MON", "TUE", "WED", "THU", "FRI"]
    listed = await shell("calendar", "list")
    assert listed.splitlines()[1].split()[:5] == ["work", "Europe/Berlin", "2", "1", "0"]
    assert await shell("calendar", "delete", "work") == "deleted work\n"
    assert "no calendars yet" in await shell("calendar", "list")


async def test_what_get_shows_can_be_set_again_from_a_file(shell: Shell, folder: Path):
    await shell(*SET, "--blackout", "2030-12-24T12:00:00/2030-12-24T18:00:00")
    (folder / "work.json").write_text(await shell("calendar", "get", "work", "--json"))
    again = await shell.json("calendar", "set", "copy", "--file", "work.json")
    assert again["blackouts"] == [{"from": "2030-12-24T12:00:00", "until": "2030-12-24T18:00:00"}]


async def test_an_import_says_what_it_took_and_what_it_could_not_read(shell: Shell, folder: Path):
    (folder / "days.ics").write_text(ICS)
    result = await shell.result("calendar", "import", "days", "days.ics", "--timezone", "Europe/Berlin")
    assert result.stdout == "days: 1 events, 1 holidays, 0 blackouts\n"
    assert result.stderr == "line 6 left out: the event has no DTSTART\n"
    added = await shell.json("calendar", "import", "days", "days.ics", "--add")
    assert [each["name"] for each in added["holidays"]] == ["Christmas"]


async def test_a_preview_shows_when_it_is_closed(shell: Shell):
    await shell(*SET, "--holiday", "2030-12-25=Christmas")
    lines = (
        await shell("calendar", "preview", "work", "--from", "2030-12-24T00:00:00Z", "--until", "2030-12-27T00:00:00Z")
    ).splitlines()
    assert lines[1].split("  ") == ["2030-12-24 23:00:00", "2030-12-25 23:00:00", "Christmas"]


async def test_a_job_and_a_preview_follow_a_calendar(shell: Shell):
    await shell(*SET)
    timing = ("--cron", "0 9 1 * *", "--calendar", "work", "--calendar-rule", "next")
    job = await shell.json("job", "create", "invoice", "noop", *timing)
    assert job["calendar"] == {"name": "work", "rule": "next"}
    (fire,) = await shell.json("schedule", "preview", *timing, "--after", "2030-05-31T23:00:00Z", "--count", "1")
    assert fire["at"] == "2030-06-03T09:00:00Z"
    assert "jobs follow the calendar 'work'" in await shell("calendar", "delete", "work", code=1)


async def test_what_is_missing_or_wrong_is_said(shell: Shell):
    assert "--timezone" in await shell("calendar", "set", "work", code=2)
    assert "FROM/UNTIL" in await shell(*SET, "--blackout", "tomorrow", code=2)
    assert "--calendar-rule needs --calendar" in await shell(
        "job", "create", "x", "noop", "--every", "60", "--calendar-rule", "next", code=2
    )
    assert "nowhere.ics" in await shell("calendar", "import", "x", "nowhere.ics", code=1)
    assert "no such calendar" in await shell("calendar", "get", "nothing", code=1)
