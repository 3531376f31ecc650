"""What a glance at half a run calls violated is violated when the run is over, and nothing else is called so."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest

from chaos import run as running
from chaos.glance import LASTING, Caught, glance, lasting
from chaos.records import Dump, Evidence
from chaos.synthetic import FEW, PLANTS, clean, planted
from chaos.verdict import check

CLEAN = 12
SHARES = (0.2, 0.5, 0.8, 1.0)


def until(evidence: Evidence, share: float) -> Evidence:
    """What is on record after that share of the time: calls that were answered, no faults, no dump."""
    ends = [each.completed for each in evidence.operations] + [each.at for each in evidence.effects]
    at = min(ends) + share * (max(ends) - min(ends))
    return msgspec.structs.replace(
        evidence,
        operations=[each for each in evidence.operations if each.completed <= at],
        effects=[each for each in evidence.effects if each.at <= at],
        faults=[],
        dump=Dump(taken=at, jobs={}, runs={}, attempts={}, quiet=False),
    )


def rules(findings):
    return {(each.check, each.rule) for each in findings}


@pytest.mark.parametrize("seed", range(CLEAN))
def test_nothing_is_violated_for_good_in_any_part_of_a_clean_history(seed):
    evidence = clean(seed, FEW)
    assert [found for share in SHARES for found in lasting(until(evidence, share))] == []


def test_what_was_found_early_is_found_at_the_end_too_and_every_rule_is_found_by_somebody():
    seen = set()
    for name in PLANTS:
        evidence = planted(7, name)
        early = {rule for share in SHARES for rule in rules(lasting(until(evidence, share)))}
        if early:
            assert early <= rules(told.finding for told in check(evidence).findings), name
        seen |= early
    assert seen == LASTING


def write(folder: Path, evidence: Evidence) -> None:
    (folder / "run.json").write_bytes(msgspec.json.encode({"seed": evidence.seed, "settings": evidence.settings}))
    for name, records in (("ledger.jsonl", evidence.effects), ("operations.jsonl", evidence.operations)):
        (folder / name).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))


async def test_a_run_is_broken_off_when_its_records_say_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LOOK_EVERY", 0.01)
    write(tmp_path, clean(3, FEW))
    assert glance(tmp_path) == []
    ended = []

    async def work() -> None:
        try:
            early = next(name for name in PLANTS if ("S10", "early") in rules(lasting(planted(7, name))))
            write(tmp_path, planted(7, early))
            await asyncio.Event().wait()
        finally:
            ended.append(time.monotonic())

    with pytest.raises(Caught) as caught:
        await running._unless_caught(work(), tmp_path)
    assert "S10" in {each.check for each in caught.value.findings}
    assert ended


async def test_a_run_that_nothing_is_wrong_with_comes_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LOOK_EVERY", 0.01)
    write(tmp_path, clean(3, FEW))

    async def work() -> str:
        await asyncio.to_thread(glance, tmp_path)
        return "done"

    assert await running._unless_caught(work(), tmp_path) == "done"
