"""Whether this process can do its work, and whether the database is fit for it."""

from typing import Final

from foliot.domain.errors import FoliotError, Unavailable
from foliot.store.database import Database
from foliot.store.migrate import pending

OLDEST: Final = 15
NEWEST: Final = 18
_MUST_BE_ON: Final = ("fsync", "synchronous_commit", "full_page_writes")


class UnfitDatabase(FoliotError):  # noqa: N818 - reads aloud
    """The server cannot keep the promise that acknowledged means on disk, or is of a version never tried."""


class Health:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> None:
        """Raise unless calls can be served now."""
        async with self._database.connection() as connection:
            if missing := await pending(connection):
                raise Unavailable(f"the schema lacks {', '.join(missing)}", "run `foliot migrate`")

    async def check_server(self) -> None:
        """Raise unless the server keeps what it acknowledges and is of a supported version."""
        rows = await self._database.fetch("server_settings")
        settings = {row["name"]: row["setting"] for row in rows}
        version = int(settings["server_version_num"]) // 10_000
        if not OLDEST <= version <= NEWEST:
            raise UnfitDatabase(f"this is PostgreSQL {version}", f"Foliot runs on PostgreSQL {OLDEST} to {NEWEST}")
        for name in _MUST_BE_ON:
            if settings[name] == "off":
                raise UnfitDatabase(
                    f"the server runs with {name} = {settings[name]}, so acknowledged work could be lost",
                    f"set {name} = on and restart the server",
                )
