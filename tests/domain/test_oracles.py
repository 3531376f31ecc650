"""Three readings of cron agree: ours, the one of the chaos runs' checker, and a scan of what wall clocks show."""

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaos import cron as checker
from domain.oracles import (
    DAY,
    HOUR,
    MICRO,
    NEAR,
    YEARS,
    ZONES,
    Question,
    aimed,
    expression,
    question,
    questions,
    seeded,
)
from domain.scan import changes
from foliot.domain.cron import fires_after
from foliot.domain.schedule import next_fire

PER_ZONE, PER_QUESTION, WALKED = 2600, 20, 8
DECIDED = 15
"""The least number of cases, for each size of jump in a zone, whose answer depends on the rules for gaps and folds."""
ACROSS = 40
"""The least number of cases in a zone that follow elapsed time across a change."""
SPECIAL = {
    "Australia/Lord_Howe": {-30, 30},
    "Antarctica/Troll": {-120, 120},
    "Antarctica/Casey": {-180, 180},
    "Pacific/Apia": {-60, 60, 1440},
}
RAMADAN = {"Africa/Casablanca", "Africa/El_Aaiun"}
ODD = {*SPECIAL, *RAMADAN, "Africa/Cairo"}
ASKED = ZONES if os.environ.get("FOLIOT_TEST_ORACLES") == "full" else sorted(ODD | {*ZONES[::8]})
"""All by `make oracles`; otherwise the odd ones, and some of the others."""
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(micros):
    return UNIX_EPOCH + timedelta(microseconds=micros)


def place(fires, start):
    """Where in `fires` the first one strictly after `start` stands."""
    return bisect_right(fires, start, key=lambda fire: fire * MICRO)


def agreed(asked):
    """All fires of the window, for each rule, once both oracles say the same."""
    by_looking = asked.by_looking()
    assert by_looking == asked.by_the_checker(), asked
    return by_looking


def check(asked, answers, starts):
    crons = asked.crons()
    for number, start in enumerate(starts):
        cron, fires = crons[number % 4], answers[number % 4]
        found = next_fire(cron, at(start))
        assert found == at(fires[place(fires, start)] * MICRO), (asked, cron.dst, at(start))
        assert found > at(start)
    for cron, fires in zip(crons, answers, strict=True):
        check_walk(asked, cron, fires, starts[0])


def check_walk(asked, cron, fires, start):
    first = place(fires, start)
    wanted = [at(fire * MICRO) for fire in fires[first : first + WALKED]]
    walk = list(islice(fires_after(cron.expression, ZoneInfo(asked.zone), at(start), cron.dst), len(wanted)))
    assert walk == wanted, (asked, cron.dst, at(start))
    assert walk == sorted(set(walk))


def kinds(asked, answers, start, moments):
    """What a case is good for."""
    following = [fires[place(fires, start)] for fires in answers]
    index = bisect_left(moments, start - NEAR * MICRO)
    if index < len(moments) and moments[index] <= start + NEAR * MICRO:
        yield "near a change"
    if asked.jump and len(set(following)) > 1:
        yield "decided", asked.jump
        if at(start).year >= 2019 and asked.zone in RAMADAN:
            yield "Ramadan"  # since then the clocks change for nothing else
    if asked.jump and asked.pattern.follows_elapsed_time and start < asked.middle * MICRO <= following[0] * MICRO:
        yield "across", asked.jump
    yield "in", at(start).year


@pytest.mark.parametrize("zone", ASKED)
def test_three_readings_of_cron_agree(zone):
    random, known, cases, tally = seeded(zone), changes(zone, *YEARS), set(), Counter()
    moments = [minute * 60 * MICRO for minute, _ in known]
    for asked in questions(zone, random):
        answers = agreed(asked)
        starts = asked.starts(random, answers, PER_QUESTION) if all(answers) else []
        if starts:
            check(asked, answers, starts)
        for start in starts:
            if (asked.written, start) not in cases:
                cases.add((asked.written, start))
                tally.update(kinds(asked, answers, start, moments))
        if len(cases) >= PER_ZONE:
            break
    checker.fires.cache_clear()
    assert_worth_its_time(zone, known, tally)


def assert_worth_its_time(zone, known, tally):
    """So that no change of zone data or of the drawing takes away, unseen, what these cases are for."""
    jumps = {jump for _, jump in known}
    assert {jump: tally["decided", jump] for jump in jumps if tally["decided", jump] < DECIDED} == {}
    assert sum(tally["across", jump] for jump in jumps) >= (ACROSS if jumps else 0)
    assert tally["near a change"] >= (PER_ZONE / 2 if jumps else 0)
    assert len([kind for kind in tally if kind[0] == "in"]) >= 20
    assert jumps >= SPECIAL.get(zone, set())
    assert tally["Ramadan"] >= (DECIDED if zone in RAMADAN else 0)


def test_the_cases_are_as_many_as_promised():
    assert len(set(ZONES)) >= 30
    assert set(ZONES) >= ODD
    assert PER_ZONE * len(set(ZONES)) >= 100_000
    assert set(ASKED) <= set(ZONES)


@st.composite
def any_question(draw):
    def choice(options):
        return draw(st.sampled_from(options))

    zone = choice(ZONES)
    minute, jump = choice(changes(zone, *YEARS) or [(27_000_000, 0)])
    written = aimed(choice, zone, minute * 60, jump) if jump and draw(st.booleans()) else expression(choice)
    away = draw(st.just(0) | st.integers(-2 * DAY, 2 * DAY))
    return question(written, zone, minute * 60 + away, 0 if away else jump)


@settings(max_examples=150, deadline=None)
@given(any_question(), st.integers(0, 2**32))
def test_three_readings_agree_on_what_hypothesis_asks(asked, seed):
    answers = agreed(asked)
    assume(all(answers))
    starts = asked.starts(Random(seed), answers, PER_QUESTION)
    assume(starts)
    check(asked, answers, starts)


def test_clocks_that_go_there_and_back_within_a_week_are_not_overlooked():
    there, back = (minute * 60 for minute, _ in changes("America/Recife", 2000, 2000)[-2:])
    assert back - there == 7 * DAY - HOUR
    asked = Question("*/30 23 14 10 *", "America/Recife", there, there - DAY, back + DAY)
    answers = agreed(asked)
    assert answers[0][0] == back - HOUR  # eleven in the evening came twice, and this was the first time
    check(asked, answers, [(there - second) * MICRO for second in range(0, HOUR, 60)])
