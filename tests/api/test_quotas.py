"""Rate limits, quotas and back-pressure through the API: each refusal says why, and when to come again."""

import asyncio
from typing import Any

import pytest

from api.calling import PLAIN, Answer, Caller, application
from api.test_table import WORKER
from foliot.domain.bucket import RateLimit
from foliot.services.backlog import Backlog
from foliot.services.pacing import Pacing
from foliot.services.tenants import REMEMBERED, Tenants
from world import World

RUN = {"handler": "noop"}
TENANT = "/v1/tenants/acme"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Process:
    """One API process: what it remembers of keys and limits is its own, and its clock stands still."""

    def __init__(self, world: World, key: str, usual: RateLimit | None = None) -> None:
        self.clock = Clock()
        self.pacing = Pacing(world.database, usual, self.clock)
        self.backlog = Backlog(world.database, system=0, tenant=0)
        self.app = application(world, Tenants(world.database, self.clock), pacing=self.pacing, backlog=self.backlog)
        self.api = Caller(self.app, key)

    async def call(self) -> int:
        return (await self.api.get("/v1/runs")).status

    async def let_in(self, most: int) -> int:
        """How many of so many calls are let in."""
        return [await self.call() for _ in range(most)].count(200)


@pytest.fixture
def process(world: World) -> Process:
    return Process(world, world.key)


def left(answer: Answer) -> tuple[int, int, int]:
    names = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
    limit, remaining, reset = (int(answer.headers[name]) for name in names)
    return limit, remaining, reset


async def test_without_a_limit_nothing_is_said_of_one(process: Process):
    answer = await process.api.get("/v1/runs")
    assert not [name for name in answer.headers if name.startswith("ratelimit")]


async def test_every_answer_tells_what_is_left_and_the_one_too_many_when_to_come_again(process: Process, world: World):
    changed = await process.api("PATCH", TENANT, {"limits": {"rateLimit": {"perSecond": 0.5, "burst": 3}}})
    assert changed.json["limits"]["rateLimit"] == {"perSecond": 0.5, "burst": 3}
    process.clock.now += REMEMBERED  # a raised or lowered limit is known by then
    assert left(await process.api.get("/v1/runs")) == (3, 2, 2)
    assert left(await process.api.post("/v1/runs", {"handler": "no such thing"})) == (3, 1, 4)
    assert left(await process.api.get("/v1/runs/nonsense")) == (3, 0, 6)
    refused = await process.api.post("/v1/runs", RUN)
    assert (refused.status, refused.headers["retry-after"], left(refused)) == (429, "2", (3, 0, 6))
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json["type"] == "urn:foliot:problem:too-many-requests"
    assert "0.5 a second" in refused.json["detail"]
    assert "operator" in refused.json["hint"]
    assert await world.count("run") == 0
    process.clock.now += 2
    assert (await process.api.post("/v1/runs", RUN)).status == 201


async def test_a_batch_counts_for_all_that_is_in_it_and_leaves_a_debt_if_it_is_larger_than_the_bucket(
    process: Process, world: World
):
    await process.api("PATCH", TENANT, {"limits": {"rateLimit": {"perSecond": 10, "burst": 20}}})
    process.clock.now += REMEMBERED
    assert left(await process.api.post("/v1/runs:batch", {"runs": [RUN] * 15})) == (20, 5, 2)
    refused = await process.api.post("/v1/runs:batch", {"runs": [RUN] * 15})
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert "hands in 15" in refused.json["detail"]
    process.clock.now += 10
    assert (await process.api.post("/v1/runs:batch", {"runs": [RUN] * 50})).status == 201
    assert (await process.api.post("/v1/jobs:batch", {"jobs": [PLAIN] * 2})).headers["retry-after"] == "4"
    assert await world.count("run") == 65


async def test_a_key_has_a_limit_of_its_own_within_that_of_its_tenant(process: Process):
    limits = {"perSecond": 1, "burst": 5}
    made = (await process.api.post("/v1/keys", {"name": "ci", "role": "editor", "rateLimit": limits})).json
    assert made["rateLimit"] == limits
    narrow = Caller(process.app, made["key"])
    assert left(await narrow.get("/v1/runs")) == (5, 4, 1)
    assert (await process.api.get("/v1/runs")).status == 200
    raised = await process.api.post(f"/v1/keys/{made['keyId']}:limit", {"rateLimit": {"perSecond": 100}})
    assert raised.json["rateLimit"] == {"perSecond": 100, "burst": 100}
    await process.api("PATCH", TENANT, {"limits": {"rateLimit": {"perSecond": 1, "burst": 10}}})
    process.clock.now += REMEMBERED
    await narrow.get("/v1/runs")
    process.clock.now += 1  # a raised limit fills at its new rate
    assert [(await narrow.get("/v1/runs")).status for _ in range(12)].count(200) == 10
    assert left(await narrow.get("/v1/runs"))[0] == 10, "the tenant's limit is reached before the key's"
    freed = await process.api.post(f"/v1/keys/{made['keyId']}:limit", {"rateLimit": None})
    assert freed.status == 429, "it is all one tenant"


async def test_processes_share_a_limit_within_a_second_and_one_that_floods_leaves_the_rest_to_the_other(world: World):
    one, other = (Process(world, world.key) for _ in range(2))
    await one.api("PATCH", TENANT, {"limits": {"rateLimit": {"perSecond": 0.001, "burst": 10}}})
    for each in (one, other):
        each.clock.now += REMEMBERED
    assert await one.let_in(7) == 7
    assert await other.let_in(1) == 1
    for each in (one, other):
        await each.pacing.share()
    assert (await one.let_in(9), await other.let_in(9)) == (3, 2), "before they hear of each other"
    for each in (one, other):
        await each.pacing.share()
    assert await world.value("SELECT round(level) FROM allowance WHERE key = ''") == -3
    assert (await one.call(), await other.call()) == (429, 429)


async def test_what_fills_the_bucket_goes_where_it_is_asked_for(world: World):
    busy, quiet = (Process(world, world.key, RateLimit(100, 100)) for _ in range(2))
    for _ in range(2):
        for each, calls in ((busy, 300), (quiet, 100)):
            await each.let_in(calls)
        for each in (busy, quiet):
            await each.pacing.share()
    await busy.pacing.share()
    shares = [each._kept[1, ""].bucket.share for each in (busy.pacing, quiet.pacing)]
    assert shares == [pytest.approx(0.75, abs=0.05), pytest.approx(0.25, abs=0.05)]


async def test_while_the_database_is_away_each_process_goes_on_by_itself_and_tells_later(world: World):
    process = Process(world, world.key, RateLimit(1, 5))
    assert await process.let_in(3) == 3
    away, process.pacing._database = process.pacing._database, None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await process.pacing.share()
    assert await process.let_in(5) == 2
    process.pacing._database = away
    await process.pacing.share()
    assert await world.value("SELECT round(level) FROM allowance WHERE key = ''") == 0


async def test_what_workers_ask_for_is_not_counted(process: Process):
    await process.api("PATCH", TENANT, {"limits": {"rateLimit": {"perSecond": 0.01, "burst": 1}}})
    process.clock.now += REMEMBERED
    assert (await process.call(), await process.call()) == (200, 429)
    beat = {"worker": WORKER, "register": {"name": "w", "queues": ["default"], "groups": ["fn:noop"]}}
    answer = await process.api.post("/v1/work/heartbeat", beat)
    assert (answer.status, "ratelimit-limit" in answer.headers) == (200, False)


async def test_one_tenants_flood_does_not_touch_anothers_limit(process: Process, world: World):
    rival = Caller(process.app, await Tenants(world.database).create("rival"))
    process.pacing._usual = RateLimit(1, 5)
    assert await process.let_in(50) == 5
    assert left(await rival.get("/v1/runs")) == (5, 4, 1)


async def test_too_much_of_a_tenant_closes_its_door_and_no_other(process: Process, world: World):
    rival = Caller(process.app, await Tenants(world.database).create("rival"))
    await process.api("PATCH", TENANT, {"limits": {"backlog": 5}})
    process.clock.now += REMEMBERED
    job = (await process.api.create(every=3600))["jobId"]
    await process.api.post("/v1/runs:batch", {"runs": [RUN] * 5})
    await process.api.post("/v1/runs", {**RUN, "delay": 3600})
    await process.backlog.look()
    for path, body in (("/v1/runs", RUN), ("/v1/runs:batch", {"runs": [RUN]}), (f"/v1/jobs/{job}:run", None)):
        refused = await process.api.post(path, body)
        assert (refused.status, refused.headers["retry-after"]) == (429, "5"), path
        assert "about 5 runs" in refused.json["detail"]
        assert (await rival.post("/v1/runs", RUN)).status == 201
    assert (await process.api.get(TENANT)).json["used"]["backlog"] == 5
    assert (await process.api.create())["status"], "jobs are still made"
    await world.fire(await world.next_at())
    assert await world.count("run") == 5 + 3 + 1, "and fire"
    hand = await world.worker()
    await hand.settle(await hand.claim())
    await process.backlog.look()
    assert (await process.api.post("/v1/runs", RUN)).status == 201


async def test_a_job_that_runs_once_is_refused_like_a_run_and_one_that_was_made_before_is_not(
    process: Process, world: World
):
    """A batch of jobs that are due long since is as much work as a batch of runs."""
    await process.api("PATCH", TENANT, {"limits": {"backlog": 5}})
    process.clock.now += REMEMBERED
    once = {**PLAIN, "scheduleAt": "2020-01-01T00:00:00Z"}
    await process.api("PUT", "/v1/jobs/by-key/before", {**once, "scheduleAt": "2040-01-01T00:00:00Z"})
    await process.api.post("/v1/runs:batch", {"runs": [RUN] * 5})
    await process.backlog.look()
    jobs = await world.count("job")
    for method, path, body in (
        ("POST", "/v1/jobs", once),
        ("POST", "/v1/jobs:batch", {"jobs": [PLAIN, once]}),
        ("PUT", "/v1/jobs/by-key/now", once),
        ("POST", "/v1/jobs", {**once, "scheduleAt": "2040-01-01T00:00:00Z"}),
    ):
        refused = await process.api(method, path, body)
        assert (refused.status, refused.headers.get("retry-after")) == (429, "5"), (path, refused.content)
    assert await world.count("job") == jobs
    assert (await process.api("PUT", "/v1/jobs/by-key/before", {**once, "name": "other"})).status == 200
    assert (await process.api.post("/v1/jobs:batch", {"jobs": [PLAIN, {**PLAIN, "every": 60}]})).status == 201


async def test_too_much_of_all_tenants_closes_the_door_to_all(process: Process, world: World):
    process.backlog._system = 3
    await world.submit(3)
    await process.backlog.look()
    refused = await process.api.post("/v1/runs", RUN)
    assert (refused.status, refused.headers["retry-after"], refused.json["title"]) == (429, "5", "Too much waits")
    assert "FOLIOT_BACKLOG" in refused.json["hint"]
    assert await process.call() == 200, "reading goes on"


async def test_a_backlog_is_estimated_from_a_few_pages_of_a_large_table(world: World):
    rival = await world.another_tenant()
    await world.submit(2_000)
    await world.sql(
        "INSERT INTO run (id, scheduled_at, due_at, tenant, spec, state, payload)"
        " SELECT 1000000 + n, now(), now(), CASE WHEN n % 4 = 0 THEN $1::int ELSE $2::int END, 1, 1,"
        "        repeat('x', 300)::bytea"
        " FROM generate_series(1, 40000) AS n",
        rival,
        world.tenant,
    )
    backlog = Backlog(world.database)
    await backlog.look()
    pages = await world.value("SELECT pg_relation_size('run') / 8192")
    assert pages > 4 * 256
    assert backlog.of(world.tenant) == pytest.approx(32_000, rel=0.4)
    assert backlog.of(rival) == pytest.approx(10_000, rel=0.4)


async def test_quotas_say_what_the_limit_is_what_is_used_and_who_raises_it(process: Process):
    api = process.api
    changed = await api("PATCH", TENANT, {"quotas": {"jobs": 3, "schedules": 1, "keys": 2}})
    assert changed.json["quotas"] == {"jobs": 3, "schedules": 1, "keys": 2}
    assert changed.json["used"] == {"jobs": 0, "schedules": 0, "keys": 1, "backlog": 0}
    job = await api.create(every=60)
    refused = await api.post("/v1/jobs", {**PLAIN, "every": 60})
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    assert refused.json["type"] == "urn:foliot:problem:quota-exceeded"
    assert "waiting alone does not help" in refused.json["hint"]
    assert refused.json["detail"] == "tenant acme may have 1 schedules and has 1"
    assert "foliot tenant quota acme --schedules 2" in refused.json["hint"]
    assert (await api.post("/v1/jobs:batch", {"jobs": [PLAIN] * 3})).status == 429
    assert "3 more were asked for" in (await api.post("/v1/jobs:batch", {"jobs": [PLAIN] * 3})).json["detail"]
    plain = (await api.post("/v1/jobs:batch", {"jobs": [PLAIN] * 2})).json["jobIds"]
    assert (await api("PUT", "/v1/jobs/by-key/fourth", PLAIN)).status == 429
    assert (await api("PATCH", f"/v1/jobs/{plain[0]}", {"every": 60})).status == 429
    assert (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"name": "other"})).status == 200
    assert (await api.create(scheduleAt="2040-01-01T00:00:00Z"))["status"] == "pending", "one-time jobs are not counted"
    await api("DELETE", f"/v1/jobs/{job['jobId']}")
    assert (await api("PATCH", f"/v1/jobs/{plain[0]}", {"every": 60})).status == 200
    assert (await api.post("/v1/keys", {"name": "second"})).status == 201
    assert (await api.post("/v1/keys", {"name": "third"})).status == 429
    freed = await api("PATCH", TENANT, {"quotas": {"jobs": None, "keys": None}})
    assert freed.json["quotas"] == {"jobs": None, "schedules": 1, "keys": None}
    assert freed.json["used"] == {"jobs": None, "schedules": 1, "keys": None, "backlog": 0}
    assert (await api.post("/v1/keys", {"name": "third"})).status == 201


async def test_of_rivals_for_the_last_place_one_gets_it(process: Process):
    await process.api("PATCH", TENANT, {"quotas": {"jobs": 1}})
    answers = await asyncio.gather(*(process.api.post("/v1/jobs", PLAIN) for _ in range(6)))
    assert sorted(answer.status for answer in answers) == [201, *[429] * 5]


async def test_a_quota_of_keys_is_no_matter_of_who_makes_jobs(guarded: Caller):
    """The role that makes jobs may not look at keys: neither at once, nor when its plans have become general ones."""
    for quotas in ({"jobs": 20}, {"jobs": 20, "keys": 5}):
        assert (await guarded("PATCH", TENANT, {"quotas": quotas})).status == 200
        answers = [await guarded.post("/v1/jobs", PLAIN) for _ in range(8)]
        assert {answer.status for answer in answers} == {201}


async def test_limits_are_an_operators_to_set_and_on_record(process: Process, world: World):
    admin = Caller(process.app, await Tenants(world.database).create("rival"))
    assert (await admin("PATCH", "/v1/tenants/rival", {"limits": {"backlog": 1_000_000}})).status == 403
    assert (await admin.get("/v1/tenants/rival")).json["limits"] == {
        "concurrency": None,
        "rateLimit": None,
        "backlog": None,
    }
    await process.api("PATCH", "/v1/tenants/rival", {"limits": {"backlog": 9}, "quotas": {"jobs": 7}})
    entry = (await process.api.get("/v1/audit")).json["items"]
    assert not entry or entry[0]["action"] != "changeTenant", "it is told to the tenant it is about"
    (told, *_) = (await admin.get("/v1/audit")).json["items"]
    assert (told["action"], told["after"]["backlog"], told["after"]["jobs"]) == ("changeTenant", 9, 7)


async def test_all_that_one_call_changes_of_a_tenant_is_meant_for_the_version_that_it_names(api: Caller):
    before = await api.get(TENANT)
    change = {"weight": 3, "limits": {"concurrency": 7, "backlog": 9}, "quotas": {"jobs": 5}}
    stale = await api("PATCH", TENANT, change, if_match='"99"')
    assert (stale.status, (await api.get(TENANT)).json) == (412, before.json)
    changed = (await api("PATCH", TENANT, change, if_match=before.headers["etag"])).json
    assert (changed["weight"], changed["limits"]["concurrency"], changed["limits"]["backlog"]) == (3, 7, 9)
    assert changed["quotas"]["jobs"] == 5


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limits": {"rateLimit": {"perSecond": 0}}}, "limits.rateLimit.perSecond"),
        ({"limits": {"rateLimit": {"perSecond": 5, "burst": 0}}}, "limits.rateLimit.burst"),
        ({"limits": {"rateLimit": {"burst": 5}}}, "limits.rateLimit.perSecond"),
        ({"limits": {"rateLimit": 5}}, "limits.rateLimit"),
        ({"limits": {"backlog": 0}}, "limits.backlog"),
        ({"weight": 3, "limits": {"backlog": 0}}, "limits.backlog"),
        ({"weight": 0, "limits": {"concurrency": 7, "backlog": 9}}, "weight"),
        ({"limits": {"concurrency": 7}, "quotas": {"keys": -1}}, "quotas.keys"),
        ({"quotas": {"jobs": -1}}, "quotas.jobs"),
        ({"quotas": {"runs": 1}}, "quotas.runs"),
    ],
)
async def test_what_cannot_be_changes_nothing(api: Caller, body: Any, field: str):
    before = (await api.get(TENANT)).json
    assert (await api("PATCH", TENANT, body)).field == field
    assert (await api.get(TENANT)).json == before
