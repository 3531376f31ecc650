"""Every command against one Foliot: its JSON is one document, and its text has no colours in a pipe and fits."""

import asyncio
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import BashComplete

from burying import bury, names
from cli.conftest import Shell
from cli.test_commands import EVERY, PROCESSES
from foliot.cli.codes import MEANINGS, Code
from foliot.cli.failing import code_of
from foliot.cli.main import COMMANDS, main
from foliot.kit.postgres import PostgresError
from foliot.sdk import ApiError
from kit.launching import deaf_port
from world import World

OWN_TESTS = {
    ("bench",), ("tenant", "rate"), ("tenant", "quota"), ("key", "rate"),
    ("secret", "set"), ("secret", "list"), ("secret", "delete"),
    ("encryption", "on"), ("encryption", "off"), ("encryption", "rotate"), ("encryption", "status"),
}  # fmt: skip
"""Commands whose own tests ask for JSON: they take minutes, or what they need is not in this world."""
LEAVES = {path for path, command in EVERY.items() if not isinstance(command, click.Group)}
ICS = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20301225\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"


class Walk:
    """Types commands with --json, and keeps in mind which."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.typed: set[tuple[str, ...]] = set()

    async def __call__(self, *words: str, code: int = 0) -> Any:
        self.typed.add(words[:2] if words[:2] in LEAVES else words[:1])
        return await self._shell.json(*words, code=code)


@pytest.fixture
def walk(shell: Shell, dsn: str, folder: Path) -> Walk:
    shell.environment["FOLIOT_DATABASE_URL"] = dsn
    (folder / "jobs.toml").write_text('owner = "shop"\njobs.declared.handler = "noop"\n')
    (folder / "de.ics").write_text(ICS)
    return Walk(shell)


async def test_every_command_prints_json_when_asked(walk: Walk, world: World):
    await world.worker("noop")
    await _operators(walk)
    await _jobs(walk)
    await _runs(walk, world)
    await _rest(walk)
    assert LEAVES - PROCESSES - OWN_TESTS - walk.typed == set(), "type it here too, with --json"


async def _operators(walk: Walk) -> None:
    assert await walk("migrate") == {"applied": []}
    assert all(each["ok"] for each in await walk("doctor"))
    await walk("tenant", "create", "growth")
    assert [each["tenant"] for each in await walk("tenant", "list")] == ["acme", "growth"]
    await walk("tenant", "weight", "growth", "2")
    await walk("tenant", "limit", "growth", "5")
    key = (await walk("key", "create", "growth"))["keyId"]
    await walk("key", "rotate", key)
    await walk("key", "revoke", key)
    await walk("key", "list", "growth")
    await walk("audit", "list")
    assert (await walk("audit", "verify"))["faults"] == []
    (worker,) = await walk("worker", "list")
    assert (await walk("worker", "drain", worker["workerId"]))["state"] == "draining"


async def _jobs(walk: Walk) -> None:
    job = (await walk("job", "create", "hourly", "noop", "--every", "PT1H", "--key", "team/hourly"))["jobId"]
    assert (await walk("job", "get", "team/hourly"))["jobId"] == job
    await walk("job", "edit", "team/hourly", "--priority", "low")
    assert [each["version"] for each in await walk("job", "versions", job)] == [2, 1]
    await walk("job", "list")
    await walk("job", "occurrences", job)
    span = ("--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z")
    operation = (await walk("job", "backfill", job, *span))["operationId"]
    await walk("operation", "list", "--job", "team/hourly")
    await walk("operation", "get", operation)
    await walk("operation", "cancel", operation)
    await walk("job", "pause", job)
    await walk("job", "resume", job)
    await walk("job", "delete", job)
    await walk("schedule", "preview", "--every", "60")
    await walk("gaps")


async def _runs(walk: Walk, world: World) -> None:
    await walk("job", "create", "root", "noop", "--key", "root")
    await walk("job", "create", "child", "noop", "--depends-on", "root")
    await walk("run", "submit", "noop")
    run = (await walk("job", "run", "root"))["runId"]
    assert len((await walk("run", "graph", run))["nodes"]) == 2
    await walk("run", "get", run)
    assert [each["event"] for each in await walk("run", "transitions", run)] == ["accepted"]
    assert (await walk("run", "explain", run))["runId"] == run
    await walk("job", "explain", "root")
    await walk("run", "list", "--job", "root")
    await walk("run", "cancel", run)
    first, second, third = names(*await bury(world, 3))
    assert len(await walk("dead", "list")) == 3
    await walk("dead", "get", first)
    await walk("run", "retry", first)
    await walk("dead", "replay", second)
    await walk("dead", "discard", third)


async def _rest(walk: Walk) -> None:
    await walk("calendar", "set", "de", "--timezone", "Europe/Berlin")
    await walk("calendar", "import", "de", "de.ics")
    await walk("calendar", "get", "de")
    await walk("calendar", "preview", "de")
    await walk("calendar", "list")
    await walk("calendar", "delete", "de")
    await walk("queue", "list")
    await walk("queue", "pause", "default")
    await walk("queue", "resume", "default")
    await walk("apply", "jobs.toml")
    await walk("top", "--once")
    assert "_FOLIOT_COMPLETE" in (await walk("completion", "zsh"))["script"]


LISTS = [path for path in LEAVES if path[-1] in {"list", "top", "gaps"} and path not in OWN_TESTS]


@pytest.mark.parametrize("room", ["80", None])
async def test_lists_fit_and_have_no_colours_in_a_pipe(shell: Shell, world: World, dsn: str, room: str | None):
    shell.environment |= {"FOLIOT_DATABASE_URL": dsn, "COLUMNS": room or "160"}
    await world.worker("noop")
    await shell("job", "create", "a name that is rather long for a job and then some more", "noop", "--every", "PT1H")
    await bury(world)
    for path in LISTS:
        said = await shell(*path)
        assert "\x1b" not in said
        assert max(map(len, said.splitlines())) <= int(room or 160), " ".join(path)


def offered(*words: str) -> dict[str, str | None]:
    """What a shell would offer after these words; the last is not whole yet."""
    found = BashComplete(main, {}, "foliot", "_FOLIOT_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return {each.value: each.help for each in found}


async def test_tab_offers_commands_ids_and_keys(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    job = (await shell.json("job", "create", "report", "noop", "--key", "nightly"))["jobId"]
    for name, value in shell.environment.items():
        monkeypatch.setenv(name, value)
    assert {"job", "apply", "top"} <= offered("").keys()
    assert offered("job", "pau").keys() == {"pause"}
    assert await asyncio.to_thread(offered, "job", "get", "job_") == {job: "report"}
    assert await asyncio.to_thread(offered, "run", "list", "--job", "ni") == {"nightly": job}
    assert "--status" in offered("job", "list", "--sta")


async def test_tab_is_quiet_where_nobody_answers(monkeypatch: pytest.MonkeyPatch):
    assert offered("job", "get", "") == {}
    with deaf_port() as port:
        monkeypatch.setenv("FOLIOT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("FOLIOT_KEY", "key")
        assert offered("job", "get", "") == {}


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
async def test_each_shell_has_its_script(lost: Shell, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(BashComplete, "_check_version", staticmethod(lambda: None))
    assert "_FOLIOT_COMPLETE" in await lost("completion", name)


@pytest.mark.parametrize(
    ("status", "code"), [(0, Code.UNREACHABLE), (503, Code.UNREACHABLE), (401, Code.FAILED), (409, Code.FAILED)]
)
def test_the_exit_code_says_whether_anybody_answered(status: int, code: Code):
    assert code_of(ApiError(status, "")) is code


def test_every_exit_code_has_a_meaning():
    assert set(MEANINGS) == set(Code)


async def test_a_key_that_is_not_valid_is_told_with_where_it_came_from(shell: Shell, folder: Path):
    shell.environment["FOLIOT_KEY"] = "fol_0000000000000_nothing"
    said = await shell("job", "list", code=1)
    assert said == (
        "Error: this call needs a valid key\n"
        "  → the one of FOLIOT_KEY is wrong, expired or revoked; `foliot key create TENANT` makes another\n"
    )


@click.command()
def stumble() -> None:
    raise TypeError("of nobody's making")


async def test_a_fault_of_our_own_is_one_line_too(lost: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(COMMANDS, "stumble", f"{__name__}:stumble")
    said = await lost("stumble", code=1)
    assert said.startswith("Error: unexpected TypeError: of nobody's making\n  → this is a fault in Foliot")


@click.command()
def collide() -> None:
    raise PostgresError("another one runs here: stop it first")


async def test_what_the_embedded_database_says_is_no_fault_of_ours(lost: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(COMMANDS, "collide", f"{__name__}:collide")
    assert await lost("collide", code=1) == "Error: another one runs here: stop it first\n"
