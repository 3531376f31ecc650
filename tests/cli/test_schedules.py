"""`foliot schedule …`"""

from datetime import datetime

from cli.conftest import Shell

BERLIN = (
    "schedule",
    "preview",
    "--cron",
    "30 2 * * *",
    "--timezone",
    "Europe/Berlin",
    "--after",
    "2026-03-28T12:00:00Z",
)


async def test_a_preview_is_a_table_that_says_when_the_clocks_change(shell: Shell):
    lines = (await shell(*BERLIN, "--count", "2")).splitlines()
    assert lines[0].split() == ["FIRES", "(UTC)", "LOCAL"]
    assert lines[1].split("  ") == [
        "2026-03-29 01:00:00",
        "2026-03-29T03:00:00+02:00",
        "clocks go forward",
    ]
    assert "clocks" not in lines[2]


async def test_a_preview_follows_the_rules_it_is_given(shell: Shell):
    (first,) = await shell.json(*BERLIN, "--count", "1", "--gap", "skip", "--fold", "twice")
    assert first["at"] == "2026-03-30T00:30:00Z"


async def test_a_job_is_given_rules(shell: Shell):
    job = await shell.json("job", "create", "nightly", "noop", "--cron", "30 2 * * *", "--gap", "skip")
    assert job["dst"] == {"gap": "skip", "fold": "once"}


async def test_an_edit_can_be_looked_at_first(shell: Shell):
    job = await shell.json("job", "create", "nightly", "noop", "--cron", "0 9 * * *")
    lines = (await shell("job", "edit", job["jobId"], "--cron", "0 9,12 * * *", "--dry-run")).splitlines()
    assert {line[:1] for line in lines[1:]} == {"+", " "}
    assert all((line[:1] == "+") == (" 12:00:00" in line) for line in lines[1:])
    fires = await shell.json("job", "edit", job["jobId"], "--gap", "skip", "--name", "other", "--dry-run")
    assert {fire["change"] for fire in fires} == {"same"}
    assert (await shell.json("job", "get", job["jobId"]))["cronExpression"] == "0 9 * * *"


async def test_another_calendar_can_be_looked_at_first(shell: Shell):
    await shell("calendar", "set", "work", "--business-days", "MON-FRI", "--timezone", "UTC")
    job = await shell.json("job", "create", "report", "noop", "--cron", "0 9 * * WED,SAT")
    edit = ("job", "edit", job["jobId"], "--calendar", "work", "--dry-run")

    async def days(*more: str) -> set[tuple[int, str]]:
        return {
            (datetime.fromisoformat(fire["at"]).weekday(), fire["change"]) for fire in await shell.json(*edit, *more)
        }

    assert await days() == {(2, "same"), (5, "removed")}
    assert await days("--calendar-rule", "next") == {(0, "added"), (2, "same"), (5, "removed")}
    assert "calendar" not in await shell.json("job", "get", job["jobId"])


async def test_what_a_job_would_do_without_a_bound_can_be_looked_at_before_it_is_taken_away(shell: Shell):
    job = await shell.json(
        "job", "create", "daily", "noop", "--cron", "0 9 * * *", "--max-runs", "2", "--jitter", "PT1M"
    )
    edit = ("job", "edit", job["jobId"], "--without", "max-runs", "--without", "jitter")
    assert [fire["change"] for fire in await shell.json(*edit, "--dry-run")] == ["same"] * 2 + ["added"] * 8
    fewer = await shell.json("job", "edit", job["jobId"], "--max-runs", "1", "--dry-run")
    assert [fire["change"] for fire in fewer] == ["same", "removed"]
    assert (await shell.json("job", "get", job["jobId"]))["maxRuns"] == 2
    assert not {"maxRuns", "jitter"} & (await shell.json(*edit)).keys()
    refused = await shell(*edit, "--max-runs", "3", code=2)
    assert "--without max-runs stands beside --max-runs" in refused


async def test_a_job_has_a_rule_and_an_end(shell: Shell):
    rule = "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;COUNT=3"
    job = await shell.json("job", "create", "report", "noop", "--rrule", rule)
    assert (job["maxRuns"], job["rrule"][:22]) == (3, "FREQ=MONTHLY;BYDAY=2TU")
    job = await shell.json("job", "edit", job["jobId"], "--every", "PT1H", "--max-runs", "9")
    assert (job["maxRuns"], job["every"]) == (9, "PT1H")


async def test_a_preview_of_every_form(shell: Shell):
    words = ("schedule", "preview", "--after", "2030-01-01T00:00:00Z", "--count", "1")
    for form, first in (
        (("--rrule", "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9"), "2030-01-08T09:00:00Z"),
        (("--every", "R2/2030-02-01T00:00:00Z/P1D"), "2030-02-01T00:00:00Z"),
        (("--cron", "H(7-7) 9 * * *", "--name", "any"), "2030-01-01T09:07:00Z"),
    ):
        (fire,) = await shell.json(*words, *form)
        assert fire["at"] == first
