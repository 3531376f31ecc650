"""Ranking anew, by simulation of one flow: pages, claims and arrivals in any order."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.fairness import Priority, reserve, step
from foliot.domain.rerank import begin, catch_up, draw_together, spread_out


class Flow:
    """Runs are numbered as they come; `rows` are those that wait, as (rank, number)."""

    def __init__(self, weight, priority, backlog, virtual=0):
        self.weight, self.priority = weight, priority
        self.virtual, self.last, self.count = virtual, 0, 0
        self.rows, self.work, self.taken = [], None, []
        self.arrive(backlog)

    def arrive(self, count):
        if count:
            pace = step(self.weight, self.priority)
            first, self.last = reserve(self.virtual, self.last, count, pace)
            self.rows += [(first + pace * place, self.count + place) for place in range(count)]
            self.count += count

    def claim(self, count):
        taken, self.rows = self.rows[:count], self.rows[count:]
        self.taken += [number for _, number in taken]
        self.virtual = max([self.virtual, *(rank for rank, _ in taken)])

    def weigh(self, weight):
        self.work = begin(self.weight, weight, self.virtual, self.last)
        self.weight = weight
        if self.work and not self.work.draws_together:
            self.last = self.work.image

    def page(self, size):
        if self.work is None:
            return
        work = catch_up(self.work, self.virtual)
        if work.draws_together:
            self._draw(work, [row for row in self.rows if work.place < row[0] <= self.last][:size], size)
        else:
            self._spread(work, [row for row in self.rows if self.virtual < row[0] <= work.place][-size:], size)

    def _draw(self, work, page, size):
        through = page[-1][0] if len(page) == size else max(self.last, work.place)
        ranks, self.work = draw_together(work, [rank for rank, _ in page], through)
        assert all(new <= old for new, (old, _) in zip(ranks, page, strict=True))
        self._put(page, ranks)
        if len(page) < size:
            self.last, self.work = min(self.last, self.work.image), None

    def _spread(self, work, page, size):
        if page:
            ranks, self.work = spread_out(work, self.virtual, [rank for rank, _ in page], page[0][0])
            assert all(new >= old for new, (old, _) in zip(ranks, page, strict=True))
            self._put(page, ranks)
        if len(page) < size:
            self.work = None

    def _put(self, page, ranks):
        assert all(rank > self.virtual for rank in ranks)
        moved = {number: rank for (_, number), rank in zip(page, ranks, strict=True)}
        self.rows = sorted((moved.get(number, rank), number) for rank, number in self.rows)

    def check(self):
        assert [number for _, number in self.rows] == list(range(self.count - len(self.rows), self.count))
        assert all(one < other for (one, _), (other, _) in pairwise(self.rows))
        assert not self.rows or self.rows[-1][0] <= self.last


weights = st.integers(1, 1000)
priorities = st.sampled_from(Priority)
deeds = st.lists(
    st.tuples(st.sampled_from(["arrive", "claim", "page", "page", "weigh"]), st.integers(1, 30)), max_size=40
)


@given(weights, weights, priorities, st.integers(0, 60), st.integers(0, 10**12), deeds)
def test_whatever_happens_meanwhile_the_order_inside_a_flow_is_kept_and_nothing_is_lost(
    before, after, priority, backlog, virtual, story
):
    flow = Flow(before, priority, backlog, virtual)
    flow.weigh(after)
    for deed, size in story:
        if deed == "weigh":
            if flow.work is None:
                flow.weigh(size)
        else:
            getattr(flow, deed)(size)
        flow.check()
    while flow.work:
        flow.page(7)
        flow.check()
    flow.claim(flow.count)
    assert flow.taken == list(range(flow.count))


@given(st.integers(1, 100), st.integers(1, 100), priorities, st.integers(1, 200), st.integers(0, 10**12))
def test_a_backlog_that_nobody_touches_is_spaced_as_if_it_had_come_by_the_new_weight(
    before, after, priority, backlog, virtual
):
    flow = Flow(before, priority, backlog, virtual)
    flow.weigh(after)
    while flow.work:
        flow.page(16)
    pace = step(after, priority)
    rounding = 1 / step(before, priority) + 1 / pace  # steps are whole: of 40.96 units 40 are left
    for place, (rank, _) in enumerate(flow.rows, 1):
        assert abs(rank - virtual - place * pace) <= rounding * place * pace + backlog / 16 + 2
    flow.arrive(1)
    assert flow.rows[-1][0] - flow.rows[-2][0] >= pace


@given(weights, weights, priorities, st.integers(2, 60), st.integers(1, 40))
def test_what_arrives_while_a_backlog_is_drawn_together_keeps_its_distances(before, more, priority, backlog, late):
    flow = Flow(before, priority, backlog)
    flow.weigh(before + more)
    flow.arrive(late)
    while flow.work:
        flow.page(5)
    pace = step(before + more, priority)
    arrived = [rank for rank, _ in flow.rows[-late:]]
    assert all(other - one == pace for one, other in pairwise(arrived))


@given(weights, st.integers(1, 10**9), st.integers(0, 10**9))
def test_nothing_is_begun_where_nothing_can_wait(weight, virtual, below):
    assert begin(weight, weight + 1, virtual, virtual - min(below, virtual)) is None
    assert begin(weight, weight, virtual, virtual + 10) is None
