"""What a long proof has found so far, in a file: it may take longer than anybody has in one go."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, Self, TypeVar

import msgspec

import chaos
import foliot
from foliot.kit.postgres import find_binaries

Found = TypeVar("Found", bound=msgspec.Struct)


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


class Kept(Generic[Found]):
    """What was found with the same code, one in a line. One campaign at a time writes to a file."""

    def __init__(self, folder: Path, shape: type[Found]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"kept-{code()}.jsonl"
        self._shape = shape
        self.before = list(self._read())
        self._file = self.path.open("ab")

    def _read(self) -> Iterator[Found]:
        if not self.path.exists():
            return
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:  # whoever wrote it was ended in the middle of a line
            self.path.write_bytes(whole)
        yield from msgspec.json.Decoder(self._shape).decode_lines(whole)

    def add(self, found: Found) -> None:
        """It is there for good when this returns, unless the machine goes down."""
        self._file.write(msgspec.json.encode(found) + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
