"""`foliot`: the commands, each in a file of its own, loaded when used."""

import importlib
import os
from typing import Any, Final

import click

from foliot import __version__
from foliot.cli.contents import list_commands
from foliot.cli.examples import with_examples
from foliot.domain.errors import FoliotError
from foliot.kit.settings import Settings

COMMANDS: Final = {
    "up": "foliot.cli.up:up",
    "api": "foliot.cli.processes:api",
    "scheduler": "foliot.cli.processes:scheduler",
    "worker": "foliot.cli.workers:worker",
    "migrate": "foliot.cli.operate:migrate",
    "doctor": "foliot.cli.operate:doctor",
    "tenant": "foliot.cli.quotas:tenant",
    "key": "foliot.cli.quotas:key",
    "secret": "foliot.cli.secrets:secret",
    "encryption": "foliot.cli.encryption:encryption",
    "bench": "foliot.cli.bench:bench",
    "job": "foliot.cli.jobs:job",
    "run": "foliot.cli.runs:run",
    "dead": "foliot.cli.dead:dead",
    "gaps": "foliot.cli.ledger:gaps",
    "schedule": "foliot.cli.schedules:schedule",
    "operation": "foliot.cli.operations:operation",
    "calendar": "foliot.cli.calendars:calendar",
    "queue": "foliot.cli.queues:queue",
    "audit": "foliot.cli.audit:audit",
    "apply": "foliot.cli.apply:apply",
    "top": "foliot.cli.top:top",
    "completion": "foliot.cli.completion:completion",
}

WORDS: Final = "foliot.words"
"""Where the context keeps what was typed after `foliot`."""


class _Lazy(click.Group):
    """Imports a command when it is asked for: `foliot job list` need not load a web server."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(importlib.import_module(module), name)
        return with_examples(cmd_name, found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        ctx.meta[WORDS] = tuple(args)
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click looks for the nearest among those that are loaded
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FoliotError as error:
            from foliot.cli.failing import Failed, typed

            raise Failed(error, typed(self, ctx, ctx.meta.get(WORDS, ()))) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise  # click says it, and knows what a closed pipe is
        except Exception as error:
            if ctx.obj is not None and ctx.obj.log_level == "debug":
                raise
            from foliot.cli.failing import Failed, unexpected

            raise Failed(unexpected(error)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        list_commands(self, ctx, formatter)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="foliot")
@click.pass_context
def main(context: click.Context) -> None:
    """Foliot runs jobs now, at an instant, or on a schedule, and loses none of them.

    Start with `foliot up`; it prints what to do next.
    """
    try:
        context.obj = Settings.read(os.environ)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
