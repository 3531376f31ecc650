"""Puts each peer into an environment of its own that can be thrown away."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PATIENCE: Final = 600.0
REDIS: Final = (
    "redis-server",
    "redis-tools",
    "libatomic1",
    "libhiredis0.14",
    "libjemalloc2",
    "liblua5.1-0",
    "liblzf1",
    "lua-bitop",
    "lua-cjson",
)


class CannotInstallError(Exception):
    """Says why a peer is not measured."""


def python_environment(cache: Path, requirements: Sequence[str]) -> Path:
    """Return a virtual environment that holds exactly these packages and what they need."""
    folder = _place(cache, "python", requirements)
    if not _is_done(folder):
        shutil.rmtree(folder, ignore_errors=True)
        _call([sys.executable, "-m", "venv", str(folder)])
        _call([str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *requirements])
        _finish(folder)
    return folder


def node_environment(cache: Path, requirements: Sequence[str]) -> Path:
    """Return a folder whose node_modules hold these packages."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise CannotInstallError("node and npm are not on the PATH")
    folder = _place(cache, "node", requirements)
    if not _is_done(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / ".npmrc").write_text("omit-lockfile-registry-resolved=true\n")
        (folder / "package.json").write_text('{"private": true}\n')
        _call(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *requirements], folder)
        _finish(folder)
    return folder


def node_version() -> str:
    return _call(["node", "--version"]).strip().removeprefix("v")


def redis_server(cache: Path) -> tuple[Path, dict[str, str]]:
    """Return Debian's redis-server and the environment it needs.

    The packages are unpacked, not installed: that needs no root, and starts no service of the system.
    """
    if found := shutil.which("redis-server"):
        return Path(found), {}
    folder = cache / "redis"
    if not _is_done(folder):
        if not shutil.which("apt-get"):
            raise CannotInstallError("there is no redis-server on the PATH, and no apt-get to fetch it with")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _call(["apt-get", "download", *REDIS], folder)
        for package in sorted(folder.glob("*.deb")):
            _call(["dpkg", "-x", str(package), str(folder)])
        _finish(folder)
    libraries = {str(path.parent) for path in (folder / "usr/lib").rglob("*.so*")}
    return folder / "usr/bin/redis-server", {"LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))}


def _place(cache: Path, kind: str, requirements: Sequence[str]) -> Path:
    name = requirements[0].split("==")[0].split("[")[0].split("@")[0]
    digest = hashlib.sha256(" ".join([kind, sys.version, *requirements]).encode()).hexdigest()
    return cache / f"{kind}-{name}-{digest[:8]}"


def _is_done(folder: Path) -> bool:
    return (folder / ".complete").exists()


def _finish(folder: Path) -> None:
    (folder / ".complete").touch()


def _call(command: list[str], folder: Path | None = None) -> str:
    try:
        return subprocess.run(  # noqa: S603 - the words are ours
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE
        ).stdout
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip().splitlines()[-3:]
        raise CannotInstallError(_public(f"{_name(command)} failed: {' / '.join(said)}")) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstallError(_public(f"{_name(command)} failed: {error}")) from error


def _name(command: list[str]) -> str:
    return f"{Path(command[0]).name} {command[1]}"


def _public(text: str) -> str:
    """The report is published: it names no folder of this machine, and no address that packages came from."""
    return re.sub(r"\w+://\S+", "(address)", re.sub(r"(?<![\w.:/])/\S+/", "", text))
