"""How functions report to the ledger: what they say is on disk before they go on."""

import asyncio
import itertools
from pathlib import Path

import msgspec

from chaos.records import Effect


class Report(msgspec.Struct, array_like=True):
    number: int
    effects: list[Effect]


class Ack(msgspec.Struct, array_like=True):
    number: int
    accepted: bool


class FencedOut(Exception):  # noqa: N818 - reads aloud
    """The ledger has seen a higher fence for this run: whoever reports is a zombie."""


class Reporter:
    """One connection of one process; reports of many handlers travel in it, acknowledged one by one."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._opening = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None

    async def say(self, *effects: Effect) -> None:
        """Return when all of these are on disk; FencedOut if one was refused."""
        writer = self._writer or await self._open()
        number = next(self._numbers)
        told = self._waiting[number] = asyncio.get_running_loop().create_future()
        writer.write(msgspec.json.encode(Report(number, list(effects))) + b"\n")
        try:
            if not await told:
                raise FencedOut
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        if self._writer is not None and self._reading is not None:
            self._reading.cancel()
            self._writer.close()

    async def _open(self) -> asyncio.StreamWriter:
        async with self._opening:
            if self._writer is None:
                reader, self._writer = await asyncio.open_unix_connection(self.socket)
                self._reading = asyncio.create_task(self._read(reader))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        decoder = msgspec.json.Decoder(Ack)
        while line := await reader.readline():
            ack = decoder.decode(line)
            if (told := self._waiting.get(ack.number)) is not None and not told.done():
                told.set_result(ack.accepted)


def say_plainly(socket: Path, *effects: Effect) -> None:
    """The same for a handler in a thread, on a connection of its own."""

    async def say() -> None:
        reporter = Reporter(socket)
        try:
            await reporter.say(*effects)
        finally:
            await reporter.close()

    asyncio.run(say())
