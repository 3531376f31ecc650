"""Secrets and encryption over the API: written, listed, never told; switched on, rotated, noted."""

import msgspec
import pytest

from api.calling import Caller
from foliot.domain.access import AT_THE_DATABASE, NewKey, Role
from foliot.services.keys import Keys
from foliot.services.tenants import Tenants
from world import World

VALUE = "correct-horse-battery"


async def test_a_secret_is_kept_replaced_listed_and_deleted_and_never_told(world: World, api: Caller):
    made = await api("PUT", "/v1/secrets/api-key", {"value": VALUE})
    assert (made.status, made.json["name"], made.json["version"]) == (201, "api-key", 1)
    again = await api("PUT", "/v1/secrets/api-key", {"value": VALUE + "2"})
    assert (again.status, again.json["version"]) == (200, 2)
    answers = [made, again, await api.get("/v1/secrets"), await api.get("/v1/secrets/api-key")]
    assert [each["name"] for each in answers[2].json["items"]] == ["api-key"]
    assert {field for each in answers[2].json["items"] for field in each} == {"name", "version", "updatedAt"}
    answers.append(await api("DELETE", "/v1/secrets/api-key"))
    answers.append(await api.get("/v1/audit?subject=secret%20api-key"))
    assert [entry["action"] for entry in answers[-1].json["items"]] == ["deleteSecret", "putSecret", "putSecret"]
    assert (await api.get("/v1/secrets/api-key")).status == 404
    assert (await api("DELETE", "/v1/secrets/api-key")).status == 404
    assert not any(VALUE.encode() in each.content for each in answers)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a", {"value": ""}),
        ("a", {"value": "x" * 65_537}),
        ("a", {"value": "a\0b"}),
        ("a", {"value": 7}),
        ("a", {"value": "x", "more": 1}),
        ("-a", {"value": "hunter2"}),
        ("a%20b", {"value": "hunter2"}),
        ("x" * 101, {"value": "hunter2"}),
    ],
)
async def test_what_is_no_secret_is_refused_without_repeating_it(api: Caller, name: str, body: dict):
    refused = await api("PUT", f"/v1/secrets/{name}", body)
    assert refused.status == 422
    assert b"hunter2" not in refused.content


async def test_tenants_have_secrets_of_their_own(world: World, api: Caller, stranger: Caller):
    await api("PUT", "/v1/secrets/shared-name", {"value": VALUE})
    assert (await stranger.get("/v1/secrets/shared-name")).status == 404
    assert (await stranger.get("/v1/secrets")).json["items"] == []
    assert (await stranger("PUT", "/v1/secrets/shared-name", {"value": "other"})).json["version"] == 1
    assert (await api.get("/v1/secrets/shared-name")).json["version"] == 1


async def test_editors_neither_see_nor_write_secrets(world: World, api: Caller):
    key = (await Keys(world.database).create(AT_THE_DATABASE, NewKey("e", Role.EDITOR), "acme")).key
    editor = Caller(api.app, key)
    assert (await editor("PUT", "/v1/secrets/a", {"value": VALUE})).status == 403
    assert (await editor.get("/v1/secrets")).status == 403
    assert (await editor("PUT", "/v1/encryption", {"enabled": True})).status == 403


async def test_encryption_is_switched_on_rotated_and_off_and_the_trail_tells(world: World, api: Caller):
    assert (await api.get("/v1/encryption")).json["enabled"] is False
    on = (await api("PUT", "/v1/encryption", {"enabled": True})).json
    assert (on["enabled"], on["keyVersion"]) == (True, 1)
    operation = (await api.get(f"/v1/operations/{on['operationId']}")).json
    assert (operation["kind"], operation["status"]) == ("reencrypt", "pending")
    assert (await api("PUT", "/v1/encryption", {"enabled": True})).json["operationId"] is None
    turned = (await api.post("/v1/encryption:rotate")).json
    assert turned["keyVersion"] == 2
    assert (await api.get(f"/v1/operations/{on['operationId']}")).json["status"] == "cancelled"
    off = (await api("PUT", "/v1/encryption", {"enabled": False})).json
    assert (off["enabled"], off["keyVersion"]) == (False, 2)
    noted = (await api.get("/v1/audit?subject=encryption%20acme")).json["items"]
    assert [(each["before"], each["after"]) for each in noted] == [
        ({"keyVersion": 2}, {"keyVersion": None}),
        ({"keyVersion": 1}, {"keyVersion": 2}),
        ({"keyVersion": None}, {"keyVersion": 1}),
    ]


async def test_an_admin_switches_its_own_tenant_and_an_operator_any(world: World, api: Caller, stranger: Caller):
    assert (await stranger("PUT", "/v1/encryption", {"enabled": True, "tenant": "acme"})).status == 404
    assert (await stranger("PUT", "/v1/encryption", {"enabled": True})).json["tenant"] == "rival"
    assert (await api.get("/v1/encryption?tenant=rival")).json["enabled"] is True
    assert (await api.post("/v1/encryption:rotate", {"tenant": "rival"})).json["keyVersion"] == 2


async def test_references_stand_in_headers_and_variables(api: Caller):
    headers = {"Authorization": {"$secret": "bearer"}, "X-Plain": "yes"}
    handler = {"type": "http", "url": "https://example.com/", "headers": headers}
    job = await api.post("/v1/jobs", {"name": "calls", "handler": handler, "payload": {"k": {"$secret": "a"}}})
    assert job.json["handler"]["headers"] == headers
    assert job.json["payload"] == {"k": {"$secret": "a"}}
    bad = {**handler, "headers": {"Authorization": {"$secret": "-"}}}
    refused = await api.post("/v1/jobs", {"name": "calls", "handler": bad})
    assert refused.json["errors"][0]["field"] == "handler.headers"
    assert (
        await api.post("/v1/runs", {"handler": {**handler, "headers": {"A": {"$secret": "b", "c": 1}}}})
    ).status == 422


async def test_in_the_role_of_the_api_secrets_are_written_and_bound(world: World, guarded: Caller):
    rival = Caller(guarded.app, await Tenants(world.database).create("rival"))
    assert (await guarded("PUT", "/v1/secrets/a", {"value": VALUE})).status == 201
    assert (await rival.get("/v1/secrets")).json["items"] == []
    assert [each["name"] for each in (await guarded.get("/v1/secrets")).json["items"]] == ["a"]
    assert await world.vault.secrets(world.tenant, ["a"]) == {"a": VALUE}
    assert VALUE not in msgspec.json.encode((await guarded.get("/v1/secrets")).json).decode()
