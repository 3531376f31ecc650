"""The wire between each process and the database, and everything that can go wrong with a wire.

One process, one listener per node. `Proxies` is what others steer it with.
"""

import argparse
import asyncio
import socket
import struct
from contextlib import closing, suppress
from enum import StrEnum
from pathlib import Path

import msgspec
import uvloop

from chaos.orphan import leave_with_parent
from chaos.protocol import READY, ClientStream


class Mode(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    DELAY = "delay"  # every piece arrives late, in order
    STALL = "stall"  # nothing moves until it is over, then everything does
    HOLD = "hold"  # the same, from the next commit on: that one is certain to arrive late
    RESET = "reset"  # every connection is reset, once; new ones are welcome
    HALF_OPEN = "halfOpen"  # the server hears the client, the client hears nothing
    DARK = "dark"  # nothing arrives either way, and nothing says so
    CUT_BEFORE = "cutBeforeCommit"  # once: the next commit does not reach the server
    CUT_AFTER = "cutAfterCommit"  # once: the next commit is done, its reply is lost


class Order(msgspec.Struct):
    """How a node's wire shall be; without a node only a question."""

    node: str = ""
    mode: Mode = Mode.PASS
    delay: float = 0.0


class Tally(msgspec.Struct):
    """What happened to each node's commits so far."""

    cuts: dict[str, int]
    held: dict[str, int]
    """Held up by a stall, and brought when it was over."""


class Wire:
    """One node's way to the database: its mode, its connections, how often it was cut, how many commits it held up."""

    def __init__(self, server: str, gateway: str = "") -> None:
        """`gateway`: an API's HOST:PORT, for a node that reaches the database through it."""
        self.server = server
        self.gateway = gateway
        self.mode = Mode.PASS
        self.delay = 0.0
        self.moving = asyncio.Event()
        self.moving.set()
        self.cuts = 0
        self.held = 0
        self.pairs: set[Pair] = set()

    def set(self, mode: Mode, delay: float) -> None:
        was, self.mode, self.delay = self.mode, mode, delay
        if was in {Mode.HALF_OPEN, Mode.DARK}:  # bytes were lost: these connections make no sense any more
            for pair in [pair for pair in self.pairs if pair.lossy]:
                pair.abort()
        if mode is Mode.RESET:
            for pair in list(self.pairs):
                pair.abort()
            self.mode = Mode.PASS
        if mode is Mode.STALL:
            self.moving.clear()
        else:
            self.moving.set()

    @property
    def cuts_next(self) -> bool:
        return self.mode in {Mode.CUT_BEFORE, Mode.CUT_AFTER}

    def pass_by(self, commits: int) -> bool:
        """Whether what a client sends now, with so many commits in it, is held up."""
        if commits and self.mode is Mode.HOLD:
            self.moving.clear()
        return not self.moving.is_set()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not self.gateway:
            return await asyncio.open_unix_connection(self.server)
        host, _, port = self.gateway.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = Pair(self, reader, writer)
        self.pairs.add(pair)
        try:
            await pair.run()
        finally:
            pair.abort()
            self.pairs.discard(pair)


class Opaque:
    """A stream in which nobody looks for commits."""

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        return [(data, False)]


class Pair:
    """One connection of a client and the server's end of it."""

    def __init__(self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._wire = wire
        self._reader = reader
        self._client = writer
        self._server: asyncio.StreamWriter | None = None
        self._swallowing = False
        self._tail = b""
        self.lossy = False

    async def run(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while self._wire.mode is Mode.DARK:
                self.lossy = True
                await asyncio.sleep(0.1)
            reader, self._server = await self._wire.connect()
            to_server = asyncio.create_task(self._to_server(self._server))
            to_client = asyncio.create_task(self._to_client(reader))
            try:
                await asyncio.wait([to_server, to_client], return_when=asyncio.FIRST_COMPLETED)
            finally:
                to_server.cancel()
                to_client.cancel()
                await asyncio.gather(to_server, to_client, return_exceptions=True)

    def abort(self) -> None:
        for end in (self._client, self._server):
            if end is not None and not end.transport.is_closing():
                reset(end.transport)

    async def _to_server(self, server: asyncio.StreamWriter) -> None:
        stream = Opaque() if self._wire.gateway else ClientStream()
        while data := await self._reader.read(1 << 18):
            passed, writes = [], 0
            for message, commits in stream.feed(data):
                writes += commits
                if commits and self._wire.cuts_next and not self._swallowing:
                    mode, self._wire.mode = self._wire.mode, Mode.PASS
                    self._wire.cuts += 1
                    if mode is Mode.CUT_BEFORE:
                        return
                    self._swallowing = True
                passed.append(message)
            held = self._wire.pass_by(writes)
            if await self._arrives(Mode.DARK):
                self._wire.held += writes if held else 0
                server.write(b"".join(passed))
                await server.drain()

    async def _to_client(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1 << 18):
            if self._swallowing:
                self._tail = (self._tail + data)[-len(READY) :]
                if self._tail == READY:
                    return
            elif await self._arrives(Mode.DARK, Mode.HALF_OPEN):
                self._client.write(data)
                await self._client.drain()

    async def _arrives(self, *lost_in: Mode) -> bool:
        """Wait as the wire's mode says; whether what was sent arrives at all."""
        if self._wire.mode is Mode.DELAY:
            await asyncio.sleep(self._wire.delay)
        await self._wire.moving.wait()
        if self._wire.mode in lost_in or self.lossy:
            self.lossy = True
            return False
        return True


def reset(transport: asyncio.WriteTransport) -> None:
    """Close at once; over TCP the other end sees a reset, not an orderly end."""
    with suppress(OSError, AttributeError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def serve(server: str, control: Path, nodes: dict[str, tuple[str, int, str]]) -> None:
    """Stand between every node and the server's socket, or its gateway, and do as the control socket says."""
    wires = {name: Wire(server, gateway) for name, (_, _, gateway) in nodes.items()}
    for name, (address, port, _) in nodes.items():
        await asyncio.start_server(wires[name].serve, address, port)
    decoder = msgspec.json.Decoder(Order)

    async def obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            order = decoder.decode(line)
            if order.node:
                wires[order.node].set(order.mode, order.delay)
            tally = Tally({name: w.cuts for name, w in wires.items()}, {name: w.held for name, w in wires.items()})
            writer.write(msgspec.json.encode(tally) + b"\n")
        writer.close()

    listener = await asyncio.start_unix_server(obey, control)
    await listener.serve_forever()


class Proxies:
    """Steers the proxy process."""

    def __init__(self, control: Path) -> None:
        self._control = control
        self._turn = asyncio.Lock()

    async def set(self, node: str, mode: Mode, delay: float = 0.0) -> Tally:
        """Change a node's wire; what happened to commits so far."""
        return await self._tell(Order(node, mode, delay))

    async def tally(self) -> Tally:
        return await self._tell(Order())

    async def _tell(self, order: Order) -> Tally:
        async with self._turn:
            reader, writer = await asyncio.open_unix_connection(self._control)
            with closing(writer):
                writer.write(msgspec.json.encode(order) + b"\n")
                return msgspec.json.decode(await reader.readline(), type=Tally)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos.proxy", description=__doc__)
    parser.add_argument("server", help="the database's socket")
    parser.add_argument("control", type=Path)
    parser.add_argument("node", nargs="+", help="NAME=ADDRESS:PORT, or NAME=ADDRESS:PORT>GATEWAY:PORT")
    given = parser.parse_args()
    nodes = {}
    for text in given.node:
        name, _, place = text.partition("=")
        place, _, gateway = place.partition(">")
        address, _, port = place.rpartition(":")
        nodes[name] = (address, int(port), gateway)
    leave_with_parent()
    uvloop.run(serve(given.server, given.control, nodes))


if __name__ == "__main__":
    main()
