"""`foliot job …`"""

import json
import re

from cli.conftest import Shell
from worker.crew import Crew, noop


async def test_a_job_is_created_with_all_that_can_be_said(shell: Shell):
    job = await shell.json(
        *("job", "create", "report", "https://reports.example/run", "--payload", '{"team": 7}'),
        *("--cron", "0 9 * * MON", "--timezone", "Europe/Berlin", "--at", "2030-01-01T00:00:00Z"),
        *("--ends-at", "2031-01-01T00:00:00Z", "--priority", "high", "--queue", "reports", "--label", "team=growth"),
        *("--label", "formula=a=b", "--max-retries", "5", "--timeout", "60", "--overlap", "allow", "--key", "nightly"),
        *("--delivery", "atLeastOnce", "--on-disconnect", "stop"),
        *("--concurrency", "2", "--concurrency-key", "payload.team"),
    )
    assert job["handler"]["url"] == "https://reports.example/run"
    assert (job["payload"], job["labels"]) == ({"team": 7}, {"team": "growth", "formula": "a=b"})
    assert (job["cronExpression"], job["timezone"], job["nextRunAt"]) == (
        "0 9 * * MON",
        "Europe/Berlin",
        "2030-01-07T08:00:00Z",
    )
    assert (job["priority"], job["queue"], job["maxRetries"], job["timeoutSeconds"]) == ("high", "reports", 5, 60)
    assert (job["overlap"], job["key"], job["endsAt"]) == ("allow", "nightly", "2031-01-01T00:00:00Z")
    assert (job["delivery"], job["onDisconnect"]) == ("atLeastOnce", "stop")
    assert job["concurrency"] == {"limit": 2, "key": "payload.team"}
    edited = await shell.json("job", "edit", job["jobId"], "--concurrency", "1", "--overlap", "cancelPrevious")
    assert (edited["concurrency"], edited["overlap"]) == ({"limit": 1}, "cancelPrevious")
    assert "needs --concurrency" in await shell("job", "edit", job["jobId"], "--concurrency-key", "payload.x", code=2)


async def test_labels_are_required_and_no_longer(shell: Shell):
    made = await shell.json("job", "create", "render", "noop", "--requires", "gpu", "--requires", "eu")
    assert made["requires"] == ["eu", "gpu"]
    edited = await shell.json("job", "edit", made["jobId"], "--requires", "eu")
    assert (edited["requires"], edited["labels"]) == (["eu"], {})
    assert (await shell.json("job", "edit", made["jobId"], "--priority", "low"))["requires"] == ["eu"]
    assert "requires" not in await shell.json("job", "edit", made["jobId"], "--requires", "")
    run = (await shell.json("run", "submit", "noop", "--requires", "gpu"))["runId"]
    assert (await shell.json("run", "get", run))["requires"] == ["gpu"]
    assert "--label gpu" in await shell("run", "explain", run)
    assert "'G P U' is not a label of a worker" in await shell("run", "submit", "noop", "--requires", "G P U", code=1)


async def test_creating_says_what_was_made_and_what_comes_next(shell: Shell):
    said = await shell("job", "create", "later", "noop", "--at", "2030-01-31T10:00:00+01:00")
    assert "(one_time), next run 2030-01-31 09:00:00 UTC" in said
    said = await shell("job", "create", "sometimes", "noop")
    assert "(on_demand)" in said
    assert "foliot job run job_" in said
    for every, shown in (("90", "PT90S"), ("1.5", "PT1.5S"), ("PT2H", "PT2H")):
        assert (await shell.json("job", "create", "often", "noop", "--every", every))["every"] == shown


async def test_a_job_is_looked_at_steered_and_ended(shell: Shell):
    job = (await shell.json("job", "create", "report", "noop", "--every", "PT1H"))["jobId"]
    assert (await shell.json("job", "get", job))["name"] == "report"
    shown = await shell("job", "get", job)
    assert "every           PT1H" in shown
    for verb, status, said in (
        ("pause", "paused", f"{job} is paused; nothing of it starts after 20"),
        ("resume", "pending", f"{job} goes on, next run 20"),
        ("delete", "cancelled", f"{job} is cancelled; it stays readable"),
    ):
        assert (await shell.json("job", verb, job))["status"] == status
        assert said in await shell("job", verb, job)
    assert "nothing was changed" in await shell("job", "delete", job, "--purge", code=1)
    assert "erased with its history" in await shell("job", "delete", job, "--purge", "--yes")
    assert "there is no such job" in await shell("job", "get", job, code=1)
    job = (await shell.json("job", "create", "report", "noop"))["jobId"]
    await shell("job", "delete", job)
    said = await shell("job", "resume", job, code=1)
    assert "Error: the job is over\n  → create a new one" in said


async def test_a_job_is_edited_field_by_field(shell: Shell):
    job = (await shell.json("job", "create", "report", "noop", "--every", "60", "--payload", "1", "--label", "a=b"))[
        "jobId"
    ]
    changed = await shell.json("job", "edit", job, "--name", "other", "--cron", "0 9 * * *")
    assert (changed["name"], changed["cronExpression"], changed["payload"]) == ("other", "0 9 * * *", 1)
    assert "every" not in changed
    assert (await shell.json("job", "edit", job, "--payload", "null"))["payload"] is None
    assert (await shell.json("job", "edit", job, "--handler", "else"))["handler"]["name"] == "else"
    assert "version         5" in await shell("job", "edit", job, "--label", "c=d")
    said = await shell("job", "edit", job, code=2)
    assert "say what to change" in said
    newest, *_, oldest = (await shell("job", "versions", job)).split("version ")[1:]
    assert "    labels.a  b → (none)\n    labels.c  (none) → d\n" in newest
    assert oldest.startswith("1, since 20")


async def test_a_job_may_run_a_command(shell: Shell):
    words = ("job", "create", "tidy", "--every", "PT1H", "--json", "--", "/usr/local/bin/tidy", "--all", "a b")
    job = json.loads(await shell(*words))
    assert job["handler"] == {"type": "command", "argv": ["/usr/local/bin/tidy", "--all", "a b"]}
    assert (await shell.json("job", "create", "alone", "/usr/local/bin/tidy"))["handler"]["type"] == "command"
    changed = await shell.json("job", "edit", job["jobId"], "--argv", "tidy", "--argv=--none")
    assert changed["handler"]["argv"] == ["tidy", "--none"]
    said = await shell("job", "edit", job["jobId"], "--argv", "tidy", "--handler", "noop", code=2)
    assert "a job has one of them" in said


async def test_jobs_are_listed_and_filtered(shell: Shell):
    assert "no jobs yet: foliot job create" in await shell("job", "list")
    assert await shell.json("job", "list") == []
    one = await shell.json("job", "create", "one", "noop", "--label", "team=growth")
    two = await shell.json("job", "create", "two", "noop", "--every", "60")
    assert [job["jobId"] for job in await shell.json("job", "list")] == [two["jobId"], one["jobId"]]
    for options, wanted in {
        ("--name", "one"): [one],
        ("--label", "team=growth"): [one],
        ("--type", "recurring"): [two],
        ("--status", "paused"): [],
        ("--limit", "1"): [two],
    }.items():
        found = await shell.json("job", "list", *options)
        assert [job["jobId"] for job in found] == [job["jobId"] for job in wanted]
    assert "no such jobs" in await shell("job", "list", "--status", "paused")
    assert "the newest 1; --limit" in await shell("job", "list", "--limit", "1")


async def test_a_job_is_run_and_waited_for(shell: Shell, crew: Crew):
    job = (await shell.json("job", "create", "report", "noop", "--payload", '"fail"', "--max-retries", "0"))["jobId"]
    said = await shell("job", "run", job)
    assert "pending; watch it with: foliot run get run_" in said
    async with crew.work({"noop": noop}):
        done = await shell.json("job", "run", job, "--payload", "null", "--wait")
        assert (done["status"], done["jobId"]) == ("completed", job)
        said = await shell("job", "run", job, "--wait", code=1)
        assert "failed" in said
        assert "ValueError: as asked" in said
        assert "completed" in await shell("job", "run", job, "--payload", "1", "--priority", "high", "--wait")
        assert re.search(r"lastRun +run_\w{13} completed, 20\d\d-.* UTC\n", await shell("job", "get", job))


async def test_waiting_for_a_run_that_nobody_serves_has_an_end(shell: Shell):
    job = (await shell.json("job", "create", "report", "nobody"))["jobId"]
    said = await shell("job", "run", job, "--wait", "--timeout", "0.05", code=1)
    assert "is still pending after 0.05 s" in said
    assert "  → look again with: foliot run get run_" in said


async def test_what_is_wrong_on_the_command_line_is_said_there(shell: Shell):
    said = await shell("job", "create", "x", "noop", "--payload", "{team: 7}", code=2)
    assert "--payload" in said
    assert "not JSON" in said
    assert "  → " in said
    assert "NAME=VALUE" in await shell("job", "create", "x", "noop", "--label", "team", code=2)
    assert "--limit" in await shell("job", "list", "--limit", "0", code=2)
    assert "Missing argument" in await shell("job", "create", "x", code=2)


async def test_what_the_api_refuses_is_said_with_its_hint(shell: Shell):
    said = await shell("job", "create", "x", "noop", "--cron", "0 0 31 2 *", code=1)
    assert said == (
        "Error: --cron: there is no such date, so it would never fire\n"
        "  → for the last day of a month write L as the day\n"
    )
    missing = await shell("job", "get", "job_0000000000000", code=1)
    assert missing == "Error: there is no such job\n  → `foliot job list` shows those that there are\n"
    assert "--at: has no offset" in await shell("job", "create", "x", "noop", "--at", "2030-01-01T00:00:00", code=1)
    await shell("job", "create", "x", "noop", "--key", "load")
    assert "load" in await shell("job", "create", "x", "noop", "--key", "load", code=1)
    assert await shell.json("job", "list", "--name", "nothing was written") == []
