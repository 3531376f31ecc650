"""`foliot migrate`, `foliot doctor`: what operators do to the database."""

import asyncio
import getpass
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import click

from foliot.cli.failing import NoDatabase
from foliot.cli.output import as_json, say, wants_json
from foliot.domain.audit import NOBODY
from foliot.domain.errors import FoliotError, Unavailable
from foliot.kit.settings import Settings
from foliot.store.audit import DOING, Deed
from foliot.store.database import Database
from foliot.store.recovery import Refused


def with_database(settings: Settings, deed: Callable[[Database], Awaitable[None]]) -> None:
    """Do it with a database that can be reached and has the schema of this release."""
    from foliot.cli.compose import dsn_of
    from foliot.services.health import Health

    async def run() -> None:
        DOING.set(deed_here(_typed(click.get_current_context())))
        with _explained():
            try:
                database = await Database.open(dsn_of(settings), size=2)
            except (Unavailable, Refused) as error:
                raise NoDatabase(error.message, error.hint) from None
        try:
            with _explained():
                await Health(database).check()
            await deed(database)
        finally:
            await database.close()

    asyncio.run(run())


def deed_here(action: str) -> Deed:
    """Who does this beside the database, for the audit trail: as far as the machine knows."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    return Deed(NOBODY, f"{user}@{socket.gethostname()}", None, None, None, action)


def _typed(context: click.Context) -> str:
    """The words of the command, however `foliot` itself was called."""
    above = "" if context.parent is None or context.parent.parent is None else _typed(context.parent) + " "
    return f"{above}{context.info_name}"


@contextmanager
def _explained() -> Iterator[None]:
    """A database that cannot be used is a thing to say, not to trace back."""
    try:
        yield
    except FoliotError:
        raise
    except Exception as error:
        what = str(error) or type(error).__name__
        raise NoDatabase(f"the database cannot be used: {what}", "check FOLIOT_DATABASE_URL and the server") from error


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
        applied = asyncio.run(migrations.migrate(dsn_of(settings), contract=contract, tell=_tell))
    if json:
        as_json({"applied": applied})
    else:
        say("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")


def _tell(name: str, number: int, count: int) -> None:
    """Which migration is under way, for whoever watches: with a large database one may take its time."""
    if sys.stderr.isatty():
        click.echo(f"{number}/{count} {name} …", err=True)


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
