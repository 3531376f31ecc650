"""A second server that follows a first one, and takes its place."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from foliot.kit.postgres import PostgresServer, find_binaries
from foliot.kit.postgres.place import settle
from foliot.kit.postgres.transplant import reachable
from kit.launching import fresh_home


@contextmanager
def standby_of(primary: PostgresServer, home: Path) -> Iterator[PostgresServer]:
    """`home`: the primary's."""
    with fresh_home() as own:
        with PostgresServer(own):
            pass  # for its folders, which are made with the right owner
        folder, account = settle(own, None, lambda _: None)
        shutil.rmtree(folder / "data")
        copy = reachable(find_binaries(), account, folder, lambda _: None).bin / "pg_basebackup"
        done = account.run([str(copy), "-D", str(folder / "data"), "-R", "-c", "fast", "-d", _conninfo(primary.dsn)])
        assert done.returncode == 0, done.stderr
        shutil.copy(home / "postgres.json", own / "postgres.json")  # the roles came along, with their passwords
        with PostgresServer(own) as server:
            yield server


async def wait_for_both(primary: PostgresServer) -> None:
    """From now on a commit is answered when the standby has it, too."""
    connection = await asyncpg.connect(primary.dsn)
    try:
        await connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


async def promote(standby: PostgresServer) -> None:
    connection = await asyncpg.connect(standby.dsn)
    try:
        assert await connection.fetchval("SELECT pg_promote()")
    finally:
        await connection.close()


def either(first: PostgresServer, second: PostgresServer) -> str:
    """The address of both, for whoever takes the one that takes writes."""
    folders = [parse_qs(urlsplit(server.dsn).query)["host"][0] for server in (first, second)]
    return first.dsn.replace(f"host={folders[0]}&port=5432", f"host={','.join(folders)}&port=5432,5432")


def _conninfo(dsn: str) -> str:
    parts = urlsplit(dsn)
    return f"host={parse_qs(parts.query)['host'][0]} port=5432 user={parts.username} password={parts.password}"
