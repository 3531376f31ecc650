"""What each call of a client sends: written once, carried by either client."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from foliot.domain.duration import format_duration
from foliot.domain.errorclass import classes_of
from foliot.domain.errors import InvalidField
from foliot.sdk.fields import Duration, Handler, Moment
from foliot.sdk.protocol import Request, camel, path
from foliot.sdk.records import Job
from foliot.wire.codec import rfc3339
from foliot.wire.preview import LOSABLE

Delay = Duration | None
MOST_RUNS: Final = 10_000
LARGEST: Final = 60 << 20
"""Runs, and bytes of them, in one call."""
Rate = dict[str, Any] | tuple[float, int] | None
"""How fast somebody may call: `(per second, burst)`, an object as the API takes it, or None for no limit."""


def submit(
    handler: Handler, payload: Any, delay: Delay, at: Moment | None, key: str | None, policy: Mapping[str, Any]
) -> Request:
    body = _body({"handler": handler, "payload": payload, **_start(delay, at), **_limited(policy)})
    return Request("POST", path("runs"), body, key)


def submit_many(runs: Iterable[Mapping[str, Any]], key: str | None) -> Iterator[Request]:
    """One call after the other, each with as many as it may hold; with a `key`, each has one made from it."""
    for number, part in enumerate(_parts(map(_one_of_many, runs))):
        body = b'{"runs":[' + b",".join(part) + b"]}"
        yield Request("POST", path("runs", verb=":batch"), body, None if key is None else f"{key}-{number}")


def _one_of_many(run: Mapping[str, Any]) -> bytes:
    rest = {name: value for name, value in run.items() if name not in {"delay", "at"}}
    return _body({**_start(run.get("delay"), run.get("at")), **_limited(rest)})


def _parts(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for text in texts:
        if part and (len(part) == MOST_RUNS or size + len(text) > LARGEST):
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text) + 1
    if part:
        yield part


def create_job(name: str, handler: Handler, key: str | None, fields: Mapping[str, Any]) -> Request:
    return Request("POST", path("jobs"), _body({"name": name, "handler": handler, **_limited(fields)}), key)


def create_jobs(jobs: Iterable[Mapping[str, Any]], key: str | None) -> Request:
    return Request(
        "POST", path("jobs", verb=":batch"), _encode({"jobs": [_fields(_limited(job)) for job in jobs]}), key
    )


def put_job(key: str, name: str, handler: Handler, fields: Mapping[str, Any], version: int | None = None) -> Request:
    body = _body({"name": name, "handler": handler, **_limited(fields)})
    return Request("PUT", path("jobs", "by-key", key), body, version=version)


def change_job(job: str, fields: Mapping[str, Any], version: int | None = None) -> Request:
    """Here None is sent: it takes a field away."""
    changes = {camel(name): _plain(name, value) for name, value in _limited(fields).items()}
    return Request("PATCH", path("jobs", job), _encode(changes), version=version)


def delete_job(job: str, version: int | None, *, purge: bool) -> Request:
    return Request("DELETE", path("jobs", job, purge="true" if purge else None), version=version)


def run_job(job: str, delay: Delay, at: Moment | None, key: str | None, fields: Mapping[str, Any]) -> Request:
    """A payload of None is sent: the run gets null instead of the job's own payload."""
    start = {name: value for name, value in _start(delay, at).items() if value is not None}
    body = _encode({camel(name): value for name, value in {**start, **fields}.items()})
    return Request("POST", path("jobs", job, verb=":run"), body, key)


def operate(job: str, verb: str) -> Request:
    return Request("POST", path("jobs", job, verb=f":{verb}"))


def backfill(job: str, start: Moment, until: Moment, key: str | None, fields: Mapping[str, Any]) -> Request:
    range_ = {"from": _instant("start", start), "until": _instant("until", until)}
    return Request("POST", path("jobs", job, verb=":backfill"), _body({**range_, **fields}), key)


def cancel_operation(operation: str) -> Request:
    return Request("POST", path("operations", operation, verb=":cancel"))


def cancel_run(run: str) -> Request:
    return Request("POST", path("runs", run, verb=":cancel"))


def drain_worker(worker: str) -> Request:
    return Request("POST", path("workers", worker, verb=":drain"))


def hold_queue(queue: str, verb: str) -> Request:
    return Request("POST", path("queues", queue, verb=f":{verb}"))


def create_tenant(name: str, first_key: dict[str, Any]) -> Request:
    return Request("POST", path("tenants"), _body({"name": name, **first_key}))


def create_key(name: str, fields: Mapping[str, Any]) -> Request:
    if "rate_limit" in fields:
        fields = {**fields, "rate_limit": _paced(fields["rate_limit"])}
    return Request("POST", path("keys"), _body({"name": name, **fields}))


def rotate_key(key: str, fields: Mapping[str, Any]) -> Request:
    return Request("POST", path("keys", key, verb=":rotate"), _body(fields))


def revoke_key(key: str) -> Request:
    return Request("DELETE", path("keys", key))


def set_secret(name: str, value: str) -> Request:
    return Request("PUT", path("secrets", name), _encode({"value": value}))


def delete_secret(name: str) -> Request:
    return Request("DELETE", path("secrets", name))


def switch_encryption(enabled: bool, tenant: str | None) -> Request:
    return Request("PUT", path("encryption"), _body({"enabled": enabled, "tenant": tenant}))


def rotate_encryption(tenant: str | None) -> Request:
    return Request("POST", path("encryption", verb=":rotate"), _body({"tenant": tenant}))


def limit_tenant(tenant: str, concurrency: int | None) -> Request:
    return Request("PATCH", path("tenants", tenant), _encode({"limits": {"concurrency": concurrency}}))


def change_tenant(tenant: str, weight: int | None, limits: dict[str, Any], quotas: dict[str, Any]) -> Request:
    """Here None is sent: it takes a limit or a quota away."""
    body: dict[str, Any] = {} if weight is None else {"weight": weight}
    if limits:
        body["limits"] = {camel(name): _paced(value) for name, value in limits.items()}
    if quotas:
        body["quotas"] = quotas
    return Request("PATCH", path("tenants", tenant), _encode(body))


def limit_key(key: str, rate_limit: Rate) -> Request:
    return Request("POST", path("keys", key, verb=":limit"), _encode({"rateLimit": _paced(rate_limit)}))


def _paced(limit: Any) -> Any:
    """A rate with a burst of its own is written as (per second, burst)."""
    return {"perSecond": limit[0], "burst": limit[1]} if isinstance(limit, tuple) else limit


def retry_run(run: str) -> Request:
    return Request("POST", path("runs", run, verb=":retry"))


def cancel_graph(run: str) -> Request:
    return Request("POST", path("runs", run, "graph", verb=":cancel"))


def decide(deed: str, runs: Iterable[str], key: str | None) -> Request:
    """What becomes of these dead letters, now: `deed` is `replay` or `discard`."""
    ids = [runs] if isinstance(runs, str) else list(runs)
    return Request("POST", path("dead-letters", verb=f":{deed}"), _encode({"runIds": ids}), key)


def sweep(deed: str, where: dict[str, Any], options: dict[str, Any], key: str | None) -> Request:
    """What becomes of all dead letters of which `where` holds."""
    body = _body({"filter": _fields(span(where)), **options})
    return Request("POST", path("dead-letters", verb=f":{deed}"), body, key)


def get(*parts: str, **query: Any) -> Request:
    return Request("GET", path(*parts, **query))


def preview(job: str | None, timing: dict[str, Any]) -> Request:
    """Of a job None takes a field away, as in `change_job`."""
    nothing = [camel(name) for name, value in timing.items() if value is None and job is not None]
    lost = ",".join(name for name in nothing if name in LOSABLE)
    query = {"job": job, "without": lost or None, **timing}
    return Request("GET", path("schedules", verb=":preview", **span(query)))


def span(query: dict[str, Any]) -> dict[str, Any]:
    """A query whose instants may be datetimes."""
    return {name: rfc3339(value) if isinstance(value, datetime) else value for name, value in query.items()}


def put_calendar(name: str, fields: Mapping[str, Any]) -> Request:
    return Request("PUT", path("calendars", name), _body(fields))


def import_calendar(name: str, ics: str, mode: str | None, timezone: str | None) -> Request:
    address = path("calendars", name, verb=":import", mode=mode, timezone=timezone)
    return Request("POST", address, _encode({"ics": ics}))


def preview_calendar(name: str, since: datetime | str | None, until: datetime | str | None) -> Request:
    bounds = {"from": since, "until": until}
    query = {key: rfc3339(at) if isinstance(at, datetime) else at for key, at in bounds.items()}
    return Request("GET", path("calendars", name, verb=":preview", **query))


def delete_calendar(name: str) -> Request:
    return Request("DELETE", path("calendars", name))


def _body(values: Mapping[str, Any]) -> bytes:
    return _encode(_fields(values))


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments in Python's spelling as fields in the wire's; what is None is left out."""
    return {camel(name): _plain(name, value) for name, value in values.items() if value is not None}


def _limited(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A limit without a key may be written as a number: `concurrency=1`."""
    limit = fields.get("concurrency")
    return {**fields, "concurrency": {"limit": limit}} if type(limit) is int else fields


def _plain(field: str, value: Any) -> Any:
    """Values as the wire has them.

    Rules about retries may be written as Python does: `max_retries`, and exceptions themselves instead of names. A list
    of words as a handler is a command, as for `subprocess.run`. A job that another depends on may be given as it was
    answered, instead of by its id or key.
    """
    if field == "handler" and isinstance(value, (list, tuple)):
        return {"type": "command", "argv": value}
    if field == "depends_on" and isinstance(value, (list, tuple)):
        return [each.id if isinstance(each, Job) else each for each in value]
    if field != "retry" or not isinstance(value, (list, tuple)):
        return value
    rules = [{camel(name): part for name, part in rule.items()} for rule in value]
    return [{**rule, "on": [_error_name(each) for each in rule.get("on", ())]} for rule in rules]


def _error_name(error: Any) -> Any:
    return classes_of(error)[0] if isinstance(error, type) and issubclass(error, BaseException) else error


def _encode(value: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_refuse)
    except UnicodeEncodeError:
        raise InvalidField("payload", "contains half a surrogate pair", "send text that is text") from None


def _refuse(value: Any) -> Any:
    raise InvalidField("payload", f"a {type(value).__name__} cannot be sent as JSON", "convert it first")


def _instant(name: str, moment: Moment) -> str:
    if isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        raise InvalidField(name, "has no offset from UTC", "use datetime.now(timezone.utc) or a ZoneInfo")
    return rfc3339(moment)


def _start(delay: Delay, at: Moment | None) -> dict[str, Any]:
    """When a run shall start, as the wire wants it."""
    return {
        "delay": format_duration(delay) if isinstance(delay, timedelta) else delay,
        "run_at": None if at is None else _instant("at", at),
    }
