"""The ledger of side effects: one writer, one file, nothing acknowledged that is not on disk. No fault touches it.

Functions report through `Reporter`, and commands in the same words; HTTP handlers need not, because this process is the
address that they call.
"""

import argparse
import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from aiohttp import web

from chaos.act import Act, as_handed_in, new_nonce
from chaos.family import boot_of
from chaos.orphan import leave_with_parent
from chaos.records import Effect, Phase, digest
from chaos.reporter import Ack, FencedOut, Report

_PEER: Final = struct.Struct("3i")
"""Process, user and group at the other end of a unix socket, as the kernel has seen them."""


class Ledger:
    """Numbers effects in the order in which they arrive and writes them in batches; a batch is synced, then told."""

    def __init__(self, path: Path, *, guard: bool = False, sync: Callable[[int], None] = os.fdatasync) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._guard = guard
        self._sync = sync
        self._seq = 0
        self._highest: dict[str, int] = {}
        self._lines: list[bytes] = []
        self._told: list[tuple[asyncio.Future[bool], bool]] = []
        self._something = asyncio.Event()
        self.counts = dict.fromkeys(Phase, 0)
        self.ended: list[str] = []
        """Payloads of ad-hoc runs that have ended well since the driver asked, which looks for those it handed in."""

    def append(self, effects: Sequence[Effect]) -> "list[asyncio.Future[bool]]":
        """Take effects in order; each future is done when its effect is on disk, false if the guard refused it."""
        return [self._append(effect) for effect in effects]

    def _append(self, effect: Effect) -> "asyncio.Future[bool]":
        self._seq += 1
        effect.seq, effect.at = self._seq, time.time()
        accepted = not (self._guard and effect.fence < self._highest.get(effect.run, 0))
        if not accepted:
            effect.phase, effect.refused = Phase.REJECTED, effect.phase
        elif self._guard:
            self._highest[effect.run] = effect.fence
        self.counts[effect.phase] += 1
        if effect.phase is Phase.END and not effect.failed and effect.job is None:
            self.ended.append(effect.payload)
        self._lines.append(msgspec.json.encode(effect))
        told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._told.append((told, accepted))
        self._something.set()
        return told

    async def run(self) -> None:
        """Write batch after batch; while one is being synced the next gathers."""
        loop = asyncio.get_running_loop()
        while True:
            await self._something.wait()
            self._something.clear()
            lines, self._lines = self._lines, []
            told, self._told = self._told, []
            await loop.run_in_executor(None, self._write, b"\n".join([*lines, b""]))
            for future, accepted in told:
                if not future.done():
                    future.set_result(accepted)

    def _write(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[os.write(self._file, view) :]
        self._sync(self._file)


async def serve_reports(ledger: Ledger, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One reporter: lines of effects in, one acknowledgement per line out, in order."""
    decoder, boot = msgspec.json.Decoder(Report), None
    answers: asyncio.Queue[tuple[int, list[asyncio.Future[bool]]]] = asyncio.Queue()

    async def answer() -> None:
        while True:
            number, futures = await answers.get()
            accepted = await asyncio.gather(*futures)
            writer.write(msgspec.json.encode(Ack(number, all(accepted))) + b"\n")

    task = asyncio.create_task(answer())
    try:
        while line := await reader.readline():
            report = decoder.decode(line)
            for effect in report.effects:
                if not effect.worker:
                    effect.worker = boot = _boot_behind(writer) if boot is None else boot
            answers.put_nowait((report.number, ledger.append(report.effects)))
    except (ConnectionError, msgspec.DecodeError):
        pass  # the reporter was killed in mid-line: what it did not finish saying was not said
    finally:
        task.cancel()
        writer.close()


def _boot_behind(writer: asyncio.StreamWriter) -> str:
    """Boot id of the worker that has started whoever reports, for commands do not know it; empty if it is gone by now.

    The kernel translates the number of a process in a namespace of its own.
    """
    with suppress(OSError):
        line = writer.get_extra_info("socket")
        pid, *_ = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        return boot_of(pid)
    return ""


class Target:
    """The HTTP handlers' address: what a request says about itself is the report."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        body = msgspec.json.decode(raw)
        act = msgspec.convert(body["payload"], Act)
        nonce = new_nonce()

        async def say(phase: Phase, *, failed: bool = False) -> None:
            if not await self._ledger.append([_effect(request, body, act, nonce, phase, failed=failed)])[0]:
                raise FencedOut

        failing = act.fails(int(request.headers["Foliot-Attempt"]))
        try:
            await say(Phase.START)
            await say(Phase.EFFECT)
            await act.take_time(lambda: say(Phase.BEAT))
            await say(Phase.END, failed=failing)
        except FencedOut:
            return web.Response(status=409, text="fenced out")
        status = 500 if failing else 200
        if act.secret is not None:
            return web.json_response({"said": act.secret}, status=status)
        return web.Response(status=status, text="as planned")

    async def count(self, _: web.Request) -> web.Response:
        """What was seen in all, and what has ended since the last time; only the driver asks."""
        ended, self._ledger.ended = self._ledger.ended, []
        return web.json_response({**self._ledger.counts, "ended": ended})


def _effect(request: web.Request, body: Any, act: Act, nonce: str, phase: Phase, *, failed: bool) -> Effect:
    told = request.headers
    return Effect(
        seq=0,
        at=0.0,
        phase=phase,
        tenant=act.tenant,
        run=told["Foliot-Run"],
        attempt=int(told["Foliot-Attempt"]),
        fence=int(told["Foliot-Fence"]),
        worker="",  # a request does not say which worker sends it; the fence is that of its claim, which does
        job=body["jobId"],
        scheduled_at=msgspec.convert(told["Foliot-Scheduled-At"], type=datetime).timestamp(),
        concurrency_key=act.account,
        payload=digest(as_handed_in(body["payload"])),
        nonce=nonce,
        failed=failed,
    )


async def serve(folder: Path, path: Path, addresses: Sequence[str], ports: Sequence[int], *, guard: bool) -> None:
    ledger = Ledger(folder / "ledger.jsonl", guard=guard)
    target = Target(ledger)
    # A handler whose caller is gone stops, as it would in a well-kept web server: that is what a time-out looks like.
    runner = web.AppRunner(web.Application(), handler_cancellation=True, access_log=None)
    runner.app.router.add_post("/do", target.handle)
    runner.app.router.add_get("/count", target.count)
    await runner.setup()
    for address in addresses:
        for port in ports:
            await web.TCPSite(runner, address, port).start()

    async def report(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_reports(ledger, reader, writer)

    await asyncio.start_unix_server(report, path, limit=1 << 24)
    os.chmod(path, 0o777)  # noqa: PTH101, S103 - commands run as others
    await ledger.run()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos.ledger", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("socket", type=Path)
    parser.add_argument("ports", type=int, nargs="+", help="where HTTP handlers call, also those that they may not")
    parser.add_argument("--address", action="append", default=[])
    parser.add_argument("--guard", action="store_true")
    given = parser.parse_args()
    leave_with_parent()
    uvloop.run(serve(given.folder, given.socket, given.address or ["127.0.0.1"], given.ports, guard=given.guard))


if __name__ == "__main__":
    main()
