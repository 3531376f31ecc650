"""Connections to the outside: none is made, or kept, to an address that a judge refuses."""

import socket
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.resolver import DefaultResolver

Judge = Callable[[str, int, str | None], str | None]
"""Of a host, a port and (once it is known) an address: why it may not be called, or none."""


class Refused(aiohttp.ClientError):
    """The target may not be called. Nothing was sent to it."""


class GuardedConnector(aiohttp.TCPConnector):
    """Asks the judge about the host, about each address that its name leads to, and about the socket's other end.

    Names are asked for once per connection, and what is connected to is the answer that was judged: a name server that
    answers differently the next time changes nothing. Connections are kept by host name and port, so one that a name
    was allowed is never used for another. Proxies are not used: whoever sets `HTTP_PROXY` cannot lead calls around it.
    """

    def __init__(self, judge: Judge, resolver: AbstractResolver | None = None, **options: Any) -> None:
        self._inner = resolver or DefaultResolver()
        super().__init__(resolver=_JudgedResolver(self._inner, judge), **options)
        self._judge = judge

    async def close(self, **options: Any) -> None:
        await super().close(**options)
        await self._inner.close()

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's signature
    ) -> ResponseHandler:
        host, port = req.url.raw_host or "", req.port or 0
        _ask(self._judge, host, port)
        protocol = await super()._create_connection(req, traces, timeout)
        transport = protocol.transport
        peer = None if transport is None else transport.get_extra_info("peername")
        try:
            if peer is None:
                raise aiohttp.ServerDisconnectedError
            _ask(self._judge, host, port, peer[0])
        except aiohttp.ClientError:
            protocol.close()
            raise
        return protocol


class _JudgedResolver(AbstractResolver):
    """Only addresses that the judge lets through; if it lets none through, why."""

    def __init__(self, resolver: AbstractResolver, judge: Judge) -> None:
        self._resolver = resolver
        self._judge = judge

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        reasons = [self._judge(host, port, each["host"]) for each in found]
        fit = [each for each, reason in zip(found, reasons, strict=True) if reason is None]
        if found and not fit:
            raise Refused(next(filter(None, reasons)))
        return fit

    async def close(self) -> None:
        """Whoever made the resolver within closes it."""


def _ask(judge: Judge, host: str, port: int, address: str | None = None) -> None:
    if (reason := judge(host, port, address)) is not None:
        raise Refused(reason)
