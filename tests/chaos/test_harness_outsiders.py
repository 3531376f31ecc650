"""Clients that use keys twice, want to call who is denied, or are told secrets: what they ask for, and is heard."""

from pathlib import Path
from typing import cast

import msgspec
import pytest

from chaos.client import Api
from chaos.outsiders import BATCHES, Gossip, Trespasser
from chaos.records import CONFIDED, CONFIDENCE, Outcome, load
from chaos.reuse import TRIES, Reuser
from chaos.synthetic import FEW, clean
from notebook import Notebook


async def test_a_key_is_used_for_something_else_when_its_first_call_was_answered():
    told = Notebook()
    reuser = Reuser(told, 1, 0, "acme")
    for _ in range(2):
        await reuser.step()
    keys = {each.key: None for each in told.calls if each.key}
    by_key = [[each.body for each in told.calls if each.key == key] for key in keys]
    assert [len(bodies) for bodies in by_key] == [TRIES + 2] * 2
    for first, *others, again in by_key:
        assert first == again
        assert len({msgspec.json.encode(each) for each in (first, *others)}) == TRIES + 1
    assert {each.kind for each in told.calls} == {"createJob", "createRun", "cancelJob"}


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.UNKNOWN])
async def test_a_key_that_may_stand_for_nothing_is_not_used_again(outcome: Outcome):
    told = Notebook(outcome)
    await Reuser(told, 1, 0, "acme").step()
    assert len(told.calls) == 1


async def test_runs_refer_to_a_secret_that_has_another_value_now_and_then():
    told = Notebook()
    gossip = Gossip(cast("Api", told), 1, "http://ledger.test/do")
    for _ in range(BATCHES + 1):
        await gossip.step()
    values = [(each.body or {})["value"] for each in told.calls if each.kind == "putSecret"]
    assert len(set(values)) == len(values) == 2
    assert all(value.startswith(CONFIDED) for value in values)
    runs = [run for each in told.calls if each.kind == "createRuns" for run in (each.body or {})["runs"]]
    assert {run["handler"] for run in runs} == {"quick", "caged", "flaky", "http://ledger.test/do"}
    assert all(run["payload"]["secret"] == {"$secret": CONFIDENCE} for run in runs)
    assert CONFIDED not in str(runs)


async def test_the_forbidden_target_is_asked_for_each_time_with_a_payload_of_its_own():
    told = Notebook()
    trespasser = Trespasser(cast("Api", told), 1, "http://denied.test/do")
    for _ in range(2):
        await trespasser.step()
    bodies = [each.body or {} for each in told.calls]
    assert [each["handler"] for each in bodies] == ["http://denied.test/do"] * 2
    assert bodies[0]["payload"] != bodies[1]["payload"]


def test_a_secret_in_a_log_is_heard(tmp_path: Path):
    evidence = clean(1, FEW)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "worker-0.log").write_text(f"fine\nwas told [secret]\nwas told {CONFIDED}1\n")
    (tmp_path / "logs" / "worker-1.log").write_text("ready\n")
    (tmp_path / "run.json").write_bytes(msgspec.json.encode({"seed": 1, "settings": {}}))
    (tmp_path / "dump.json").write_bytes(msgspec.json.encode(evidence.dump))
    for name in ("operations", "ledger", "faults"):
        (tmp_path / f"{name}.jsonl").touch()
    assert load(tmp_path).overheard == {"worker-0": 1}
