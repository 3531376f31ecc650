"""Who is asked whether it is ready says so, says no, says nothing, or is not there."""

import asyncio

import pytest

from chaos.site import free_ports
from foliot.kit.ready import is_ready


@pytest.mark.parametrize(("status", "ready"), [("200 OK", True), ("503 Service Unavailable", False)])
async def test_an_answer_is_taken_at_its_word(status: str, ready: bool):
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /ready ")
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        assert await is_ready(*server.sockets[0].getsockname()) is ready


async def test_nobody_is_not_ready():
    assert await is_ready("127.0.0.1", free_ports(1)[0]) is False


async def test_whoever_says_nothing_is_not_ready_and_is_hung_up_on(monkeypatch: pytest.MonkeyPatch):
    """Not when somebody collects garbage: by then there may be no loop to do it on."""
    hung_up = asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        hung_up.set()
        writer.close()

    monkeypatch.setattr("foliot.kit.ready.PATIENCE", 0.1)
    async with await asyncio.start_server(stay_silent, "127.0.0.1", 0) as server:
        assert await is_ready(*server.sockets[0].getsockname()) is False
        async with asyncio.timeout(10):
            await hung_up.wait()
