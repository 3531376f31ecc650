"""`foliot key …`: who may call, with what, and until when."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import click
import msgspec

from foliot.cli.naming import KEY, TENANT
from foliot.cli.operate import with_database
from foliot.cli.output import Column, as_json, instant, say, table, wants_json
from foliot.domain.access import AT_THE_DATABASE, Role, Scope
from foliot.kit.settings import Settings
from foliot.sdk.client import Foliot
from foliot.store.database import Database
from foliot.wire.keys import KeyBody, life_of, new_key, overlap_of

_COLUMNS = (
    Column("keyId", "KEY"),
    Column("name", "NAME", shrinks=True),
    Column("tenant", "TENANT", shrinks=True, optional=True),
    Column("role", "ROLE"),
    Column("status", "STATUS"),
    Column("lastUsedAt", "LAST USED"),
    Column("expiresAt", "EXPIRES", optional=True),
    Column("queues", "SERVES", shrinks=True, optional=True),
)


def through(settings: Settings, remotely: Callable[[Foliot], Any], here: Callable[[Database], Awaitable[Any]]) -> Any:
    """Do it in the database, or over the API; its answer.

    Whoever names a key means what that key may do: FOLIOT_DATABASE_URL alone comes before FOLIOT_KEY, and the database
    of a local `foliot up` after it.
    """
    if settings.database_url is None and os.environ.get("FOLIOT_KEY"):
        return remotely(Foliot())
    found: list[Any] = []

    async def deed(database: Database) -> None:
        found.append(msgspec.to_builtins(await here(database)))

    with_database(settings, deed)
    return found[0]


def show_new(made: dict[str, Any], json: bool) -> None:
    if json:
        as_json(made)
        return
    until = "" if made["expiresAt"] is None else f", until {instant(made['expiresAt'])} UTC"
    say(f"key of {made['tenant']} (shown only now): {made['key']}")
    say(f"{made['keyId']} {made['name']!r} has the role {made['role']}{until}")


may_serve = click.option(
    "--serve",
    "serves",
    multiple=True,
    metavar="QUEUE",
    help="Workers may fetch this queue's work with the key, of whichever tenant; '*' for every queue.",
)
expires = click.option("--expires", metavar="DURATION", help="The key expires after this, for example P90D.")


@click.group()
def key() -> None:
    """Keys that tenants and their workers call with."""


@key.command("create")
@click.argument("tenant", type=TENANT)
@click.option("--name", default="key", show_default=True, help="What it is for; two of a name are active at most.")
@click.option(
    "--role",
    type=click.Choice([each.value for each in Role]),
    help="What it may do. Without, editor; or worker, if it serves queues.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([each.value for each in Scope if each is not Scope.WORK]),
    help="Of what the role may do only this (may be given several times).",
)
@may_serve
@expires
@wants_json
@click.pass_obj
def create_key(
    settings: Settings,
    tenant: str,
    name: str,
    role: str | None,
    scopes: tuple[str, ...],
    serves: tuple[str, ...],
    expires: str | None,
    json: bool,
) -> None:
    """Create another key of a tenant. It is shown only now."""
    from foliot.services.keys import Keys

    role = role or (Role.WORKER if serves else Role.EDITOR)
    only = [*scopes] or None
    body = KeyBody(name=name, role=role, scopes=only, serves=[*serves], expires_in=expires, tenant=tenant)

    def remotely(client: Foliot) -> dict[str, Any]:
        fields = {"scopes": only, "serves": [*serves] or None, "expires_in": expires, "tenant": tenant}
        return client.create_key(name, role=role, **fields).values

    made = through(settings, remotely, lambda database: Keys(database).create(AT_THE_DATABASE, new_key(body), tenant))
    show_new(made, json)


@key.command("list")
@click.argument("tenant", required=False, type=TENANT)
@click.option("--status", type=click.Choice(["active", "expired", "revoked"]), help="Only those.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
@click.pass_obj
def list_keys(settings: Settings, tenant: str | None, status: str | None, limit: int, json: bool) -> None:
    """List keys, newest first: of TENANT, of all where the database is at hand, else of one's own."""
    from foliot.services.keys import Keys

    def remotely(client: Foliot) -> dict[str, Any]:
        found = client.keys(tenant=tenant, status=status, limit=limit)
        return {"items": [each.values for each in found], "nextCursor": found.next_cursor}

    def here(database: Database) -> Awaitable[Any]:
        return Keys(database).page(AT_THE_DATABASE, tenant=tenant, status=status, limit=limit)

    found = through(settings, remotely, here)
    if json:
        as_json(found["items"])
        return
    rows = [{**each, "queues": ", ".join(each["serves"]) or None} for each in found["items"]]
    table(rows, _COLUMNS, empty="no keys")
    if found["nextCursor"]:
        say(f"… the first {len(rows)}; --limit shows up to 500")


@key.command("revoke")
@click.argument("key_id", metavar="KEY", type=KEY)
@wants_json
@click.pass_obj
def revoke_key(settings: Settings, key_id: str, json: bool) -> None:
    """Revoke a key, named by its id (`key_…`): within 5 seconds it opens nothing any more."""
    from foliot.services.keys import Keys

    revoked = through(
        settings,
        lambda client: client.revoke_key(key_id).values,
        lambda database: Keys(database).revoke(AT_THE_DATABASE, key_id),
    )
    if json:
        as_json(revoked)
    else:
        say(f"{revoked['keyId']} {revoked['name']!r} of {revoked['tenant']} is revoked")


@key.command("rotate")
@click.argument("key_id", metavar="KEY", type=KEY)
@click.option(
    "--overlap", default="P1D", show_default=True, metavar="DURATION", help="How long the former one goes on."
)
@expires
@wants_json
@click.pass_obj
def rotate_key(settings: Settings, key_id: str, overlap: str, expires: str | None, json: bool) -> None:
    """Create a key that may do the same as KEY, which ends after a while. The new one is shown only now."""
    from foliot.services.keys import Keys

    span, life = overlap_of(overlap), life_of(expires)
    rotated = through(
        settings,
        lambda client: client.rotate_key(key_id, overlap=overlap, expires_in=expires).values,
        lambda database: Keys(database).rotate(AT_THE_DATABASE, key_id, overlap=span, life=life),
    )
    if json:
        as_json(rotated)
        return
    show_new(rotated["key"], json=False)
    say(f"{rotated['former']['keyId']}, the former one, ends at {instant(rotated['former']['expiresAt'])} UTC")
