"""Carries requests over the event loop."""

import asyncio
from typing import Final

import aiohttp
from yarl import URL

from foliot.domain.errors import FoliotError
from foliot.kit.settings import Access
from foliot.sdk.errors import unreachable
from foliot.sdk.protocol import Answer, Request, seconds_of

pause: Final = asyncio.sleep


class AsyncTransport:
    """Keeps connections open between calls, for the loop that it was first used on."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, request: Request, seconds: float) -> Answer:
        """One try, within so many seconds; Unreachable if no answer came."""
        headers = request.headers(self._access)
        try:
            async with self._opened().request(
                request.method,
                URL(self._access.url + request.path, encoded=True),
                data=request.body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
            ) as response:
                return Answer(response.status, await response.read(), seconds_of(response.headers.get("Retry-After")))
        except (aiohttp.ClientError, OSError) as error:
            was_sent = not isinstance(error, aiohttp.ClientConnectorError)
            raise unreachable(self._access.url, error, was_sent=was_sent) from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None:
            self._session, self._loop = aiohttp.ClientSession(), loop
        elif loop is not self._loop:
            raise FoliotError(
                "this client is in use on another event loop", "make one for each loop: `async with AsyncFoliot()`"
            )
        return self._session
