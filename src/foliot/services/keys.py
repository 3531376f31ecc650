"""Making, listing, rotating and revoking keys: nobody gives what they have not, nor sees another tenant's."""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from foliot.domain.access import Authority, NewKey, check_may_give, check_may_touch
from foliot.domain.errors import Conflict, InvalidField, NotFound, one_of
from foliot.kit.tokens import Token, new_token
from foliot.store import keys, tenants
from foliot.store.audit import note
from foliot.store.database import Connection, Database
from foliot.store.keys import KeyRow, facts
from foliot.store.submission import ALWAYS, Asked, answer_once, do_once
from foliot.store.terms import respect_quota
from foliot.wire.audit import KEY_PREFIX
from foliot.wire.codec import rfc3339
from foliot.wire.keys import CreatedKey, KeyView, RotatedKey
from foliot.wire.pages import Page, page_of, strange_cursor
from foliot.wire.terms import limit_body

STATUSES: Final = ("active", "expired", "revoked")
_PREFIX: Final = KEY_PREFIX


class Keys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, authority: Authority, new: NewKey, tenant: str | None = None, asked: Asked = ALWAYS
    ) -> CreatedKey:
        """Make a key of one's own tenant or, for an operator, of any."""
        number = await self._tenant(authority, tenant)
        check_may_give(new, authority)

        async def make() -> bytes:
            token = new_token()
            async with self._database.transaction() as connection:
                await respect_quota(connection, number, keys=1)
                row = await _made(connection, number, token, new)
                await note(connection, _PREFIX + row.id, None, facts(row), tenant=row.tenant)
                body = msgspec.json.encode(created(row, token.text))
                await answer_once(connection, asked, body)
            return body

        return msgspec.json.decode((await do_once(self._database, asked, make))[0], type=CreatedKey)

    async def page(
        self,
        authority: Authority,
        *,
        tenant: str | None = None,
        name: str | None = None,
        status: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Page[KeyView]:
        """Newest first: of one's own tenant, or of the one that an operator names."""
        if status is not None and status not in STATUSES:
            raise InvalidField("status", f"no key is {status[:40]!r}", one_of(STATUSES))
        before = None if cursor is None else _read_cursor(cursor)
        number = await self._tenant(authority, tenant) or None  # who is of no tenant sees those of all
        rows = await keys.list_keys(
            self._database, tenant=number, label=name, status=status, before=before, limit=limit + 1
        )
        return page_of(rows, limit, view, lambda row: f"{rfc3339(row.created_at)}.{row.id}")

    async def read(self, authority: Authority, key_id: str) -> KeyView:
        return view(await self._known(authority, key_id))

    async def revoke(self, authority: Authority, key_id: str) -> KeyView:
        """Let a key open nothing any more, everywhere within 5 seconds. One that was revoked stays as it is."""
        row = await self._known(authority, key_id)
        check_may_touch(row.role, authority)
        async with self._database.transaction() as connection:
            if await keys.revoke_key(connection, row.tenant, row.id):
                was = {"status": row.status}
                await note(connection, _PREFIX + row.id, was, {"status": "revoked"}, tenant=row.tenant)
        return view(await self._known(authority, key_id))

    async def rotate(
        self,
        authority: Authority,
        key_id: str,
        *,
        overlap: timedelta,
        life: timedelta | None,
        asked: Asked = ALWAYS,
    ) -> RotatedKey:
        """Make a key of the same name that may do the same; the former one ends after `overlap`."""

        async def make() -> bytes:
            row = await self._known(authority, key_id)
            return await self._rotate(row, _successor(row, life, authority), overlap, asked)

        return msgspec.json.decode((await do_once(self._database, asked, make))[0], type=RotatedKey)

    async def _rotate(self, row: KeyRow, new: NewKey, overlap: timedelta, asked: Asked) -> bytes:
        token = new_token()
        async with self._database.transaction() as connection:
            made = await _made(connection, row.tenant, token, new)
            former = await keys.expire_key(connection, row.tenant, row.id, overlap)
            became = {**facts(made), "former": _PREFIX + row.id}
            await note(connection, _PREFIX + made.id, None, became, tenant=row.tenant)
            body = msgspec.json.encode(RotatedKey(key=created(made, token.text), former=view(former)))
            await answer_once(connection, asked, body)
        return body

    async def _tenant(self, authority: Authority, name: str | None) -> int:
        """The tenant that is meant; to all but operators another one is as unknown as one that never was."""
        if name is None:
            return authority.tenant
        number = await tenants.find_tenant(self._database, name) if name.isprintable() else None
        if number is None or not authority.reaches(number):
            raise NotFound("there is no such tenant", "a key speaks for its own tenant, an operator's for all")
        return number

    async def _known(self, authority: Authority, key_id: str) -> KeyRow:
        row = await keys.read_key(self._database, key_id.removeprefix(_PREFIX)) if _may_be(key_id) else None
        if row is None or not authority.reaches(row.tenant):
            raise NotFound("there is no such key", "GET /v1/keys lists those that there are")
        return row


def _successor(row: KeyRow, life: timedelta | None, authority: Authority) -> NewKey:
    """A key that may do the same as this one, for as long as it was to last if nothing else is said."""
    if row.status != "active":
        raise Conflict(f"the key is {row.status}", "make a new one")
    if life is None and row.expires_at is not None:
        life = row.expires_at - row.created_at
    new = NewKey(row.label, row.role, row.narrowed, row.serves, life, row.rate_limit)
    check_may_give(new, authority)
    return new


def _may_be(key_id: str) -> bool:
    return key_id.startswith(_PREFIX) and key_id.isprintable()


async def _made(connection: Connection, tenant: int, token: Token, new: NewKey) -> KeyRow:
    row = await keys.make_key(connection, tenant, token, new)
    if row is None:
        raise Conflict(
            f"two keys called {new.name!r} are active already", "revoke the older one, or choose another name"
        )
    return row


def view(row: KeyRow) -> KeyView:
    return KeyView(
        key_id=_PREFIX + row.id,
        tenant=row.tenant_name,
        name=row.label,
        role=row.role,
        scopes=sorted(row.scopes),
        serves=[*row.serves],
        status=row.status,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        rate_limit=limit_body(row.rate_limit),
    )


def created(row: KeyRow, token: str) -> CreatedKey:
    shown = view(row)
    return CreatedKey(**{name: getattr(shown, name) for name in shown.__struct_fields__}, key=token)


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    created_at, _, key = cursor.rpartition(".")
    try:
        return datetime.fromisoformat(created_at).astimezone(UTC), key.encode("ascii").decode()
    except (ValueError, OverflowError):
        raise strange_cursor() from None
