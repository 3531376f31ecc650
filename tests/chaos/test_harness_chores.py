"""Chores of clients: what they may conclude, what the harness reads back, and whose dice they throw."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest

from burying import begin, bury, discard, replay
from chaos.act import LATEST, Act
from chaos.cancels import Fickle
from chaos.chores import Mortician, Odd, Oddities
from chaos.client import Api
from chaos.inside import FATES, Insider
from chaos.proxy import Mode, Proxies, Wire
from chaos.records import BOOKING, Operation, Outcome, read_lines
from chaos.watch import BOOKS, DECIDED, Watch, decisions
from foliot.domain.ids import encode
from foliot.domain.operation import OperationKind
from foliot.kit.postgres import PostgresServer
from operating import operator, settle_down
from world import World


class Told:
    """A caller who writes down what it was asked for, and answers what it was given."""

    def __init__(self, dead: list[str]) -> None:
        self.calls: list[tuple[str, Any, str | None, str | None]] = []
        self._dead = dead

    async def insist(
        self,
        client: int,
        tenant: str,
        kind: str,
        _job: str | None,
        body: dict[str, Any] | None = None,
        key: str | None = None,
        run: str | None = None,
    ) -> Operation:
        self.calls.append((kind, body, key, run))
        times = {"invoked": 0.0, "completed": 0.0}
        return Operation(
            number=1, client=client, tenant=tenant, kind=kind, outcome=Outcome.OK, body=body, answer={}, **times
        )

    async def read(self, _tenant: str, _path: str, **_: Any) -> Any:
        return {"items": [{"runId": name} for name in self._dead]}


async def asked(seed: int) -> list[tuple[str, Any, str | None, str | None]]:
    told = Told([f"run_{number}" for number in range(9)])
    letters = Mortician(told, seed, 0, "acme")
    odd = Oddities(told, seed, 0, "acme", slowest=2.0, odd=Odd(patient_every=3, caged_every=4))
    for _ in range(40):
        await letters.step()
        await odd.step()
    return told.calls


async def test_chores_come_from_the_seed_alone_and_do_everything_in_time():
    calls = await asked(7)
    assert calls == await asked(7) != await asked(8)
    assert {kind for kind, *_ in calls} == {"createRuns", "retryRun", "replayLetters", "discardLetters"}
    keys = [key for _, _, key, _ in calls if key is not None]
    assert len(set(keys)) == len(keys)
    runs = [run for kind, body, *_ in calls if kind == "createRuns" for run in body["runs"]]
    assert {run["handler"] for run in runs} == {"snoozing", "slow", "flaky", *BOOKING, "patient", "caged"}
    assert len({run["payload"]["serial"] for run in runs}) == len(runs)


class Hung(Told):
    """The first call is never answered, and has been carried out."""

    async def insist(self, *given: Any, **named: Any) -> Operation:
        done = await super().insist(*given, **named)
        if len(self.calls) == 1:
            await asyncio.Event().wait()
        if done.kind == "createRuns":
            done.answer = {"runIds": [f"run_{number}" for number, _ in enumerate((done.body or {})["runs"])]}
        return done


async def test_who_is_stopped_in_mid_call_asks_again_and_cancels_what_would_go_on_for_long():
    told = Hung([])
    fickle = Fickle(told, 7, 0, "acme", victims=40)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fickle.step(), 0.01)
    await fickle.finish()
    [first, again, *cancels] = told.calls
    assert first == again
    long = [f"run_{number}" for number, run in enumerate(first[1]["runs"]) if _goes_on_for_long(run)]
    assert [run for _, _, _, run in cancels] == long != []


def _goes_on_for_long(run: dict[str, Any]) -> bool:
    return run.get("delay", 0) > 60 or run["payload"]["slow"] > 20


async def test_what_became_of_dead_letters_is_read_as_the_product_wrote_it(world: World):
    one, two, three = await bury(world, 3)
    await replay(world, one)
    await discard(world, two)
    operation = await begin(world, OperationKind.DISCARD)
    async with operator(world) as duty:
        await settle_down(duty)
    found = decisions(await world.sql(DECIDED))
    told = {name: [(row["deed"], row["attempts"], row["by"]) for row in rows] for name, rows in found.items()}
    assert told == {
        encode("run", one): [("replayed", 1, "hand")],
        encode("run", two): [("discarded", 1, "hand")],
        encode("run", three): [("discarded", 1, encode("op", operation))],
    }


async def test_who_hands_in_inside_a_transaction_concludes_no_more_than_it_knows(
    dsn: str, world: World, tmp_path: Path
):
    modes: list[Mode] = []

    async def set_(_node: str, mode: Mode, _late: float = 0.0) -> None:
        modes.append(mode)

    key = world.key
    api = Api(["http://127.0.0.1:9"], {"acme": key}, tmp_path / "operations.jsonl")
    proxies = cast("Proxies", SimpleNamespace(set=set_))
    insider = Insider(api, proxies, dsn, ["http://127.0.0.1:9"], {"acme": key})
    for _ in FATES:
        await insider.step()
    await insider.close()
    await api.close()
    written = read_lines(tmp_path / "operations.jsonl", Operation)
    assert [each.outcome is Outcome.FAIL for each in written] == [fate == "rollback" for fate in FATES]
    assert {mode for mode in modes if mode is not Mode.PASS} == {Mode.CUT_BEFORE, Mode.CUT_AFTER}
    connection = await asyncpg.connect(dsn)
    there = await connection.fetch("SELECT id FROM foliot.outbox UNION ALL SELECT id FROM foliot.run WHERE id > 0")
    await connection.close()
    committed = {(each.answer or {})["runId"] for each in written if each.outcome is Outcome.OK}
    assert {encode("run", row["id"]) for row in there} == committed


async def test_the_books_show_every_row(dsn: str):
    watch = Watch(cast("PostgresServer", SimpleNamespace(dsn=dsn)))
    await watch.open_books()
    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO public.booked VALUES ('run_a', 7), ('run_a', 5), ('run_b', 9)")
    await connection.close()
    assert await watch.booked() == {"run_a": [5, 7], "run_b": [9]}
    assert "UNIQUE" not in BOOKS


@pytest.mark.parametrize("mode", [Mode.PASS, Mode.DARK])
async def test_a_wire_to_a_gateway_carries_whatever_is_said_or_nothing(mode: Mode):
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    gateway = await asyncio.start_server(echo, "127.0.0.1", 0)
    wire = Wire("nowhere", f"127.0.0.1:{gateway.sockets[0].getsockname()[1]}")
    wire.set(mode, 0.0)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    writer.write(b"POST /v1/work/claim HTTP/1.1\r\n")
    heard = asyncio.create_task(reader.read(100))
    await asyncio.wait([heard], timeout=10 if mode is Mode.PASS else 0.3)
    assert (heard.done() and heard.result()) == (mode is Mode.PASS and b"POST /v1/work/claim HTTP/1.1\r\n")
    heard.cancel()
    wire.set(Mode.RESET, 0.0)
    writer.close()
    for each in (server, gateway):
        each.close()


def test_a_handler_does_not_snooze_for_ever_though_every_process_is_a_new_one():
    act = Act(tenant="acme", serial="1.1", snooze=2)
    assert [act.snoozes(before, 0.5) for before in (0, 1, 2)] == [True, True, False]
    assert not act.snoozes(0, LATEST)
