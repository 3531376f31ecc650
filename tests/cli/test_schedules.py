"""`foliot schedule …`"""

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
