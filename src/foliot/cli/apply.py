"""`foliot apply`: make jobs and calendars what files declare, after showing what that changes."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from foliot.cli.apply_files import read_files
from foliot.cli.apply_plan import Change, Step, plan, version_to_replace
from foliot.cli.codes import Code
from foliot.cli.difference import show_fields
from foliot.cli.output import as_json, clean, confirm, progress, say, wants_json
from foliot.domain.errors import FoliotError
from foliot.sdk import ApiError
from foliot.sdk.client import Foliot

_SIGNS: Final = {Change.CREATE: "+", Change.UPDATE: "~", Change.DELETE: "-"}
_COLOURS: Final = {Change.CREATE: "green", Change.UPDATE: "yellow", Change.DELETE: "red"}
_PAST: Final = {
    Change.CREATE: "created", Change.UPDATE: "updated", Change.DELETE: "deleted", Change.NONE: "unchanged"
}  # fmt: skip
_BATCH: Final = 10_000
_STALE: Final = 412
_TRIES: Final = 5


@click.command("apply")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--owner", metavar="NAME", help="Whose jobs these are, if the files do not say.")
@click.option("--dry-run", is_flag=True, help="Change nothing; exit 4 if there is something to change.")
@click.option("--yes", is_flag=True, help="Do not ask before jobs are deleted.")
@click.option("--keep", is_flag=True, help="Delete nothing.")
@click.option("--adopt", is_flag=True, help="Take over jobs of these keys that others have made.")
@wants_json
def apply(
    files: tuple[str, ...], owner: str | None, dry_run: bool, yes: bool, keep: bool, adopt: bool, json: bool
) -> None:
    """Make jobs and calendars what FILEs of TOML, YAML or JSON declare; `-` reads standard input.

    Shows what changes, field by field, and checks all of it before the first change. Jobs that the same owner applied
    before and that are in none of the files any more are deleted, after asking; those of others never are.
    """
    declared = read_files(files, owner)
    client = Foliot()
    steps = plan(client, declared, adopt=adopt, keep=keep)
    todo = [step for step in steps if step.change is not Change.NONE]
    trouble = None
    if not json:
        _show(steps)
    if todo and not dry_run:
        _ask(todo, yes=yes)
        trouble = _carry_out(client, todo)
    if json:
        items, error = [_item(step) for step in steps], None if trouble is None else trouble.message
        as_json({"owner": declared.owner, "dryRun": dry_run, "items": items, "error": error})
    elif trouble is None:
        say(_summary(steps, dry_run=dry_run))
    if trouble is not None:
        raise trouble
    if dry_run and todo:
        raise click.exceptions.Exit(Code.DIFFERS)


def _ask(todo: Sequence[Step], *, yes: bool) -> None:
    count = sum(step.change is Change.DELETE for step in todo)
    if yes or not count:
        return
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    confirm(f"delete {jobs}?", instead="--yes does not ask, --keep deletes nothing")


def _carry_out(client: Foliot, todo: Sequence[Step]) -> FoliotError | None:
    """Do it step by step; what stopped it, if anything did."""
    with progress(len(todo), "applying") as advance:
        try:
            for step in _done(client, todo):
                step.is_done = True
                advance(1)
        except FoliotError as error:
            left = [step for step in todo if not step.is_done]
            made = f"{len(todo) - len(left):,} of {len(todo):,} changes were made"
            told = next(iter(getattr(error, "errors", [])), None)
            hint = (told.hint if told else error.hint) or "mend it and apply again: what is done stays done"
            return FoliotError(f"{left[0].kind} {left[0].key}: {error.message} ({made})", hint)
    return None


def _done(client: Foliot, todo: Sequence[Step]) -> Iterator[Step]:
    """Each step when it is done. New jobs are made together, all or none."""
    new = [step for step in todo if step.kind == "job" and step.change is Change.CREATE]
    for step in todo:
        match step.kind, step.change:
            case "calendar", _:
                client.put_calendar(step.key, **_written(step))
            case "job", Change.CREATE:
                if step.id is None:
                    _create(client, new)
            case "job", Change.UPDATE:
                _put(client, step)
            case _:
                client.cancel_job(str(step.id))
        yield step


def _put(client: Foliot, step: Step) -> None:
    fields = {name: value for name, value in _written(step).items() if name != "key"}
    version = step.seen["version"]
    for _ in range(_TRIES):
        try:
            client.put_job(step.key, if_version=version, **fields)
        except ApiError as error:
            if error.status != _STALE:
                raise
            version = version_to_replace(step, client.get_job_by_key(step.key).values)
        else:
            return
    raise FoliotError("others keep changing it", "apply again")


def _create(client: Foliot, new: Sequence[Step]) -> None:
    for first in range(0, len(new), _BATCH):
        part = new[first : first + _BATCH]
        for step, job in zip(part, client.create_jobs(_written(each) for each in part), strict=True):
            step.id = job


def _written(step: Step) -> dict[str, Any]:
    return {} if step.form is None else step.form.written


def _show(steps: Sequence[Step]) -> None:
    """The diff: a line for each thing that changes, below it a line for each field."""
    for step in steps:
        if step.change is Change.NONE:
            continue
        what = step.key if step.kind == "job" else f"{step.kind} {step.key}"
        note = f"  {step.id}" if step.id else ""
        if step.adopted_from is not None:
            note += f"  (taken over from {step.adopted_from or 'nobody'})"
        say(click.style(clean(f"{_SIGNS[step.change]} {what}{note}"), fg=_COLOURS[step.change]))
        show_fields(step.differs)


def _summary(steps: Sequence[Step], *, dry_run: bool) -> str:
    counts = {change: sum(step.change is change for step in steps) for change in Change}
    if counts[Change.NONE] == len(steps):
        return f"nothing to do: {len(steps):,} as declared" if steps else "nothing to do: nothing is declared"
    words = {change: f"to {change}" if dry_run else _PAST[change] for change in _SIGNS} | {Change.NONE: "unchanged"}
    return ", ".join(f"{counts[change]:,} {word}" for change, word in words.items() if counts[change])


def _item(step: Step) -> dict[str, Any]:
    fields = {path: {"before": before, "after": after} for path, (before, after) in step.differs.items()}
    named = {"jobId": step.id} if step.kind == "job" else {}
    return {"kind": step.kind, "key": step.key, **named, "change": step.change, "done": step.is_done, "fields": fields}
