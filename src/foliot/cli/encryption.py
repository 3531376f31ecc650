"""`foliot encryption …`: payloads at rest, and the keys that keep them."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from foliot.cli.keys import through
from foliot.cli.operate import with_database
from foliot.cli.output import Column, as_json, say, table, wants_json
from foliot.domain.access import AT_THE_DATABASE
from foliot.kit.settings import Settings
from foliot.services.encryption import Encryption
from foliot.store.database import Database

_COLUMNS = (
    Column("tenant", "TENANT", shrinks=True),
    Column("state", "PAYLOADS"),
    Column("keyVersion", "KEY VERSION"),
    Column("masters", "MASTER KEYS", shrinks=True),
)
_Deed = Callable[[Encryption], Awaitable[Any]]


@click.group()
def encryption() -> None:
    """Payloads, results and errors, encrypted tenant by tenant; and the keys."""


def _at_database(settings: Settings, deed: _Deed) -> Callable[[Database], Awaitable[Any]]:
    from foliot.cli.compose import vault_of

    async def here(database: Database) -> Any:
        return await deed(Encryption(database, await vault_of(database, settings)))

    return here


@encryption.command("on")
@click.argument("tenant")
@wants_json
@click.pass_obj
def switch_on(settings: Settings, tenant: str, json: bool) -> None:
    """Encrypt what TENANT writes from now on, and in the background what it has stored."""
    _switch(settings, tenant, json, enabled=True)


@encryption.command("off")
@click.argument("tenant")
@wants_json
@click.pass_obj
def switch_off(settings: Settings, tenant: str, json: bool) -> None:
    """Encrypt no more of what TENANT writes. What is encrypted stays so, and readable."""
    _switch(settings, tenant, json, enabled=False)


def _switch(settings: Settings, tenant: str, json: bool, *, enabled: bool) -> None:
    here = _at_database(settings, lambda each: each.switch(AT_THE_DATABASE, tenant, enabled=enabled))
    _show(through(settings, lambda client: client.switch_encryption(enabled=enabled, tenant=tenant).values, here), json)


@encryption.command("rotate")
@click.argument("tenant", required=False)
@click.option(
    "--master", is_flag=True, help="Wrap the keys of all tenants with the first key of FOLIOT_MASTER_KEY_FILE."
)
@wants_json
@click.pass_obj
def rotate(settings: Settings, tenant: str | None, master: bool, json: bool) -> None:
    """Give TENANT a new data key; or, with --master, wrap every data key with the new master key."""
    if master is (tenant is not None):
        raise click.UsageError("name a tenant, or --master")
    if tenant is not None:
        here = _at_database(settings, lambda each: each.rotate(AT_THE_DATABASE, tenant))
        _show(through(settings, lambda client: client.rotate_encryption(tenant).values, here), json)
        return
    changed: list[int] = []

    async def rewrap(database: Database) -> None:
        deed = _at_database(settings, lambda each: each.rewrap())
        changed.append(await deed(database))

    with_database(settings, rewrap)
    if json:
        as_json({"rewrapped": changed[0]})
    else:
        say(f"wrapped {changed[0]} data keys anew")
        say("the former master key is needed no more once all processes have the new one")


@encryption.command("status")
@wants_json
@click.pass_obj
def status(settings: Settings, json: bool) -> None:
    """Which tenants' payloads are encrypted; over the API, whether one's own are."""
    from foliot.services.encryption import view
    from foliot.store.keyring import how_sealed

    async def here(database: Database) -> Any:
        return [view(row.name, row) for row in await how_sealed(database)]

    rows = through(settings, lambda client: [client.get_encryption().values], here)
    if json:
        as_json({"items": rows})
        return
    for row in rows:
        row["state"] = "encrypted" if row["enabled"] else "plain"
        row["masters"] = ", ".join(row["masterKeys"])
    table(rows, _COLUMNS, empty="no tenant has a data key: `foliot encryption on TENANT` makes one")


def _show(found: dict[str, Any], json: bool) -> None:
    if json:
        as_json(found)
        return
    how = f"encrypted, key version {found['keyVersion']}" if found["enabled"] else "not encrypted"
    say(f"payloads of {found['tenant']} are {how}")
    if found["operationId"] is not None:
        say(f"what is stored follows in the background: `foliot operation get {found['operationId']}`")
