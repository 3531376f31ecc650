"""Which processes of a run fell over by themselves, by their own word or by how they ended."""

from pathlib import Path
from typing import Final

from chaos.ends import by_itself
from chaos.places import NODES

UNEXPECTED: Final = "ended by an error that nobody expected"
"""What Foliot's processes say of their own crashes; a lost lease, for one, is no crash."""
STARTED: Final = {"api": "listening  url=", "scheduler": "watching the clock", "worker": "ready  handlers="}
"""What they say when they begin to work."""


def fell_over(folder: Path) -> list[str]:
    """Those that met something that nobody had thought of, or ended though nobody had told them to."""
    ended = {end.name.partition(".")[0] for end in by_itself(folder)}
    return [name for name, log in _logs(folder).items() if UNEXPECTED in log or name in ended]


def crashes(folder: Path) -> str:
    """A process that fell over or never began to work proves nothing about a mutant: which did."""
    idle = [name for name, log in _logs(folder).items() if STARTED[name.partition("-")[0]] not in log]
    fell = sorted({*fell_over(folder), *idle})
    return f"crashed: {', '.join(fell)}" if fell else ""


def _logs(folder: Path) -> dict[str, str]:
    paths = {name: folder / "logs" / f"{name}.log" for name in NODES}
    return {name: path.read_text(errors="replace") if path.exists() else "" for name, path in paths.items()}
