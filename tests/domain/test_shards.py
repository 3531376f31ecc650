"""Shards and who looks after them: every one has an owner, and few change hands."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.shards import ALL, OVERDUE, SHARDS, SWEEP, Look, Rounds, assign

MEMBERS = st.sets(st.integers(0, 2**63 - 1), min_size=1, max_size=12)


@given(MEMBERS)
def test_every_shard_has_exactly_one_owner(members: set[int]):
    shares = assign(members)
    assert set(shares) == members
    assert sorted(shard for share in shares.values() for shard in share) == list(range(SHARDS))


@given(MEMBERS, st.data())
def test_who_leaves_gives_up_its_own_shards_and_no_other_moves(members: set[int], data: st.DataObject):
    gone = data.draw(st.sampled_from(sorted(members)))
    before, after = assign(members), assign(members - {gone})
    for member in members - {gone}:
        assert before[member] <= after[member]
        assert after[member] - before[member] <= before[gone]


@given(MEMBERS, st.integers(0, 2**63 - 1))
def test_who_joins_takes_shards_and_moves_none_between_the_others(members: set[int], newcomer: int):
    before, after = assign(members - {newcomer}), assign(members | {newcomer})
    assert all(after[member] <= before[member] for member in members - {newcomer})


def test_shares_are_about_even():
    for members in (2, 3, 5, 8):
        worst = [
            max(map(len, assign([first * 1_000 + number for number in range(members)]).values()))
            for first in range(100)
        ]
        assert sum(worst) / len(worst) < 1.5 * SHARDS / members
        assert max(worst) < 2 * SHARDS / members


def test_nobody_is_given_nothing():
    assert assign([]) == {}


def test_all_processes_come_to_the_same_answer():
    code = "from foliot.domain.shards import assign; print(sorted(assign([11, 22, 33])[22]))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert said == {f"{sorted(assign({33, 22, 11})[22])}\n".encode()}


class Watch:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_members_everything_is_ours_and_there_is_nothing_to_sweep():
    watch = Watch()
    rounds = Rounds(lambda: None, watch)
    watch.now += 10 * SWEEP
    assert rounds.mine() == Look()
    assert rounds.others() is None


def test_who_owns_nothing_looks_at_nothing_but_what_is_overdue():
    watch = Watch()
    rounds = Rounds(frozenset, watch)
    assert rounds.mine() is rounds.others() is None
    watch.now += SWEEP
    assert rounds.others() == Look(ALL, OVERDUE)


def test_others_shards_are_swept_now_and_then_and_again_while_there_is_something():
    watch = Watch()
    mine = frozenset({1, 2, 3})
    rounds = Rounds(lambda: mine, watch)
    assert rounds.mine() == Look(mine)
    watch.now += SWEEP
    assert rounds.others() == Look(ALL - mine, OVERDUE)
    assert rounds.others() is None
    rounds.sweep_again()
    assert rounds.others() == Look(ALL - mine, OVERDUE)


def test_who_owns_all_has_nobody_to_help():
    watch = Watch()
    rounds = Rounds(lambda: ALL, watch)
    watch.now += SWEEP
    assert rounds.others() is None
