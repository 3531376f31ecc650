"""The section `schedules` of the bench, small: what it promises about every run, and never how fast it was."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.bench.load import LATER, Load
from foliot.bench.report import page, schedules_rows
from foliot.bench.rest import until_calm
from foliot.bench.schedules import TAIL, Repeat, lead, next_boundary
from foliot.bench.targets import TARGETS, schedule_targets, summarise, what_bounds
from foliot.bench.template import no_bar, remove, template
from foliot.domain.schedule import Cron, Every, next_fire
from foliot.domain.steps import parse_step

LOAD = Load(10_000)
SECONDS = 3.0


@pytest.fixture
def place(tmp_path):
    yield tmp_path
    for home in tmp_path.glob("schedules-*"):
        remove(home)


@pytest.mark.timeout(300)
async def test_every_run_that_falls_due_is_settled_once_and_the_load_can_be_used_again(place):
    said = []
    async with template(LOAD, place, said.append, no_bar) as made:
        found = await Repeat(made, SECONDS, said.append).run()
        again = await made.bed.value(
            "SELECT count(*) FROM (SELECT FROM history GROUP BY job, run, scheduled_at HAVING count(*) > 1) AS again"
        )
        ended = await made.bed.value("SELECT count(*) FROM history JOIN job ON job.run = history.run WHERE state = 4")
    assert any("writing" in text for text in said)
    assert found["due"] > 0
    assert found["missed"] == again == 0
    assert {target.name for target in schedule_targets(LOAD.rate)} <= found.keys()
    assert found["madeUpFor"] > 0
    assert {"scheduler", "worker", "backends", "idle"} <= found["busy"].keys()
    assert ended == LOAD.called_up(lead(SECONDS) + SECONDS + TAIL) > 0

    said.clear()
    async with template(LOAD, place, said.append, no_bar) as made:
        assert said == []
        await made.bed.value(
            "UPDATE schedule SET next_at = clock_timestamp(), cursor = '-infinity' WHERE next_at IS NULL"
        )
        begin = await made.prepare(SECONDS)
        assert await made.bed.value("SELECT count(*) FROM timer WHERE id > 0") == LOAD.timers
        assert await made.bed.value("SELECT min(due_at) FROM timer WHERE id > 0") == LOAD.due(0, begin)
        early = "SELECT count(*) FROM timer WHERE id > 0 AND due_at < $1"
        assert await made.bed.value(early, LATER) == LOAD.called_up(SECONDS)
        assert await made.bed.value("SELECT count(DISTINCT due_at) FROM timer WHERE id > 0") == LOAD.timers
        assert await made.bed.value("SELECT count(*) FROM history") == 0
        assert await made.bed.value("SELECT count(*) FROM run WHERE id > 0") == 0
        behind = "SELECT count(*) FROM schedule WHERE next_at < $1"
        assert await made.bed.value(behind, begin - timedelta(seconds=10)) == 0
        assert await made.bed.value("SELECT count(*) FROM schedule WHERE next_at IS NULL") == 3


def test_what_falls_due_within_a_window_is_what_the_recurrences_say():
    load = Load(1_000)
    since = datetime(2026, 11, 16, 12, tzinfo=UTC)
    after, until = since + timedelta(seconds=5), since + timedelta(seconds=905)
    expected = sum(after < load.due(number, since) <= until for number in range(load.timers))
    for number in range(load.crons + load.intervals):
        body, fire = load.body(number), after
        if number < load.crons:
            recurrence = Cron(body["cronExpression"])
        else:
            recurrence = Every(parse_step(body["every"], "every").clock, load.anchor(number - load.crons))
        while (fire := next_fire(recurrence, fire)) <= until:
            expected += 1
    assert load.due_within(since, after, until) == expected > 0


def found(**changed):
    usual = {target.name: 1.0 for target in TARGETS}
    usual |= {"rate": 9_900, "dueRate": 10_050, "due": 603_000, "skipped": 0, "missed": 0, "unsettled": 10}
    return usual | {"busy": {"scheduler": 0.5, "worker": 0.4, "backends": 0.8, "idle": 0.3}} | changed


def test_medians_are_held_against_the_targets():
    summary = summarise([found(p95=200.0), found(p95=300.0), found(p95=260.0)])
    assert summary["p95"] == 260
    assert summary["met"]["p95"] is False
    assert summary["met"]["p99"] is True
    assert "no processor" in summary["boundBy"]
    assert summarise([found()] * 3)["boundBy"] is None


def test_what_bounds_it_is_told_of_the_repeats_that_missed_even_if_the_median_met(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    late = found(p95=300.0, busy={"scheduler": 0.95, "worker": 0.1, "backends": 0.1, "idle": 0.8})
    summary = summarise([late, found(), found()])
    assert all(summary["met"].values())
    assert summary["boundBy"].startswith("the scheduler's one processor")
    assert summary["boundBy"].endswith(", in 1 of 3 repeats")
    assert summary["busy"]["scheduler"] == 0.5


@pytest.mark.parametrize(("step", "second", "at"), [(60, 0, "12:01:00"), (20, 0, "12:00:20"), (60, 56, "12:02:00")])
def test_a_burst_falls_on_the_next_boundary_that_leaves_time_to_set_it(step, second, at):
    now = datetime(2026, 11, 16, 12, 0, second, 250_001, tzinfo=UTC)
    assert next_boundary(now, step).isoformat() == f"2026-11-16T{at}+00:00"


async def test_the_disk_rests_when_no_commit_was_slow_for_a_while_on_end():
    took = [0.001, 0.5, 0.001, 0.5]

    async def commit():
        return took.pop(0) if took else 0.001

    assert await until_calm(commit, calm=0.12, patience=30)
    assert not took


async def test_a_disk_that_never_rests_is_not_waited_for_without_end():
    async def commit():
        return 0.5

    assert not await until_calm(commit, calm=0.1, patience=0.1)


def test_what_bounds_it_names_who_was_busy(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    busy = {"scheduler": 0.2, "worker": 0.4, "backends": 1.3, "idle": 0.1}
    assert what_bounds(busy).startswith("all 2 processors")
    assert what_bounds(busy | {"scheduler": 0.95, "idle": 0.5}).startswith("the scheduler's one processor")


def test_the_report_shows_targets_beside_numbers():
    repeats = [found(burstReady=2_500.0)] * 3
    head = {"jobs": 10_000_000, "perSecond": 10_000, "burst": 100_000, "seconds": 60.0, "writtenIn": 200.0}
    section = {**head, **summarise(repeats, schedule_targets(10_000)), "repeats": repeats}
    rows = {row[0]: row for row in schedules_rows(section)}
    assert rows["burst of one instant: last run ready"][1:4] == ("2,500 ms", "2,000 ms", "MISSED")
    assert rows["scheduled runs settled"][1:4] == ("9,900/s", "at least 9,900/s", "met")
    assert rows["scheduled runs that fell due"][1:4] == ("10,050/s", "at least 10,000/s", "met")
    assert rows["late instants made up for meanwhile, runs settled"][1] == "1"
    machine = {"commit": "abc", "measuredAt": "now", "processors": 2, "processor": "P", "memoryGiB": 4}
    machine |= {"system": "S", "python": "3.11"}
    told = {"machine": machine, "postgres": "18", "loadBefore": 0.1, "minutes": 1.0, "seconds": 8.0}
    text = page({**told, "results": {"schedules": section}})
    assert "## With 10,000,000 jobs in place" in text
    assert "MISSED" in text
    assert "What bounds it: no processor" in text
