"""One HTTP call over a connection that is kept, without all that a call of ours never needs."""

import asyncio
from functools import lru_cache
from typing import Final, NamedTuple

import aiohttp
from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage, StreamWriter
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

_SCHEMES: Final = frozenset({"http", "https"})
_MAY_BE_REPEATED: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_AT_ONCE: Final = 32 * 1024
"""Bytes of a body that go out with the headers: a connection takes so much without asking to wait."""
_MOST_INTERIM: Final = 20
"""Answers before the answer (1xx) that are passed over: without an end they would keep a processor busy."""


class Reply(NamedTuple):
    status: int
    headers: CIMultiDictProxy[str]
    text: bytes


class _Address(NamedTuple):
    """What is the same for each call of an address."""

    way: aiohttp.ClientRequest
    """By which the connector knows where it leads to."""
    path: str
    headers: CIMultiDict[str]


class Caller:
    """Calls through the connector of a session, which opens, guards, limits and keeps the connections.

    What the session itself does for a call is for cookies, redirects, proxies, traces and uploads, and takes more time
    than the call. None of it is done here. Errors are the library's own.
    """

    def __init__(self, session: aiohttp.ClientSession, largest: int, timeout: aiohttp.ClientTimeout) -> None:
        """Of an answer up to `largest` bytes are read."""
        self._session = session
        self._largest = largest
        self._timeout = timeout

    async def __call__(self, method: str, url: URL, headers: CIMultiDict[str], body: bytes) -> Reply:
        address = _address(url)
        try:
            return await self._call(method, address, headers, body)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            # The other side may have closed a kept connection in the moment in which we began to speak.
            if method not in _MAY_BE_REPEATED:
                raise
        return await self._call(method, address, headers, body)

    async def _call(self, method: str, address: _Address, headers: CIMultiDict[str], body: bytes) -> Reply:
        connection = await self._connect(address)
        try:
            if (protocol := connection.protocol) is None or protocol.transport is None:
                raise aiohttp.ServerDisconnectedError  # noqa: TRY301 - closed below, as after any other error
            transport = protocol.transport
            protocol.set_response_params(
                skip_payload=method == hdrs.METH_HEAD, read_until_eof=True, auto_decompress=False
            )
            await _send(protocol, f"{method} {address.path} HTTP/1.1", _sent(address, headers, body), body)
            message, content = await _answer(protocol, address)
            text = await self._read(content)
            is_all_sent = not transport.get_write_buffer_size()
        except BaseException:
            connection.close()
            raise
        # What has not gone out by now would come before the next call: somebody answered without hearing us out.
        (connection.release if is_all_sent else connection.close)()
        return Reply(message.code, message.headers, text)

    async def _connect(self, address: _Address) -> Connection:
        if (connector := self._session.connector) is None:
            raise RuntimeError("the session is closed")
        try:
            return await connector.connect(address.way, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {address.way.host} in time") from error

    async def _read(self, content: aiohttp.StreamReader) -> bytes:
        """The answer, up to the cap. What is read to its end leaves its connection fit for the next call."""
        first = await content.read(self._largest)
        if content.at_eof():
            return first
        parts, room = [first], self._largest - len(first)
        while room and (part := await content.read(room)):
            parts.append(part)
            room -= len(part)
        return b"".join(parts)


@lru_cache(1_024)
def _address(url: URL) -> _Address:
    if url.scheme not in _SCHEMES:
        raise aiohttp.NonHttpUrlClientError(url)
    way = aiohttp.ClientRequest("GET", url)
    # The latter from an address with a user in it.
    headers = {name: way.headers[name] for name in (hdrs.HOST, hdrs.AUTHORIZATION) if name in way.headers}
    return _Address(way, way.url.raw_path_qs, CIMultiDict(headers))


def _sent(address: _Address, headers: CIMultiDict[str], body: bytes) -> CIMultiDict[str]:
    sent = address.headers.copy()
    sent.update(headers)
    sent[hdrs.CONTENT_LENGTH] = str(len(body))
    return sent


async def _send(protocol: ResponseHandler, line: str, headers: CIMultiDict[str], body: bytes) -> None:
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    await writer.write_headers(line, headers)
    if len(body) <= _AT_ONCE and not protocol.writing_paused:
        await writer.write_eof(body)
        return
    writer.send_headers()
    if protocol.transport is not None:
        protocol.transport.write(body)  # nobody waits until it is taken: the answer may come before


async def _answer(protocol: ResponseHandler, address: _Address) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    try:
        for _ in range(_MOST_INTERIM + 1):
            message, content = await protocol.read()
            if not 100 <= message.code < 200 or message.code == 101:
                return message, content
        raise aiohttp.ClientPayloadError(f"more than {_MOST_INTERIM} answers of 1xx came before any other")
    except HttpProcessingError as error:
        raise aiohttp.ClientResponseError(
            address.way.request_info, (), status=error.code, message=error.message, headers=error.headers
        ) from error
