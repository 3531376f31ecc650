"""What a command wrote: its end, and how much came before that."""

import asyncio
import os
from typing import Final, cast

KEPT: Final = 64 * 1024
"""Bytes of each stream that are kept: the end says more than the beginning."""

LARGEST_BURST: Final = 1 << 20
BREATH: Final = 0.05
"""Bytes that are read at once, and seconds of rest after as many: who floods its output waits, and not its worker."""


class Tail(asyncio.Protocol):
    """Reads a stream to its end and keeps the last bytes of it."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = 0
        self._burst, self._since = 0, 0.0
        self._transport: asyncio.ReadTransport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * KEPT:  # not at every byte: what is moved is moved as a whole
            self._trim()
        loop = asyncio.get_running_loop()
        if (now := loop.time()) - self._since > BREATH:
            self._burst, self._since = 0, now
        self._burst += len(data)
        if self._burst > LARGEST_BURST and self._transport is not None:
            self._transport.pause_reading()
            loop.call_later(BREATH, self._go_on)

    def _go_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, _: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    @property
    def cut(self) -> int:
        """Bytes that are not kept."""
        self._trim()
        return self._cut

    @property
    def text(self) -> str:
        self._trim()
        return self._kept.decode(errors="replace")

    def _trim(self) -> None:
        surplus = max(0, len(self._kept) - KEPT)
        del self._kept[:surplus]
        self._cut += surplus


async def open_tail() -> tuple[Tail, int]:
    """A tail, and the descriptor to write to, which is the caller's to close."""
    reading, writing = os.pipe()
    try:
        _, tail = await asyncio.get_running_loop().connect_read_pipe(Tail, os.fdopen(reading, "rb", buffering=0))
    except BaseException:
        os.close(writing)
        raise
    return tail, writing
