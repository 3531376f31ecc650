from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.outcome import Ending
from foliot.domain.passage import Passage, Step, steps
from foliot.domain.states import State

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ATTEMPTED = st.sampled_from([each for each in Ending if each not in {Ending.NONE, Ending.ENTRUSTED}])


@st.composite
def pasts(draw: st.DrawFn) -> list[Passage]:
    """Attempts one after the other; whoever died may have been brought back before the next."""
    found: list[Passage] = []
    for number in range(draw(st.integers(0, 5))):
        start = BEGAN + (3 * number + 1) * MINUTE
        if draw(st.booleans()):
            found.append(Passage(number, Ending.FAILED, State.READY, start, start + MINUTE, 7, "boom"))
            found.append(Passage(number, Ending.NONE, State.READY, None, start + 2 * MINUTE, None, "replayed"))
        else:
            state = draw(st.sampled_from([State.SCHEDULED, State.READY]))
            found.append(Passage(number, draw(ATTEMPTED), state, start, start + MINUTE, 7, None))
    return found


@given(pasts(), st.booleans())
def test_every_row_is_told_in_order_and_the_dead_are_dead_until_they_are_brought_back(
    past: list[Passage], is_going: bool
):
    created = Step(BEGAN, "accepted", State.READY)
    going = Step(BEGAN + timedelta(days=1), "started", State.RUNNING, 9) if is_going else None
    told = steps(created, past, going)
    assert told[0] == created
    assert [each.at for each in told] == sorted(each.at for each in told)
    assert len(told) == 1 + sum(1 + (each.started_at is not None) for each in past) + is_going
    for before, after in pairwise(told):
        if after.event == "replayed":
            assert (before.event, before.state) == ("failed", State.DEAD)
        if before.event == "started":
            assert before.state is State.RUNNING
            assert after.attempt == before.attempt
