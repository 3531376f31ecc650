"""Cron expressions as text: what is accepted, its one canonical form, and refusals that help."""

from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from domain.readings import matcher
from foliot.domain.errors import InvalidField
from foliot.domain.expression import LONGEST, parse_cron

START = datetime(2026, 1, 1)  # noqa: DTZ001 - a reading
MONTHS = ["JAN", "feb", "Mar", "DEC"]
DAYS = ["SUN", "mon", "Fri", "SAT"]


def terms(low, high, names=()):
    number = st.integers(low, high).map(str) | st.integers(low, min(high, 9)).map("0{}".format)
    if names:
        number |= st.sampled_from(names)
    ranges = st.tuples(number, number).map("-".join)
    steps = st.tuples(st.just("*") | ranges | number, st.integers(1, high).map(str)).map("/".join)
    return st.just("*") | number | ranges | steps


def fields(low, high, names=(), special=()):
    term = terms(low, high, names)
    if special:
        term |= st.sampled_from(special)
    return st.lists(term, min_size=1, max_size=3).map(",".join)


blanks = st.sampled_from([" ", "  ", "\t", " \n "])
written = st.builds(
    lambda seconds, parts, blank: blank + blank.join([*seconds, *parts]) + blank,
    st.lists(fields(0, 59), max_size=1),
    st.tuples(
        fields(0, 59),
        fields(0, 23),
        fields(1, 31, special=["L", "lw", "LW"]),
        fields(1, 12, MONTHS),
        fields(0, 7, DAYS, ["5L", "7L", "mon#1", "7#5", "SUN-FRI"]),
    ),
    blanks,
)


@settings(max_examples=300, deadline=None)
@given(written)
def test_the_canonical_form_fires_when_the_written_one_would(expression):
    try:
        expected = list(islice(CronSim(expression, START), 5))
    except CronSimError:
        assume(False)
    if not expected:
        with pytest.raises(InvalidField, match="never fire"):
            parse_cron(expression)
    else:
        assert list(islice(CronSim(parse_cron(expression), START), 5)) == expected


def spelt(numbers):
    """Other words for the same numbers: in any order, some twice, some as ranges of one."""
    return st.permutations(numbers).flatmap(
        lambda some: st.lists(st.sampled_from(some), max_size=3).map(
            lambda again: ",".join([*map(str, some), *(f"{each}-{each}" for each in again)])
        )
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=8, unique=True), st.data())
def test_the_same_numbers_have_one_text_however_they_are_spelt(hours, data):
    one, other = data.draw(spelt(hours)), data.draw(spelt(hours))
    assert parse_cron(f"0 {one} * * *") == parse_cron(f"0 {other} * * *")


@settings(max_examples=200, deadline=None)
@given(written)
def test_the_canonical_form_is_its_own_canonical_form(expression):
    with suppress(InvalidField):
        canonical = parse_cron(expression)
        assert parse_cron(canonical) == canonical
        assert parse_cron(expression.swapcase()) == canonical


@pytest.mark.parametrize("day", ["*", "*/1", "*/2", "1-31", "1-30", "1-15,16-31", "13", "*/2,2"])
@pytest.mark.parametrize("weekday", ["*", "*/2", "0-6", "MON-SUN", "1-5", "0-5,6", "3", "*,3"])
def test_the_days_of_the_canonical_form_are_those_that_were_written(day, weekday):
    written = matcher(f"0 9 {day} * {weekday.replace('MON-SUN', '0-6')}")
    canonical = parse_cron(f"0 9 {day} * {weekday}")
    days = [datetime(2026, 1, 1, 9) + timedelta(days=number) for number in range(400)]  # noqa: DTZ001
    assert [matcher(canonical)(each) for each in days] == [written(each) for each in days]
    assert all(map(written, days)) == (canonical == "0 9 * * *")


@settings(max_examples=500, deadline=None)
@given(st.text("0123456789*/,-#LW SUNMOFEB@?", max_size=30) | st.text(max_size=20))
def test_whatever_is_sent_is_an_expression_or_a_refusal_with_a_hint(expression):
    try:
        parse_cron(expression)
    except InvalidField as refused:
        assert (refused.field, bool(refused.hint)) == ("cronExpression", True)  # noqa: PT017 - a refusal is an answer


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("0 9 * * MON", "0 9 * * 1"),
        ("  00   09 * * mon ", "0 9 * * 1"),
        ("0 0 9 * * Mon", "0 9 * * 1"),  # second 0 is what five fields mean
        ("30 0 9 * * 1", "30 0 9 * * 1"),
        ("0 9 * jan-mar 7", "0 9 * 1-3 0"),
        ("30,5,30 9 * * FRI,MON", "5,30 9 * * 1,5"),
        ("0 9 * * 1,2,3,4,5", "0 9 * * 1-5"),
        ("0 9 * * MON-WED,3-5", "0 9 * * 1-5"),
        ("0 9 * * MON-SUN", "0 9 * * *"),
        ("0 9 * * 0-7", "0 9 * * *"),
        ("0 9 * * *,MON", "0 9 * * *"),
        ("0 9 1-31 * MON", "0 9 * * *"),  # either is enough, and one of them is always there
        ("0 9 13 * MON-SUN", "0 9 * * *"),
        ("0 9 1-31 * 0-6", "0 9 * * *"),
        ("0 9 1-31 * */2", "0 9 * * */2"),  # with a star both have to match
        ("0 9 */2 * SUN-SAT", "0 9 */2 * *"),
        ("0 9 L * 0-6", "0 9 * * *"),
        ("0 9 * * 0-5", "0 9 * * 0-5"),
        ("0 9 * * */1", "0 9 * * *"),
        ("0 9 * * FRI-SUN", "0 9 * * 0,5,6"),
        ("0 9 10,5-6 * *", "0 9 5,6,10 * *"),
        ("0 9 5-6,10 * *", "0 9 5,6,10 * *"),
        ("0 9 1-31 * *", "0 9 * * *"),
        ("0 9 1-30 * *", "0 9 1-30 * *"),
        ("0 0-23 * * *", "0 0-23 * * *"),  # not `*`, which follows elapsed time
        ("0 */2 * * *", "0 */2 * * *"),
        ("0 2/6 * * *", "0 2-20/6 * * *"),
        ("0 9 * 1-12 *", "0 9 * * *"),
        ("0 9 * 1,4,7,10 *", "0 9 * */3 *"),
        ("0-59 9 * * *", "* 9 * * *"),
        ("45,0,15,30 9 * * *", "*/15 9 * * *"),
        ("5/20 9 * * *", "5-45/20 9 * * *"),
        ("*/60 9 * * *", "0 9 * * *"),
        ("0-59 0 9 * * *", "* 0 9 * * *"),
        ("0-0 0 9 * * *", "0 9 * * *"),
        ("*/20,7 9 * * *", "0,7,20,40 9 * * *"),
        ("0 9 L * *", "0 9 L * *"),
        ("0 9 lw * *", "0 9 LW * *"),
        ("0 9 * * fri#2", "0 9 * * 5#2"),
        ("0 9 * * 7L", "0 9 * * 0L"),
        ("*/1 * * * *", "* * * * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        (" @Daily ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_equal_schedules_share_one_text(written, canonical):
    assert parse_cron(written) == canonical


@pytest.mark.parametrize(
    ("expression", "message", "hint"),
    [
        ("61 * * * *", "minute field '61'", "0-59"),
        ("* 24 * * *", "hour field '24'", "0-23"),
        ("* * 0 * *", "day-of-month field '0'", "1-31"),
        ("* * 15W * *", "day-of-month field '15W'", "LW"),
        ("* * ? * *", "day-of-month field '?'", "1-31"),
        ("* * * FOO *", "month field 'FOO'", "JAN-DEC"),
        ("* * * * 8", "day-of-week field '8'", "SUN-SAT"),
        ("* 22-6 * * *", "hour field '22-6'", "ranges run upwards"),
        ("70 * * * * *", "second field '70'", "0-59"),
        ("*/0 * * * *", "minute field", "0-59"),
        ("1,,2 * * * *", "minute field", "0-59"),
        ("٣ * * * *", "minute field", "0-59"),
        ("* * * *", "4 fields", "0 9 * * MON"),
        ("0 0 9 * * MON 2026", "7 fields", "seconds may come first"),
        ("", "0 fields", "0 9 * * MON"),
        ("@reboot", "unknown name '@reboot'", "@hourly"),
        ("0 9 * * MON," + "MON," * 70, "longer than 256", "several jobs"),
    ],
)
def test_a_refusal_names_the_field_and_what_it_may_be(expression, message, hint):
    with pytest.raises(InvalidField) as refused:
        parse_cron(expression, "when")
    assert refused.value.field == "when"
    assert message in refused.value.message
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "expression",
    ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30-31 FEB *", "0 0 */8 2 MON#5", "0 0 0 30 2 *"],
)
def test_a_date_that_never_comes_is_refused_at_once(expression):
    with pytest.raises(InvalidField, match="no such date") as refused:
        parse_cron(expression)
    assert "L" in refused.value.hint


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 * 2 MON#5", "0 0 31 2 MON", "0 0 29 2 */7", "0 0 L 2 *"])
def test_a_rare_date_is_allowed(expression):
    assert parse_cron(expression)


def test_the_longest_expression_is_still_read():
    padding = LONGEST - len("0 9 * * 1")
    assert parse_cron("0 9" + " " * (padding + 1) + "* * 1") == "0 9 * * 1"
