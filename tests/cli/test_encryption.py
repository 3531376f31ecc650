"""`foliot secret …`, `foliot encryption …`, and what a process says whose master key is not the right one."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from cli.conftest import Shell
from foliot.cli.compose import CannotStart, master_of, open_vault
from foliot.cli.main import main
from foliot.kit.master import new_master_text
from foliot.kit.settings import Settings
from world import MASTER, World

KEY = bytes(range(32)).hex()
"""The master key of the world of tests."""


@pytest.fixture
def at_database(dsn: str, world: World) -> Shell:
    return Shell({"FOLIOT_DATABASE_URL": dsn, "FOLIOT_MASTER_KEY": KEY})


async def test_a_secret_comes_from_standard_input_and_is_never_shown(shell: Shell, world: World):
    def typed(text: str) -> str:
        return CliRunner().invoke(main, ["secret", "set", "token"], input=text, env=shell.environment).output

    assert "version 1" in await asyncio.to_thread(typed, "hunter2-and-more\n")
    assert await world.vault.secrets(world.tenant, ["token"]) == {"token": "hunter2-and-more"}
    assert "is empty" in await asyncio.to_thread(typed, "")
    listed = await shell("secret", "list")
    assert "token" in listed
    assert "hunter2" not in listed
    assert (await shell.json("secret", "list"))["items"][0]["version"] == 1
    assert "deleted token" in await shell("secret", "delete", "token")
    assert "there is no such secret" in await shell("secret", "delete", "token", code=1)
    assert "foliot secret set" in await shell("secret", "list")


async def test_encryption_is_switched_and_rotated_beside_the_database_and_over_the_api(
    at_database: Shell, shell: Shell, world: World
):
    assert "no tenant has a data key" in await at_database("encryption", "status")
    assert "key version 1" in await at_database("encryption", "on", "acme")
    assert "op_" in await shell("encryption", "rotate", "acme")
    rows = (await at_database.json("encryption", "status"))["items"]
    assert [(row["tenant"], row["keyVersion"], row["masterKeys"]) for row in rows] == [("acme", 2, [MASTER.current])]
    assert "encrypted" in await shell("encryption", "status")
    assert "not encrypted" in await shell("encryption", "off", "acme")
    assert "name a tenant, or --master" in await at_database("encryption", "rotate", code=2)
    new = new_master_text()
    both = Shell({**at_database.environment, "FOLIOT_MASTER_KEY": f"{new} {KEY}"})
    assert await both.json("encryption", "rotate", "--master") == {"rewrapped": 2}
    said = await at_database("encryption", "on", "acme", code=1)
    assert "this database needs the master key mk_" in said
    assert MASTER.current in said
    assert "no such tenant" in await both("encryption", "on", "nobody", code=1)


async def test_no_process_starts_with_another_master_key_than_the_databases(world: World, dsn: str, tmp_path: Path):
    await world.secrets.put(world.tenant, "a", "b")
    right = {"FOLIOT_DATABASE_URL": dsn, "FOLIOT_MASTER_KEY": KEY}
    assert (await open_vault(world.database, Settings.read(right))).master is not None
    for wrong in ({}, {"FOLIOT_MASTER_KEY": new_master_text()}):
        with pytest.raises(CannotStart, match=MASTER.current):
            await open_vault(world.database, Settings.read({"FOLIOT_DATABASE_URL": dsn, **wrong}))
    for file, content in (("none", None), ("short", "abc"), ("empty", "")):
        path = tmp_path / file
        if content is not None:
            path.write_text(content)
        with pytest.raises(CannotStart, match="the master key cannot be used"):
            master_of(Settings.read({"FOLIOT_MASTER_KEY_FILE": str(path)}))


async def test_the_doctor_opens_the_canary_and_looks_for_plain_text(at_database: Shell, world: World):
    async def found() -> dict[str, Any]:
        said = await at_database.result("doctor", "--json")
        return next(each for each in msgspec.json.decode(said.stdout) if each["what"] == "encryption")

    assert (await found())["ok"]
    await world.job()
    await at_database("encryption", "on", "acme")
    assert not (await found())["ok"]  # what was stored waits for a scheduler
    assert "not" in (await found())["detail"]
    await world.sql("DELETE FROM job")
    assert MASTER.current in (await found())["detail"]
    for delay in (None, timedelta(days=1)):  # what waits to run lies in tables of its own
        await world.submit(delay=delay)
        assert "1 of 1 payloads" in (await found())["detail"]
        await world.sql(f"DELETE FROM {'run' if delay is None else 'timer'} WHERE id > 0")
