"""The proof of the checker: clean histories pass, and every planted fault is found by its own check and by no other.

More than 1,000 seeds in all. Every seed gives a clean history; one fault after the other is planted in it.
"""

import pytest

from chaos.check import SAFETY
from chaos.records import Fault
from chaos.synthetic import FEW, PLANTS, clean, planted
from chaos.synthetic.world import BEGIN, LENGTH
from chaos.verdict import check

CLEAN = 240
"""Seeds whose clean history is checked."""
WHOLE_EVERY = 5
"""Of so many seeds one has all recurring jobs: the others are small."""
SEEDS_PER_PLANT = 6
CHUNKS = 12


def violations(verdict):
    return {check_ for check_, count in verdict.counts.items() if count and check_ in SAFETY}


def why(verdict):
    return [(each.finding.check, each.finding.rule, each.finding.message) for each in verdict.findings]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_clean_histories_pass(chunk):
    for seed in range(chunk, CLEAN, CHUNKS):
        verdict = check(clean(seed, 1.0 if seed % WHOLE_EVERY == 0 else FEW))
        assert not violations(verdict), (seed, why(verdict))


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_found_by_its_check_alone(name):
    first = CLEAN + list(PLANTS).index(name) * SEEDS_PER_PLANT
    for seed in range(first, first + SEEDS_PER_PLANT):
        verdict = check(planted(seed, name))
        assert violations(verdict) == {PLANTS[name].check}, (seed, why(verdict))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_planted_fault_is_found_while_the_nemesis_goes_on_with_others(chunk):
    """In a campaign some fault is always near: it explains nothing that it cannot have caused."""
    for name in list(PLANTS)[chunk::CHUNKS]:
        evidence = planted(3, name)
        evidence.faults += _beside()
        assert PLANTS[name].check in violations(check(evidence)), name


def test_a_clean_history_stays_clean_while_others_are_struck():
    evidence = clean(3)
    evidence.faults += _beside()
    assert not violations(check(evidence))


def _beside() -> list[Fault]:
    """An API is killed as often as the nemesis strikes: no run waits for one, once it was handed in."""
    rhythm = range(10, int(LENGTH) + 20, 46)
    return [Fault(kind="kill", target="api-0", began=BEGIN + at, ended=BEGIN + at + 1) for at in rhythm]


def test_numbers_may_be_taken_in_another_order_than_they_are_used():
    """Two schedulers make up for instants in turn, and one of them was held up."""
    evidence = clean(5)
    for of_job in evidence.dump.backfilled.values():
        for runs in of_job.values():
            runs.reverse()
    assert check(evidence).violations == 0


def test_at_least_a_thousand_seeds_are_tried():
    assert CLEAN + len(PLANTS) * SEEDS_PER_PLANT >= 1000


def test_every_safety_check_has_a_planted_fault():
    assert {plant.check for plant in PLANTS.values()} == set(SAFETY)


def test_a_clean_history_takes_every_rare_path():
    assert all(check(clean(5)).rare.values())


def test_the_same_seed_gives_the_same_history():
    assert clean(3) == clean(3)
    assert clean(3) != clean(4)
