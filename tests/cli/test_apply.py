"""`foliot apply`: files become jobs, differences are shown, and nobody else's jobs are touched."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Shell
from foliot.cli.apply_forms import differences, job_form, job_form_of_view
from foliot.cli.apply_plan import Change, Step, version_to_replace
from foliot.cli.codes import Code
from foliot.domain.errors import FoliotError

SHOP = """
owner = "shop"

[jobs.extract]
handler = "https://etl.example/extract"
cronExpression = "0 3 * * *"
timezone = "Europe/Berlin"
calendar = "de"
payload = { tables = ["orders"], full = false }

[jobs.load]
name = "load the warehouse"
handler = "load"
dependsOn = ["extract"]

[jobs."tidy/up"]
handler = { type = "command", argv = ["/usr/local/bin/tidy"] }
every = 60
scheduleAt = 2030-01-01T00:00:00Z
labels = { team = "growth" }

[calendars.de]
timezone = "Europe/Berlin"
businessDays = ["MON", "TUE", "WED", "THU", "FRI"]
holidays = [2030-12-25, { date = 2031-01-01, name = "New Year" }]
"""


def written(folder: Path, text: str, name: str = "jobs.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


async def test_what_is_declared_is_made_once_and_then_there_is_nothing_to_do(shell: Shell, folder: Path):
    file = written(folder, SHOP)
    said = await shell("apply", file, "--dry-run", code=Code.DIFFERS)
    assert said == "+ calendar de\n+ extract\n+ load\n+ tidy/up\n4 to create\n"
    assert await shell.json("job", "list") == []

    made = await shell.json("apply", file)
    assert [(each["key"], each["change"], each["done"]) for each in made["items"]] == [
        ("de", "create", True),
        ("extract", "create", True),
        ("load", "create", True),
        ("tidy/up", "create", True),
    ]
    jobs = {job["key"]: job for job in await shell.json("job", "list")}
    assert jobs["load"]["name"] == "load the warehouse"
    assert jobs["load"]["dependsOn"] == [{"job": jobs["extract"]["jobId"], "when": "success"}]
    assert jobs["tidy/up"]["labels"] == {"team": "growth", "foliot/owner": "shop"}
    assert await shell("apply", file) == "nothing to do: 4 as declared\n"
    assert await shell("apply", file, "--dry-run") == "nothing to do: 4 as declared\n"
    assert {job["key"]: job["version"] for job in await shell.json("job", "list")} == dict.fromkeys(jobs, 1)


async def test_a_schedule_that_jobs_of_a_graph_share_is_changed_for_all_of_them(shell: Shell, folder: Path):
    graph = """
    owner = "shop"
    jobs.left = { handler = "noop", cronExpression = "0 3 * * *", payload = 1 }
    jobs.right = { handler = "noop", cronExpression = "0 3 * * *", payload = 1 }
    jobs.both = { handler = "noop", dependsOn = ["left", "right"] }
    """
    await shell("apply", written(folder, graph))
    changed = graph.replace("0 3", "0 4").replace("payload = 1", "payload = 2")
    assert (await shell("apply", written(folder, changed))).endswith("2 updated, 1 unchanged\n")
    assert await shell("apply", "jobs.toml") == "nothing to do: 3 as declared\n"


async def test_what_changed_is_shown_field_by_field(shell: Shell, folder: Path):
    await shell("apply", written(folder, SHOP))
    changed = (
        SHOP.replace("0 3 * * *", "0 4 * * *")
        .replace("full = false", 'full = true, note = "\\u001b[2J"')
        .replace('dependsOn = ["extract"]', 'dependsOn = [{ job = "extract", when = "done" }]')
        .replace("2030-12-25, ", "")
    )
    said = await shell("apply", written(folder, changed), "--dry-run", code=Code.DIFFERS)
    assert "    cronExpression  0 3 * * * → 0 4 * * *\n" in said
    assert "    payload.full    false → true\n" in said
    assert "    payload.note    (none) → \N{REPLACEMENT CHARACTER}[2J\n" in said
    assert "    dependsOn.extract  success → done\n" in said
    assert said.endswith("3 to update, 1 unchanged\n")
    assert (await shell("apply", "jobs.toml")).endswith("3 updated, 1 unchanged\n")
    assert await shell("apply", "jobs.toml") == "nothing to do: 4 as declared\n"


async def test_only_what_the_same_owner_applied_before_is_deleted_and_only_when_asked(shell: Shell, folder: Path):
    await shell("job", "create", "by-hand", "noop", "--key", "by-hand")
    await shell("apply", written(folder, 'owner = "other"\njobs.theirs.handler = "noop"\n', "other.toml"))
    await shell("apply", written(folder, SHOP))
    less = written(folder, 'owner = "shop"\n[jobs."tidy/up"]\nhandler = "tidy"\n', "less.toml")

    said = await shell("apply", less, code=1)  # nobody answers
    assert "- load  job_" in said
    assert "delete 2 jobs? [y/N]: " in said
    assert "nothing was changed: nobody said yes\n  → --yes does not ask, --keep deletes nothing" in said
    assert len(await shell.json("job", "list", "--status", "cancelled")) == 0
    assert (await shell("apply", less, "--keep")).endswith("1 updated\n")
    assert (await shell("apply", less, "--yes")).endswith("2 deleted, 1 unchanged\n")
    alive = [job["key"] for job in await shell.json("job", "list") if job["status"] != "cancelled"]
    assert sorted(alive) == ["by-hand", "theirs", "tidy/up"]
    # What was deleted can be declared again: it is another job, under the same key.
    assert (await shell("apply", "jobs.toml")).endswith("2 created, 1 updated, 1 unchanged\n")


async def test_what_others_made_is_taken_over_only_when_told(shell: Shell, folder: Path):
    await shell("job", "create", "by-hand", "noop", "--key", "mine")
    file = written(folder, 'owner = "shop"\n[jobs.mine]\nhandler = "noop"\nname = "by-hand"\n')
    said = await shell("apply", file, code=1)
    assert "has this key and was not made by `foliot apply` → --adopt takes it over" in said
    assert "(taken over from nobody)" in await shell("apply", file, "--adopt")
    assert await shell("apply", file) == "nothing to do: 1 as declared\n"
    said = await shell("apply", file, "--owner", "else", code=1)
    assert "several owners: else, shop" in said
    bare = written(folder, 'jobs.mine.handler = "noop"\n', "bare.toml")
    assert "belongs to the owner 'shop'" in await shell("apply", bare, "--owner", "else", code=1)
    assert "nobody owns these jobs\n  → " in await shell("apply", bare, code=1)


async def test_all_that_is_wrong_is_told_at_once_and_nothing_is_written(shell: Shell, folder: Path):
    wrong = """
    owner = "shop"
    jobs.fine.handler = "noop"
    jobs.late = { handler = "noop", cronExpression = "never" }
    jobs.odd = { handler = "noop", cron = "0 9 * * *" }
    jobs.a = { handler = "noop", dependsOn = ["b"] }
    jobs.b = { handler = "noop", dependsOn = ["a"] }
    jobs.c = { handler = "noop", labels = { "foliot/owner" = "me" } }
    calendars.de.timezone = "Mars/Olympus"
    """
    said = await shell("apply", written(folder, wrong), code=1)
    for place in ("jobs.late.cronExpression: ", "jobs.odd.cron: ", "jobs.c.labels: ", "calendars.de.timezone: "):
        assert f"\n  {place}" in said
    assert "jobs.odd.cron: is not a field of this call → did you mean cronExpression?" in said
    assert "jobs: wait for each other for ever: " in said
    dangling = 'owner = "shop"\njobs.a = { handler = "noop", every = 60, calendar = "none", dependsOn = ["gone"] }\n'
    said = await shell("apply", written(folder, dangling), code=1)
    assert "jobs.a.dependsOn: there is no job 'gone'" in said
    assert "jobs.a.calendar: there is no calendar 'none' → declare it as [calendars.none]" in said
    assert await shell.json("job", "list") == []


async def test_a_change_that_is_refused_on_the_way_is_told_with_what_was_done(shell: Shell, folder: Path):
    await shell("apply", written(folder, 'owner = "shop"\njobs.first = { handler = "noop", every = 60 }\n'))
    await shell("job", "create", "by-hand", "noop", "--depends-on", "first")
    file = written(folder, 'owner = "shop"\njobs.new.handler = "noop"\n')
    result = await shell.result("apply", file, "--yes", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == Code.FAILED
    assert {each["key"]: each["done"] for each in told["items"]} == {"new": True, "first": False}
    assert told["error"] == "job first: other jobs depend on it: 'by-hand' (1 of 2 changes were made)"
    assert "  → cancel those first, or change their dependsOn" in result.stderr


def test_what_somebody_has_changed_meanwhile_is_not_overwritten_unseen():
    seen = {"name": "a", "handler": "f", "every": "PT1M", "payload": 1, "version": 3}
    wanted = job_form({"name": "a", "handler": "f", "every": "PT2M", "payload": 2})
    step = Step(kind="job", key="a", change=Change.UPDATE, seen=seen, form=wanted)
    assert version_to_replace(step, {**seen, "version": 4}) == 4
    assert version_to_replace(step, {**seen, "every": "PT2M", "version": 5}) == 5
    with pytest.raises(FoliotError, match="somebody has changed it meanwhile: payload"):
        version_to_replace(step, {**seen, "payload": 3, "version": 4})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("jobs.yaml", "jobs: {", "jobs.yaml: while parsing a flow node"),
        ("jobs.yaml", "jobs: [1]", "jobs.yaml: Expected `object`, got `array` - at `$.jobs`"),
        ("jobs.toml", "owner = ", "jobs.toml: Invalid value"),
        ("jobs.toml", 'owner = "a b"', "'a b' is not an owner's name"),
        ("jobs.json", '{"job": {}}', "jobs.json: Object contains unknown field `job`"),
        ("jobs.json", "{", "jobs.json: Input data was truncated"),
    ],
)
async def test_files_that_cannot_be_read_are_told_by_name(lost: Shell, folder: Path, name: str, text: str, said: str):
    assert said in await lost("apply", written(folder, text, name), code=1)
    assert "none.toml cannot be read: No such file" in await lost("apply", "none.toml", code=1)


async def test_toml_yaml_and_json_say_the_same(shell: Shell, folder: Path):
    texts = {
        "a.toml": 'owner = "x"\n[jobs.a]\nhandler = "f"\nscheduleAt = 2030-01-01T01:00:00+01:00\n',
        "a.yaml": "owner: x\njobs: {a: {handler: f, scheduleAt: 2030-01-01T01:00:00+01:00}}\n",
        "a.json": '{"owner": "x", "jobs": {"a": {"handler": "f", "scheduleAt": "2030-01-01T00:00:00Z"}}}',
    }
    await shell("apply", written(folder, texts["a.toml"], "a.toml"))
    for name, text in texts.items():
        assert await shell("apply", written(folder, text, name)) == "nothing to do: 1 as declared\n"


async def test_a_key_declared_in_two_files_is_refused(lost: Shell, folder: Path):
    one, two = (written(folder, 'owner = "x"\njobs.a.handler = "f"\n', name) for name in ("one.toml", "two.toml"))
    assert "jobs.a: stands in one.toml and in two.toml" in await lost("apply", one, two, code=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"handler": "f"},
        {"handler": "https://a.example/x", "payload": {"a": [1, {"b": None}]}, "priority": 0, "queue": "bulk"},
        {"handler": {"type": "http", "url": "https://a.example", "method": "put", "headers": {"X-A": "b"}}},
        {"handler": {"type": "container", "image": "a/b:1", "args": ["x"], "env": {"A": "1"}}},
        {"handler": "f", "every": "R5/2030-01-01T00:00:00Z/PT90S", "jitter": "PT1S"},
        {"handler": "f", "every": 90, "catchUp": {"mode": "all"}, "overlap": "queueOne", "maxRuns": 3},
        {"handler": "f", "rrule": "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;COUNT=4", "timezone": "Europe/Berlin"},
        {"handler": "f", "when": "every weekday at 9:00", "timezone": "UTC", "endsAt": "2031-01-01T00:00:00+01:00"},
        {"handler": "f", "cronExpression": "H 9 * * *", "dst": {"gap": "skip"}, "delivery": "atMostOnce"},
        {"handler": "f", "scheduleAt": "2030-01-01T01:00:00+01:00", "concurrency": {"limit": 1}, "timeoutSeconds": 5},
        {"handler": "f", "backoff": {"initial": 1, "factor": 3}, "retry": [{"on": ["http:404"], "never": True}]},
    ],
    ids=", ".join,
)
async def test_a_job_that_was_made_from_a_form_has_that_form(shell: Shell, folder: Path, fields: dict[str, Any]):
    declared = {"owner": "shop", "jobs": {"one": fields}}
    await shell("apply", written(folder, json.dumps(declared), "one.json"))
    (view,) = await shell.json("job", "list")
    form = job_form({"name": "one", "key": "one", **fields})
    assert differences(job_form_of_view(view, {}), form) == {}
