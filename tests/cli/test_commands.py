"""What holds for every command, and the ones for operators."""

import asyncio
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from cli.conftest import Shell
from foliot.cli.codes import Code
from foliot.cli.commands import hidden_files, read_policy
from foliot.cli.compose import CannotStart
from foliot.cli.contents import SECTIONS
from foliot.cli.examples import EXAMPLES
from foliot.cli.main import COMMANDS, main
from foliot.cli.processes import load_app
from foliot.kit.settings import Settings
from foliot.kit.tasks import background
from foliot.services.membership import Membership
from foliot.services.tenants import Tenants
from foliot.store import zones
from foliot.store.database import Database
from foliot.worker.commands import isolation
from foliot.worker.commands.isolation import Isolation
from kit.launching import deaf_port
from sdk.serving import Served
from world import World


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = dict(commands())
PROCESSES = {("up",), ("api",), ("scheduler",), ("worker", "serve")}


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
async def test_every_command_explains_itself(lost: Shell, path: tuple[str, ...]):
    said = await lost(*path, "--help")
    assert "Usage: " in said
    command = EVERY[path]
    assert command.help
    if not isinstance(command, click.Group):
        assert EXAMPLES.get(" ".join(path), "no example in foliot.cli.examples") in said
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{' '.join(path)} {parameter.opts[0]} has no help"


@pytest.mark.parametrize(
    "path", [path for path, each in EVERY.items() if not isinstance(each, click.Group)], ids=" ".join
)
def test_every_command_that_prints_can_print_json(path: tuple[str, ...]):
    if path not in PROCESSES:
        assert any("--json" in parameter.opts for parameter in EVERY[path].params)


def test_the_table_of_commands_is_whole():
    assert [path[0] for path in EVERY if len(path) == 1] == list(COMMANDS)
    assert set(COMMANDS) <= {name for section in SECTIONS.values() for name in section}
    for path in ("create", "list", "get", "edit", "pause", "resume", "run", "delete"):
        assert ("job", path) in EVERY
    assert {("run", "list"), ("run", "get"), ("tenant", "create")} <= EVERY.keys()


async def test_help_comes_without_asking_and_mistakes_are_pointed_at(lost: Shell):
    assert "Start with `foliot up`" in await lost("--help")
    assert "foliot, version" in await lost("--version")
    assert "No such command 'jbo'. Did you mean 'job'?" in await lost("jbo", code=2)
    assert "FOLIOT_PORT=abc" in await lost("job", "list", code=2, FOLIOT_PORT="abc")
    assert "FOLIOT_LOG_LEVEL" in await lost("job", "list", code=2, FOLIOT_LOG_LEVEL="loud")


@pytest.mark.parametrize(
    "words",
    [
        ("job", "list"),
        ("job", "get", "x"),
        ("job", "create", "x", "y"),
        ("job", "edit", "x", "--name", "y"),
        ("job", "pause", "x"),
        ("job", "resume", "x"),
        ("job", "run", "x"),
        ("job", "delete", "x"),
        ("run", "list"),
        ("run", "get", "x"),
    ],
)
async def test_where_nothing_is_configured_every_command_says_what_to_do(lost: Shell, words: tuple[str, ...]):
    said = await lost(*words, code=Code.UNREACHABLE)
    assert said == (
        "Error: no Foliot was found from here\n"
        "  → start one with `foliot up` in this folder, or set FOLIOT_URL and FOLIOT_KEY\n"
    )


async def test_what_foliot_up_left_in_the_folder_is_found(lost: Shell, folder: Path, foliot: Served):
    (folder / ".foliot").mkdir()
    (folder / ".foliot" / "client.json").write_text(json.dumps({"url": foliot.url, "key": foliot.key}))
    assert "no jobs yet" in await lost("job", "list")


async def test_nobody_at_the_address_is_said_with_a_hint(lost: Shell):
    with deaf_port() as port:
        url = f"http://127.0.0.1:{port}"
        said = await lost("job", "list", code=Code.UNREACHABLE, FOLIOT_URL=url, FOLIOT_KEY="key")
    assert said == f"Error: {url} cannot be reached: Connection refused\n  → is `foliot up` running?\n"


async def test_a_tenant_is_created_with_a_key_that_works(lost: Shell, world: World, dsn: str):
    made = json.loads(await lost("tenant", "create", "growth", "--json", FOLIOT_DATABASE_URL=dsn))
    assert made["tenant"] == "growth"
    owner = await Tenants(world.database).whose(made["key"])
    assert owner is not None
    assert owner.name == "growth"
    said = await lost("tenant", "create", "growth", code=1, FOLIOT_DATABASE_URL=dsn)
    assert "there is a tenant called 'growth' already" in said
    assert "name: not a tenant's name\n  → " in await lost("tenant", "create", "No", code=1, FOLIOT_DATABASE_URL=dsn)
    said = await lost("tenant", "create", "sales", FOLIOT_DATABASE_URL=dsn)
    assert "shown only now" in said


async def test_the_trail_says_what_was_typed_however_foliot_was_called(lost: Shell, world: World, dsn: str):
    await lost("tenant", "create", "growth", FOLIOT_DATABASE_URL=dsn)
    assert await world.value("SELECT count(*) FROM audit WHERE action = 'tenant create'") > 0


async def test_a_tenant_is_weighed(lost: Shell, world: World, dsn: str):
    lost.environment["FOLIOT_DATABASE_URL"] = dsn
    assert await lost("tenant", "weight", "acme") == "tenant acme weighs 1\n"
    await world.submit(3)
    assert await lost("tenant", "weight", "acme", "3") == "tenant acme weighs 3; what is queued is being moved\n"
    assert await lost.json("tenant", "weight", "acme") == {"tenant": "acme", "weight": 3, "moving": True}
    assert "there is no tenant called 'nobody'" in await lost("tenant", "weight", "nobody", "3", code=1)
    assert "1<=x<=1000" in await lost("tenant", "weight", "acme", "0", code=2)


async def test_a_tenant_is_limited(lost: Shell, world: World, dsn: str):
    lost.environment["FOLIOT_DATABASE_URL"] = dsn
    assert await lost("tenant", "limit", "acme") == "tenant acme has no limit\n"
    assert await lost("tenant", "limit", "acme", "1") == "tenant acme: at most 1 at once; 0 go, 0 wait\n"
    await world.submit(3)
    found = await lost.json("tenant", "limit", "acme")
    assert found == {"tenant": "acme", "limit": 1, "going": 1, "waiting": 2}
    assert await lost("tenant", "limit", "acme", "--off") == "tenant acme has no limit\n"
    await world.promoter.run_once()
    assert await world.count("ready") == 3
    assert "there is no tenant called 'nobody'" in await lost("tenant", "limit", "nobody", "3", code=1)
    assert "1<=x<=1000000" in await lost("tenant", "limit", "acme", "0", code=2)
    assert "either LIMIT or --off" in await lost("tenant", "limit", "acme", "3", "--off", code=2)


async def test_queues_of_a_worker_may_have_weights(lost: Shell):
    parsed = EVERY[("worker", "serve")].make_context("serve", ["--queue", "fast=3", "--queue", "bulk"])
    assert parsed.params["queues"] == {"fast": 3, "bulk": 1}
    for queue in ("fast=0", "fast=1001", "fast=", "fast=many", "=3"):
        assert "NAME=WEIGHT" in await lost("worker", "--queue", queue, code=2)


async def test_the_schema_is_brought_up_to_date_and_asked_for(lost: Shell, empty_dsn: str):
    said = await lost("tenant", "create", "growth", code=1, FOLIOT_DATABASE_URL=empty_dsn)
    assert "  → run `foliot migrate`" in said
    assert "applied 0001" in await lost("migrate", FOLIOT_DATABASE_URL=empty_dsn)
    assert "up to date" in await lost("migrate", FOLIOT_DATABASE_URL=empty_dsn)
    assert json.loads(await lost("migrate", "--json", FOLIOT_DATABASE_URL=empty_dsn)) == {"applied": []}


@pytest.mark.parametrize("words", [("migrate",), ("tenant", "create", "x")])
async def test_a_database_that_is_not_there_is_said_in_words(lost: Shell, words: tuple[str, ...], dsn: str):
    said = await lost(*words, code=Code.UNREACHABLE, FOLIOT_DATABASE_URL="postgresql://x:secret@127.0.0.1:1/none")
    assert said.startswith("Error: the database cannot be ")
    assert "\n  → " in said
    assert "secret" not in said
    said = await lost(*words, code=Code.UNREACHABLE)
    assert "  → set FOLIOT_DATABASE_URL, or start `foliot up` in this folder" in said
    missing = dsn.replace("/test_", "/missing_")
    assert "does not exist" in await lost(*words, code=Code.UNREACHABLE, FOLIOT_DATABASE_URL=missing)


async def test_the_doctor_finds_what_is_well(shell: Shell, dsn: str, folder: Path):
    shell.environment["FOLIOT_DATABASE_URL"] = dsn
    findings = await shell.json("doctor")
    assert all(finding["ok"] for finding in findings)
    looked_at = {"python", "time zones", "postgres programs", "home", "database", "schedulers", "workers", "api"}
    assert {finding["what"] for finding in findings} == looked_at | {
        *("commands", "http targets", "row level security", "disk", "audit trail", "clock", "encryption", "address"),
    }
    assert all(line.startswith(("ok ", "    → ")) for line in (await shell("doctor")).splitlines())


async def test_the_doctor_says_what_handlers_may_call(shell: Shell):
    def targets(findings: list[dict[str, Any]]) -> dict[str, Any]:
        return next(each for each in findings if each["what"] == "http targets")

    usual = targets(await shell.json("doctor", code=1))
    assert usual["detail"] == "HTTP handlers may call public (what `foliot up` starts: public, loopback)"
    shell.environment |= {"FOLIOT_HTTP_ALLOW": "public, 10.0.0.0/8", "FOLIOT_HTTP_DENY": "*:25"}
    assert (
        targets(await shell.json("doctor", code=1))["detail"] == "HTTP handlers may call public, 10.0.0.0/8; never *:25"
    )
    shell.environment["FOLIOT_HTTP_ALLOW"] = "10.0.0.1/8"
    wrong = targets(await shell.json("doctor", code=1))
    assert not wrong["ok"]
    assert wrong["hint"] == "a network is written like 10.0.0.0/8"


async def test_the_doctor_says_who_looks_after_what(shell: Shell, dsn: str, database: Database):
    shell.environment["FOLIOT_DATABASE_URL"] = dsn
    assert "ok schedulers: none runs, so nothing fires: start `foliot scheduler`" in _plain(await shell("doctor"))
    membership = Membership(database, 1, "here:7")
    await membership.run_once()
    async with background(_beat(membership)):
        assert "here:7 looks after 256 of 256 shards (epoch 1)" in await shell("doctor")
    await membership.close()


async def _beat(membership: Membership) -> None:
    """However long the doctor takes."""
    while True:
        await asyncio.sleep(0.5)
        await membership.run_once()


async def test_the_doctor_says_what_nobody_serves(shell: Shell, dsn: str, world: World):
    shell.environment["FOLIOT_DATABASE_URL"] = dsn
    assert "none lives, so nothing runs: start `foliot worker`" in await shell("doctor")
    await world.worker("other")
    assert "1 live, 0 being drained, 0 queues paused" in await shell("doctor")
    await world.submit()
    said = await shell("doctor", code=1)
    assert "runs wait that no live worker offers to run: fn:noop on default" in said
    assert "start a worker that has them" in said


async def test_the_doctor_says_which_time_zone_data_is_here_and_which_the_schedulers_go_by(
    shell: Shell, dsn: str, database: Database
):
    shell.environment["FOLIOT_DATABASE_URL"] = dsn
    assert "no scheduler has recorded one yet" in await shell("doctor")
    await zones.record(database, "1999a", 0)
    assert "; the schedulers go by 1999a" in await shell("doctor")
    await zones.record(database, "2999a", 0)
    said = await shell("doctor", code=1)
    assert "; the schedulers go by 2999a" in said
    assert "upgrade the time zone data of this machine" in said


async def test_the_doctor_finds_a_clock_that_was_set_back(shell: Shell, dsn: str, database: Database):
    shell.environment["FOLIOT_DATABASE_URL"] = dsn
    async with database.connection() as connection:
        await connection.execute("UPDATE clock SET latest = clock_timestamp() + interval '1 hour'")
    said = await shell("doctor", code=1)
    assert "the database's clock was set back and is 3," in said
    assert "look at the time source of the database's machine" in said


def _plain(text: str) -> str:
    return " ".join(text.split())


async def test_the_doctor_finds_what_is_wrong_and_says_what_to_do(lost: Shell, folder: Path, empty_dsn: str):
    file = folder / ".foliot" / "client.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"url": "http://127.0.0.1:1", "key": "key"}))
    file.chmod(0o644)
    said = await lost("doctor", code=1, FOLIOT_DATABASE_URL=empty_dsn)
    assert "BAD home" in said
    assert "chmod 600" in said
    assert "BAD database" in said
    assert "run `foliot migrate`" in said
    assert "BAD api" in said
    assert "is `foliot up` running?" in said
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o644  # noqa: PTH116 - it looks and touches nothing


POLICY = '[tenants."*"]\nallow = ["/bin/true"]\n'


@pytest.mark.parametrize(
    ("other_user", "same_user", "said"),
    [
        (True, "", "ok  commands: run as users of their own; namespaces: pid"),
        (False, "", "BAD commands: commands stay off: here they could only run as this worker's own user"),
        (False, "1", "WARN commands: run as the worker's own user, and may read and stop whatever it may"),
    ],
)
async def test_the_doctor_says_as_whom_commands_would_run(
    lost: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, other_user: bool, same_user: str, said: str
):
    async def found(*_: object) -> Isolation:
        return Isolation(other_user, frozenset({"pid"}), {})

    monkeypatch.setattr(isolation, "probe", found)
    monkeypatch.setattr(os, "geteuid", lambda: (folder / "policy.toml").stat().st_uid or 1_000)
    (folder / "policy.toml").write_text(POLICY)
    lost.environment |= {"FOLIOT_COMMANDS": "policy.toml", "FOLIOT_COMMANDS_SAME_USER": same_user}
    assert said in await lost("doctor", code=1)


async def test_a_file_of_commands_that_others_may_change_or_nobody_can_read_is_refused(folder: Path):
    file = folder / "policy.toml"
    for text, fault in (("allow", "cannot be used"), ("", "nobody may run anything"), ("uid = 0", "unknown field")):
        file.write_text(text)
        with pytest.raises(CannotStart, match=fault):
            read_policy(file)
    file.write_text(POLICY)
    assert read_policy(file).of("anybody") is not None
    file.chmod(0o666)
    with pytest.raises(CannotStart, match="others may change it") as refused:
        read_policy(file)
    assert "chmod go-w" in refused.value.hint
    with pytest.raises(CannotStart, match="No such file"):
        read_policy(folder / "nowhere.toml")


def test_commands_find_nothing_where_keys_and_passwords_are(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGPASSFILE", "/etc/foliot/pgpass")
    monkeypatch.setenv("PGSERVICEFILE", "/etc/foliot/services")
    dsn = "postgresql://foliot@db/foliot?sslmode=verify-full&sslkey=%2Fetc%2Fssl%2Ffoliot.key"
    settings = Settings.read({"FOLIOT_HOME": str(folder), "FOLIOT_DATABASE_URL": dsn, "FOLIOT_COMMANDS": "/etc/policy"})
    hidden = set(hidden_files(settings))
    assert hidden >= {str(folder), "/etc/policy", "/etc/foliot/pgpass", "/etc/foliot/services", "/etc/ssl/foliot.key"}


async def test_a_module_that_is_none_is_said_before_anything_starts(lost: Shell, folder: Path):
    (folder / "shop.py").write_text("worker = 7\n")
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    (folder / "odd.py").write_text("raise AttributeError('of its own')\n")
    for name, said in {
        "nowhere:worker": "there is no module 'nowhere' here",
        "nowhere.deep:worker": "there is no module 'nowhere' here",
        "shop:other": "'shop' has no 'other'",
        "shop": "'shop' is a int, not a foliot.Worker",
        "": "does not look like module:worker",
        ".shop:worker": "does not look like module:worker",
        "shop:a.b": "does not look like module:worker",
        "shop:": "is a int",
    }.items():
        for command in ("worker", "up"):
            assert said in await lost(command, name, code=2)
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        load_app("broken:worker")
    with pytest.raises(AttributeError, match="of its own"):
        load_app("odd:worker")


async def test_an_application_is_found_in_the_folder(folder: Path):
    (folder / "good.py").write_text("from foliot import Worker\nworker = Worker()\nother = Worker(concurrency=7)\n")
    assert load_app("good").concurrency == 100
    assert load_app("good:other").concurrency == 7


async def test_a_process_without_its_database_says_so(folder: Path):
    async def run(command: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "foliot", command),
            env={"PATH": os.environ["PATH"]},
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await asyncio.wait_for(process.communicate(), 30)
        return process.returncode, said.decode()

    for code, said in await asyncio.gather(*map(run, ("api", "scheduler", "worker"))):
        assert code == 5
        assert "start `foliot up` in this folder" in said
        assert "Traceback" not in said
