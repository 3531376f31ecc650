"""What a chaos run stands on, where the machine has it: a disk that can fill up, a network apart, wrong clocks."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

SIZE: Final = 16 << 30
"""Bytes of the small disk. It is sparse: only what the database writes takes room."""


class Lacking(Exception):  # noqa: N818 - reads aloud
    """This machine cannot do that; the message says why, and the report repeats it."""


def _run(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603 - commands of our own
    except FileNotFoundError:
        raise Lacking(f"there is no {command[0]} here") from None
    except subprocess.CalledProcessError as error:
        raise Lacking(f"{command[0]}: {error.stderr.decode(errors='replace').strip()[:200]}") from None


def _need_root() -> None:
    if os.geteuid() != 0:
        raise Lacking("this needs root")


class Disk:
    """A file system of its own for the database, so that filling it hurts nobody else."""

    def __init__(self, image: Path, place: Path) -> None:
        _need_root()
        self._image, self._place = image, place
        with image.open("wb") as file:
            file.truncate(SIZE)
        # Nothing is kept back for root, and no discard: made in a blink.
        _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", image)
        place.mkdir()
        _run("mount", "-o", "loop", image, place)

    def fill(self) -> int:
        """Take all room that is left; how much it was."""
        free = shutil.disk_usage(self._place).free
        # The first one fails for want of its last blocks and keeps what it got; the others take what is left over.
        for number, size in enumerate((free, *(1 << shift for shift in range(26, 11, -1)))):
            with suppress(OSError), (self._place / f"ballast-{number}").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
        return free - shutil.disk_usage(self._place).free

    def free(self) -> None:
        for ballast in self._place.glob("ballast-*"):
            ballast.unlink()

    def close(self) -> None:
        with suppress(Lacking):
            _run("umount", "-l", self._place)  # lazily: a backend may take a moment to be gone
        self._image.unlink(missing_ok=True)


class Network:
    """A network namespace for one node: the database has an address there that can be cut off, the ledger another."""

    def __init__(self, site: int, place: int) -> None:
        """`site`: nobody else has this number now; what is called by it was left behind by somebody who was killed."""
        _need_root()
        self.name = f"chaos-{site}-{place}"
        self._link = f"chaos{site}p{place}"
        self.database, self.ledger, self.own = (f"10.213.{site}.{16 * place + host}" for host in (1, 2, 3))
        self._prefix = ["ip", "netns", "exec", self.name]
        self.close()
        _run("ip", "netns", "add", self.name)
        try:
            _run("ip", "link", "add", self._link, "type", "veth", "peer", "name", f"{self._link}n")
            _run("ip", "link", "set", f"{self._link}n", "netns", self.name)
            # The first is where calls from here come from, and answers to them must not be cut off with the database.
            for address in (self.ledger, self.database):
                _run("ip", "address", "add", f"{address}/28", "dev", self._link)
            _run("ip", "link", "set", self._link, "up")
            _run(*self._prefix, "ip", "address", "add", f"{self.own}/28", "dev", f"{self._link}n")
            _run(*self._prefix, "ip", "link", "set", f"{self._link}n", "up")
            _run(*self._prefix, "ip", "link", "set", "lo", "up")
        except BaseException:
            self.close()
            raise

    def inside(self, command: list[str]) -> list[str]:
        """The same command, in here; it replaces `ip`, so the process id is its own."""
        return [*self._prefix, *command]

    def cut(self) -> None:
        _run(*self._prefix, "ip", "route", "add", "blackhole", f"{self.database}/32")

    def heal(self) -> None:
        with suppress(Lacking):  # it was whole
            _run(*self._prefix, "ip", "route", "del", "blackhole", f"{self.database}/32")

    def close(self) -> None:
        for command in (("ip", "netns", "del", self.name), ("ip", "link", "del", self._link)):
            with suppress(Lacking):
                _run(*command)


class Clocks:
    """A wall clock per node that can be set apart from the machine's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shim = folder / "clock.so"
        _run("gcc", "-shared", "-fPIC", "-O2", "-o", self._shim, Path(__file__).with_name("clock.c"))

    def environment(self, node: str) -> dict[str, str]:
        self.set(node, 0)
        return {"LD_PRELOAD": str(self._shim), "CHAOS_CLOCK": str(self._file(node))}

    def set(self, node: str, seconds: int) -> None:
        """Written in place: the node has the file mapped into its memory."""
        descriptor = os.open(self._file(node), os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(descriptor, seconds.to_bytes(8, "little", signed=True), 0)
        finally:
            os.close(descriptor)

    def _file(self, node: str) -> Path:
        return self._folder / f"clock-{node}"
