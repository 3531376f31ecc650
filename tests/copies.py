"""Databases of tests' own: thousands of them, so each is a copy of one that was made before."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import psycopg


def with_name(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def let_in_quickly(dsn: str) -> None:
    """What keeps guessers of a password busy delays who knows it too, and tests connect thousands of times."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        if connection.info.server_version >= 160_000:
            connection.execute("SET scram_iterations = 1")
            connection.execute(f"ALTER ROLE foliot PASSWORD '{urlsplit(dsn).password}'")


class Copies:
    """Makes and drops databases on one connection, whichever event loop a test has."""

    def __init__(self, dsn: str, *, in_memory: bool) -> None:
        self._dsn = dsn
        # Files as they are cost half of what pages through the log do, unless a disk must have them all first.
        self._strategy = "file_copy" if in_memory else "wal_log"
        self._maker = psycopg.connect(dsn, autocommit=True)
        self._numbers = count()
        self._left: list[str] = []

    @classmethod
    @contextmanager
    def on(cls, dsn: str, *, in_memory: bool) -> Iterator[Self]:
        copies = cls(dsn, in_memory=in_memory)
        with copies._maker:
            yield copies

    def make(self, name: str, fill: Callable[[str], Coroutine[Any, Any, Any]]) -> str:
        """A database to be copied, filled by who is given its address; nobody may be connected to it afterwards."""
        self._maker.execute(f"CREATE DATABASE {name}")
        asyncio.run(fill(with_name(self._dsn, name)))
        # Whoever connects first writes down what a connection needs to know of the catalogues: copies have it then.
        psycopg.connect(with_name(self._dsn, name)).close()
        return name

    @contextmanager
    def of(self, template: str) -> Iterator[str]:
        """The address of a copy."""
        name = f"test_{next(self._numbers)}"
        self._maker.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {self._strategy}")
        try:
            yield with_name(self._dsn, name)
        finally:
            # The one before: if somebody is still about to leave, the server looks again after a tenth of a second.
            for left in self._left:
                self._maker.execute(f"DROP DATABASE {left} WITH (FORCE)")
            self._left = [name]
