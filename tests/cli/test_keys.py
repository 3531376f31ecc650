"""`foliot key …` and `foliot tenant …`: beside the database, and from afar."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Shell
from foliot.services.tenants import Tenants
from sdk.serving import Served
from world import World


@pytest.fixture(params=["database", "api"])
def either(request: pytest.FixtureRequest, dsn: str) -> Shell:
    """A shell that has the database, and one that has nothing but a URL and an operator's key."""
    if request.param == "api":
        found: Shell = request.getfixturevalue("shell")
        return found
    request.getfixturevalue("world")
    return Shell({"FOLIOT_DATABASE_URL": dsn})


async def test_keys_are_made_listed_rotated_and_revoked(either: Shell, world: World):
    made = await either.json("key", "create", "acme", "--name", "ci", "--role", "viewer", "--expires", "P30D")
    owner = await Tenants(world.database).whose(made["key"])
    assert owner is not None
    assert (owner.name, owner.role) == ("acme", "viewer")
    said = await either("key", "list", "acme", COLUMNS="150")
    assert made["keyId"] in said
    assert made["key"] not in said
    assert "viewer" in said
    rotated = await either.json("key", "rotate", made["keyId"], "--overlap", "PT1H")
    assert rotated["former"]["keyId"] == made["keyId"]
    assert await Tenants(world.database).whose(rotated["key"]["key"])
    said = await either("key", "rotate", rotated["key"]["keyId"], code=1)
    assert "two keys called 'ci' are active already\n  → revoke the older one" in said
    assert "is revoked" in await either("key", "revoke", made["keyId"])
    assert await Tenants(world.database).whose(made["key"]) is None
    assert "(shown only now): fol_" in await either("key", "rotate", rotated["key"]["keyId"])
    assert [each["status"] for each in await either.json("key", "list", "acme", "--status", "revoked")] == ["revoked"]
    for words in (("revoke", "key_nothing"), ("rotate", "nonsense")):
        assert "there is no such key" in await either("key", *words, code=1)
    assert "no such tenant" in await either("key", "create", "nobody", code=1)
    assert "PT0S ends" in await either("key", "rotate", made["keyId"], "--overlap", "P1000D", code=1)


async def test_a_key_that_serves_is_a_workers_unless_said_otherwise(either: Shell):
    made: dict[str, Any] = await either.json("key", "create", "acme", "--serve", "mail")
    assert (made["role"], made["scopes"], made["serves"]) == ("worker", ["work"], ["mail"])
    made = await either.json("key", "create", "acme", "--role", "editor", "--scope", "jobs:write", "--serve", "*")
    assert (made["role"], made["scopes"], made["serves"]) == ("editor", ["jobs:write", "work"], ["*"])
    assert "scopes narrow a role" in await either(
        "key", "create", "acme", "--role", "viewer", "--scope", "jobs:write", code=1
    )


async def test_tenants_are_made_and_listed(either: Shell, world: World):
    made = await either.json("tenant", "create", "growth", "--role", "operator")
    assert (made["tenant"], made["role"]) == ("growth", "operator")
    assert "growth" in await either("tenant", "list")
    assert [each["tenant"] for each in await either.json("tenant", "list")] == ["acme", "growth"]
    assert "there is a tenant called 'growth' already" in await either("tenant", "create", "growth", code=1)


async def test_shares_and_limits_are_set_either_way(either: Shell):
    assert await either("tenant", "weight", "acme", "3") == "tenant acme weighs 3\n"
    assert (await either.json("tenant", "weight", "acme"))["weight"] == 3
    assert await either("tenant", "limit", "acme", "7") == "tenant acme: at most 7 at once; 0 go, 0 wait\n"
    assert (await either.json("tenant", "limit", "acme"))["limit"] == 7
    assert await either("tenant", "limit", "acme", "--off") == "tenant acme has no limit\n"


async def test_a_key_that_is_named_counts_also_where_a_local_foliot_is_known(foliot: Served, folder: Path):
    (folder / ".foliot").mkdir()
    (folder / ".foliot" / "client.json").write_text(json.dumps({"url": foliot.url, "key": "fol_local_x"}))
    assert "acme" in await Shell({"FOLIOT_KEY": foliot.key})("tenant", "list")
