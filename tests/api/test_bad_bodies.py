"""Bodies that are not what they should be, before any field is looked at."""

import json
from time import process_time

import pytest

from api.calling import Caller, rows
from world import World

NOT_JSON = (b"", b"{", b"nope", b'{"handler"', b"\x00", b"'single'", b"{,}")
NOT_OBJECTS = (b"[]", b'"text"', b"7", b"null", b"true", b"[[[]]]")
NOT_NUMBERS = (b"NaN", b"Infinity", b"-Infinity", b"01", b"1.", b"+1")
NOT_TEXT = (b'"\xff"', b'"\xc3\x28"', b'"\xed\xa0\x80"')
LONE = (b'"\\ud800"', b'"\\udc00 and on"', b'"\\ud800\\u0041"')
WRITES = ("/v1/jobs", "/v1/jobs:batch", "/v1/runs", "/v1/runs:batch")


async def test_what_is_not_json_is_malformed(api: Caller, world: World, subtests: pytest.Subtests):
    before = await rows(world)
    for raw in NOT_JSON:
        for address in WRITES:
            with subtests.test(f"{address} {raw!r}"):
                answer = await api("POST", address, raw=raw)
                assert answer.status == 400
                assert answer.json["type"] == "urn:foliot:problem:malformed"
                assert answer.json["hint"]
    assert await rows(world) == before


async def test_json_that_is_no_object_is_refused(api: Caller, subtests: pytest.Subtests):
    for raw in NOT_OBJECTS:
        for address in WRITES:
            with subtests.test(f"{address} {raw!r}"):
                assert (await api("POST", address, raw=raw)).field == "body"


async def test_numbers_that_json_has_not_are_malformed(api: Caller, subtests: pytest.Subtests):
    for number in NOT_NUMBERS:
        for name in (b"payload", b"every", b"maxRetries", b"timeoutSeconds"):
            with subtests.test(f"{name!r} {number!r}"):
                answer = await api("POST", "/v1/jobs", raw=b'{"name":"x","handler":"f","%s":%s}' % (name, number))
                assert answer.status == 400


async def test_bytes_that_are_not_utf8_are_refused_wherever_they_stand(
    api: Caller, world: World, subtests: pytest.Subtests
):
    before = await rows(world)
    for text in NOT_TEXT:
        for body in (
            b'{"name":%s,"handler":"f"}',
            b'{"name":"x","handler":"f","payload":%s}',
            b'{"name":"x","handler":"f","payload":{%s:1}}',
            b'{"name":"x","handler":"f","labels":{"a":%s}}',
        ):
            with subtests.test(repr(body % text)):
                assert (await api("POST", "/v1/jobs", raw=body % text)).field == "body"
    assert await rows(world) == before


async def test_half_a_surrogate_pair_is_refused_wherever_it_stands(
    api: Caller, world: World, subtests: pytest.Subtests
):
    """A worker could not read it, and the database could not store it."""
    before = await rows(world)
    for text in LONE:
        for body in (
            b'{"name":%s,"handler":"f"}',
            b'{"name":"x","handler":"f","payload":[%s, 1, 2, 3]}',
            b'{"name":"x","handler":"f","labels":{"a":%s}}',
        ):
            with subtests.test(repr(body % text)):
                assert (await api("POST", "/v1/jobs", raw=body % text)).status in {400, 422}
    assert await rows(world) == before


async def test_a_payload_that_no_worker_could_read_is_refused(api: Caller, subtests: pytest.Subtests):
    for payload in (b"1e999", b"[-1e999]", b"9" * 5_000):
        with subtests.test(repr(payload[:20])):
            run = b'{"handler":"f","payload":%s}' % payload
            assert (await api("POST", "/v1/runs", raw=run)).field == "payload"
            batch = b'{"runs":[{"handler":"f"},%s]}' % run
            assert (await api("POST", "/v1/runs:batch", raw=batch)).field == "runs[1].payload"


async def test_a_nul_inside_a_payload_is_kept_as_it_came(api: Caller):
    made = await api("POST", "/v1/jobs", raw=b'{"name":"x","handler":"f","payload":{"a\\u0000":"\\u0000"}}')
    assert made.status == 201
    assert made.json["payload"] == {"a\0": "\0"}


async def test_a_name_that_stands_twice_is_refused(api: Caller, world: World):
    before = await rows(world)
    raw = b'{"name":"x","handler":"f","priority":"low","pri\\u006frity":"high"}'
    assert (await api("POST", "/v1/jobs", raw=raw)).field == "priority"
    assert (await api("POST", "/v1/runs", raw=b'{"handler":"f","handler":"g"}')).field == "handler"
    assert await rows(world) == before


async def test_so_is_one_that_stands_twice_in_an_object_within(api: Caller, world: World, subtests: pytest.Subtests):
    job, before = (await api.create(name="old", labels={"a": "1"}))["jobId"], await rows(world)
    for within, place in (
        (b'"handler":{"type":"http","url":"http://a.example","url":"http://b.example"}', "handler.url"),
        (b'"handler":{"type":"http","url":"http://a.example","headers":{"X-A":"1","X-A":"2"}}', "handler.headers.X-A"),
        (b'"handler":"f","labels":{"a":"1","a":"2"}', "labels.a"),
        (b'"handler":"f","backoff":{"initial":1,"initi\\u0061l":2}', "backoff.initial"),
        (b'"handler":"f","retry":[{"on":["a"]},{"on":["b"],"on":["c"]}]', "retry[1].on"),
        (b'"handler":"f","payload":{"a":{}},"labels":{"a":"1","a":"2"}', "labels.a"),
        (b'"handler":"f","labels":{"a":"1","a":"2"},"payload":[]', "labels.a"),
    ):
        for method, address in (("POST", "/v1/jobs"), ("PATCH", f"/v1/jobs/{job}")):
            with subtests.test(f"{method} {place}"):
                assert (await api(method, address, raw=b'{"name":"x",%b}' % within)).field == place
    assert await rows(world) == before
    assert (await api.get(f"/v1/jobs/{job}")).json["version"] == 1


async def test_so_is_one_that_stands_twice_in_an_item_of_a_batch(api: Caller, world: World, subtests: pytest.Subtests):
    before, good = await rows(world), b'{"name":"y","handler":"f","payload":{"handler":1,"handler":2}}'
    for within, place in (
        (b'"handler":"f","handler":"g"', "handler"),
        (b'"handler":"f","h\\u0061ndler":"g"', "handler"),
        (b'"handler":"f","queue":"a","queue":"a"', "queue"),
        (b'"handler":"f","payload":{"a":1},"payload":{"a":1}', "payload"),
        (b'"handler":{"type":"http","url":"http://a.example","url":"http://b.example"}', "handler.url"),
    ):
        for what in ("jobs", "runs"):
            with subtests.test(f"{what} {place}"):
                name = b'"name":"x",' if what == "jobs" else b""
                other = good if what == "jobs" else good.replace(b'"name":"y",', b"")
                raw = b'{"%b":[%b,{%b%b}]}' % (what.encode(), other, name, within)
                assert (await api("POST", f"/v1/{what}:batch", raw=raw)).field == f"{what}[1].{place}"
    assert await rows(world) == before
    large = b'{"handler":"f","payload":"%b"}' % (b"x" * 200_000)
    raw = b'{"runs":[%b,{"handler":"f","handler":"g"}]}' % b",".join([large] * 6)
    assert (await api("POST", "/v1/runs:batch", raw=raw)).field == "runs[6].handler"
    assert (await api("POST", "/v1/jobs:batch", raw=b'{"jobs":[%b,%b]}' % (good, good))).status == 201


async def test_more_than_a_thousand_names_in_one_object_are_refused_but_in_a_payload(api: Caller):
    many = json.dumps({f"x{number}": "1" for number in range(1_001)})
    raw = b'{"name":"x","handler":{"type":"http","url":"http://a.example","headers":%b}}' % many.encode()
    answer = await api("POST", "/v1/jobs", raw=raw)
    assert answer.field
    assert (await api.create(payload=json.loads(many)))["jobId"]
    for what in ("jobs", "runs"):  # the name of the list within a payload makes for a closer look
        item = b'{"name":"x","handler":"f","payload":["%b","%b",%b]}' % (what.encode(), what.encode(), many.encode())
        raw = b'{"%b":[%b]}' % (what.encode(), item if what == "jobs" else item.replace(b'"name":"x",', b""))
        assert (await api("POST", f"/v1/{what}:batch", raw=raw)).status == 201, what


async def test_looking_for_names_that_stand_twice_takes_no_longer_than_reading(api: Caller):
    """Of each object with one, every name was held against every other: two seconds, in which no other call goes on."""
    item = "{" + ",".join(f'"{number:x}":1' for number in range(998)) + ',"z":1,"z":1}'
    raw = '{"runs":[{"handler":"f","payload":["runs","runs",' + ",".join([item] * 130) + "]}]}"
    begin = process_time()
    assert (await api("POST", "/v1/runs:batch", raw=raw.encode())).field == "runs[0].payload"
    assert process_time() - begin < 1


async def test_a_misspelt_name_of_a_megabyte_gets_no_hint(api: Caller):
    answer = await api("POST", "/v1/runs", raw=b'{"handler":"f","%b":1}' % (b"queue" * 200_000))
    assert answer.json["errors"][0]["hint"] == "see /docs for the fields of this call"


async def test_a_name_twice_inside_a_payload_is_the_handlers_business(api: Caller):
    for payload in (b'{"a":1,"a":2}', b'[{"a":1,"a":2}]', b'{"labels":{"a":"1","a":"2"}}'):
        raw = b'{"name":"{}","labels":{"b":"{}"},"handler":{"type":"function","name":"f"},"payload":%b}' % payload
        assert (await api("POST", "/v1/jobs", raw=raw)).status == 201


async def test_a_huge_body_is_refused_before_it_is_read_to_its_end(api: Caller, world: World):
    before = await rows(world)
    answer = await api("POST", "/v1/jobs", raw=b'{"name":"' + b"x" * (1 << 20) + b'"}')
    assert (answer.status, answer.json["type"]) == (413, "urn:foliot:problem:too-large")
    assert "262,144" in answer.json["hint"]
    assert await rows(world) == before


async def test_a_payload_of_just_the_limit_is_taken(api: Caller):
    made = await api.create(payload="x" * (262_144 - 2))
    assert len(made["payload"]) == 262_142


async def test_emoji_and_other_scripts_are_kept(api: Caller):
    made = await api.create(name="Überweisung 振込 🏦", labels={"team": "Größe 🏦"}, payload="振込 🏦")
    seen = (await api.get(f"/v1/jobs/{made['jobId']}")).json
    assert (seen["name"], seen["labels"]["team"], seen["payload"]) == ("Überweisung 振込 🏦", "Größe 🏦", "振込 🏦")
