"""What became of seeds, in a file: ten thousand take longer than anybody may have in one go."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

import chaos
import foliot
from chaos.simulation.campaign import Report, mode_of
from chaos.simulation.run import Mode
from foliot.kit.postgres import find_binaries


def code() -> str:
    """A name for what is tried: two campaigns of the same name are one campaign, whatever else has changed."""
    digest = hashlib.blake2b(f"{sys.version_info} {find_binaries().version}".encode(), digest_size=8)
    for package in (chaos, foliot):
        root = Path(next(iter(package.__path__)))
        for path in sorted(root.rglob("*")):
            if path.suffix in {".py", ".sql"}:
                digest.update(f"{path.relative_to(root)} ".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


class Kept:
    """The reports of a campaign, one in a line. One campaign at a time writes to a file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"kept-{code()}.jsonl"
        self._reports = {(each.seed, each.mode): each for each in self._read()}
        self._file = self.path.open("ab")

    def _read(self) -> Iterator[Report]:
        if not self.path.exists():
            return
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:  # whoever wrote it was ended in the middle of a line
            self.path.write_bytes(whole)
        yield from msgspec.json.Decoder(Report).decode_lines(whole)

    def of(self, seeds: list[int], wanted: Mode | None) -> list[Report]:
        """What is known of these, if simulated as wanted."""
        asked = ((seed, mode_of(seed, wanted)) for seed in seeds)
        return [self._reports[each] for each in asked if each in self._reports]

    def add(self, report: Report) -> None:
        """It is there for good when this returns, unless the machine goes down."""
        self._file.write(msgspec.json.encode(report) + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
