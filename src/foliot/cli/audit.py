"""`foliot audit …`: who changed what, and the proof that nobody changed the trail."""

from typing import Any

import click

from foliot.cli.output import Column, as_json, record, say, table, wants_json
from foliot.kit.settings import Settings
from foliot.sdk.client import Foliot
from foliot.store.database import Database

_COLUMNS = (
    Column("at", "AT"),
    Column("actor", "ACTOR", shrinks=True),
    Column("action", "ACTION"),
    Column("subject", "SUBJECT", shrinks=True),
    Column("outcome", "OUTCOME"),
    Column("ip", "FROM", optional=True),
    Column("keyId", "KEY", optional=True),
)
_SOUGHT = ("tenant", "subject", "action", "actor", "key", "ip", "request", "outcome", "since", "until")


@click.group()
def audit() -> None:
    """Who changed what, and who was turned away."""


@audit.command("list")
@click.option("--tenant", help="For operators: of this tenant; - for callers without a valid key.")
@click.option("--subject", help="Of this thing: a job's id, 'calendar NAME', 'queue NAME'.")
@click.option("--action", help="Of this operation, such as pauseJob.")
@click.option("--actor", help="By this tenant's keys.")
@click.option("--key", help="With this key.")
@click.option("--ip", help="From this address.")
@click.option("--request", help="Of this request.")
@click.option("--outcome", type=click.Choice(["done", "denied"]), help="What was done, or what was denied.")
@click.option("--since", metavar="INSTANT", help="From this instant on.")
@click.option("--until", metavar="INSTANT", help="Before this instant.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_entries(limit: int, json: bool, **sought: Any) -> None:
    """List changes and denied attempts, newest first; --json shows what was before and after."""
    found = Foliot().audit(limit=limit, **{name: sought[name] for name in _SOUGHT if sought[name] is not None})
    if json:
        as_json([each.values for each in found])
        return
    table([each.values for each in found], _COLUMNS, empty="nothing of that kind is noted")
    if found.next_cursor:
        say(f"… the newest {len(found)}; narrow it down, or --limit shows up to 500")


@audit.command("verify")
@wants_json
@click.pass_obj
def verify(settings: Settings, json: bool) -> None:
    """Read the whole trail and prove it: each entry is what was sealed, each chain what was signed.

    Needs the database; with FOLIOT_OBJECTS and FOLIOT_AUDIT_KEY_FILE, or beside a `foliot up`, the signed checkpoints
    too. Exits with 1 if anything is wrong.
    """
    from foliot.cli.compose import notary_of
    from foliot.cli.home import signing
    from foliot.cli.operate import with_database
    from foliot.services.verify import Auditor, Proof

    notary = notary_of(signing(settings))
    proofs: list[Proof] = []

    async def prove(database: Database) -> None:
        objects, keys = (None, ()) if notary is None else (notary.objects, tuple(notary.keys))
        proofs.append(await Auditor(database, objects, keys).prove())

    with_database(settings, prove)
    (proof,) = proofs
    if json:
        as_json(proof._asdict())
    else:
        _tell(proof)
    if proof.faults:
        raise click.exceptions.Exit(1)


def _tell(proof: Any) -> None:
    kept = (
        "not looked at: set FOLIOT_OBJECTS and FOLIOT_AUDIT_KEY_FILE"
        if proof.checkpoints is None
        else proof.checkpoints
    )
    record({"entries": proof.entries, "chains": proof.chains, "checkpoints": kept, "not sealed yet": proof.unsealed})
    for fault in proof.faults:
        say(f"BAD {fault}")
    if not proof.faults:
        say("ok: every entry is what was sealed" + ("" if proof.checkpoints is None else ", and what was signed"))
