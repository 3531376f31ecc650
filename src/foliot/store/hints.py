"""Sending and hearing hints through NOTIFY."""

from collections.abc import Callable, Mapping, Sequence

from foliot.store.database import Connection, Database, Line


async def notify(line: Database | Line, channels: Sequence[str]) -> None:
    """Committed by itself, never inside a transaction that matters: NOTIFY holds a lock of the whole server."""
    await line.fetch("notify", channels)


class Listener:
    """Hears channels on a connection of its own, which it asks for a sign of life: silence alone proves nothing."""

    def __init__(self, database: Database, heard: Mapping[str, Callable[[], None]]) -> None:
        """`heard`: what to call, by channel."""
        self._line = database.line(hot=False)
        self._heard = heard
        self._connection: Connection = None

    async def run_once(self) -> int:
        """Make sure that we still listen. Returns 0: there is nothing to do at once."""
        connection = await self._line.connection()
        if connection is not self._connection:
            for channel, heard in self._heard.items():
                await connection.add_listener(channel, lambda *_, heard=heard: heard())
            self._connection = connection
            for heard in self._heard.values():
                heard()  # whatever was said while nobody listened
        await self._line.fetch("sign_of_life")
        return 0

    async def pause(self) -> float:
        return 5.0

    async def close(self) -> None:
        await self._line.close()
