"""What `foliot up` says once everything answers: where to look next."""

import asyncio
import os
import shlex
import shutil
import socket
import sys
from datetime import timedelta
from pathlib import Path

import click

from foliot.cli.compose import egress_of, url_of
from foliot.kit.loop import any_of
from foliot.kit.ready import is_ready
from foliot.kit.settings import Settings, client_file


async def greet(settings: Settings, listener: socket.socket, stop: asyncio.Event) -> None:
    """Wait until the API answers, and say so."""
    while not stop.is_set():
        if await is_ready(*listener.getsockname()[:2]):
            click.echo(_greeting(settings, url_of(listener)), err=True)
            return
        await any_of(stop, within=timedelta(milliseconds=50))


def _greeting(settings: Settings, url: str) -> str:
    foliot = _program()
    if "FOLIOT_HOME" in os.environ:
        foliot = f"FOLIOT_HOME={shlex.quote(str(settings.home))} {foliot}"
    return f"""
Foliot is up.
  API     {url}/v1   (reference: {url}/docs)
  key     in {_near(client_file(settings.home))}, where `foliot` and the SDK find it
  calls   HTTP handlers may call: {egress_of(settings)}   (FOLIOT_HTTP_ALLOW, FOLIOT_HTTP_DENY)
  try     {foliot} job create hello {url}/health --every PT10S
          {foliot} run list
  stop    Ctrl-C
"""


def _program() -> str:
    """How the one who started us can call `foliot` again from here."""
    called = Path(sys.argv[0])
    if called.name != "foliot":
        return "python -m foliot"
    found = shutil.which("foliot")
    if found and Path(found).resolve() == called.resolve():
        return "foliot"
    return shlex.quote(str(_near(called.absolute())))


def _near(path: Path) -> Path:
    """As it is called from here, if it is below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
