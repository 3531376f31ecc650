"""`foliot migrate`, `foliot doctor`, `foliot tenant`: what operators do to the database."""

import asyncio
from collections.abc import Awaitable, Callable

import click

from foliot.cli.output import as_json, say, wants_json
from foliot.kit.settings import Settings
from foliot.store.database import Database


def with_database(settings: Settings, deed: Callable[[Database], Awaitable[None]]) -> None:
    from foliot.cli.compose import dsn_of

    async def run() -> None:
        database = await Database.open(dsn_of(settings), size=2)
        try:
            await deed(database)
        finally:
            await database.close()

    asyncio.run(run())


@click.command()
@click.pass_obj
def migrate(settings: Settings) -> None:
    """Bring the database to the schema of this release. Safe to run from several places at once."""
    from foliot.cli.compose import dsn_of
    from foliot.store import migrate as migrations

    applied = asyncio.run(migrations.migrate(dsn_of(settings)))
    say("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")


@click.command()
@wants_json
@click.pass_obj
def doctor(settings: Settings, json: bool) -> None:
    """Look at everything Foliot depends on and say what is wrong."""
    from foliot.cli.examine import examine

    findings = asyncio.run(examine(settings))
    if json:
        as_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            say(
                f"{'ok ' if finding.ok else 'BAD'} {finding.what}: {finding.detail}"
                + (f"\n    → {finding.hint}" if finding.hint else "")
            )
    if not all(finding.ok for finding in findings):
        raise click.exceptions.Exit(1)


@click.group()
def tenant() -> None:
    """Teams that own jobs."""


@tenant.command("create")
@click.argument("name")
@wants_json
@click.pass_obj
def create_tenant(settings: Settings, name: str, json: bool) -> None:
    """Create a tenant and its first key. The key is shown only now."""
    from foliot.services.tenants import Tenants

    async def create(database: Database) -> None:
        key = await Tenants(database).create(name)
        if json:
            as_json({"tenant": name, "key": key})
        else:
            say(f"created tenant {name}\nkey (shown only now): {key}")

    with_database(settings, create)
