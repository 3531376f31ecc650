"""`foliot run explain` and `foliot job explain`: what is waited for, and what to do about it."""

from typing import Any, Final

import click

from foliot.cli.naming import job_argument, run_argument
from foliot.cli.output import Column, as_json, clean, instant, say, table, wants_json
from foliot.sdk.client import Foliot

_MARKS: Final = {"passed": "✓", "blocking": "✗", "closed": "!", "later": "·"}
_GATES: Final = (
    Column("mark", ""),
    Column("gate", "GATE"),
    Column("state", "STATE"),
    Column("sentence", "", shrinks=True),
)
_RUNS: Final = (Column("gate", "RUNS THAT WAIT FOR"), Column("runs", "RUNS"), Column("oldestRunId", "THE FIRST"))
_FROM: Final = {
    "due": "when it is due",
    "schedule": "by its schedule",
    "rate": "at the rate at which workers take runs now",
    "durations": "if runs take as long as they did lately",
    "now": "a worker has room",
}


@click.command("explain")
@run_argument
@wants_json
def explain_run(run_id: str, json: bool) -> None:
    """Say why a run does not start: every gate, the one that blocks first, and when it starts."""
    found = Foliot().explain_run(run_id).values
    if json:
        as_json(found)
        return
    say(f"{found['runId']} is {found['state']}")
    _tell(found)


@click.command("explain")
@job_argument
@wants_json
def explain_job(job_id: str, json: bool) -> None:
    """Say why a job fires next or does not: every gate, the one that blocks first, and what its runs wait for."""
    found = Foliot().explain_job(job_id).values
    if json:
        as_json(found)
        return
    say(f"{found['jobId']} is {found['status']}")
    _tell(found)
    if found["runs"]:
        say("")
        table([{**each, "gate": each["gate"] or "nothing: they run"} for each in found["runs"]], _RUNS, empty="")


def _tell(found: dict[str, Any]) -> None:
    say(clean(found["sentence"]))
    if found["estimatedStart"]:
        say(f"Starts about {instant(found['estimatedStart'])} UTC, {_FROM[found['estimateFrom']]}.")
    say("")
    table([{**gate, "mark": _MARKS[gate["state"]]} for gate in found["gates"]], _GATES, empty="")
