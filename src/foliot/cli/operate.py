"""`foliot migrate`, `foliot doctor`, `foliot tenant`: what operators do to the database."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import click

from foliot.cli.output import as_json, say, wants_json
from foliot.domain.errors import FoliotError
from foliot.domain.limits import HIGHEST
from foliot.kit.settings import Settings
from foliot.store.database import Database


def with_database(settings: Settings, deed: Callable[[Database], Awaitable[None]]) -> None:
    """Do it with a database that can be reached and has the schema of this release."""
    from foliot.cli.compose import dsn_of
    from foliot.services.health import Health

    async def run() -> None:
        with _explained():
            database = await Database.open(dsn_of(settings), size=2)
        try:
            with _explained():
                await Health(database).check()
            await deed(database)
        finally:
            await database.close()

    asyncio.run(run())


@contextmanager
def _explained() -> Iterator[None]:
    """A database that cannot be used is a thing to say, not to trace back."""
    try:
        yield
    except FoliotError:
        raise
    except Exception as error:
        what = str(error) or type(error).__name__
        raise FoliotError(f"the database cannot be used: {what}", "check FOLIOT_DATABASE_URL and the server") from error


@click.command()
@click.option("--contract", is_flag=True, help="Also take away what only older releases need: when none of them runs.")
@wants_json
@click.pass_obj
def migrate(settings: Settings, contract: bool, json: bool) -> None:
    """Bring the database to the schema of this release. Safe to run from several places at once.

    Releases next to each other can run beside each other: migrate first, then replace the processes.
    """
    from foliot.cli.compose import dsn_of
    from foliot.store import migrate as migrations

    with _explained():
        applied = asyncio.run(migrations.migrate(dsn_of(settings), contract=contract))
    if json:
        as_json({"applied": applied})
    else:
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
                f"{finding.word} {finding.what}: {finding.detail}" + (f"\n    → {finding.hint}" if finding.hint else "")
            )
    if not all(finding.ok for finding in findings):
        raise click.exceptions.Exit(1)


may_serve = click.option(
    "--serve",
    "serves",
    multiple=True,
    metavar="QUEUE",
    help="Workers may fetch this queue's work with the key, of whichever tenant; '*' for every queue.",
)


@click.group()
def tenant() -> None:
    """Teams that own jobs."""


@tenant.command("create")
@click.argument("name")
@may_serve
@wants_json
@click.pass_obj
def create_tenant(settings: Settings, name: str, serves: tuple[str, ...], json: bool) -> None:
    """Create a tenant and its first key. The key is shown only now."""
    from foliot.services.tenants import Tenants

    async def create(database: Database) -> None:
        key = await Tenants(database).create(name, serves)
        if json:
            as_json({"tenant": name, "key": key})
        else:
            say(f"created tenant {name}\nkey (shown only now): {key}")

    with_database(settings, create)


@tenant.command("weight")
@click.argument("name")
@click.argument("weight", type=click.IntRange(1, 1000), required=False)
@wants_json
@click.pass_obj
def weigh_tenant(settings: Settings, name: str, weight: int | None, json: bool) -> None:
    """Set a tenant's share against the other tenants, from 1 to 1000; without WEIGHT, show it.

    A tenant of weight 3 gets three times what one of weight 1 gets while both have work. What is queued already is
    moved accordingly, by a scheduler.
    """
    from foliot.services.tenants import Tenants

    async def weigh(database: Database) -> None:
        tenants = Tenants(database)
        found = await (tenants.weight(name) if weight is None else tenants.set_weight(name, weight))
        if json:
            as_json({"tenant": name, "weight": found.weight, "moving": found.is_moving})
        else:
            moving = "; what is queued is being moved" if found.is_moving else ""
            say(f"tenant {name} weighs {found.weight}{moving}")

    with_database(settings, weigh)


@tenant.command("limit")
@click.argument("name")
@click.argument("limit", type=click.IntRange(1, HIGHEST), required=False)
@click.option("--off", is_flag=True, help="Take the limit away.")
@wants_json
@click.pass_obj
def limit_tenant(settings: Settings, name: str, limit: int | None, off: bool, json: bool) -> None:
    """Set how many runs of a tenant go at once, over all its jobs; without LIMIT, show it and how it stands.

    Whoever waits goes by the new limit at once. Runs that were ready or running before there was one are not counted.
    """
    from foliot.services.tenants import Tenants

    if off and limit is not None:
        raise click.UsageError("either LIMIT or --off")

    async def show(database: Database) -> None:
        tenants = Tenants(database)
        found = await (tenants.set_limit(name, limit) if off or limit else tenants.read(name))
        if json:
            as_json({"tenant": name, "limit": found.concurrency, "going": found.going, "waiting": found.waiting})
        elif found.concurrency is None:
            say(f"tenant {name} has no limit")
        else:
            say(f"tenant {name}: at most {found.concurrency:,} at once; {found.going:,} go, {found.waiting:,} wait")

    with_database(settings, show)


@click.group()
def key() -> None:
    """Keys that tenants and their workers call with."""


@key.command("create")
@click.argument("tenant")
@click.option("--label", default="", help="What it is for, to tell it from others.")
@may_serve
@wants_json
@click.pass_obj
def create_key(settings: Settings, tenant: str, label: str, serves: tuple[str, ...], json: bool) -> None:
    """Create another key of a tenant. It is shown only now."""
    from foliot.services.tenants import Tenants

    async def create(database: Database) -> None:
        made = await Tenants(database).issue_key(tenant, label, serves)
        if json:
            as_json({"tenant": tenant, "key": made})
        else:
            say(f"key of {tenant} (shown only now): {made}")

    with_database(settings, create)
