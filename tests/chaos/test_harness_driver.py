"""What a client concludes from how a call ended, and that plans come from the seed alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import aiohttp
import msgspec
import pytest

from chaos.client import Api, judge
from chaos.driver import resolved
from chaos.nemesis import ABREAST, KINDS, QUIET, RUSHES, WORKERS, Strike, deck, plan
from chaos.places import NODES, REMOTE
from chaos.plan import CLIENTS, Planner
from chaos.records import Operation, Outcome, read_lines
from chaos.site import free_ports

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(status: str, body: bytes, *, length: int | None = None) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        size = len(body) if length is None else length
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    return handle


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def resetting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


@asynccontextmanager
async def api(handler: Handler | None, folder: Path, patience: float = 5.0) -> AsyncIterator[Api]:
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert handler is not None
        served.append(asyncio.ensure_future(handler(reader, writer)))
        await asyncio.wait(served)
        writer.close()

    server = None if handler is None else await asyncio.start_server(serve, "127.0.0.1", 0)
    port = free_ports(1)[0] if server is None else server.sockets[0].getsockname()[1]
    api = Api([f"http://127.0.0.1:{port}"], {"acme": "fol_key"}, folder / "operations.jsonl", patience)
    try:
        yield api
    finally:
        await api.close()
        if server is not None:
            await asyncio.gather(*served, return_exceptions=True)
            server.close()


CASES = {
    "created": (answering("201 Created", b'{"runId": "run_a"}'), Outcome.OK, 201),
    "refused": (answering("409 Conflict", b"{}"), Outcome.FAIL, 409),
    "unavailable": (answering("503 Service Unavailable", b"{}"), Outcome.UNKNOWN, 503),
    "broken": (answering("500 Internal Server Error", b"{}"), Outcome.UNKNOWN, 500),
    "cut in mid-answer": (answering("201 Created", b'{"runId": "ru', length=18), Outcome.UNKNOWN, 201),
    "reset": (resetting, Outcome.UNKNOWN, 0),
    "silent": (silent, Outcome.UNKNOWN, 0),
    "nobody listens": (None, Outcome.FAIL, 0),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_client_concludes_no_more_than_it_knows(case: str, tmp_path: Path):
    handler, outcome, status = CASES[case]
    async with api(handler, tmp_path, patience=0.5 if handler is silent else 10.0) as caller:
        done = await caller.call("createRun", client=0, tenant="acme", body={"handler": "quick"}, key="k1")
        acknowledged = caller.acknowledged
    assert (done.outcome, done.status) == (outcome, status)
    assert acknowledged == (outcome is Outcome.OK)
    (written,) = read_lines(tmp_path / "operations.jsonl", Operation)
    assert msgspec.structs.asdict(written) == msgspec.structs.asdict(done)
    assert written.invoked <= written.completed


async def test_a_call_that_is_broken_off_is_written_down_as_unknown(tmp_path: Path):
    heard = asyncio.Event()

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        heard.set()
        await silent(reader, writer)

    async with api(listening, tmp_path) as caller:
        calling = asyncio.create_task(caller.call("createRun", client=0, tenant="acme", body={}, key="k1"))
        await heard.wait()
        calling.cancel()
        await asyncio.wait([calling])
    (written,) = read_lines(tmp_path / "operations.jsonl", Operation)
    assert written.outcome is Outcome.UNKNOWN


async def test_a_call_that_is_broken_off_in_the_middle_of_its_answer_is_written_down_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    reading = asyncio.Event()

    async def read(_: aiohttp.ClientResponse) -> bytes:
        reading.set()
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(aiohttp.ClientResponse, "read", read)
    async with api(answering("201 Created", b'{"runId": "run_a"}'), tmp_path) as caller:
        calling = asyncio.create_task(caller.call("createRun", client=0, tenant="acme", body={}, key="k1"))
        await reading.wait()
        calling.cancel()
        await asyncio.wait([calling])
    (written,) = read_lines(tmp_path / "operations.jsonl", Operation)
    assert (written.outcome, written.status, written.answer) == (Outcome.UNKNOWN, 201, None)
    assert written.abandoned


async def test_an_answer_given_twice_is_acknowledged_once(tmp_path: Path):
    async with api(answering("201 Created", b'{"runIds": ["run_a", "run_b"]}'), tmp_path) as caller:
        for _ in range(2):
            await caller.call("createRuns", client=0, tenant="acme", body={"runs": []}, key="k1")
        assert caller.acknowledged == 2


async def test_a_call_is_tried_again_at_the_other_api(tmp_path: Path):
    urls = [f"http://127.0.0.1:{port}" for port in free_ports(2)]
    caller = Api(urls, {"acme": "fol_key"}, tmp_path / "operations.jsonl")
    first = await caller.call("createRun", client=0, tenant="acme", body={}, key="k1")
    second = await caller.call("createRun", client=0, tenant="acme", body={}, key="k1", before=first)
    third = await caller.call("createRun", client=0, tenant="acme", body={}, key="k1", before=second)
    await caller.close()
    assert [each.api for each in (first, second, third)] == [0, 1, 0]
    assert [each.repeats for each in (first, second, third)] == [0, first.number, first.number]


def test_ports_are_free_and_none_that_an_outgoing_connection_gets():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def test_only_refusals_are_certain_failures():
    assert {status: judge(status) for status in (200, 299, 400, 404, 408, 422, 429, 500, 503)} == {
        **dict.fromkeys((200, 299), Outcome.OK),
        **dict.fromkeys((400, 404, 422, 429), Outcome.FAIL),
        **dict.fromkeys((408, 500, 503), Outcome.UNKNOWN),
    }


def test_instants_are_filled_in_when_the_call_is_made():
    body = resolved({"scheduleAt": {"$in": 2.5}, "name": "a", "payload": {"x": 1}})
    assert body is not None
    assert body["scheduleAt"].endswith("Z")
    assert (body["name"], body["payload"]) == ("a", {"x": 1})


@pytest.mark.parametrize("client", range(len(CLIENTS)))
def test_the_same_seed_gives_the_same_plan_and_another_seed_another(client: int):
    def steps(seed: int) -> bytes:
        return msgspec.json.encode(list(islice(Planner(seed, client, "http://127.0.0.1:1/do").steps(), 60)))

    assert steps(7) == steps(7) != steps(8)


def test_no_two_payloads_and_no_two_keys_are_alike():
    steps = [
        step
        for client in range(len(CLIENTS))
        for step in islice(Planner(7, client, "http://127.0.0.1:1/do").steps(), 200)
    ]
    keys = [step.key for step in steps if step.key is not None]
    serials = [
        run["payload"]["serial"]
        for step in steps
        if step.body
        for run in step.body.get("runs", [step.body])
        if "payload" in run
    ]
    assert len(set(keys)) == len(keys)
    assert len(set(serials)) == len(serials) > 10_000


def test_a_mixed_client_does_everything_in_time():
    kinds = {step.kind for step in islice(Planner(7, 2, "http://127.0.0.1:1/do").steps(), 400)}
    assert kinds >= {"createJob", "changeJob", "pauseJob", "resumeJob", "cancelJob", "deleteJob", "runJob", "createRun"}


@pytest.mark.parametrize("seed", range(20))
def test_ten_minutes_see_every_kind_of_fault_and_quiet_between_bursts(seed: int):
    bursts = plan(seed, 600)
    struck = [strike for burst in bursts for _, strike in burst.strikes]
    assert {strike.kind for strike in struck} == {*KINDS, "misfire"}
    assert any(kind == "clockJump" and target.startswith("scheduler") for kind, target in struck)
    assert len({strike.kind for strike in struck if strike.target == REMOTE}) > 4
    names = {name for strike in struck for name in strike.target.split(",")}
    assert names - {"postgres", "all", "schedulers", "workers"} <= set(NODES)
    assert all(burst.quiet >= QUIET for burst in bursts[1:])
    for burst in bursts:
        names = {strike.target for _, strike in burst.strikes}
        assert len(burst.strikes) <= ABREAST + 1 + ("workers" in names)  # the remote worker and poison are not dealt
        assert not {"scheduler-0", "scheduler-1"} <= names
        assert not {"api-0", "api-1"} <= names
        kinds = {strike.kind for _, strike in burst.strikes}
        assert not kinds & {"misfire", "rush"} or kinds == {"misfire", "rush"}
    assert bursts == plan(seed, 600)


@pytest.mark.parametrize("seed", range(50))
def test_where_a_worker_is_killed_another_one_is_left_alone(seed: int):
    """Seed 347612 had killed one, and stopped, stalled or cut off all the others before they could take over."""
    for burst in plan(seed, 600):
        struck = [strike for _, strike in burst.strikes if strike.kind != "poison"]
        names = {name for strike in struck for name in strike.target.split(",")}
        if any(strike.kind == "kill" and strike.target in {*WORKERS, REMOTE} for strike in struck):
            assert "workers" not in names
            assert {*WORKERS} - names


def test_elsewhere_all_workers_may_be_struck_at_once():
    plans = [{strike.target for _, strike in burst.strikes} for seed in range(50) for burst in plan(seed, 600)]
    assert any(names >= {*WORKERS} for names in plans)


def test_hours_have_no_more_rushes_than_can_be_checked():
    struck = [strike.kind for burst in plan(1, 8 * 3_600) for _, strike in burst.strikes]
    assert struck.count("rush") == RUSHES < struck.count("misfire")


def test_a_short_run_has_at_least_one_burst():
    assert len(plan(1, 45)) == 1
    assert plan(1, 45)[0].strikes


@pytest.mark.parametrize("seed", range(20))
def test_ten_minutes_freeze_and_cut_off_workers_schedulers_and_apis(seed: int):
    struck = {strike for burst in plan(seed, 600) for _, strike in burst.strikes}
    for kind in ("kill", "stop", "partition"):
        targets = {strike.target for strike in struck if strike.kind == kind and strike.target != REMOTE}
        assert {target.partition("-")[0] for target in targets} == {"worker", "scheduler", "api"}
    assert Strike("partition", "api-0") in struck  # which has a network of its own


def test_a_deck_holds_every_kind_and_lasts_for_five_bursts():
    import random

    cards = deck(random.Random(1))
    assert {strike.kind for strike in cards} == set(KINDS) - {"rollingRestart", "outage", "poison", "rush"}
    assert len(cards) == 5 * ABREAST
