"""Calls over kept connections: what arrives, and what becomes of the connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict
from yarl import URL

from foliot.kit.calling import Caller, Reply

LARGEST: Final = 1_000
Seen = list[tuple[web.Request, bytes]]


@pytest.fixture
def seen() -> Seen:
    return []


@pytest.fixture
async def server(seen: Seen) -> AsyncIterator[TestServer]:
    async def answer(request: web.Request) -> web.Response:
        seen.append((request, await request.read()))
        return web.Response(text="ok", headers={"X-Own": "1"})

    app = web.Application(client_max_size=10**8)
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as started:
        yield started


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession() as session:
        yield Caller(session, LARGEST, aiohttp.ClientTimeout(sock_connect=5))


async def call(caller: Caller, url: URL | str, body: bytes = b"body", method: str = "POST", **headers: str) -> Reply:
    async with asyncio.timeout(30):
        return await caller(method, URL(url), CIMultiDict(headers), body)


@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1, 10_000_000])
async def test_a_body_of_any_size_arrives_whole(server: TestServer, caller: Caller, seen: Seen, size: int):
    body = b"x" * size
    for _ in range(2):
        reply = await call(caller, server.make_url("/"), body)
        assert (reply.status, reply.headers["x-own"], reply.text) == (200, "1", b"ok")
    assert [came for _, came in seen] == [body, body]
    assert {request.headers["Content-Length"] for request, _ in seen} == {str(size)}
    assert len({request.transport for request, _ in seen}) == 1, "the connection is kept"


async def test_an_address_is_called_as_it_is_written(server: TestServer, caller: Caller, seen: Seen):
    url = server.make_url("/a%2Fb/ü?q=1&q=2#part").with_user("me").with_password("secret")
    await call(caller, url, Accept="text/plain")
    ((request, _),) = seen
    assert request.raw_path == "/a%2Fb/%C3%BC?q=1&q=2"
    assert request.headers.getall("Host") == [f"{url.host}:{url.port}"]
    assert request.headers["Authorization"] == "Basic bWU6c2VjcmV0"
    assert request.headers.getall("Accept") == ["text/plain"]


async def test_the_answer_to_head_has_no_body_to_wait_for(server: TestServer, caller: Caller):
    for _ in range(2):
        assert (await call(caller, server.make_url("/"), method="HEAD")).text == b""


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "file:///etc/passwd", "unix:///x", "//127.0.0.1/"])
async def test_only_http_is_spoken(caller: Caller, url: str):
    with pytest.raises(aiohttp.NonHttpUrlClientError):
        await call(caller, url)


async def test_a_header_cannot_carry_another_one(server: TestServer, caller: Caller, seen: Seen):
    with pytest.raises(ValueError, match=r"(?i)header"):
        await call(caller, server.make_url("/"), Evil="1\r\nX-More: 2")
    assert seen == []


class Script:
    """A server that answers the calls on all its connections with these, one after the other; none hangs up."""

    def __init__(self, *answers: bytes | None, reads: bool = True) -> None:
        self.answers = list(answers)
        self.reads = reads
        self.heard: list[bytes] = []
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heard.append(head + (await reader.readexactly(4) if self.reads else b""))
                if (answer := self.answers.pop(0)) is None:
                    break
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        writer.close()


OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def asked(caller: Caller, script: Script, times: int, method: str = "POST", body: bytes = b"body") -> list[Reply]:
    async with await asyncio.start_server(script, "127.0.0.1", 0) as listening:
        host, port = listening.sockets[0].getsockname()
        return [await call(caller, f"http://{host}:{port}/", body, method) for _ in range(times)]


async def test_what_may_be_said_twice_is_repeated_whole_on_a_new_connection(caller: Caller):
    script = Script(OK, None, OK)
    assert [reply.status for reply in await asked(caller, script, 2, "PUT")] == [200, 200]
    assert [heard[-4:] for heard in script.heard] == [b"body"] * 3
    assert script.connections == 2


async def test_what_may_not_be_said_twice_is_not(caller: Caller):
    script = Script(OK, None, OK)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await asked(caller, script, 2)
    assert len(script.heard) == 2


async def test_words_before_the_answer_are_passed_over(caller: Caller):
    (reply,) = await asked(caller, Script(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK), 1)
    assert (reply.status, reply.text) == (200, b"ok")


async def test_words_before_the_answer_come_to_an_end(caller: Caller):
    """A target that sends nothing else kept a worker's processor busy for as long as its job may take."""
    with pytest.raises(aiohttp.ClientPayloadError, match="1xx"):
        await asked(caller, Script(b"HTTP/1.1 102 Processing\r\n\r\n" * 21 + OK), 1)


async def test_nonsense_is_an_error_of_the_library(caller: Caller):
    with pytest.raises(aiohttp.ClientResponseError):
        await asked(caller, Script(b"nonsense\r\n\r\n"), 1)


async def test_a_connection_with_something_left_on_it_is_not_kept(caller: Caller):
    """Of an answer that goes on; of one that says so; and of one that came before the call was heard to its end."""
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 2_000
    last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    for answer, length in ((long, LARGEST), (last, 0)):
        script = Script(answer, OK)
        first, second = await asked(caller, script, 2)
        assert (len(first.text), second.text, script.connections) == (length, b"ok", 2)
    early = Script(OK, OK, reads=False)
    assert [reply.text for reply in await asked(caller, early, 2, body=b"x" * 50_000_000)] == [b"ok", b"ok"]
    assert early.connections == 2


async def test_a_call_that_is_given_up_takes_its_connection_along(caller: Caller):
    heard, gone = asyncio.Event(), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\nbody")
        heard.set()
        assert await reader.read() == b""
        gone.set()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as listening, asyncio.timeout(30):
        host, port = listening.sockets[0].getsockname()
        given_up = asyncio.ensure_future(call(caller, f"http://{host}:{port}/"))
        await heard.wait()
        given_up.cancel()
        await gone.wait()
    assert given_up.cancelled()
