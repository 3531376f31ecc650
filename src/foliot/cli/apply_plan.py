"""What `foliot apply` would do: what is declared beside what is there."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from graphlib import TopologicalSorter
from typing import Any, Final

import msgspec

from foliot.cli.apply_files import Declared, Wrong
from foliot.cli.apply_forms import (
    OWNER,
    Form,
    calendar_form_of_view,
    differences,
    follows,
    job_form_of_view,
    needs,
)
from foliot.domain.errors import FoliotError, InvalidField
from foliot.sdk import ApiError
from foliot.sdk.client import Foliot

_PAGE: Final = 500
_MISSING: Final = 404


class Change(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    NONE = "none"


class Step(msgspec.Struct, kw_only=True):
    """One thing that is declared, or was, and what becomes of it."""

    kind: str
    key: str
    change: Change
    id: str | None = None
    differs: dict[str, tuple[Any, Any]] = {}
    form: Form | None = None
    is_done: bool = False
    seen: Mapping[str, Any] = {}
    """The job as it was looked at."""
    keys: Mapping[str, str] = {}
    """Of jobs by their ids, for what it depends on."""
    adopted_from: str | None = None
    """Whose it has been, if somebody else's: another owner's, or nobody's (empty)."""


def plan(client: Foliot, declared: Declared, *, adopt: bool, keep: bool) -> list[Step]:
    """What to do, in the order in which it can be done; or Wrong, if some of it cannot."""
    mine = {view["key"]: view for view in _owned(client, declared.owner)}
    there = {key: mine[key] if key in mine else _by_key(client, key) for key in declared.jobs}
    keys = {view["jobId"]: key for key, view in {**mine, **there}.items() if view is not None}
    calendars = [_calendar_step(client, name, form) for name, form in declared.calendars.items()]
    jobs = [_job_step(declared, key, there[key], keys) for key in declared.jobs]
    foreign = [] if adopt else [_not_ours(step) for step in jobs if step.adopted_from is not None]
    if faults := [*foreign, *_dangling(client, declared, keys)]:
        raise Wrong(faults)
    gone = {key: view for key, view in mine.items() if key not in declared.jobs}
    return [*calendars, *_in_order(jobs), *([] if keep else _deletions(gone))]


def _owned(client: Foliot, owner: str) -> Iterator[dict[str, Any]]:
    """The living jobs that this owner has applied."""
    page = client.list_jobs(label=f"{OWNER}={owner}", limit=_PAGE)
    return (job.values for job in page.all() if job.status != "cancelled" and job.key is not None)


def _by_key(client: Foliot, key: str) -> dict[str, Any] | None:
    try:
        return client.get_job_by_key(key).values
    except ApiError as error:
        if error.status == _MISSING:
            return None
        raise


def _calendar_step(client: Foliot, name: str, form: Form) -> Step:
    try:
        before = calendar_form_of_view(client.get_calendar(name).values)
    except ApiError as error:
        if error.status != _MISSING:
            raise
        return Step(kind="calendar", key=name, change=Change.CREATE, form=form)
    differs = differences(before, form)
    return Step(kind="calendar", key=name, change=_change(differs), differs=differs, form=form)


def _job_step(declared: Declared, key: str, view: Mapping[str, Any] | None, keys: Mapping[str, str]) -> Step:
    form = _by_keys(declared.jobs[key], keys)
    if view is None:
        return Step(kind="job", key=key, change=Change.CREATE, form=form)
    differs = differences(job_form_of_view(view, keys), form)
    before = view["labels"].get(OWNER, "")
    foreign = before if before != declared.owner else None
    change = Change.UPDATE if foreign is not None else _change(differs)
    return Step(
        kind="job",
        key=key,
        change=change,
        id=view["jobId"],
        differs=differs,
        form=form,
        seen=view,
        keys=keys,
        adopted_from=foreign,
    )


def _by_keys(form: Form, keys: Mapping[str, str]) -> Form:
    """Parents that a file names by id are compared by key, as all others are."""
    whole = {keys.get(job, job): when for job, when in form.whole["dependsOn"].items()}
    return form._replace(whole={**form.whole, "dependsOn": whole})


def _change(differs: Mapping[str, Any]) -> Change:
    return Change.UPDATE if differs else Change.NONE


def _not_ours(step: Step) -> InvalidField:
    whose = f"belongs to the owner {step.adopted_from!r}" if step.adopted_from else "was not made by `foliot apply`"
    return InvalidField(f"jobs.{step.key}", f"{step.id} has this key and {whose}", "--adopt takes it over")


def _dangling(client: Foliot, declared: Declared, keys: Mapping[str, str]) -> Iterator[InvalidField]:
    """What jobs name that is neither declared nor there."""
    known = {*keys, *declared.jobs}
    for key, form in declared.jobs.items():
        for parent in needs(form):
            if parent not in known and not _is_there(client, parent):
                hint = "name a job by its id or by its key"
                yield InvalidField(f"jobs.{key}.dependsOn", f"there is no job {parent!r}", hint)
            known.add(parent)
    calendars = {*declared.calendars}
    for key, form in declared.jobs.items():
        name = follows(form)
        if name is not None and name not in calendars:
            calendars.add(name)
            if _calendar_step(client, name, form=Form({}, {})).change is Change.CREATE:
                hint = f"declare it as [calendars.{name}]"
                yield InvalidField(f"jobs.{key}.calendar", f"there is no calendar {name!r}", hint)


def _is_there(client: Foliot, parent: str) -> bool:
    if _by_key(client, parent) is not None:
        return True
    try:
        return bool(client.get_job(parent).status != "cancelled")
    except ApiError as error:
        if error.status == _MISSING:
            return False
        raise


def _in_order(jobs: list[Step]) -> list[Step]:
    """New ones first: they are made all or none, and others may come to depend on them."""
    return sorted(jobs, key=lambda step: step.change is not Change.CREATE)


def _deletions(gone: Mapping[str, Mapping[str, Any]]) -> list[Step]:
    """Those that others depend on come after the others."""
    by_id = {view["jobId"]: key for key, view in gone.items()}
    parents = {
        key: [by_id[need["job"]] for need in view.get("dependsOn", []) if need["job"] in by_id]
        for key, view in gone.items()
    }
    order = reversed(list(TopologicalSorter(parents).static_order()))
    return [Step(kind="job", key=key, change=Change.DELETE, id=gone[key]["jobId"]) for key in order]


def version_to_replace(step: Step, now: Mapping[str, Any]) -> int:
    """The version of a job that may be replaced though it is no longer as it was seen; FoliotError if it may not.

    A schedule that several share is edited for all of them, and a calendar moves those that follow it: what has become
    as it is declared meanwhile is no reason to stop. What somebody has made otherwise is not overwritten unseen.
    """
    before, present = job_form_of_view(step.seen, step.keys), job_form_of_view(now, step.keys)
    wanted = present if step.form is None else step.form
    left = differences(present, wanted)
    if foreign := [path for path in differences(before, present) if path in left]:
        hint = "nothing of it was overwritten: look with --dry-run, then apply again"
        raise FoliotError(f"somebody has changed it meanwhile: {', '.join(foreign)}", hint)
    return int(now["version"])
