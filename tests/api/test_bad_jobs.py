"""What is wrong with a job is said by field, with a hint, and nothing is written."""

import pytest

from api.calling import PLAIN, Caller, rows
from world import World

DEEP = 100_000

BAD = {
    "an unknown field": ({"nmae": "x"}, "nmae"),
    "an unknown field inside backoff": ({"backoff": {"initially": 1}}, "backoff.initially"),
    "a name of the wrong type": ({"name": 7}, "name"),
    "an empty name": ({"name": ""}, "name"),
    "a long name": ({"name": "x" * 201}, "name"),
    "no name": ({"name": None}, "name"),
    "NUL in the name": ({"name": "a\0b"}, "name"),
    "a line break in the name": ({"name": "a\nb"}, "name"),
    "no handler": ({"handler": None}, "handler"),
    "an empty handler": ({"handler": ""}, "handler"),
    "a handler with spaces": ({"handler": "rm -rf"}, "handler"),
    "a handler of an unknown type": ({"handler": {"type": "magic"}}, "handler.type"),
    "a handler without a type": ({"handler": {"url": "http://example.com"}}, "handler.type"),
    "an HTTP handler without an address": ({"handler": {"type": "http"}}, "handler.url"),
    "an unknown method": (
        {"handler": {"type": "http", "url": "http://example.com", "method": "BREW"}},
        "handler.method",
    ),
    "argv as a string": ({"handler": {"type": "command", "argv": "/bin/report --all"}}, "handler.argv"),
    "a command without argv": ({"handler": {"type": "command"}}, "handler.argv"),
    "an empty argv": ({"handler": {"type": "command", "argv": []}}, "handler.argv"),
    "an empty program": ({"handler": {"type": "command", "argv": ["", "x"]}}, "handler.argv"),
    "a word that is a number": ({"handler": {"type": "command", "argv": ["/bin/report", 7]}}, "handler.argv[1]"),
    "NUL in a word": ({"handler": {"type": "command", "argv": ["/bin/report", "a\0b"]}}, "handler.argv[1]"),
    "too many words": ({"handler": {"type": "command", "argv": ["/bin/report"] * 1_001}}, "handler.argv"),
    "a long word": ({"handler": {"type": "command", "argv": ["/bin/report", "x" * 32_768]}}, "handler.argv"),
    "an environment of the caller's": (
        {"handler": {"type": "command", "argv": ["/bin/report"], "env": {"LD_PRELOAD": "/x.so"}}},
        "handler.env",
    ),
    "a container without an image": ({"handler": {"type": "container", "args": ["x"]}}, "handler.image"),
    "an image that is an option": ({"handler": {"type": "container", "image": "--privileged"}}, "handler.image"),
    "args as a string": ({"handler": {"type": "container", "image": "acme/report", "args": "x"}}, "handler.args"),
    "a line break in a variable": (
        {"handler": {"type": "container", "image": "acme/report", "env": {"A": "1\nB=2"}}},
        "handler.env",
    ),
    "a variable of ours": (
        {"handler": {"type": "container", "image": "acme/report", "env": {"FOLIOT_RUN": "1"}}},
        "handler.env",
    ),
    "less than no processor": (
        {"handler": {"type": "container", "image": "acme/report", "resources": {"cpus": -1}}},
        "handler.resources.cpus",
    ),
    "a mount": ({"handler": {"type": "container", "image": "acme/report", "volumes": ["/:/host"]}}, "handler.volumes"),
    "a user of the caller's": ({"handler": {"type": "command", "argv": ["/bin/report"], "uid": 0}}, "handler.uid"),
    "a broken cron": ({"cronExpression": "61 * * * *"}, "cronExpression"),
    "a cron of four fields": ({"cronExpression": "* * * *"}, "cronExpression"),
    "31 February in a cron": ({"cronExpression": "0 0 31 2 *"}, "cronExpression"),
    "31 February": ({"scheduleAt": "2026-02-31T09:00:00Z"}, "scheduleAt"),
    "a naive time": ({"scheduleAt": "2026-01-31T09:00:00"}, "scheduleAt"),
    "an instant as a number": ({"scheduleAt": 1_800_000_000}, "scheduleAt"),
    "an instant beyond the calendar": ({"scheduleAt": "9999-12-31T23:59:59-12:00"}, "scheduleAt"),
    "an instant before the calendar": ({"scheduleAt": "0001-01-01T00:00:00+12:00"}, "scheduleAt"),
    "an end beyond the calendar": ({"every": 60, "endsAt": "9999-12-31T23:59:59-12:00"}, "endsAt"),
    "an end without a recurrence": ({"endsAt": "2030-01-01T00:00:00Z"}, "endsAt"),
    "an end before the beginning": (
        {"every": 60, "scheduleAt": "2030-01-01T00:00:00Z", "endsAt": "2029-01-01T00:00:00Z"},
        "endsAt",
    ),
    "an unknown zone": ({"cronExpression": "0 9 * * *", "timezone": "Europe/Berln"}, "timezone"),
    "a zone that is a path": ({"cronExpression": "0 9 * * *", "timezone": "../../etc/passwd"}, "timezone"),
    "a zone without a cron": ({"timezone": "Europe/Berlin"}, "timezone"),
    "two recurrences": ({"cronExpression": "0 9 * * *", "every": "PT1M"}, "every"),
    "a negative period": ({"every": -60}, "every"),
    "a negative period in text": ({"every": "-PT1M"}, "every"),
    "a period of eleven years": ({"every": "P11Y"}, "every"),
    "a period that is too short": ({"every": 0.5}, "every"),
    "a period that is true": ({"every": True}, "every"),
    "an endless period": ({"every": "P999999999999D"}, "every"),
    "negative retries": ({"maxRetries": -1}, "maxRetries"),
    "too many retries": ({"maxRetries": 1_001}, "maxRetries"),
    "half a retry": ({"maxRetries": 0.5}, "maxRetries"),
    "retries as text": ({"maxRetries": "3"}, "maxRetries"),
    "a negative timeout": ({"timeoutSeconds": -1}, "timeoutSeconds"),
    "no time at all": ({"timeoutSeconds": 0}, "timeoutSeconds"),
    "a timeout that rounds to nothing": ({"timeoutSeconds": 1e-9}, "timeoutSeconds"),
    "a timeout of more than a week": ({"timeoutSeconds": 604_801}, "timeoutSeconds"),
    "an unknown priority": ({"priority": "urgent"}, "priority"),
    "a priority out of range": ({"priority": 3}, "priority"),
    "a negative priority": ({"priority": -1}, "priority"),
    "a priority that is true": ({"priority": True}, "priority"),
    "a bad queue": ({"queue": "No Spaces"}, "queue"),
    "an empty queue": ({"queue": ""}, "queue"),
    "a negative backoff": ({"backoff": {"initial": -1}}, "backoff.initial"),
    "a backoff that shrinks": ({"backoff": {"factor": 0.5}}, "backoff.factor"),
    "a backoff that starts above its end": ({"backoff": {"initial": "PT1H", "max": "PT1M"}}, "backoff.initial"),
    "too many labels": ({"labels": {f"l{n}": "x" for n in range(65)}}, "labels"),
    "a label that is a number": ({"labels": {"a": 1}}, "labels[...]"),
    "a label with an odd name": ({"labels": {"a b": "x"}}, "labels"),
    "a long label": ({"labels": {"a": "x" * 201}}, "labels"),
    "NUL in a label": ({"labels": {"a": "\0"}}, "labels"),
    "NUL in a label's name": ({"labels": {"\0": "a"}}, "labels"),
    "an odd key": ({"key": "no spaces"}, "key"),
    "NUL in the key": ({"key": "a\0"}, "key"),
    "an unknown overlap": ({"overlap": "explode"}, "overlap"),
    "an overlap of another type": ({"overlap": 1}, "overlap"),
    "fire times that wait, of a job that has none": ({"overlap": "queue"}, "overlap"),
    "a limit of nothing": ({"concurrency": {"limit": 0}}, "concurrency.limit"),
    "a negative limit": ({"concurrency": {"limit": -1}}, "concurrency.limit"),
    "a limit beyond counting": ({"concurrency": {"limit": 10**30}}, "concurrency.limit"),
    "half a limit": ({"concurrency": {"limit": 1.5}}, "concurrency.limit"),
    "a limit as text": ({"concurrency": {"limit": "3"}}, "concurrency.limit"),
    "a limit that is true": ({"concurrency": {"limit": True}}, "concurrency.limit"),
    "a key without a limit": ({"concurrency": {"key": "payload.account"}}, "concurrency.limit"),
    "a limit that is no object": ({"concurrency": 3}, "concurrency"),
    "a limit key that is no path": ({"concurrency": {"limit": 1, "key": "account"}}, "concurrency.key"),
    "a limit key that is the whole payload": ({"concurrency": {"limit": 1, "key": "payload"}}, "concurrency.key"),
    "a limit key that leads nowhere": ({"concurrency": {"limit": 1, "key": "payload..a"}}, "concurrency.key"),
    "NUL in a limit key": ({"concurrency": {"limit": 1, "key": "payload.a\0"}}, "concurrency.key"),
    "a payload without the limit key": (
        {"payload": {"a": {"c": 1}}, "concurrency": {"limit": 1, "key": "payload.a.b"}},
        "payload",
    ),
    "a parent that is not there": ({"dependsOn": ["job_0000000000000"]}, "dependsOn[0]"),
    "a large payload": ({"payload": "x" * 262_144}, "payload"),
}

NOT_WHEN_CHANGED = {
    "a zone without a cron",
    "an end without a recurrence",
    "an odd key",
    "fire times that wait, of a job that has none",
}
"""What is right for the job that is changed."""

URLS = (
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://127.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.0x1/",
    "http://%31%32%37.0.0.1/",
    "http://１２７.0.0.1/",  # noqa: RUF001 - full-width digits are the point
    "http://[::1",
    "http://[127.0.0.1]/",
    "http://user:secret@example.com/",
    "http://@example.com/",
    "http:///path",
    "http://example.com:99999/",
    "http://example.com:0/",
    "http://exa mple.com/",
    "http://example.com/\r\nX: y",
    "http://example.com\\@evil.example/",
    "http://" + "a" * 3_000,
    "ftp://example.com/",
    "file:///etc/passwd",
    "javascript://%0aalert(1)",
    "://",
)

OWNED = ("Idempotency-Key", "foliot-run", "Webhook-Signature", "HOST", "Content-Length", "transfer-encoding")
HEADERS = (
    *({name: "x"} for name in (*OWNED, "Connection", "Content-Type", "traceparent", "TE", "Expect")),
    {"X-Split": "a\r\nb"},
    {"X-Nul": "a\0"},
    {"Bad Name": "x"},
    {"": "x"},
    {"X-Long": "x" * 5_000},
    {"X-A": "1", "x-a": "2"},
    {f"X-{n}": "x" for n in range(65)},
)


async def test_every_fault_of_a_job_is_told_by_its_field_and_nothing_is_written(
    api: Caller, world: World, subtests: pytest.Subtests
):
    before = await rows(world)
    for fault, (fields, field) in BAD.items():
        body = {name: value for name, value in {**PLAIN, **fields}.items() if value is not None}
        with subtests.test(fault):
            assert (await api.post("/v1/jobs", body)).field == field
    assert await rows(world) == before


async def test_what_people_try_with_commands_is_explained(api: Caller):
    for handler, message, hint in (
        ({"argv": "ls -l"}, "is not a list of words", "no shell reads it"),
        ({"argv": ["ls"], "env": {}}, "is not the caller's to set", "the operator of the workers sets"),
        ({"argv": []}, "names no program", "as a list of words"),
    ):
        refused = (await api.post("/v1/jobs", {**PLAIN, "handler": {"type": "command", **handler}})).json
        assert refused["errors"][0]["message"] == message
        assert hint in refused["hint"]


async def test_one_bad_job_spoils_its_batch_and_is_named(api: Caller, world: World, subtests: pytest.Subtests):
    before = await rows(world)
    good = {**PLAIN, "every": 60}
    for fault, (fields, field) in BAD.items():
        body = {name: value for name, value in {**PLAIN, **fields}.items() if value is not None}
        with subtests.test(fault):
            answer = await api.post("/v1/jobs:batch", {"jobs": [good, good, body]})
            assert answer.field == f"jobs[2].{field}"
    assert await rows(world) == before


async def test_a_batch_takes_one_to_ten_thousand_jobs_and_each_key_once(api: Caller, world: World):
    before = await rows(world)
    assert (await api.post("/v1/jobs:batch", {"jobs": []})).field == "jobs"
    assert (await api.post("/v1/jobs:batch", {"jobs": [PLAIN] * 10_001})).field == "jobs"
    assert (await api.post("/v1/jobs:batch", {})).field == "jobs"
    assert (await api.post("/v1/jobs:batch", {"jobs": [PLAIN], "runs": []})).field == "runs"
    keyed = {**PLAIN, "key": "nightly"}
    assert (await api.post("/v1/jobs:batch", {"jobs": [PLAIN, keyed, PLAIN, keyed]})).field == "jobs[3].key"
    assert await rows(world) == before


async def test_odd_addresses_are_refused(api: Caller, world: World, subtests: pytest.Subtests):
    before = await rows(world)
    for url in URLS:
        with subtests.test(url[:60]):
            assert (await api.post("/v1/jobs", {**PLAIN, "handler": url})).field == "handler"
            handler = {"type": "http", "url": url}
            assert (await api.post("/v1/runs", {"handler": handler})).field == "handler.url"
    assert await rows(world) == before


async def test_headers_that_foliot_owns_or_nobody_can_send_are_refused(api: Caller, subtests: pytest.Subtests):
    for headers in HEADERS:
        with subtests.test(str(headers)[:60]):
            handler = {"type": "http", "url": "http://example.com/", "headers": headers}
            assert (await api.post("/v1/jobs", {**PLAIN, "handler": handler})).field == "handler.headers"


async def test_a_job_that_would_be_refused_when_made_is_refused_when_changed(
    api: Caller, world: World, subtests: pytest.Subtests
):
    made = await api.create(every=60)
    address, before = f"/v1/jobs/{made['jobId']}", await rows(world)
    for fault, (fields, field) in BAD.items():
        if fault in NOT_WHEN_CHANGED:
            continue
        with subtests.test(fault):
            answer = await api("PATCH", address, fields)
            assert answer.field == ("key" if "key" in fields else field)
    assert await rows(world) == before
    assert (await api.get(address)).json == made


@pytest.mark.parametrize("levels", [65, 1_000, DEEP])
async def test_deep_json_is_refused_however_deep(api: Caller, world: World, levels: int):
    before = await rows(world)
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        nest = opened * levels + "1" * (opened != "[") + closed * levels
        job = f'{{"name":"x","handler":"noop","payload":{nest}}}'.encode()
        assert (await api("POST", "/v1/jobs", raw=job)).field == "payload"
        run = f'{{"handler":"noop","payload":{nest}}}'.encode()
        assert (await api("POST", "/v1/runs", raw=run)).field == "payload"
        batch = b'{"runs":[%s]}' % run
        assert (await api("POST", "/v1/runs:batch", raw=batch)).field == "runs"
        assert (await api("POST", "/v1/jobs:batch", raw=b'{"jobs":[%s]}' % job)).field == "jobs"
    assert await rows(world) == before


async def test_sixty_levels_and_brackets_in_strings_are_taken(api: Caller):
    payload = "[" * 60 + '"' + "[" * 100 + '\\"{"' + "]" * 60
    made = await api("POST", "/v1/jobs", raw=b'{"name":"x","handler":"noop","payload":%s}' % payload.encode())
    assert made.status == 201


async def test_quotes_and_backslashes_cost_no_more_than_their_length(api: Caller):
    """A scan for strings that backtracks takes hours for this body."""
    raw = b"[" * 70 + b'"' + b'\\"' * 500_000
    assert (await api("POST", "/v1/jobs", raw=raw)).status in {400, 422}
    raw = b'{"name":"x","handler":"noop","payload":[' + b"[]," * 100 + b'"' + b'\\"' * 100_000 + b'"]}'
    assert (await api("POST", "/v1/jobs", raw=raw)).status == 201
