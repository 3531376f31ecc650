"""What every peer's script shares. It runs in that peer's own environment, so it knows the standard library only."""

import asyncio
import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

URL = os.environ.get("PEER_URL", "")
TALLIES = Path(os.environ.get("PEER_TALLIES", "."))
LONGEST_LIFE = 3_600.0
Payload = dict[str, Any]


def payload(sent: float = 0.0) -> Payload:
    """About 100 bytes as JSON."""
    return {"user": 123, "template": "welcome", "note": "y" * 45, "sent": sent}


class Tally:
    """Counts handler starts, and writes them down ten times a second from a thread of its own."""

    def __init__(self) -> None:
        # Appending to a list is atomic, so handlers on many threads need no lock to be counted right.
        self._starts: list[float] = []
        self._waits: list[tuple[float, float]] = []
        self._lock = threading.Lock()
        self._writing = False
        self._written = 0
        self._told = 0

    def started(self, sent: float) -> None:
        """To be called on the first line of a handler; `sent` is when the producer made its call, or 0."""
        now = time.time()
        self._starts.append(now)
        if sent:
            self._waits.append((sent, now))
        if not self._writing:
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._writing:
                return
            self._writing = True
        atexit.register(self._write)
        threading.Thread(target=self._repeat, daemon=True).start()

    def _repeat(self) -> None:
        end = time.monotonic() + LONGEST_LIFE
        while time.monotonic() < end:
            time.sleep(0.1)
            self._write()

    def _write(self) -> None:
        count, waits = len(self._starts), len(self._waits)
        if count == self._written:
            return
        line = {
            "at": time.time(),
            "count": count,
            "first": self._starts[0],
            "last": self._starts[count - 1],
            "waits": self._waits[self._told : waits],
        }
        with (TALLIES / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._written, self._told = count, waits


def count_started() -> int:
    """How many handlers all workers together have started, as far as they have written it down."""
    return sum(_last_count(path) for path in TALLIES.glob("*.jsonl"))


def _last_count(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 65_536))
        lines = file.read().split(b"\n")
    for line in reversed(lines[:-1]):
        if line.startswith(b'{"at":'):
            return int(json.loads(line)["count"])
    return 0


class Producer:
    """Makes runs in the four ways that are measured; `chunk` runs are handed to `many` in one call."""

    def __init__(
        self,
        one: Callable[[Payload], Awaitable[object]],
        many: Callable[[list[Payload]], Awaitable[object]],
        chunk: int = 1_000,
    ) -> None:
        self._one = one
        self._many = many
        self._chunk = chunk

    async def run(self, verb: str, *numbers: str) -> None:
        """Do what the command line says and print what came of it as one line of JSON."""
        if verb == "bulk":
            answer = await self._bulk(int(numbers[0]))
        elif verb == "single":
            answer = await self._single(float(numbers[0]))
        elif verb == "sustain":
            answer = await self._sustain(float(numbers[0]), int(numbers[1]))
        elif verb == "trickle":
            answer = await self._trickle(float(numbers[0]), float(numbers[1]))
        else:
            raise SystemExit(f"no such verb: {verb}")
        say(answer)

    async def _bulk(self, count: int) -> dict[str, Any]:
        began = time.monotonic()
        for first in range(0, count, self._chunk):
            await self._many([payload() for _ in range(min(self._chunk, count - first))])
        return {"made": count, "seconds": time.monotonic() - began}

    async def _single(self, seconds: float) -> dict[str, Any]:
        made, began = 0, time.monotonic()
        while (lasted := time.monotonic() - began) < seconds:
            await self._one(payload())
            made += 1
        return {"made": made, "seconds": lasted}

    async def _sustain(self, seconds: float, most_waiting: int) -> dict[str, Any]:
        """Hold back while too many wait. The backlog is known from the tallies, so asking costs the peer nothing."""
        made, before, looked, full = 0, count_started(), 0.0, False
        began, end = time.time(), time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if now - looked > 0.05:
                looked, full = now, made - (count_started() - before) > most_waiting - self._chunk
            if full:
                await asyncio.sleep(0.01)
                continue
            await self._many([payload() for _ in range(self._chunk)])
            made += self._chunk
        return {"made": made, "began": began, "ended": time.time()}

    async def _trickle(self, seconds: float, rate: float) -> dict[str, Any]:
        """At an even pace whatever the peer does; a late call is made at once."""
        made, began = 0, time.monotonic()
        while (late := time.monotonic() - began) < seconds:
            if (early := made / rate - late) > 0:
                await asyncio.sleep(early)
            await self._one(payload(time.time()))
            made += 1
        return {"made": made}


def say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
