"""Zone names, and the instants at which clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.zone import check_zone, first_change, first_showing, offset_at

BERLIN = ZoneInfo("Europe/Berlin")
SECOND = timedelta(seconds=1)
UTC_NAMES = [
    f"{area}{name}"
    for area in ("", "Etc/")
    for name in ("UTC", "UCT", "Zulu", "Universal", "GMT", "GMT0", "GMT+0", "GMT-0", "Greenwich")
]


@settings(deadline=None)
@given(st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"})))
def test_every_iana_name_is_a_zone(name):
    found = check_zone(name)
    assert found.key == (name if name not in UTC_NAMES else "UTC")
    assert found.utcoffset(datetime(2026, 7, 1)) == ZoneInfo(name).utcoffset(datetime(2026, 7, 1))  # noqa: DTZ001


@pytest.mark.parametrize("name", UTC_NAMES)
def test_utc_has_one_name_and_only_what_never_was_anything_else_is_utc(name):
    assert check_zone(name).key == "UTC"
    for year in range(1900, 2100, 5):
        for month in (1, 7):
            assert not ZoneInfo(name).utcoffset(datetime(year, month, 1))  # noqa: DTZ001 - a reading


@pytest.mark.parametrize(
    "name",
    [
        *[
            "",
            ".",
            "..",
            "../etc/passwd",
            "/etc/passwd",
            "/usr/share/zoneinfo/UTC",
            "Europe/../UTC",
            "Europe",
            "Europe/",
        ],
        *["\x00", "UTC\x00", "localtime", "Factory", "posix/UTC", "zone.tab", "x" * 10_000, "Europe\\Berlin", "٣"],
    ],
)
def test_no_name_reaches_the_file_system_unless_it_is_a_zone(name):
    with pytest.raises(InvalidField, match="unknown time zone") as refused:
        check_zone(name)
    assert refused.value.field == "timezone"
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "case-sensitive: write Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("utc", "write UTC"),
        ("qqqq", "IANA name such as"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_nearest(name, hint):
    with pytest.raises(InvalidField) as refused:
        check_zone(name, "zone")
    assert refused.value.field == "zone"
    assert hint in refused.value.hint


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "Africa/Casablanca", "Asia/Kolkata"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.timedeltas(timedelta(0), timedelta(days=500)),
)
def test_the_first_change_is_the_first_second_with_another_offset(name, after, span):
    zone = ZoneInfo(name)
    offset, until = offset_at(zone, after), after.replace(microsecond=0) + span // SECOND * SECOND
    change = first_change(zone, offset, after, until)
    hours = range(int(((change or until) - after) / timedelta(hours=1)) + 1)
    assert all(offset_at(zone, after + timedelta(hours=hour)) == offset for hour in hours[::6])
    if change:
        assert after < change <= until
        assert offset_at(zone, change - SECOND) == offset != offset_at(zone, change)


def test_a_skipped_reading_is_the_end_of_its_gap_and_a_repeated_one_its_first_pass():
    def showing(*parts):
        return first_showing(BERLIN, datetime(*parts))  # noqa: DTZ001 - a reading

    assert showing(2026, 3, 29, 1, 59, 59) == datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)
    for minute in (0, 1, 30, 59):
        assert showing(2026, 3, 29, 2, minute) == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert showing(2026, 3, 29, 3, 0) == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert showing(2026, 10, 25, 2, 30) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert showing(2026, 10, 25, 3, 0) == datetime(2026, 10, 25, 2, 0, tzinfo=UTC)
