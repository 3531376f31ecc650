"""`foliot secret …`: what runs may use and nobody can read."""

import sys

import click

from foliot.cli.output import Column, as_json, say, table, wants_json
from foliot.domain.errors import InvalidField
from foliot.sdk.client import Foliot

_COLUMNS = (Column("name", "SECRET", shrinks=True), Column("version", "VERSION"), Column("updatedAt", "CHANGED"))


@click.group()
def secret() -> None:
    """What runs refer to as {"$secret": NAME}, and nobody can read."""


@secret.command("set")
@click.argument("name")
@wants_json
def set_secret(name: str, json: bool) -> None:
    """Keep a secret, or another value of it: from standard input, or asked for. Never as an argument."""
    kept = Foliot().set_secret(name, _value()).values
    if json:
        as_json(kept)
    else:
        say(f'{kept["name"]} has version {kept["version"]}; refer to it as {{"$secret": "{kept["name"]}"}}')


@secret.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", help="From where the page before ended.")
@wants_json
def list_secrets(limit: int, cursor: str | None, json: bool) -> None:
    """List secrets by name: their versions, never what they are."""
    found = Foliot().secrets(limit=limit, cursor=cursor)
    rows = [each.values for each in found]
    if json:
        as_json({"items": rows, "nextCursor": found.next_cursor})
    else:
        table(rows, _COLUMNS, empty="no secrets: `foliot secret set NAME` keeps one")


@secret.command("delete")
@click.argument("name")
@wants_json
def delete_secret(name: str, json: bool) -> None:
    """Delete a secret. Runs that refer to it fail from now on."""
    gone = Foliot().delete_secret(name).values
    if json:
        as_json(gone)
    else:
        say(f"deleted {gone['name']}")


def _value() -> str:
    """One newline at the end is the shell's, and no part of it."""
    if sys.stdin.isatty():
        return str(click.prompt("value", hide_input=True, confirmation_prompt=True))
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidField(
            "value", "is not text", "encode it, for example: base64 -w0 FILE | foliot secret set NAME"
        ) from None
