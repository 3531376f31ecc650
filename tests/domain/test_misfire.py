"""Late instants: within their grace on time, then open for whoever wants them, the rest on record; none lost."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain import misfire
from foliot.domain.cron import Cron
from foliot.domain.misfire import GRACE, MOST_OPENED, Advance, CatchUp, Mode, Opening, Reach, advance
from foliot.domain.schedule import Every, Recurrence, next_fire

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MINUTELY = Every(MINUTE)
RECURRENCES = st.sampled_from(
    [
        MINUTELY,
        Every(timedelta(seconds=7)),
        Every(timedelta(hours=5), START),
        Cron("*/5 * * * *", "UTC"),
        Cron("30 2 * * *", "Europe/Berlin"),
        Cron("0 9 * * 1-5", "America/New_York"),
    ]
)
LATENESS = st.one_of(
    st.timedeltas(timedelta(0), 2 * GRACE),
    st.timedeltas(timedelta(0), 2 * HOUR),
    st.timedeltas(timedelta(0), timedelta(days=40)),
)
WINDOWS = st.timedeltas(timedelta(seconds=10), 3 * HOUR)
REACHES = st.builds(
    Reach,
    WINDOWS,
    st.just(timedelta()) | WINDOWS,
    st.lists(st.timedeltas(timedelta(0), 2 * HOUR).map(lambda after: START + after), max_size=3),
)


def first_of(recurrence: Recurrence) -> datetime:
    first = next_fire(recurrence, START)
    assert first is not None
    return first


def all_moves(recurrence: Recurrence, first: datetime, now: datetime, reach: Reach) -> list[Advance]:
    """Advance until nothing is late any more."""
    moves = [advance(recurrence, next_at=first, now=now, reach=reach)]
    while (following := moves[-1].next_at) is not None and now - following > GRACE:
        moves.append(advance(recurrence, next_at=following, now=now, reach=reach))
    return moves


def instants(recurrence: Recurrence, first: datetime, until: datetime) -> list[datetime]:
    found = []
    fire: datetime | None = first
    while fire is not None and fire <= until:
        found.append(fire)
        fire = next_fire(recurrence, fire)
    return found


@given(RECURRENCES, st.timedeltas(timedelta(0), GRACE), REACHES)
def test_an_instant_within_its_grace_is_fired(recurrence: Recurrence, late: timedelta, reach: Reach):
    first = first_of(recurrence)
    following = next_fire(recurrence, first)
    step = advance(recurrence, next_at=first, now=first + late, reach=reach)
    assert step == Advance((Opening(first, first, following),), first, following)


@given(RECURRENCES, LATENESS, REACHES)
def test_an_advance_deals_with_all_instants_from_the_next_to_where_it_ends(
    recurrence: Recurrence, late: timedelta, reach: Reach
):
    first = first_of(recurrence)
    step = advance(recurrence, next_at=first, now=first + late, reach=reach)
    assert step.openings[0].at == first
    assert step.next_at == next_fire(recurrence, step.through)
    for opening, following in zip(step.openings, step.openings[1:], strict=False):
        assert opening.through < following.at == next_fire(recurrence, opening.through)
    assert step.openings[-1].through <= step.through
    assert next_fire(recurrence, step.openings[-1].through) == step.next_at


@given(RECURRENCES, LATENESS, REACHES)
def test_nothing_is_fired_early_and_nothing_that_is_on_time_is_missed(
    recurrence: Recurrence, late: timedelta, reach: Reach
):
    first = first_of(recurrence)
    now = first + late
    for move in all_moves(recurrence, first, now, reach):
        assert move.through <= now
        for opening in move.openings:
            assert opening.at <= opening.through <= now
            if opening.missed or opening.late_through:
                assert now - opening.at > GRACE
            assert opening.missed == 0 or opening.late_through is None


@given(RECURRENCES, LATENESS, REACHES)
def test_what_is_left_in_the_end_is_on_time_or_still_to_come(recurrence: Recurrence, late: timedelta, reach: Reach):
    first = first_of(recurrence)
    now = first + late
    following = all_moves(recurrence, first, now, reach)[-1].next_at
    assert following is not None
    assert now - following <= GRACE


JOBS = st.tuples(st.builds(CatchUp, st.sampled_from(Mode), WINDOWS), st.none() | st.timedeltas(timedelta(0), 3 * HOUR))


@given(
    st.sampled_from([MINUTELY, Every(timedelta(seconds=7)), Every(timedelta(minutes=17)), Cron("*/5 * * * *")]),
    st.timedeltas(timedelta(0), 4 * HOUR),
    st.lists(JOBS, min_size=1, max_size=4),
)
def test_whatever_a_job_wants_is_opened_and_nothing_else_is_given_to_it(
    recurrence: Recurrence, late: timedelta, jobs: list[tuple[CatchUp, timedelta | None]]
):
    """By definition: all late instants in the window, or the last one of the job's own if it lies in the window."""
    first = first_of(recurrence)
    now = first + late
    ends = [None if after is None else first + after for _, after in jobs]
    reach = Reach(
        max((each.window for each, _ in jobs if each.mode is Mode.LATEST), default=timedelta()),
        max((each.window for each, _ in jobs if each.mode is Mode.ALL), default=timedelta()),
        sorted({end for end in ends if end is not None and end < now}),
    )
    opened = [each for move in all_moves(recurrence, first, now, reach) for each in move.openings if not each.missed]
    overdue = instants(recurrence, first, now - GRACE - datetime.resolution)
    for (catch_up, _), end in zip(jobs, ends, strict=True):
        own = [at for at in overdue if end is None or at <= end]
        recent = [at for at in own if now - at <= catch_up.window]
        expected = {Mode.NONE: [], Mode.LATEST: [at for at in recent if at == own[-1]], Mode.ALL: recent}[catch_up.mode]
        given_ = [each.at for each in opened if each.late_through and _catches_up(catch_up, end, each, now)]
        assert given_ == expected


def _catches_up(catch_up: CatchUp, until: datetime | None, opening: Opening, now: datetime) -> bool:
    """The same words as the function `catches_up` of the schema; tests of the service hold that to them."""
    if (until is not None and opening.at > until) or now - opening.at > catch_up.window:
        return False
    bounds = [each for each in (until, opening.late_through) if each is not None]
    is_last = opening.following is None or opening.following > min(bounds)
    return catch_up.mode is Mode.ALL or (catch_up.mode is Mode.LATEST and is_last)


@given(st.integers(1, 200))
def test_missed_instants_are_counted(minutes: int):
    first = first_of(MINUTELY)
    step = advance(MINUTELY, next_at=first, now=first + minutes * MINUTE + timedelta(seconds=45))
    late = minutes + 1
    assert step.missed == late - 1


def test_what_is_older_than_any_window_is_not_opened():
    daily = Every(timedelta(days=1))
    first = first_of(daily)
    step = advance(daily, next_at=first, now=first + HOUR + timedelta(seconds=1))
    assert step.openings == (Opening(first, first, missed=1),)


def test_so_many_wanted_instants_are_opened_in_several_steps():
    first = first_of(MINUTELY)
    now = first + 3 * MOST_OPENED * MINUTE
    reach = Reach(all=4 * MOST_OPENED * MINUTE)
    moves = all_moves(MINUTELY, first, now, reach)
    assert len(moves) == 3
    assert [len(move.fires) for move in moves] == [MOST_OPENED] * 3
    assert sum(move.missed for move in moves) == 0


def test_an_instant_that_the_zone_no_longer_knows_is_dealt_with_all_the_same():
    """The rules of the zone were changed after the instant had been worked out."""
    nightly = Cron("30 2 * * *", "UTC")
    odd = datetime(2026, 3, 2, 3, 30, tzinfo=UTC)
    for late in (timedelta(), timedelta(minutes=10), timedelta(hours=5)):
        step = advance(nightly, next_at=odd, now=odd + late)
        assert step.openings[0].at == odd
        assert step.next_at == datetime(2026, 3, 3, 2, 30, tzinfo=UTC)


def test_the_usual_is_the_latest_of_the_last_hour():
    assert CatchUp(Mode.LATEST, HOUR) == misfire.USUAL
