"""Load from outside: wrk, which asks for more than one Python process could."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from foliot.bench.hearing import heard
from foliot.bench.sections import Skipped
from foliot.domain.errors import FoliotError

_SCRIPT: Final = """\
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
wrk.body = {body}
{pace}
function done(summary, latency, requests)
  local wrong = summary.errors
  print(string.format('{{"answers": %d, "refused": %d, "broken": %d, "microseconds": %d, "p50": %d, "p99": %d}}',
    summary.requests, wrong.status, wrong.connect + wrong.read + wrong.write + wrong.timeout, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
"""
# Between 0 and twice the mean, so that calls come at any moment and not in step with each other.
_PACE: Final = "function delay() return math.random(0, {twice}) end"


class Load(NamedTuple):
    """What is asked, by how many at once, and how long each of them waits between two calls, in milliseconds."""

    body: bytes
    connections: int
    pause: int = 0


class Told(msgspec.Struct):
    """What wrk saw; `p50` and `p99` in microseconds."""

    answers: int
    refused: int
    broken: int
    microseconds: int
    p50: int
    p99: int

    @property
    def rate(self) -> float:
        """Calls answered with success, a second."""
        return (self.answers - self.refused) * 1e6 / self.microseconds


def check_wrk() -> None:
    if shutil.which("wrk") is None:
        raise Skipped("wrk, which makes the load, is not installed: `make wrk`, or apt-get install wrk")


async def press(
    url: str, key: str, load: Load, seconds: float, started: Callable[[int], None] = lambda _: None
) -> Told:
    """Ask for so long; `started` is told wrk's pid. What is not answered with success is an error, and so are none."""
    with tempfile.TemporaryDirectory(prefix="foliot-wrk-") as folder:
        script = Path(folder) / "load.lua"
        script.write_text(script_of(key, load), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            "wrk", "-t1", f"-c{load.connections}", f"-d{max(1, round(seconds))}s", "--timeout", "10s",
            "-s", str(script), url,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said = await heard(process, started)
    told = read(said.decode())
    if told.refused or told.broken or not told.answers:
        raise FoliotError(f"{url}: {told.answers:,} answers, {told.refused:,} refusals, {told.broken:,} broken calls")
    return told


def script_of(key: str, load: Load) -> str:
    pace = _PACE.format(twice=2 * load.pause) if load.pause else ""
    # JSON's escapes are Lua's, as long as the body is plain ASCII without control characters.
    return _SCRIPT.format(key=key, body=json.dumps(load.body.decode("ascii")), pace=pace)


def read(said: str) -> Told:
    """The last line is ours."""
    return msgspec.json.decode(said.strip().splitlines()[-1], type=Told)
