"""The guard around HTTP handlers: no spelling, name, redirect or proxy leads a call where it may not go."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from foliot.domain.egress import Egress
from foliot.domain.outcome import Failure
from foliot.kit.outbound import GuardedConnector, Refused
from foliot.worker.web import http_executor, open_session
from worker.making import PATIENCE, assignment, call

ADDRESSES = """
    127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255 0.0.0.0 0.0.0.1 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255
    192.168.0.1 100.64.0.1 100.127.255.255 169.254.0.1 169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200
    192.0.0.192 192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1 224.0.0.1 239.255.255.250
    240.0.0.1 255.255.255.255 [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1]
    [::ffff:169.254.169.254] [::ffff:0:127.0.0.1] [::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe]
    [64:ff9b::10.0.0.1] [64:ff9b:1::a9fe:a9fe] [2002:7f00:1::] [2002:a9fe:a9fe::1] [2001:0:7f00:1::f5ff:fffe]
    [2606:4700::5efe:10.0.0.1] [fe80::1] [fe80::1%25eth0] [fe80::1%eth0] [::1%25lo] [fc00::1] [fd00::1] [fd00:ec2::254]
    [fd20:ce::254] [fec0::1] [ff02::1] [2001:db8::1] [100::1] [3fff::1] [5f00::1]
    localhost LOCALHOST localhost. sub.localhost
"""
"""Spelled plainly: refused by what they are."""
ODDLY = """
    0x7f.1 0x7f000001 0X7F.0.0.1 2130706433 127.1 127.0.1 0177.0.0.1 017700000001 127.0.0.01 127.0.0.1. 0 0x0
    \u2460\u2461\u2466.0.0.1 \uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021 \u0661\u0662\u0667.0.0.1
    2852039166 0xa9fea9fe 0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376 169.254.43518
    user@127.0.0.1 example.com@127.0.0.1 user:secret@127.0.0.1 example.com\\@127.0.0.1 127.0.0.1#@example.com
    127.0.0.1?@example.com 127.0.0.1%2f@example.com [::ffff:127.0.0.1]. [127.0.0.1] lo\u0441alhost.
"""
"""Spelled so that a guard which compares text takes them for something else."""
NAMES = {
    "loopback.example": ["127.0.0.1"],
    "six.example": ["::1"],
    "private.example": ["10.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "wrapped.example": ["::ffff:169.254.169.254"],
    "zone.example": ["fe80::1%eth0"],
    "any.example": ["0.0.0.0"],
    "all-inside.example": ["192.168.1.1", "fd00::1", "127.0.0.1"],
    "garbage.example": ["not an address"],
}
"""Innocent names that lead inside."""
VECTORS = [*ADDRESSES.split(), *ODDLY.split(), *NAMES]


class Names(AbstractResolver):
    """A name server of the attacker's: each time that it is asked, the next of its answers."""

    def __init__(self, answers: dict[str, Sequence[list[str]]]) -> None:
        self.answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        self.asked.append(host)
        if found := self.answers.get(host):
            addresses = found.pop(0) if len(found) > 1 else found[0]
        else:  # as the system's would take an odd spelling, and nothing else: no test asks the network
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            addresses = [str(each[4][0]) for each in found]
        return [
            {"hostname": host, "host": each, "port": port, "family": family, "proto": 0, "flags": 0}
            for each in addresses
        ]

    async def close(self) -> None:
        pass


@contextmanager
def no_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Nobody connects to anything; who tries is written down."""
    tried: list[Any] = []

    async def start_connection(addr_infos: Any, **_: Any) -> socket.socket:
        tried.append(addr_infos)
        raise OSError("nobody connects in this test")

    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", start_connection)
    yield tried


@asynccontextmanager
async def calling(egress: Egress, names: Names) -> AsyncIterator[aiohttp.ClientSession]:
    """The session of a worker whose name server is `names`."""
    async with open_session(10, egress=egress) as session:
        connector = session.connector
        assert isinstance(connector, GuardedConnector)
        connector._resolver._resolver = names
        yield session


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A service inside, and what it was sent."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(100))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


async def attempt(session: aiohttp.ClientSession, url: str) -> Failure | None:
    async with asyncio.timeout(PATIENCE):
        return await http_executor(session)(assignment(call(url)))


def test_there_are_enough_vectors():
    assert len(set(VECTORS)) >= 90


async def test_no_vector_makes_a_worker_connect(monkeypatch: pytest.MonkeyPatch):
    names = Names({name: [answer] for name, answer in NAMES.items()})
    with no_connections(monkeypatch) as tried:
        async with calling(Egress.parse(), names) as session:
            for scheme in ("http", "https"):
                failures = {each: await attempt(session, f"{scheme}://{each}/latest") for each in VECTORS}
                assert tried == []
                assert None not in failures.values()
                plainly = [*ADDRESSES.split(), *NAMES]
                told = {each: failures[each] for each in plainly if "%" not in each and each != "garbage.example"}
                not_told = [each for each, found in told.items() if "FOLIOT_HTTP_ALLOW" not in found.error]
                assert not_told == []
                assert {(found.permanent, found.classes) for found in told.values()} == {(True, ("refused",))}
            # The same names and addresses are no obstacle to somebody who allows them.
            await attempt(session, "http://8.8.8.8/")
    assert len(tried) == 1


async def test_a_name_that_leads_elsewhere_the_second_time_is_judged_by_what_is_connected_to():
    async with listening() as (port, heard):
        names = Names({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]})
        async with calling(Egress.parse(["127.0.0.1"]), names) as session:
            url = f"http://rebind.example:{port}/"
            assert await attempt(session, url) is None
            assert names.asked == ["rebind.example"], "once per connection: the answer judged is the answer used"
            session.connector.clear_dns_cache()
            failure = await attempt(session, url)
    assert failure is not None
    assert failure.permanent
    assert len(heard) == 1


async def test_of_several_answers_only_those_that_may_be_called_are_tried():
    async with listening() as (port, heard):
        names = Names({"mixed.example": [["169.254.169.254", "127.0.0.1", "10.0.0.1"]]})
        async with calling(Egress.parse(["loopback"]), names) as session:
            assert await attempt(session, f"http://mixed.example:{port}/") is None
    assert b"Host: mixed.example" in heard[0]


async def test_a_connection_to_what_was_not_judged_is_dropped_before_anything_is_sent():
    """Whatever a release of the library does between our look and its connection."""

    class Swapping(GuardedConnector):
        async def _resolve_host(self, host: str, port: int, traces: Any = None) -> list[ResolveResult]:
            return await Names({host: [["127.0.0.1"]]}).resolve(host, port)

    async with listening() as (port, heard):
        async with aiohttp.ClientSession(connector=Swapping(Egress.parse().reason)) as session:
            with pytest.raises(Refused):
                await session.get(f"http://fine.example:{port}/")
        async with asyncio.timeout(PATIENCE):
            while not heard:  # noqa: ASYNC110 - the service sees the end of the connection soon
                await asyncio.sleep(0.001)
    assert heard == [b""]


async def test_a_redirect_that_somebody_follows_is_judged_too():
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with calling(Egress.parse(["loopback"]), Names({})) as session:
            failure = await attempt(session, url)
            assert failure is not None
            assert failure.error == "answered 302"
            with pytest.raises(Refused, match="metadata"):
                await session.get(url, allow_redirects=True)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch):
    async with listening() as (port, heard), listening() as (proxy, asked):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        async with calling(Egress.parse(["loopback"]), Names({})) as session:
            assert await attempt(session, f"http://127.0.0.1:{port}/") is None
            assert await attempt(session, "http://10.0.0.1/") is not None
    assert len(heard) == 1
    assert asked == []
