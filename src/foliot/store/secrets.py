"""Secrets, sealed: what is stored of them, and what a worker may know."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from foliot.domain.discretion import secrets_in
from foliot.domain.seal import Attempt
from foliot.domain.secret import names_in
from foliot.store.database import Connection, Database, Line
from foliot.store.sealed import PAYLOAD, TARGET
from foliot.store.statements import SQL
from foliot.store.vault import Owner, Vault


class SecretRow(NamedTuple):
    name: str
    version: int
    updated_at: datetime


async def put_secret(connection: Connection, tenant: int, name: str, sealed: bytes) -> SecretRow:
    """Keep it, or replace what there was: then its version is one more."""
    return SecretRow(*await connection.fetchrow(SQL["put_secret"], tenant, name, sealed))


async def list_secrets(database: Database, tenant: int, *, after: str, limit: int) -> list[SecretRow]:
    """By name."""
    return [SecretRow(*row) for row in await database.fetch("list_secrets", tenant, after, limit)]


async def find_secret(database: Database, tenant: int, name: str) -> SecretRow | None:
    row = await database.fetchrow("find_secret", tenant, name)
    return None if row is None else SecretRow(*row)


async def delete_secret(connection: Connection, tenant: int, name: str) -> SecretRow | None:
    """What it was; none if there was none."""
    row = await connection.fetchrow(SQL["delete_secret"], tenant, name)
    return None if row is None else SecretRow(*row)


class Referring(NamedTuple):
    """A run with all that may refer to secrets, or be one."""

    tenant: int
    job: int | None
    payload: bytes | None
    """None if it is gone: the run has ended well."""
    target: bytes | None
    spec: bytes

    @property
    def names(self) -> set[str]:
        """The secrets that it refers to."""
        texts = (self.payload, self.target, self.spec)
        marked = (text for text in texts if text is not None and b"$secret" in text)
        return {name for text in marked for name in names_in(msgspec.json.decode(text))}

    @property
    def said(self) -> Iterator[str]:
        """What it says outright in headers whose names speak of secrets."""
        for part in (msgspec.json.decode(self.spec)["handler"], msgspec.json.decode(self.target or b"{}")):
            headers: dict[str, Any] = part.get("headers", {})
            yield from secrets_in(headers)

    async def opened(self, vault: Vault, run: int) -> "Referring":
        owner = Owner(self.tenant, run, self.job)
        payload = None if self.payload is None else await vault.opened(owner, PAYLOAD, self.payload)
        target = None if self.target is None else await vault.opened(owner, TARGET, self.target)
        return self._replace(payload=payload, target=target)


async def held_run(line: Line, worker: int, run: int, fence: int) -> Referring | None:
    """None unless this worker holds it by that claim."""
    return _referring(await line.fetch("held_run", worker, run, fence))


async def run_of(line: Line, attempt: Attempt) -> Referring | None:
    """The run of an attempt, wherever it is by now, and whatever became of it. None if nothing is known of it."""
    return _referring(await line.fetch("run_of_attempt", attempt.run, attempt.tenant, attempt.fence))


def _referring(rows: Sequence[object]) -> Referring | None:
    return Referring(*rows[0]) if rows else None  # type: ignore[misc]


async def secrets_meant(vault: Vault, run: Referring) -> dict[str, str]:
    """What a run, opened, refers to; all that its tenant has, if nobody can say any more what that was."""
    return await vault.secrets(run.tenant, None if run.payload is None else run.names)
