"""`python -m chaos.mutants`: take out Foliot's safeguards one by one; the checker must notice each of them."""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from chaos.__main__ import say
from chaos.ending import cancel_once
from chaos.kept import Kept
from chaos.mutations import MUTANTS, Mutant, build
from chaos.published import folder_for, machine
from chaos.round import Round
from chaos.topology import ROOT

LIMIT: Final = 600.0
"""Seconds within which a mutant must be caught."""
SEED: Final = 20
FOLDER: Final = Path(tempfile.gettempdir()) / "foliot-mutants"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant, its rounds until it was caught, and the unmutated code with the same seed and the same faults."""

    name: str
    what: str
    rounds: list[Round]
    seconds: float
    control: Round | None = None

    @property
    def caught(self) -> bool:
        """By a named S-check on running processes, in time, and only because of the mutation."""
        clean = self.control is not None and not self.control.found and not self.control.void
        return clean and bool(self.rounds[-1].found) and self.seconds <= LIMIT

    def row(self) -> str:
        last, control = self.rounds[-1], self.control
        clean = "not run" if control is None else control.checks or control.void or "0 violations"
        verdict = "caught" if self.caught else "**not caught**"
        return f"| {self.name} | {verdict} | {last.told} | {self.seconds:.0f} s | {last.seed} | {clean} |"


ABOUT: Final = (
    "Each is Foliot with one safeguard taken out, started under chaos with the faults that the safeguard is there for."
    " It is caught when a named check fails on running processes within ten minutes, and the unmutated code passes with"
    " the same seed and the same faults. Where answers and the ledger alone show the violation, the run ends there."
)
HEAD: Final = ("| mutant | | by | after | seed | unmutated |", "|---|---|---|---|---|---|")


class Campaign:
    """Tries mutants, so many rounds at a time."""

    def __init__(self, processes: int, limit: float) -> None:
        self._limit = limit
        self._rounds = asyncio.Semaphore(processes)
        # One more than there are rounds: somebody may wait for an unmutated round that another one has begun.
        self._trials = asyncio.Semaphore(processes + 1 if processes > 1 else 1)
        self._clean: dict[str, asyncio.Task[Round]] = {}

    async def attempt(self, mutant: Mutant, seed: int) -> Trial:
        """Rounds with rising seeds until one of them shows a violation; then the same with nothing broken."""
        async with self._trials:
            say(f"{mutant.name}: {mutant.what}")
            rounds: list[Round] = []
            with tempfile.TemporaryDirectory(prefix="foliot-mutant-source-") as folder:
                source = await asyncio.to_thread(build, mutant, Path(folder))
                source.chmod(0o755)
                await asyncio.to_thread(_ensure_used, source)
                while not rounds or (not rounds[-1].found and self._may_go_on(rounds)):
                    last = await self._round(mutant, source, seed + len(rounds))
                    rounds.append(last)
                    say(f"  {mutant.name}, {_told(last)}")
            control = await self._unmutated(mutant, last.seed) if last.found else None
            if control is not None:
                say(f"  {mutant.name} unmutated, {_told(control)}")
            seconds = sum(each.seconds for each in rounds)
            return Trial(name=mutant.name, what=mutant.what, rounds=rounds, seconds=seconds, control=control)

    def _may_go_on(self, rounds: list[Round]) -> bool:
        return sum(each.seconds for each in rounds) + rounds[-1].seconds < self._limit

    async def _unmutated(self, mutant: Mutant, seed: int) -> Round:
        """Without the mutation. Mutants that need the same faults, for as long, share a round that was clean."""
        alike = str((seed, *mutant[mutant._fields.index("bursts") :]))
        if alike not in self._clean:
            self._clean[alike] = asyncio.create_task(self._round(mutant, None, seed))
        found = await asyncio.shield(self._clean[alike])
        if found.found or found.void:
            self._clean.pop(alike, None)
        return found

    async def _round(self, mutant: Mutant, source: Path | None, seed: int) -> Round:
        """In a process of its own: a round has the signals of its process, and all its memory."""
        given = [mutant.name, str(seed), *([] if source is None else [str(source)])]
        async with self._rounds:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "chaos.round", *given),
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,  # its end tells the process that we are gone
                stdout=asyncio.subprocess.PIPE,
            )
            try:
                # Not `communicate`, which would close its input.
                said = await process.stdout.read() if process.stdout is not None else b""
                await process.wait()
            finally:
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
        if process.returncode:
            void = f"did not run: its process ended with status {process.returncode}"
            return Round(seed=seed, seconds=0.0, void=void)
        return msgspec.json.decode(said.splitlines()[-1], type=Round)


def _told(each: Round) -> str:
    spent = f"{each.seconds:.0f} s, {each.processor:.0f} s of processor{', broken off' if each.early else ''}"
    return f"seed {each.seed}, {spent}: {each.told}; {each.first}".rstrip("; ")


def _ensure_used(source: Path) -> None:
    """Whoever is started like the processes under test must get the mutated code."""
    command = [sys.executable, "-c", "import foliot; print(foliot.__file__)"]
    used = subprocess.run(command, env={"PYTHONPATH": str(source)}, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
    if not Path(used.stdout.decode().strip()).is_relative_to(source):
        raise RuntimeError(f"the mutated source in {source} is not what Python imports: {used.stdout!r}")


def summary(trials: list[Trial], untried: Sequence[str] = ()) -> str:
    said = f"mutants: {sum(trial.caught for trial in trials)} caught of {len(trials)}"
    return f"{said}, {len(untried)} not tried: {', '.join(untried)}" if untried else said


def page(trials: list[Trial], commit: str, untried: Sequence[str] = ()) -> str:
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
    return "\n".join([*lines, "", summary(trials, untried), ""])


def publish(folder: Path, trials: list[Trial], untried: Sequence[str] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        **machine(),
        "trials": [{**msgspec.to_builtins(t), "caught": t.caught} for t in trials],
        "untried": list(untried),
    }
    (folder / "mutants.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    (folder / "mutants.md").write_text(page(trials, found["commit"], untried))


async def try_all(chosen: list[Mutant], given: argparse.Namespace, done: dict[str, Trial]) -> None:
    """Add to `done` as they come. With `kept`, whoever was caught by the same code before is not tried again."""
    cancel_once()
    campaign = Campaign(given.processes, given.limit)
    with Kept(FOLDER, Trial) as kept:
        before = kept.before if given.kept else []
        done |= {each.name: each for each in before if each.caught and each.rounds[0].seed == given.seed}

        async def attempt(mutant: Mutant) -> None:
            done[mutant.name] = await campaign.attempt(mutant, given.seed)
            kept.add(done[mutant.name])

        for mutant in chosen:
            if mutant.name in done:
                say(f"{mutant.name}: was caught before")
        async with asyncio.TaskGroup() as group:
            for mutant in chosen:
                if mutant.name not in done:
                    group.create_task(attempt(mutant))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description=__doc__)
    parser.add_argument("--only", action="append", choices=[mutant.name for mutant in MUTANTS])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each mutant")
    parser.add_argument("--processes", type=int, default=1, help="rounds at a time: each uses about one processor")
    parser.add_argument("--kept", action="store_true", help="go on with what was done before with the same code")
    parser.add_argument("--report", type=Path, help="folder for the report; else docs/proof/mutants-COMMIT")
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not given.only or mutant.name in given.only]
    done: dict[str, Trial] = {}
    was_stopped = False
    try:
        asyncio.run(try_all(chosen, given, done))
    except asyncio.CancelledError:
        was_stopped = True
        say("mutants: stopped before their end")
    trials = [done[mutant.name] for mutant in chosen if mutant.name in done]
    untried = [mutant.name for mutant in chosen if mutant.name not in done]
    if given.report or not given.only:
        place = given.report or folder_for("mutants")
        publish(place, trials, untried)
        say(f"the report is in {place}")
    for line in (*HEAD, *(trial.row() for trial in trials)):
        say(line)
    say(summary(trials, untried))
    sys.exit(130 if was_stopped else 0 if all(trial.caught for trial in trials) else 1)


if __name__ == "__main__":
    main()
