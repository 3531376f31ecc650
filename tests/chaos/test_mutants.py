"""Mutations fit the present source, and leave something that can run."""

import asyncio
import py_compile
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import asyncpg
import pytest

from chaos import mutants
from chaos.crashes import STARTED, UNEXPECTED, crashes
from chaos.deeds import Deeds
from chaos.mutants import Campaign, Trial, summary
from chaos.mutations import MUTANTS, PRODUCT, Edit, Mutant, Stale, build
from chaos.mutations_of_stopping import ONLY_SIMULATED as OF_STOPPING
from chaos.mutations_of_time import ONLY_SIMULATED as OF_TIME
from chaos.places import NODES
from chaos.records import REFUSED
from chaos.round import Round
from chaos.topology import Topology
from foliot.store.statements import SQL, read_statements

_FUNCTION = re.compile(r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)", re.MULTILINE)


@pytest.mark.parametrize("mutant", [*MUTANTS, *OF_TIME, *OF_STOPPING], ids=lambda each: each.name)
def test_every_mutation_applies_exactly_once_and_compiles(mutant: Mutant, tmp_path: Path):
    source = build(mutant, tmp_path)
    changed = {
        path.relative_to(PRODUCT).as_posix()
        for path in PRODUCT.rglob("*")
        if path.suffix in {".py", ".sql"}
        and path.read_bytes() != (source / "foliot" / path.relative_to(PRODUCT)).read_bytes()
    }
    assert changed == {edit.file for edit in mutant.edits}
    for file in changed:
        if file.endswith(".py"):
            py_compile.compile(str(source / "foliot" / file), cfile=str(tmp_path / "compiled"), doraise=True)


async def test_every_statement_that_is_mutated_can_still_be_understood(dsn: str, tmp_path: Path):
    """If it cannot, the mutant falls over instead of doing wrong."""
    connection = await asyncpg.connect(dsn)
    prepared = set()
    for mutant in [*MUTANTS, *OF_TIME, *OF_STOPPING]:
        files = {edit.file for edit in mutant.edits}
        if any("/migrations/" in file for file in files):
            continue  # it may speak of what this database does not have
        source = build(mutant, tmp_path / mutant.name)
        for file in files:
            if file.startswith("store/sql/"):
                for name, statement in read_statements((source / "foliot" / file).read_text()).items():
                    if statement != SQL.get(name):
                        await connection.prepare(statement)
                        prepared.add(mutant.name)
    await connection.close()
    assert "late-claim-kept" in prepared


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_no_mutation_is_of_a_function_that_a_later_migration_writes_anew(mutant: Mutant):
    """It would fit the text, and change nothing that runs."""
    folder = PRODUCT / "store" / "migrations"
    written = {path: _FUNCTION.findall(path.read_text()) for path in sorted(folder.glob("*.sql"))}
    for edit in mutant.edits:
        file = PRODUCT / edit.file
        if file not in written:
            continue
        before = file.read_text().partition(edit.before)[0]
        within = (_FUNCTION.findall(before + edit.before[: edit.before.find("\n") + 1]) or [""])[-1]
        later = [path.name for path, names in written.items() if path > file and within in names]
        assert not later, f"{within} of {file.name} was written anew in {later}"


@pytest.mark.parametrize("before", ["no line of the source reads like this", "import"])
def test_a_mutation_that_does_not_fit_fails_loudly(before: str, tmp_path: Path):
    edit = Edit("services/submit.py", before, "")
    with pytest.raises(Stale, match="and not once"):
        build(Mutant("faded", "nothing", (edit,), [], 1.0), tmp_path)


def test_every_strike_is_possible():
    deeds = Deeds(cast("Topology", SimpleNamespace(nodes=dict.fromkeys(NODES))), lambda _: None)
    for mutant in MUTANTS:
        for burst in mutant.bursts:
            for after, strike in burst.strikes:
                assert burst.quiet + after < mutant.seconds
                assert strike.kind in deeds._by_kind
                assert strike.target in {*deeds._turn, "schedulers", "workers"}


def test_who_crashed_or_never_began_is_named(tmp_path: Path):
    (tmp_path / "logs").mkdir()
    for name in NODES:
        (tmp_path / "logs" / f"{name}.log").write_text(STARTED[name.partition("-")[0]])
    assert not crashes(tmp_path)
    (tmp_path / "logs" / "api-1.log").write_text(f"{STARTED['api']}\n{UNEXPECTED}\n")
    (tmp_path / "logs" / "worker-0.log").write_text("ImportError\n")
    assert crashes(tmp_path) == "crashed: api-1, worker-0"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("cli/shell.py", UNEXPECTED),
        ("api/server.py", STARTED["api"].split()[0]),
        ("cli/serve_scheduler.py", STARTED["scheduler"]),
        ("cli/serve_worker.py", STARTED["worker"].split()[0]),
        ("worker/process.py", REFUSED),
    ],
)
def test_the_words_that_we_wait_for_are_still_said(file: str, words: str):
    assert f'"{words}"' in (PRODUCT / file).read_text()


def test_caught_means_found_by_a_check_in_time_and_clean_without_the_mutation():
    bad, good = Round(seed=1, seconds=1, found={"S6": 2}), Round(seed=1, seconds=1)
    void = Round(seed=1, seconds=1, void="crashed: api-0")
    cases = [
        (Trial(name="a", what="", rounds=[bad], seconds=1, control=good), True),
        (Trial(name="b", what="", rounds=[bad], seconds=1, control=bad), False),
        (Trial(name="c", what="", rounds=[bad], seconds=1, control=void), False),
        (Trial(name="d", what="", rounds=[good], seconds=1), False),
        (Trial(name="e", what="", rounds=[void], seconds=1), False),
        (Trial(name="f", what="", rounds=[good, bad], seconds=mutants.LIMIT, control=good), True),
        (Trial(name="g", what="", rounds=[good, bad], seconds=mutants.LIMIT + 0.1, control=good), False),
    ]
    assert [trial.caught for trial, _ in cases] == [expected for _, expected in cases]
    assert summary([trial for trial, _ in cases]) == "mutants: 2 caught of 7"
    assert "S6 (2)" in cases[0][0].row()


def test_a_campaign_that_was_ended_names_whom_it_did_not_try(tmp_path: Path):
    done = Trial(name="fence-off", what="", rounds=[Round(seed=20, seconds=1.0)], seconds=1.0)
    mutants.publish(tmp_path, [done], ["unique-off", "node-clock"])
    told = "mutants: 0 caught of 1, 2 not tried: unique-off, node-clock"
    assert (tmp_path / "mutants.md").read_text().splitlines()[-1] == told


def alike(name: str, seconds: float = 1.0) -> Mutant:
    return Mutant(name, "nothing", (), [], seconds)


async def test_so_many_rounds_go_on_at_once_and_an_unmutated_round_is_shared(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutants, "build", lambda _, folder: folder)
    monkeypatch.setattr(mutants, "_ensure_used", lambda _: None)
    rounds, going, most = [], 0, 0

    async def fake(self: Campaign, mutant: Mutant, source: Path | None, seed: int) -> Round:
        nonlocal going, most
        async with self._rounds:
            going, most = going + 1, max(most, going + 1)
            await asyncio.sleep(0)
            going -= 1
            rounds.append((mutant.name if source else "unmutated", mutant.seconds, seed))
            return Round(seed=seed, seconds=1, found={"S6": 1} if source else {})

    monkeypatch.setattr(Campaign, "_round", fake)
    campaign = Campaign(2, 600)
    names = [alike("a"), alike("b"), alike("c", 2.0), alike("d")]
    trials = await asyncio.gather(*(campaign.attempt(mutant, 20) for mutant in names))
    assert most == 2
    assert all(trial.caught for trial in trials)
    assert sorted(each for each in rounds if each[0] == "unmutated") == [("unmutated", 1.0, 20), ("unmutated", 2.0, 20)]


async def test_a_mutant_has_rounds_until_it_is_caught_or_its_time_is_used_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutants, "build", lambda _, folder: folder)
    monkeypatch.setattr(mutants, "_ensure_used", lambda _: None)
    seeds = []

    async def fake(self: Campaign, mutant: Mutant, source: Path | None, seed: int) -> Round:
        seeds.append(seed)
        return Round(seed=seed, seconds=100)

    monkeypatch.setattr(Campaign, "_round", fake)
    trial = await Campaign(1, 350).attempt(alike("a"), 20)
    assert seeds == [20, 21, 22]
    assert (trial.caught, trial.control, trial.seconds) == (False, None, 300)


async def test_a_round_that_breaks_down_proves_nothing(monkeypatch: pytest.MonkeyPatch):
    found = await Campaign(1, 600)._round(alike("there is no such mutant"), None, 1)
    assert found.void.startswith("did not run")
    assert not found.found
