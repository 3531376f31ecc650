"""Which way a worker takes to its work, and the keys that let it."""

import json
import socket
from pathlib import Path

import pytest

from cli.conftest import Shell
from foliot.cli.failing import NoDatabase
from foliot.cli.home import introduce
from foliot.cli.looking import open_looking
from foliot.cli.reaching import Reach, _dsn, gateway_of
from foliot.kit.settings import Access, Settings, find_access
from foliot.sdk import NotConfigured
from foliot.services.tenants import Tenants
from foliot.store.fleet import About, Load
from foliot.store.recovery import Refused
from foliot.worker.gateway import HttpCarrier, open_gateway_session
from sdk.serving import served
from world import World

KEY = "fol_aaaaaaaaaaaa_" + "b" * 43
THERE = {"FOLIOT_URL": "https://foliot.example", "FOLIOT_KEY": KEY}
DATABASE = {"FOLIOT_DATABASE_URL": "postgresql://db.example/foliot"}


@pytest.mark.parametrize(
    ("environment", "reach", "url"),
    [
        (THERE, Reach(), "https://foliot.example"),
        (DATABASE, Reach(), None),
        ({**THERE, **DATABASE}, Reach(), None),
        ({**THERE, **DATABASE}, Reach(gateway=True), "https://foliot.example"),
        ({**THERE, **DATABASE}, Reach(url="https://other.example/"), "https://other.example"),
        ({"FOLIOT_URL": "https://foliot.example"}, Reach(), None),
        ({}, Reach(), None),
    ],
)
def test_the_way_to_work(
    environment: dict[str, str], reach: Reach, url: str | None, monkeypatch: pytest.MonkeyPatch, folder: Path
):
    for name in ("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_DATABASE_URL", "FOLIOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = gateway_of(Settings.read(environment), reach)
    assert (found and found.url) == url
    assert found is None or found.key == KEY


def test_who_knows_no_way_is_told_all_of_them(monkeypatch: pytest.MonkeyPatch, folder: Path):
    for name in ("FOLIOT_URL", "FOLIOT_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoDatabase) as refused:
        _dsn(Settings.read({}))
    for way in ("FOLIOT_DATABASE_URL", "FOLIOT_KEY", "foliot up"):
        assert way in refused.value.hint
    with pytest.raises(NotConfigured):
        gateway_of(Settings.read({}), Reach(gateway=True))


async def test_how_many_processes_it_takes_is_told_alike_by_the_database_and_the_gateway(world: World, dsn: str):
    settings = Settings.read({"FOLIOT_DATABASE_URL": dsn})
    async with served(world) as foliot, open_gateway_session() as session:
        access = Access(foliot.url, foliot.key)
        carrier = HttpCarrier(session, access, 5, "w", About(socket.gethostname(), 4711))
        lanes = await carrier.register(["default"], ["fn:noop"])
        await carrier.beat(Load(dict.fromkeys(lanes, 1)))
        await world.submit(2)
        for gateway in (access, None):
            async with open_looking(settings, gateway) as looking:
                assert await looking([4711]) == (1, 2)
                assert await looking([4712]) == (0, 0)
        async with open_looking(settings, Access(foliot.url, KEY)) as looking:
            with pytest.raises(Refused, match="401"):
                await looking([4711])


async def test_keys_serve_what_the_operator_says_and_nothing_else(lost: Shell, world: World, dsn: str):
    tenants = Tenants(world.database)

    async def serves(*words: str) -> list[str]:
        made = json.loads(await lost(*words, "--json", FOLIOT_DATABASE_URL=dsn))
        owner = await tenants.whose(made["key"])
        assert owner is not None
        return list(owner.serves)

    assert await serves("tenant", "create", "growth") == []
    assert await serves("tenant", "create", "sales", "--serve", "mail", "--serve", "default") == ["mail", "default"]
    assert await serves("key", "create", "growth", "--serve", "*") == ["*"]
    assert await serves("key", "create", "growth", "--name", "laptop") == []
    assert "shown only now" in await lost("key", "create", "growth", FOLIOT_DATABASE_URL=dsn)
    said = await lost("key", "create", "nobody", code=1, FOLIOT_DATABASE_URL=dsn)
    assert "no such tenant" in said


async def test_the_key_of_foliot_up_serves_every_queue_also_one_of_before(world: World, folder: Path):
    await introduce(folder, "http://127.0.0.1:7070", Tenants(world.database))
    access = find_access({"FOLIOT_HOME": str(folder)})
    assert access is not None
    await world.sql("UPDATE api_key SET serves = NULL")
    for _ in range(2):
        await introduce(folder, "http://127.0.0.1:7070", Tenants(world.database))
    owner = await Tenants(world.database).whose(access.key)
    assert owner is not None
    assert owner.serves == ["*"]
    told = await world.sql("SELECT actor, action, subject, after FROM audit ORDER BY id")
    name = f"key_{owner.key}"
    assert [row["subject"] for row in told] == ["tenant dev", name, name], "its keys are made and changed by somebody"
    assert {(socket.gethostname() in row["actor"], row["action"]) for row in told} == {(True, "up")}
    (folder / "client.json").unlink()
    await introduce(folder, "http://127.0.0.1:7070", Tenants(world.database))
    (made,) = await world.sql("SELECT subject FROM audit WHERE after LIKE '%foliot up at%'")
    assert made["subject"] != name
