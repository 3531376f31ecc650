"""`python -m chaos.mutants`: take out Foliot's safeguards one by one; the checker must notice each of them."""

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from chaos.__main__ import say, undisturbed
from chaos.kept import Kept
from chaos.mutations import MUTANTS, Mutant, build
from chaos.published import folder_for, machine
from chaos.records import load
from chaos.run import Options
from chaos.topology import NODES, ROOT
from chaos.verdict import Verdict, check

LIMIT: Final = 600.0
"""Seconds within which a mutant must be caught."""
PATIENCE: Final = 40.0
SEED: Final = 20
FOLDER: Final = Path(tempfile.gettempdir()) / "foliot-mutants"
UNEXPECTED: Final = "ended by an error that nobody expected"
"""What Foliot's processes say of their own crashes; a lost lease, for one, is no crash."""
STARTED: Final = {"api": "listening  url=", "scheduler": "watching the clock", "worker": "ready  handlers="}
"""What they say when they begin to work."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One chaos run of a build: what the S-checks found, or why it says nothing."""

    seed: int
    seconds: float
    acknowledged: int = 0
    faults: int = 0
    found: dict[str, int] = {}
    first: str = ""
    """The first violation, in words."""
    void: str = ""

    @property
    def checks(self) -> str:
        return ", ".join(f"{name} ({count})" for name, count in self.found.items())


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant, its rounds until it was caught, and the unmutated code with the same seed and the same faults."""

    name: str
    what: str
    rounds: list[Round]
    seconds: float
    control: Round | None = None

    @property
    def caught(self) -> bool:
        """By a named S-check on running processes, and only because of the mutation."""
        clean = self.control is not None and not self.control.found and not self.control.void
        return clean and bool(self.rounds[-1].found)

    def row(self) -> str:
        last, control = self.rounds[-1], self.control
        by = last.checks or last.void or "nothing"
        clean = "not run" if control is None else control.checks or control.void or "0 violations"
        verdict = "caught" if self.caught else "**not caught**"
        return f"| {self.name} | {verdict} | {by} | {self.seconds:.0f} s | {last.seed} | {clean} |"


ABOUT: Final = (
    "Each is Foliot with one safeguard taken out, started under chaos with the faults that the safeguard is there for."
    " It is caught when a named check fails on running processes, and the unmutated code passes with the same seed and"
    " the same faults."
)
HEAD: Final = ("| mutant | | by | after | seed | unmutated |", "|---|---|---|---|---|---|")


def run_round(mutant: Mutant, source: Path | None, seed: int) -> Round:
    """Put up a whole system from `source` (none: the unmutated code), strike as this mutant needs it, check all."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="foliot-mutant-"))
    options = Options(
        seed=seed,
        seconds=mutant.seconds,
        folder=folder,
        rate=mutant.rate,
        bursts=mutant.bursts,
        source=source,
        slowest=mutant.slowest,
        odd=mutant.odd,
        patience=PATIENCE,
    )
    try:
        done = uvloop.run(undisturbed(options, lambda _: None))
    except (TimeoutError, OSError, RuntimeError, ExceptionGroup) as error:
        say(f"  the evidence is in {folder}")
        return Round(seed=seed, seconds=time.monotonic() - began, void=f"did not run: {error!r}")
    evidence = load(folder)
    verdict = check(evidence)
    broken = crashes(folder)
    found = {} if broken else {name: n for name, n in verdict.counts.items() if n and name.startswith("S")}
    if broken or (found and source is None):  # that a mutant is found out is as it should be
        say(f"  the evidence is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return Round(
        seed=seed,
        seconds=time.monotonic() - began,
        acknowledged=done.acknowledged,
        faults=len(evidence.faults),
        found=found,
        first=_first(verdict),
        void=broken,
    )


def crashes(folder: Path) -> str:
    """A process that fell over by itself or never began to work proves nothing: which did, by their own word."""
    logs = {name: (folder / "logs" / f"{name}.log").read_text(errors="replace") for name in NODES}
    fell = [name for name, log in logs.items() if UNEXPECTED in log or STARTED[name.partition("-")[0]] not in log]
    return f"crashed: {', '.join(fell)}" if fell else ""


def _first(verdict: Verdict) -> str:
    findings = [told.finding for told in verdict.findings if told.finding.violation]
    if not findings:
        return ""
    first = min(findings, key=lambda each: each.at or float("inf"))
    return f"{first.check} {first.rule}: {' '.join(filter(None, (first.run, first.job)))} {first.message}"


def try_mutant(mutant: Mutant, seed: int, limit: float) -> Trial:
    """Rounds with rising seeds until one of them shows a violation; then the same with nothing broken."""
    rounds: list[Round] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="foliot-mutant-source-") as folder:
        source = build(mutant, Path(folder))
        source.chmod(0o755)
        _ensure_used(source)
        while not rounds or (not rounds[-1].found and time.monotonic() - began + rounds[-1].seconds < limit):
            rounds.append(run_round(mutant, source, seed + len(rounds)))
            last = rounds[-1]
            say(f"  round {len(rounds)}, seed {last.seed}: {last.checks or last.void or 'nothing'}; {last.first}")
    seconds = time.monotonic() - began
    control = _unmutated(mutant, rounds[-1].seed) if rounds[-1].found else None
    if control is not None:
        say(f"  unmutated, seed {control.seed}: {control.checks or control.void or '0 violations'} {control.first}")
    return Trial(name=mutant.name, what=mutant.what, rounds=rounds, seconds=seconds, control=control)


def _unmutated(mutant: Mutant, seed: int) -> Round:
    """The same without the mutation. Mutants that need the same faults, for as long, share a round that was clean."""
    alike = str((seed, *mutant[mutant._fields.index("bursts") :]))
    if alike not in _CLEAN:
        found = run_round(mutant, None, seed)
        if found.found or found.void:
            return found
        _CLEAN[alike] = found
    return _CLEAN[alike]


_CLEAN: Final[dict[str, Round]] = {}


def _ensure_used(source: Path) -> None:
    """Whoever is started like the processes under test must get the mutated code."""
    command = [sys.executable, "-c", "import foliot; print(foliot.__file__)"]
    used = subprocess.run(command, env={"PYTHONPATH": str(source)}, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
    if not Path(used.stdout.decode().strip()).is_relative_to(source):
        raise RuntimeError(f"the mutated source in {source} is not what Python imports: {used.stdout!r}")


def summary(trials: list[Trial]) -> str:
    return f"mutants: {sum(trial.caught for trial in trials)} caught of {len(trials)}"


def page(trials: list[Trial], commit: str) -> str:
    lines = [
        f"# Mutants of {commit}",
        "",
        ABOUT,
        "",
        *HEAD,
        *(trial.row() for trial in trials),
    ]
    for trial in trials:
        lines += ["", f"## {trial.name}", "", f"Broken: {trial.what}."]
        lines += ["", f"First violation: {trial.rounds[-1].first or 'none'}"]
    return "\n".join([*lines, "", summary(trials), ""])


def publish(folder: Path, trials: list[Trial]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        **machine(),
        "trials": [{**msgspec.to_builtins(t), "caught": t.caught} for t in trials],
    }
    (folder / "mutants.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    (folder / "mutants.md").write_text(page(trials, found["commit"]))


def known_and_new(given: argparse.Namespace) -> Iterator[Trial]:
    """In order. With `kept`, whoever was caught by the same code before is not tried again."""
    with Kept(FOLDER, Trial) as kept:
        before = kept.before if given.kept else []
        caught = {each.name: each for each in before if each.caught and each.rounds[0].seed == given.seed}
        for mutant in MUTANTS:
            if given.only and mutant.name not in given.only:
                continue
            if mutant.name in caught:
                say(f"{mutant.name}: was caught before")
                yield caught[mutant.name]
                continue
            say(f"{mutant.name}: {mutant.what}")
            trial = try_mutant(mutant, given.seed, given.limit)
            kept.add(trial)
            yield trial


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description=__doc__)
    parser.add_argument("--only", action="append", choices=[mutant.name for mutant in MUTANTS])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each mutant")
    parser.add_argument("--kept", action="store_true", help="go on with what was done before with the same code")
    parser.add_argument("--report", type=Path, help="folder for the report; else docs/proof/mutants-COMMIT")
    given = parser.parse_args()
    try:
        trials = [*known_and_new(given)]
    except asyncio.CancelledError:
        say("mutants: stopped before their end")
        sys.exit(130)
    if not given.only:
        place = given.report or folder_for("mutants")
        publish(place, trials)
        say(f"the report is in {place}")
    for line in (*HEAD, *(trial.row() for trial in trials)):
        say(line)
    say(summary(trials))
    sys.exit(0 if all(trial.caught for trial in trials) else 1)


if __name__ == "__main__":
    main()
