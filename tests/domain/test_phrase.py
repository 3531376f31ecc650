"""Plain words: what is understood reads itself back, what is not is answered with what would be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.readings import utc
from foliot.domain.cron import Cron, Dst
from foliot.domain.errors import InvalidField
from foliot.domain.phrase import EXAMPLES, parse_phrase
from foliot.domain.schedule import Every, Steps, canonical_key, next_fire


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("every minute", "every|PT1M|-"),
        ("every 15 minutes", "every|PT15M|-"),
        ("hourly", "every|PT1H|-"),
        ("Daily at 9am", "cron|0 9 * * *|UTC"),
        ("each day at noon and midnight", "cron|0 */12 * * *|UTC"),
        ("every weekday at 9:00", "cron|0 9 * * 1-5|UTC"),
        ("weekends at 10:30", "cron|30 10 * * 0,6|UTC"),
        ("every Friday, Monday and Monday at 5 pm", "cron|0 17 * * 1,5|UTC"),
        ("Every Mondays", "cron|0 0 * * 1|UTC"),
        ("every month", "cron|0 0 1 * *|UTC"),
        ("every month on the 15th and 1st at 6:05", "cron|5 6 1,15 * *|UTC"),
        ("every month on the last day at 23:00", "cron|0 23 L * *|UTC"),
        ("every month on the last weekday at 17:00", "cron|0 17 LW * *|UTC"),
        ("every month on the second tuesday at 12pm", "cron|0 12 * * 2#2|UTC"),
        ("every month on the last friday at 17:00", "cron|0 17 * * 5L|UTC"),
        ("every year on March 1st at 12am", "cron|0 0 1 3 *|UTC"),
        ("monthly", "cron|0 0 1 * *|UTC"),
        ("weekly on monday at 9", "cron|0 9 * * 1|UTC"),
        ("every week", "cron|0 0 * * 1|UTC"),
        ("yearly", "cron|0 0 1 1 *|UTC"),
        ("every quarter at 6:00", "cron|0 6 1 */3 *|UTC"),
        ("every 6 months on the last day", "cron|0 0 L */6 *|UTC"),
        ("every 1st of the month at 06:00", "cron|0 6 1 * *|UTC"),
        ("last day of the month at 18:00", "cron|0 18 L * *|UTC"),
        ("first monday of every month at 9.30", "cron|30 9 * * 1#1|UTC"),
        ("every month on the 3rd friday at 9", "cron|0 9 * * 5#3|UTC"),
        ("Tue, Thu at 9:30", "cron|30 9 * * 2,4|UTC"),
        ("at 9:00 on mondays", "cron|0 9 * * 1|UTC"),
        ("9am every day", "cron|0 9 * * *|UTC"),
        ("on weekdays at 9", "cron|0 9 * * 1-5|UTC"),
        ("every business day at 9 o'clock", "cron|0 9 * * 1-5|UTC"),
        ("every hour at :15", "cron|15 * * * *|UTC"),
        ("every half hour", "every|PT30M|-"),
        ("every two hours", "every|PT2H|-"),
        ("every 30 mins", "every|PT30M|-"),
        ("every other day at noon", "every|P2D|1970-01-01T12:00:00Z"),
        ("every 25 december at 8", "cron|0 8 25 12 *|UTC"),
        ("mon-fri at 9", "cron|0 9 * * 1-5|UTC"),
        ("every monday through friday at 9", "cron|0 9 * * 1-5|UTC"),
        ("sat - mon at 9", "cron|0 9 * * 0,1,6|UTC"),
        ("on the 15th at 9", "cron|0 9 15 * *|UTC"),
        ("every other monday at 9", "rrule|FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0|0|UTC"),
        (
            "every other week on fri at 9",
            "rrule|FREQ=WEEKLY;INTERVAL=2;BYDAY=FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0|0|UTC",
        ),
    ],
)
def test_words_stand_for_a_schedule_that_others_share(written, key):
    assert canonical_key(parse_phrase(written).recurrence) == key


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_its_own_canonical_form(example):
    assert parse_phrase(example).text == example


PHRASES = st.one_of(
    st.builds("every {} {}s".format, st.integers(2, 59), st.sampled_from(["second", "minute", "hour"])),
    st.builds(
        "{} at {}".format,
        st.one_of(
            st.sampled_from(["every day", "daily", "every weekday", "weekends", "every month on the last day"]),
            st.builds("every {} and {}".format, *[st.sampled_from(["monday", "Tuesday", "sundays", "friday"])] * 2),
            st.builds("every month on the {}".format, st.integers(1, 28)),
            st.builds("every {} days".format, st.integers(2, 90)),
            st.builds("every {} weeks on {}".format, st.integers(1, 9), st.sampled_from(["mon", "Sunday and tue"])),
            st.builds("every {} months on the {}".format, st.sampled_from([2, 3, 4, 6]), st.integers(1, 28)),
            st.builds(
                "{} {} of the month".format,
                st.sampled_from(["1st", "last", "third"]),
                st.sampled_from(["fri", "Monday"]),
            ),
            st.builds("every {} {}".format, st.sampled_from(["may", "December"]), st.integers(1, 30)),
        ),
        st.one_of(st.builds("{}:{:02}".format, st.integers(0, 23), st.integers(0, 59)), st.just("noon")),
    ),
)


@given(PHRASES, st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]))
def test_what_is_understood_reads_itself_back(written, zone):
    understood = parse_phrase(written, zone)
    assert parse_phrase(understood.text, zone) == understood


def test_days_that_are_counted_keep_their_time_of_day_in_the_zone():
    steps = parse_phrase("every 2 days at 09:00", "Europe/Berlin").recurrence
    assert isinstance(steps, Steps)
    first = next_fire(steps, utc(2026, 3, 27, 12))
    assert [first, next_fire(steps, first)] == [utc(2026, 3, 28, 8), utc(2026, 3, 30, 7)]


def test_zone_and_rules_are_those_of_cron():
    phrase = parse_phrase("every day at 2:30", "Europe/Berlin", Dst("skip", "twice"))
    assert phrase.recurrence == Cron("30 2 * * *", "Europe/Berlin", Dst("skip", "twice"))
    assert parse_phrase("every hour", "Europe/Berlin").recurrence == Every(parse_phrase("hourly").recurrence.period)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("every mondey at 9:00", "every monday at 09:00"),
        ("evry day at 9", "every day at 09:00"),
        ("every month on the lst friday at 17:00", "every month on the last friday at 17:00"),
        ("every fortnight", "every 2 weeks on monday at 09:00"),
        ("twice a day", "every day at 09:00 and 17:00"),
        ("every morning", "every day at 09:00"),
        ("every third friday", "every month on the third friday at midnight"),
        ("every 5 months", "every 4 months on the 1st at midnight"),
        ("every 7 months on the 15th at 9", "every 6 months on the 15th at 09:00"),
        ("every 12 months at 9", "every year on january 1st at 09:00"),
        ("every hour at :75", "every hour at :15"),
        ("evry year on february 30", "every year on march 1st at midnight"),
        (
            "every day except sat and sunday at 9",
            "every monday and tuesday and wednesday and thursday and friday at 09:00",
        ),
        ("every day at 25:00", "every day at 09:00"),
        ("every day at 9:00 and 17:30", "every day at 09:00 and 17:00"),
        ("every 0 minutes", "every minute"),
        ("every month on the 32nd", "every month on the last day at midnight"),
        ("every 2 weeks", "every 2 weeks on monday at 09:00"),
        ("whenever", None),
        ("", None),
    ],
)
def test_the_rest_is_refused_with_the_nearest_that_can_be_read(written, instead):
    with pytest.raises(InvalidField) as caught:
        parse_phrase(written)
    offered = caught.value.hint.removeprefix("did you mean '").removesuffix("'?")
    assert parse_phrase(offered).text == offered
    assert instead in {None, offered}


@pytest.mark.parametrize(
    ("written", "message"),
    [("every year on february 30", "no such date"), ("every 99999 hours", "between one second and ten years")],
)
def test_what_is_understood_and_impossible_is_refused_by_the_same_field(written, message):
    with pytest.raises(InvalidField, match=message) as caught:
        parse_phrase(written)
    assert caught.value.field == "when"
