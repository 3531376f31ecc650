"""Sealing and opening what tenants store: which data key, and for which place."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Final, NamedTuple

from foliot.domain.errors import Conflict, FoliotError, Unavailable
from foliot.kit.clock import Steady, steady
from foliot.kit.master import Master, Wrapped
from foliot.kit.sealing import CannotOpen, Head, head_of, in_text, is_sealed, open_sealed, seal, sealed_parts, to_text
from foliot.store.database import Database, Line

REMEMBERED: Final = 2.0
"""Seconds that it is believed without asking again who seals, and with which key."""
CANARY: Final = b"foliot canary"
UNOPENED: Final = b'{"$unopened":'
"""How that begins which stands for a payload that cannot be opened."""
_HOW_TO_SET: Final = "set FOLIOT_MASTER_KEY_FILE (or FOLIOT_MASTER_KEY) to the key that the other processes have"


class Mark(IntEnum):
    """What sort of row something is bound to. The numbers are stored."""

    JOB = 1
    RUN = 2
    SECRET = 3
    ANSWER = 4


class Owner(NamedTuple):
    """Where something stands: what is copied from a job to its runs stays bound to the job."""

    tenant: int
    run: int | None = None
    job: int | None = None

    def place(self, mark: int, field: str) -> bytes:
        row = self.job if mark == Mark.JOB else self.run
        if mark not in (Mark.JOB, Mark.RUN) or row is None:
            raise CannotOpen("it was sealed for another place")
        return place(self.tenant, row, field)


class WrongMasterKey(FoliotError):  # noqa: N818 - reads aloud
    """What is stored was sealed under another master key."""


def place(tenant: int, row: int | str, field: str) -> bytes:
    return f"{tenant}\0{row}\0{field}".encode()


def wrapping(tenant: int, version: int) -> bytes:
    """What a wrapped data key is bound to."""
    return f"data key\0{tenant}\0{version}".encode()


class Lock(NamedTuple):
    """What seals for a tenant."""

    tenant: int
    version: int
    key: bytes

    def seal(self, mark: Mark, row: int | str, field: str, plain: bytes) -> bytes:
        return seal(self.key, Head(self.version, mark), place(self.tenant, row, field), plain)

    def text(self, run: int, field: str, plain: str | None) -> str | None:
        """For a column of text."""
        return None if plain is None else to_text(self.seal(Mark.RUN, run, field, plain.encode(errors="replace")))


class Vault:
    """Remembers data keys, which never change, and for a while who seals. For tenants that do not it does nothing."""

    def __init__(self, database: Database | Line, master: Master | None = None, clock: Steady = steady) -> None:
        self._database = database
        self.master = master
        self._clock = clock
        self._sealing: dict[int, int] = {}
        self._asked = float("-inf")
        self._keys: dict[tuple[int, int], bytes] = {}
        self._turn = asyncio.Lock()

    async def check(self) -> str | None:
        """The name of the master key in use, if any is; WrongMasterKey if we cannot work with what is stored."""
        rows = await self._database.fetch("read_canary")
        if not rows:
            return None
        await open_canary(self.master, Wrapped(*rows[0]))
        used = {row["master"] for row in await self._database.fetch("masters_in_use")}
        if self.master is not None and (missing := used - self.master.names):
            raise _wrong(self.master, min(missing))
        return str(rows[0]["master"])

    async def sealing(self) -> Mapping[int, int]:
        """The tenants that seal what they write, each with the number of the key."""
        if self._clock() - self._asked >= REMEMBERED:
            async with self._turn:
                if self._clock() - self._asked >= REMEMBERED:
                    asked = self._clock()
                    rows = await self._database.fetch("sealing_tenants")
                    self._sealing = {row["id"]: row["sealed_with"] for row in rows}
                    self._asked = asked
        return self._sealing

    async def lock(self, tenant: int) -> Lock | None:
        """What seals for this tenant; none if nothing does."""
        version = (await self.sealing()).get(tenant)
        return None if version is None else await self.lock_of(tenant, version)

    async def locks(self, tenants: Iterable[int]) -> dict[int, Lock]:
        """For those of these tenants that seal."""
        sealing = await self.sealing()
        if not sealing:
            return {}
        return {each: await self.lock_of(each, sealing[each]) for each in {*tenants} & sealing.keys()}

    async def lock_of(self, tenant: int, version: int) -> Lock:
        """Unavailable, and nothing may be written, if its key cannot be had here."""
        try:
            return Lock(tenant, version, await self._key(tenant, version))
        except CannotOpen as error:
            raise Unavailable(f"what this tenant stores is encrypted, and {error}", _HOW_TO_SET) from None

    def forget(self) -> None:
        """Ask again at once who seals: it has just been changed here."""
        self._asked = float("-inf")

    async def open(self, owner: Owner, field: str, value: bytes) -> bytes:
        """What is sealed, opened; anything else as it is. CannotOpen says why not."""
        if not is_sealed(value):
            return value
        await self.learn(owner.tenant, value)
        return self.open_now(owner, field, value)

    async def learn(self, tenant: int, value: bytes) -> None:
        """Have at hand what opens it, if there is such a key."""
        with suppress(CannotOpen):
            await self._key(tenant, head_of(value).version)

    def open_now(self, owner: Owner, field: str, value: bytes) -> bytes:
        """As `open`, with keys that are at hand."""
        if not is_sealed(value):
            return value
        head = head_of(value)
        return open_sealed(self._at_hand(owner.tenant, head.version), owner.place(head.mark, field), value)

    async def opened(self, owner: Owner, field: str, value: bytes) -> bytes:
        """As `open`; JSON that says why instead of what cannot be opened."""
        if is_sealed(value):
            await self.learn(owner.tenant, value)
        return self.opened_now(owner, field, value)

    def opened_now(self, owner: Owner, field: str, value: bytes) -> bytes:
        """As `opened`, with keys that are at hand."""
        try:
            return self.open_now(owner, field, value)
        except CannotOpen as error:
            return b'%b"%b"}' % (UNOPENED, str(error).encode())

    async def opened_text(self, owner: Owner, field: str, text: str) -> str:
        """The text with all that is sealed in it opened."""
        known: dict[bytes, str] = {}
        for part in sealed_parts(text):
            try:
                known[part] = (await self.open(owner, field, part)).decode(errors="replace")
            except CannotOpen as error:
                known[part] = f"[encrypted: {error}]"
        return in_text(text, known.__getitem__) if known else text

    async def open_secret(self, tenant: int, name: str, value: bytes) -> str:
        return (await self.open_at(tenant, Mark.SECRET, place(tenant, name, "value"), value)).decode()

    async def open_at(self, tenant: int, mark: Mark, bound: bytes, value: bytes) -> bytes:
        """What was sealed with this mark for this place; CannotOpen for anything else."""
        head = head_of(value)
        if head.mark != mark:
            raise CannotOpen("it was sealed for another place")
        return open_sealed(await self._key(tenant, head.version), bound, value)

    async def secrets(self, tenant: int, names: Iterable[str] | None) -> dict[str, str]:
        """Those of these that the tenant has, or all."""
        if names is not None and not names:
            return {}
        rows = await self._database.fetch("secret_values", tenant, None if names is None else sorted(names))
        return {row["name"]: await self.open_secret(tenant, row["name"], row["value"]) for row in rows}

    async def _key(self, tenant: int, version: int) -> bytes:
        if (tenant, version) not in self._keys:
            if self.master is None:
                raise CannotOpen("this process has no master key")
            for row in await self._database.fetch("data_keys", tenant):
                if row["version"] == version:
                    wrapped = Wrapped(row["master"], row["wrapped"])
                    self._keys[tenant, version] = await self.master.unwrap(wrapped, wrapping(tenant, version))
        return self._at_hand(tenant, version)

    def _at_hand(self, tenant: int, version: int) -> bytes:
        try:
            return self._keys[tenant, version]
        except KeyError:
            said = "this process has no master key" if self.master is None else "there is no such key of this tenant"
            raise CannotOpen(said) from None


async def open_canary(master: Master | None, canary: Wrapped) -> None:
    """WrongMasterKey unless this master key has wrapped it."""
    if master is None:
        said = f"what is stored here is encrypted under the master key {canary.master}, and this process has none"
        raise WrongMasterKey(said, _HOW_TO_SET)
    if canary.master not in master.names:
        raise _wrong(master, canary.master)
    try:
        told = await master.unwrap(canary, CANARY)
    except CannotOpen:
        told = b""
    if told != CANARY:
        hint = "the row in foliot.canary was changed: restore it from a backup"
        raise WrongMasterKey(f"the canary of the master key {canary.master} cannot be opened", hint)


def _wrong(master: Master, wanted: str) -> WrongMasterKey:
    have = ", ".join(sorted(master.names))
    return WrongMasterKey(f"this database needs the master key {wanted}; this process has {have}", _HOW_TO_SET)


def needed(master: Master | None) -> Master:
    if master is None:
        hint = "set FOLIOT_MASTER_KEY_FILE for all processes; `openssl rand -hex 32` makes a key"
        raise Conflict("there is no master key, and without one nothing can be encrypted", hint)
    return master


async def sealed_answer(vault: Vault, tenant: int, key: str | None, body: bytes) -> bytes:
    """The first answer to an idempotency key, as it is kept: it shows what was asked."""
    lock = None if key is None else await vault.lock(tenant)
    return body if key is None or lock is None else lock.seal(Mark.ANSWER, key, "answer", body)


async def open_answer(vault: Vault, tenant: int, key: str | None, body: bytes) -> bytes:
    if key is None or not is_sealed(body):
        return body
    try:
        return await vault.open_at(tenant, Mark.ANSWER, place(tenant, key, "answer"), body)
    except CannotOpen as error:
        raise Conflict(f"the first answer to this Idempotency-Key cannot be opened: {error}", "use another") from None


class _NoVault(Vault):
    """For where nobody seals: it asks nobody."""

    def __init__(self) -> None:
        super().__init__(Line(""))

    async def sealing(self) -> Mapping[int, int]:
        return {}

    async def secrets(self, tenant: int, names: Iterable[str] | None) -> dict[str, str]:  # noqa: ARG002 - nobody has any
        return {}

    async def _key(self, tenant: int, version: int) -> bytes:
        return self._at_hand(tenant, version)


NO_VAULT: Final = _NoVault()
