"""The bench of peers as far as it needs nobody else: what it counts, keeps, shows and draws, and Foliot's own row."""

import asyncio
import importlib.util
import json
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from bench.peers import __main__ as entrance
from bench.peers import candidates, measure
from bench.peers.__main__ import Run
from bench.peers.adapters import PEERS
from bench.peers.adapters.floor import FloorRepeat
from bench.peers.candidates import fastest, try_out
from bench.peers.installing import CannotInstallError, _call
from bench.peers.measure import Repeat
from bench.peers.peer import SCRIPTS, Candidate, Home, Peer
from bench.peers.plan import Plan
from bench.peers.plot import plot
from bench.peers.report import publish, render, report
from bench.peers.results import Results, describe, schedule_summary, spread, summary
from bench.peers.servers import Redis
from bench.peers.tallies import Reader, Starts, Tallies, percentiles
from bench.peers.verdicts import verdicts
from foliot.bench.produce import TENANTS

SVG = "{http://www.w3.org/2000/svg}"
BY_NAME = {peer.name: peer for peer in PEERS}


def record(name, *repeats, **fields):
    return {**describe(BY_NAME[name]), "repeats": [{"loadBefore": 0.1, **each} for each in repeats], **fields}


def found(*peers, full=True):
    machine = {"measuredAt": "2026-11-15T20:00+00:00", "processors": 2, "processor": "P", "memoryGiB": 4}
    machine |= {"system": "S", "python": "3.11"}
    head = {"commit": "abc", "seconds": 10, "runs": 100_000, "repeats": 3, "full": full, "machine": machine}
    return {**head, "peers": list(peers)}


def row(text, start):
    return next(line for line in text.splitlines() if line.startswith(f"| {start}"))


@pytest.fixture
def side():
    spec = importlib.util.spec_from_file_location("peers_side", SCRIPTS / "side.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Counting


def test_a_rate_between_two_ticks_is_taken_in_proportion():
    process = Starts(first=10.0, last=12.0, ticks=[(11.0, 100), (12.0, 300)])
    assert process.until(9.0) == 0
    assert process.until(10.5) == 50
    assert process.until(11.0) == 100
    assert process.until(11.5) == 200
    assert process.until(99.0) == 300
    assert Tallies((process, process)).rate(11.0, 12.0) == 400


def test_tallies_of_all_processes_count_and_a_line_that_is_still_being_written_does_not(tmp_path):
    line = {"at": 2.0, "count": 5, "first": 1.0, "last": 1.9, "waits": [[1.0, 1.5]]}
    (tmp_path / "1.jsonl").write_text(json.dumps(line) + "\n" + '{"at": 3.0, "cou')
    (tmp_path / "2.jsonl").write_text(json.dumps({**line, "count": 7, "last": 3.0, "waits": []}) + "\n")
    (tmp_path / "3.jsonl").write_text('{"at"')
    reader = Reader(tmp_path)
    tallies = reader.read()
    assert (tallies.count, tallies.span, tallies.waits) == (12, 2.0, [0.5])
    with (tmp_path / "1.jsonl").open("a") as file:
        file.write('nt": 6, "first": 1.0, "last": 2.9, "waits": [[2.0, 2.1]]}\n')
    later = reader.read()
    assert later.count == 13
    assert later.waits == pytest.approx([0.5, 0.1])


def test_handlers_on_many_threads_are_counted_right_and_read_back(side, tmp_path, monkeypatch):
    monkeypatch.setattr(side, "TALLIES", tmp_path)
    tally = side.Tally()
    threads = [side.threading.Thread(target=lambda: [tally.started(0.0) for _ in range(2_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally._write()
    assert Reader(tmp_path).read().count == side.count_started() == 8_000


def test_percentiles_are_those_of_the_values():
    assert percentiles([float(value) for value in range(101)], 50, 95, 99) == {"p50": 50, "p95": 95, "p99": 99}


@pytest.mark.parametrize(("values", "median"), [([3.0, 1.0, 2.0], 2.0), ([4.0, 2.0], 3.0), ([7.0], 7.0)])
def test_the_median_of_the_repeats_is_shown_with_least_and_most(values, median):
    assert spread(values) == {"median": median, "min": min(values), "max": max(values), "repeats": len(values)}


def test_a_number_is_summed_up_over_the_repeats_that_have_it():
    peer = record("pgqueuer", {"drain": 10.0}, {}, {"drain": 30.0}, {"due1000": {"p50": 0.5}})
    assert summary(peer, "drain")["median"] == 20.0
    assert summary(peer, "held") is None
    assert schedule_summary(peer, 1_000, "p50")["repeats"] == 1


# Producing


async def test_a_bulk_producer_makes_exactly_what_it_was_asked_for(side, capsys):
    sizes = []

    async def many(payloads):
        sizes.append(len(payloads))

    await side.Producer(None, many, chunk=1_000).run("bulk", "2500")
    assert sizes == [1_000, 1_000, 500]
    assert json.loads(capsys.readouterr().out)["made"] == 2_500


async def test_a_sustaining_producer_holds_back_while_too_many_wait(side, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(side, "TALLIES", tmp_path)

    async def many(payloads):
        await asyncio.sleep(0.001)

    await side.Producer(None, many, chunk=100).run("sustain", "0.4", "1000")
    # It looks 20 times a second, so it may overshoot by what it makes between two looks.
    assert json.loads(capsys.readouterr().out)["made"] <= 1_000 + 100 * 50


def test_the_payload_is_about_a_hundred_bytes(side):
    assert 90 <= len(json.dumps(side.payload(1.5))) <= 120


# Planning and keeping


def test_the_plan_is_read_from_the_environment_and_blanks_mean_the_default():
    assert Plan.read({"SECONDS": "", "ONLY": "", "FRESH": ""}) == Plan()
    plan = Plan.read({"SECONDS": "2", "RUNS": "2000", "ONLY": "celery, awa", "FRESH": "1", "REPEATS": "1"})
    assert plan == Plan(seconds=2.0, runs=2_000, repeats=1, only=("celery", "awa"), fresh=True)


def test_a_shortened_run_has_no_more_schedules_than_runs():
    assert Plan().schedules == (1_000, 10_000, 100_000)
    assert Plan(runs=2_000).schedules == (1_000,)


def test_a_peer_is_due_until_it_has_all_its_repeats(tmp_path):
    peer, results = BY_NAME["pgqueuer"], Results(tmp_path, repeats=2)
    assert results.is_due(peer, 0)
    results.add(peer, {"drain": 1.0})
    again = Results(tmp_path, repeats=2)
    assert not again.is_due(peer, 0)
    assert again.is_due(peer, 1)
    again.add(peer, {"drain": 2.0})
    assert not again.is_due(peer, 1)
    assert not again.is_due(peer, 2)
    assert [each["drain"] for each in again.load(peer)["repeats"]] == [1.0, 2.0]
    again.forget(peer)
    assert again.is_due(peer, 0)


def test_a_peer_that_could_not_be_installed_is_tried_again_and_keeps_what_it_has(tmp_path):
    peer, results = BY_NAME["bullmq"], Results(tmp_path, repeats=3)
    results.add(peer, {"drain": 1.0})
    results.refuse(peer, "no node")
    assert results.load(peer)["notMeasured"] == "no node"
    assert results.is_due(peer, 1)
    results.add(peer, {"drain": 2.0})
    assert results.load(peer)["notMeasured"] is None


async def test_rounds_go_over_all_peers_and_skip_what_is_there(tmp_path, monkeypatch):
    first, second = BY_NAME["pgqueuer"], BY_NAME["taskiq"]
    results, order = Results(tmp_path, repeats=2), []
    results.add(first, {"drain": 1.0})

    async def measure(self, peer, number):
        order.append((peer.name, number))
        results.add(peer, {"drain": 1.0})

    monkeypatch.setattr(Run, "_measure", measure)
    async with AsyncExitStack() as stack:
        await Run(Plan(repeats=2), results, stack, lambda _: None).run((first, second))
    assert order == [("taskiq", 0), ("pgqueuer", 1), ("taskiq", 1)]


async def test_no_repeat_begins_that_would_end_too_late(tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "_measure", lambda *_: pytest.fail("it began"))
    said = []
    async with AsyncExitStack() as stack:
        plan = Plan(repeats=1, minutes=1)
        await Run(plan, Results(tmp_path, 1), stack, said.append).run((BY_NAME["pgqueuer"],))
    assert "left for the next run" in said[0]


async def test_a_peer_that_cannot_be_installed_is_named_and_the_others_go_on(tmp_path, monkeypatch):
    def made(*_):
        raise CannotInstallError("there is no npm")

    monkeypatch.setattr(Home, "made", made)
    results = Results(tmp_path, repeats=1)
    async with AsyncExitStack() as stack:
        await Run(Plan(repeats=1), results, stack, lambda _: None).run((BY_NAME["bullmq"], BY_NAME["graphile"]))
    text = report(found(results.load(BY_NAME["bullmq"]), results.load(BY_NAME["graphile"])), "picture.svg")
    assert "- BullMQ: there is no npm." in text
    assert "- Graphile Worker: there is no npm." in text


def test_why_something_could_not_be_installed_names_no_folder_and_no_address(tmp_path):
    script = "import sys; sys.exit('see ' + 'https' + '://mirror.example/simple in /srv/secret/place')"
    with pytest.raises(CannotInstallError) as caught:
        _call([sys.executable, "-c", script])
    assert "mirror.example" not in str(caught.value)
    assert "/srv/secret" not in str(caught.value)
    assert "(address)" in str(caught.value)


def test_what_was_measured_with_other_versions_or_settings_does_not_count(tmp_path):
    peer, results = BY_NAME["graphile"], Results(tmp_path, repeats=2)
    results.add(peer, {"drain": 1.0})
    assert results.load(peer)["repeats"]
    for changed in (
        replace(peer, packages=("graphile-worker@9.9.9",)),
        replace(peer, settings="others"),
        replace(peer, candidates=(Candidate("8 processes", workers=8),)),
    ):
        assert not results.load(changed)["repeats"]


# Trying candidates


def told(settings, *rates, error=""):
    return {"settings": settings, "rates": list(rates), "error": error, "seconds": 20.0}


async def test_candidates_are_tried_in_turns_with_their_own_workers_and_environment(monkeypatch):
    tries = []

    class Tried(Repeat):
        async def run(self, *only):
            tries.append((self._home.peer.workers, self._home.environment, self._plan.seconds, only))
            if self._home.peer.workers == 4:
                return {"errors": {"sustained": "it stood still"}}
            return {"errors": {}, "sustained": 1_000.0 * len(tries)}

    monkeypatch.setattr(candidates, "Repeat", Tried)
    two, four = Candidate("2 processes"), Candidate("4 processes", workers=4, environment={"WIDE": "yes"})
    home = Home(replace(BY_NAME["graphile"], candidates=(two, four)), "node", {"PEER_HOME": "/there"})
    tried = await try_out(home, None, Plan(seconds=10))
    narrow, wide = (2, {"PEER_HOME": "/there"}), (4, {"PEER_HOME": "/there", "WIDE": "yes"})
    assert tries == [(*each, 5.0, ("sustained",)) for each in (narrow, wide, narrow, wide)]
    assert [(each["rates"], each["error"]) for each in tried] == [([1_000.0, 3_000.0], ""), ([], "it stood still")]


async def test_a_repeat_measures_all_cells_or_only_what_it_is_asked_for(monkeypatch):
    async def sustain(self, *, held):
        return {"held" if held else "sustained": 1.0}

    async def drain(self):
        return {"drain": 1.0}

    monkeypatch.setattr(Repeat, "_sustain", sustain)
    monkeypatch.setattr(Repeat, "_drain", drain)
    repeat = Repeat(Home(BY_NAME["graphile"], "node", {}), None, Plan())
    assert await repeat.run("sustained") == {"errors": {}, "sustained": 1.0}
    assert (await repeat.run()).keys() == {"errors", "drain", "sustained", "held"}


def test_the_candidate_with_the_fastest_try_is_chosen_and_nobody_if_all_failed():
    assert fastest([told("a", 5.0, 6.0), told("b", 9.0, 1.0), told("c", error="no")])["settings"] == "b"
    assert fastest([told("a", error="no")]) is None


def test_a_choice_is_kept_for_the_next_run_and_nothing_is_tried_twice(tmp_path):
    peer, results = BY_NAME["graphile"], Results(tmp_path, repeats=1)
    assert results.is_untried(peer)
    assert results.chosen(peer).workers == 2
    results.keep_tries(peer, [told("2 processes", 1.0), told("4 processes", 2.0)], "4 processes")
    again = Results(tmp_path, repeats=1)
    assert not again.is_untried(peer)
    assert again.chosen(peer).workers == 4
    again.add(peer, {"drain": 1.0})
    assert again.load(peer)["chosen"] == "4 processes"
    assert not again.is_untried(BY_NAME["pgqueuer"])


async def test_candidates_are_tried_before_the_first_repeat_and_alone_if_no_repeat_is_wanted(tmp_path, monkeypatch):
    peers, order = (BY_NAME["pgqueuer"], BY_NAME["celery"]), []

    async def ready(self, peer):
        return peer, None

    async def tried_out(peer, store, plan):
        order.append((peer.name, "tried"))
        return [told(each.settings, float(number)) for number, each in enumerate(peer.candidates)]

    async def measure(self, peer, number):
        order.append((peer.name, number))

    monkeypatch.setattr(Run, "_ready", ready)
    monkeypatch.setattr(Run, "_measure", measure)
    monkeypatch.setattr(entrance, "try_out", tried_out)
    results = Results(tmp_path, repeats=1)
    async with AsyncExitStack() as stack:
        await Run(Plan.read({"REPEATS": "0"}), results, stack, lambda _: None).run(peers)
        assert order == [("celery", "tried")]
        assert "prefork" in results.chosen(BY_NAME["celery"]).worker
        await Run(Plan(repeats=1), results, stack, lambda _: None).run(peers)
    assert order == [("celery", "tried"), ("pgqueuer", 0), ("celery", 0)]


def test_candidates_of_a_peer_differ_in_words_and_in_how_it_runs():
    for peer in PEERS:
        assert len({each.settings for each in peer.candidates}) == len(peer.candidates)
        ways = {(each.worker, each.workers, *each.environment.items()) for each in peer.candidates}
        assert len(ways) == len(peer.candidates)


# Showing


def test_the_table_shows_medians_and_how_foliot_compares():
    ours = record("foliot", {"drain": 50_000.0, "p50": 2.0, "p95": 3.0, "p99": 4.0}, {"drain": 60_000.0})
    peer = record("pgqueuer", {"drain": 20_000.0}, {"drain": 11_000.0}, {"drain": 10_000.0})
    text = report(found(ours, peer), "picture.svg")
    assert "55,000 " in row(text, "Foliot")
    assert "2.0 / 3.0 / 4.0" in row(text, "Foliot")
    assert "| 11,000 |" in row(text, "PgQueuer")
    assert "| 5 (2.5 to 6) |" in row(text, "Foliot / PgQueuer")
    assert "| PgQueuer | - | - | 10,000 to 20,000 |" in text
    assert "![Throughput of each peer](picture.svg)" in text


def test_a_report_is_a_folder_with_a_page_a_picture_and_a_file_for_each_peer(tmp_path):
    publish(tmp_path / "peers-abc", found(record("foliot", {"drain": 2.0}), record("floor", {"drain": 4.0})))
    names = {path.name for path in (tmp_path / "peers-abc").iterdir()}
    assert names == {"peers.md", "peers.json", "peers.svg", "foliot.json", "floor.json"}
    assert "| 0.5 (0.5 to 0.5) |" in row((tmp_path / "peers-abc/peers.md").read_text(), "Foliot / Raw floor")
    assert json.loads((tmp_path / "peers-abc/floor.json").read_text())["repeats"][0]["drain"] == 4.0


async def test_the_floor_is_tuned_in_the_first_repeat_only():
    settings = {"bulk": [[5_000, 2], [1_000, 1]], "drain": [[1_000, 4]], "sustained": [[1_000, 4]]}
    repeat = FloorRepeat(None, None, Plan(), [{"errors": {}}, {"tuned": settings}])
    assert await repeat._tune("bulk", lambda *_: pytest.fail("it was tuned")) == [(5_000, 2), (1_000, 1)]


def test_what_failed_is_named_with_its_cell():
    peer = record("awa", {"bulk": 5.0, "runs": 100, "drained": 60, "again": 7, "errors": {"held": "it stood still"}})
    text = report(found(peer), "picture.svg")
    assert "- awa-pg, held: it stood still" in text
    assert "- awa-pg, drain: 60 of 100 in its time." in text
    assert "7 runs were started a second time" in text


def test_schedules_stand_in_a_table_of_their_own():
    cell = {"p50": 0.4, "p95": 0.7, "p99": 0.71, "max": 0.74, "fires": 1_383.0, "stores": 1_570.0}
    text = report(found(record("apscheduler", {"due1000": cell})), "picture.svg")
    assert row(text, "APScheduler").endswith("| 1,000 | 1 | 0.40 / 0.70 / 0.71 / 0.74 | 1,383 | 1,570 |")


def test_the_page_says_what_the_schedules_of_both_are_and_why_there_are_only_two():
    text = report(found(record("apscheduler", {"drain": 1.0})), "p.svg")
    assert "only APScheduler is measured here" in text
    assert f"spread over {TENANTS} tenants" in text
    assert f"only {TENANTS} schedules" in text
    for peer in PEERS:
        assert peer.schedules or peer.name == "floor" or peer.title in text


def test_the_page_says_why_peers_on_redis_lack_numbers():
    text = report(found(record("celery", {"sustained": 1.0})), "p.svg")
    assert "Redis has no transaction that could be held open" in text
    assert "Redis has no WAL and no dead rows" in text


def test_the_head_names_the_versions_of_redis_and_node_and_all_the_minutes():
    peer = record("graphile", {"seconds": 60.0}, {"seconds": 70.0}, tried=[told("2 processes", 1.0)])
    page = {**found(peer), "trySeconds": 5.0}
    page["machine"] |= {"redis": "7.0.15", "node": "20.11.1"}
    text = report(page, "p.svg")
    assert "Python 3.11, Node 20.11.1." in text
    assert "Redis 7.0.15 (Debian's): append-only file" in text
    assert "Measuring took 2 minutes in all." in text  # 20 + 60 + 70 s
    assert "minutes" not in report(found(record("graphile", {})), "p.svg")


async def test_a_redis_is_asked_for_its_version():
    async def answer(reader, writer):
        assert await reader.readline() == b"INFO server\r\n"
        writer.write(b"$60\r\n# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        assert await Redis(server.sockets[0].getsockname()[1]).version() == "7.0.15"


def test_servers_that_a_later_run_did_not_need_are_still_known(tmp_path):
    file = tmp_path / "results" / "machine.json"
    entrance._machine(file, {"postgres": {"server_version": "18"}})
    entrance._machine(file, {"redis": "7.0.15"})
    machine = entrance._machine(file, {})
    assert (machine["postgres"], machine["redis"]) == ({"server_version": "18"}, "7.0.15")


def test_a_shortened_run_says_so():
    peer = record("foliot", {"drain": 1.0})
    assert "A shortened run" in report(found(peer, full=False), "p.svg")
    assert "A shortened run" not in report(found(peer), "p.svg")


def test_every_row_names_its_versions_settings_and_durability():
    text = report(found(*(record(peer.name, {"drain": 1.0}) for peer in PEERS)), "p.svg")
    for peer in PEERS:
        assert f"**{peer.title}** ({', '.join(peer.packages)}" in text
        assert peer.settings in text
        assert f"Durability: {peer.durability}" in text
        assert peer.not_chosen in text


def test_the_page_says_which_settings_were_tried_and_which_was_measured():
    tried = [told("2 processes", 30_000.0, 31_000.0), told("4 processes", 29_000.0, error="it | stood still")]
    peer = record("graphile", {"drain": 1.0}, tried=tried, chosen="2 processes")
    text = report({**found(peer), "trySeconds": 5.0}, "p.svg")
    assert "5 s of sustained load each time" in text
    assert "| Graphile Worker | 2 processes | 30,000, 31,000 | measured |" in text
    assert "| Graphile Worker | 4 processes | 29,000, failed: it / stood still |  |" in text
    assert "PostgreSQL): 2 processes, 24 concurrent jobs" in text
    assert "were tried" not in report(found(record("graphile", {"drain": 1.0})), "p.svg")


@pytest.mark.parametrize(
    "page", sorted((entrance.ROOT / "docs/proof").glob("peers-*/peers.json")), ids=lambda page: page.parent.name
)
def test_a_published_page_can_still_be_written_anew(page):
    text = report(json.loads(page.read_text()), "peers.svg")
    assert "## Settings and durability" in text


def test_a_scheduler_that_adds_one_by_one_says_so():
    text = report(found(record("apscheduler", {})), "p.svg")
    line = next(line for line in text.splitlines() if line.startswith("- **APScheduler**"))
    assert "Bulk: no such call: one by one." in line


# Judging


def test_foliot_is_held_to_twice_the_fastest_peer_and_to_a_share_of_the_floor():
    ours = record("foliot", {"sustained": 40.0}, {"sustained": 44.0}, {"sustained": 36.0})
    floor = record("floor", {"sustained": 50.0}, {"sustained": 50.0}, {"sustained": 60.0})
    slow, fast = record("pgqueuer", {"sustained": 5.0}), record("bullmq", {"sustained": 20.0}, {"sustained": 18.0})
    text = report(found(ours, floor, slow, fast), "p.svg")
    assert row(text, "sustained, times").endswith("(BullMQ) | 2.11 | at least 2 | met | 2.00, 2.44 |")
    assert row(text, "sustained, share").endswith(
        "raw floor | 0.80 | at least 0.7 | met, not always | 0.80, 0.88, 0.60 |"
    )
    text = report(found(ours, record("graphile", {"sustained": 21.0})), "p.svg")
    assert row(text, "sustained, times").endswith("(Graphile Worker) | 1.90 | at least 2 | MISSED | 1.90 |")
    assert "share of the raw floor" not in text


def test_start_latency_is_held_to_that_of_each_peer_on_postgresql():
    ours = record("foliot", {"p50": 1.5, "p95": 3.0, "p99": 5.0}, {"p50": 1.7, "p95": 3.0, "p99": 5.0})
    peer = record("graphile", {"p50": 1.7, "p95": 3.0, "p99": 9.0}, {"p50": 1.6, "p95": 3.0, "p99": 9.0})
    on_redis = record("taskiq", {"p50": 0.6, "p95": 0.7, "p99": 1.1})
    words = {each.what: each.word for each in verdicts([ours, peer, on_redis])}
    assert words == {
        "start latency p50 beside Graphile Worker": "met, not always",
        "start latency p95 beside Graphile Worker": "MISSED",
        "start latency p99 beside Graphile Worker": "met",
    }


def test_without_foliot_nothing_is_judged():
    assert "held to" not in report(found(record("celery", {"sustained": 1.0, "p50": 1.0})), "p.svg")


def test_an_old_folder_is_written_anew_from_its_numbers(tmp_path):
    publish(tmp_path, found(record("foliot", {"sustained": 60.0}), record("awa", {"sustained": 10.0})))
    page = (tmp_path / "peers.md").read_text()
    (tmp_path / "peers.md").write_text("of a release that judged nothing")
    render(tmp_path)
    assert (tmp_path / "peers.md").read_text() == page
    assert "| 6.00 | at least 2 | met |" in page


@pytest.mark.parametrize("repeats", [3, 2])
def test_only_a_page_on_which_every_peer_has_all_its_repeats_is_a_proof(tmp_path, monkeypatch, repeats):
    monkeypatch.setattr(entrance, "ROOT", tmp_path)
    peers = [record(peer.name, *[{"drain": 1.0}] * 3) for peer in PEERS]
    peers[4]["repeats"] = peers[4]["repeats"][:repeats]
    entrance._publish(tmp_path / "results", Plan(), "abc", {"machine": found()["machine"], "peers": peers})
    proof, kept = tmp_path / "docs/proof/peers-abc/peers.md", tmp_path / "results/report/peers.md"
    assert (proof.exists(), kept.exists()) == ((True, False) if repeats == 3 else (False, True))
    text = (proof if repeats == 3 else kept).read_text()
    assert ("awa-pg has 2 of 3 repeats" in text) == (repeats == 2)
    assert "(15 s of start latency)" in text


# Drawing


def test_the_picture_is_well_formed_and_longer_bars_stand_for_more():
    peers = [record("foliot", {"drain": 50_000.0}), record("celery", {"drain": 1_500.0}), record("bullmq", {})]
    picture = ET.fromstring(plot({**found(*peers), "commit": "a<b&c"}))
    widths = [float(each.get("width")) for each in picture.iter(f"{SVG}rect") if each.get("x")]
    assert len(widths) == 2
    assert widths[0] > widths[1] > 0
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert "50,000" in texts
    assert "BullMQ" not in texts


def test_a_picture_without_numbers_is_still_a_picture():
    assert ET.fromstring(plot(found())).tag == f"{SVG}svg"


# The adapters


def test_the_peers_that_the_bench_promises_are_there_once_each():
    names = [peer.name for peer in PEERS]
    assert len(set(names)) == len(names)
    assert set(names) == {
        *("foliot", "floor", "pgqueuer", "procrastinate", "awa", "graphile"),
        *("bullmq", "celery", "dramatiq", "taskiq", "apscheduler"),
    }


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_is_pinned_and_has_its_script(peer: Peer):
    mark = "@" if peer.runtime == "node" else "=="
    assert all(package.rpartition(mark)[2][0].isdigit() for package in peer.packages)
    assert peer.version[0].isdigit()
    assert (SCRIPTS / peer.script).is_file()


def test_the_python_peers_on_redis_have_the_fast_parser_that_its_client_recommends():
    for peer in PEERS:
        if peer.store == "redis" and peer.runtime == "python":
            assert any(package.startswith("redis[hiredis]==") for package in peer.packages), peer.name
            assert any(package.startswith("hiredis==") for package in peer.packages), peer.name


def test_a_worker_command_gets_its_own_python_script_and_number():
    peer = replace(BY_NAME["celery"], worker=("{python}", "{script}", "bench{number}@%h"), workers=2)
    home = Home(peer, "/env/python", {})
    assert [command[2] for command in home.workers()] == ["bench0@%h", "bench1@%h"]
    assert home.workers()[0][:2] == ["/env/python", str(SCRIPTS / "with_celery.py")]


# Foliot's own row, in small


class Copied:
    """A store whose databases have their tables already: that spares each cell a migration."""

    def __init__(self, copies, template):
        self._copies = copies
        self._template = template

    @asynccontextmanager
    async def fresh(self):
        with self._copies.of(self._template) as dsn:
            yield dsn


def at_home(name, tmp_path):
    return Home.made(BY_NAME[name], tmp_path, sys.executable)


async def test_foliot_is_measured_in_every_cell(copies, template, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "SPARE", 4.0)
    monkeypatch.setattr(measure, "PROBE", 20)
    plan = Plan(seconds=0.5, runs=1_000)
    numbers = await Repeat(at_home("foliot", tmp_path), Copied(copies, template), plan).run()
    assert numbers["errors"] == {}
    assert (numbers["drained"], numbers["again"]) == (1_000, 0)
    assert all(numbers[name] > 0 for name in ("bulk", "single", "drain", "sustained", "held", "p50", "wal"))
    assert numbers["due1000"].keys() == {"p50", "p95", "p99", "max", "fires", "stores"}
    assert 0 <= numbers["due1000"]["max"] < measure.LONGEST_LOAD


async def test_the_floor_is_measured_in_every_cell(copies, template, tmp_path):
    tuned = {name: [(1_000, 1)] for name in ("bulk", "drain", "sustained")}
    plan = Plan(seconds=0.5, runs=1_000)
    repeat = FloorRepeat(at_home("floor", tmp_path), Copied(copies, template), plan, [{"tuned": tuned}])
    numbers = await repeat.run()
    assert numbers["errors"] == {}
    assert all(numbers[name] > 0 for name in ("bulk", "single", "drain", "sustained", "held", "wal"))
    assert numbers["tuned"] == tuned
