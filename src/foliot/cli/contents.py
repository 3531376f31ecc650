"""What `foliot --help` lists: known here, so that no command has to be loaded for it."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

import click

SECTIONS: Final = MappingProxyType(
    {
        "Run Foliot": {
            "up": "everything on this machine: database, API, scheduler, worker",
            "api": "the REST API; any number may run",
            "scheduler": "fires schedules and looks after the rest; any number may run",
            "worker": "runs handlers; list and drain workers",
            "migrate": "bring a database to the schema of this release",
            "doctor": "look at everything Foliot depends on, and say what is wrong",
            "top": "watch queues, workers and what runs",
            "bench": "how fast this machine runs Foliot",
        },
        "Jobs and runs": {
            "job": "create, look at, change, run, pause, back-fill, delete",
            "apply": "make jobs what files declare, with a diff",
            "run": "submit, look at, explain, cancel and retry runs",
            "dead": "runs that have failed for good: look, replay, discard",
            "operation": "how far back-fills and replays are",
            "schedule": "when something would fire",
            "calendar": "holidays, blackouts and business days",
            "gaps": "fire times that jobs went without",
            "queue": "what waits where; pause and resume",
        },
        "Teams": {
            "tenant": "teams, their shares and limits",
            "key": "create, list, rotate and revoke keys",
            "secret": "values that handlers get and nobody reads",
            "encryption": "whether payloads are encrypted, and their keys",
            "audit": "who changed what; prove that nobody changed the trail",
        },
        "Shell": {"completion": "what bash, zsh and fish need to complete all this"},
    }
)


def list_commands(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the commands by what they are for; those that no section has come last."""
    names = group.list_commands(context)
    known = {name for section in SECTIONS.values() for name in section}
    for title, section in SECTIONS.items():
        _write(formatter, title, ((name, said) for name, said in section.items() if name in names))
    _write(formatter, "More", ((name, _said(group, context, name)) for name in names if name not in known))


def _write(formatter: click.HelpFormatter, title: str, rows: Iterator[tuple[str, str]]) -> None:
    if found := list(rows):
        with formatter.section(title):
            formatter.write_dl(found)


def _said(group: click.Group, context: click.Context, name: str) -> str:
    command = group.get_command(context, name)
    return "" if command is None else command.get_short_help_str(limit=80)
