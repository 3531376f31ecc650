"""Every statement of the store is valid against the schema."""

from foliot.store.database import Database
from foliot.store.statements import SQL


async def test_every_statement_fits_the_schema(database: Database):
    async with database.connection() as connection:
        for name, text in SQL.items():
            try:
                await connection.prepare(text)
            except Exception as error:
                raise AssertionError(f"{name}: {error}") from error
