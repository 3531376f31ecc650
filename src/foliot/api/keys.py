"""Operations on keys."""

import msgspec

from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit
from foliot.kit.envelope import Envelope
from foliot.store.submission import Asked
from foliot.wire.keys import (
    CreatedKey,
    KeyBody,
    KeyLimit,
    KeyView,
    RotateBody,
    RotatedKey,
    life_of,
    new_key,
    overlap_of,
)
from foliot.wire.pages import Page
from foliot.wire.terms import limit_of


class KeyQuery(msgspec.Struct, forbid_unknown_fields=True):
    tenant: str | None = None
    name: str | None = None
    status: str | None = None
    limit: Limit = 50
    cursor: str | None = None


def sealed(call: Call) -> Asked:
    """A request whose answer has a key in it: it is kept so that only the same caller can have it again."""
    envelope = None if call.key is None else Envelope(call.token, call.key)
    return Asked(call.tenant.id, call.key, call.fingerprint, envelope)


async def list_keys(call: Call) -> Reply:
    return Reply(await call.services.keys.page(call.tenant.authority, **msgspec.structs.asdict(call.query)))


async def create_key(call: Call) -> Reply:
    made = await call.services.keys.create(call.tenant.authority, new_key(call.body), call.body.tenant, sealed(call))
    return Reply(made, location=f"/v1/keys/{made.key_id}")


async def get_key(call: Call) -> Reply:
    return Reply(await call.services.keys.read(call.tenant.authority, call.path["keyId"]))


async def limit_key(call: Call) -> Reply:
    key, authority = call.path["keyId"], call.tenant.authority
    await call.services.terms.change_key(authority, key, limit_of(call.body.rate_limit))
    return Reply(await call.services.keys.read(authority, key))


async def revoke_key(call: Call) -> Reply:
    return Reply(await call.services.keys.revoke(call.tenant.authority, call.path["keyId"]))


async def rotate_key(call: Call) -> Reply:
    body: RotateBody = call.body or RotateBody()
    overlap, life = overlap_of(body.overlap), life_of(body.expires_in)
    authority, key = call.tenant.authority, call.path["keyId"]
    return Reply(await call.services.keys.rotate(authority, key, overlap=overlap, life=life, asked=sealed(call)))


OPERATIONS = (
    Operation(
        name="listKeys",
        method="GET",
        path="/v1/keys",
        scope="keys:read",
        summary="List the keys of one's own tenant, newest first; operators may name another",
        handler=list_keys,
        query=KeyQuery,
        result=Page[KeyView],
    ),
    Operation(
        name="createKey",
        method="POST",
        path="/v1/keys",
        scope="keys:write",
        summary="Create a key, which is shown only now; at most two of a name are active",
        handler=create_key,
        body=KeyBody,
        result=CreatedKey,
        status=201,
        keeps_first_answer=True,
    ),
    Operation(
        name="rotateKey",
        method="POST",
        path="/v1/keys/{keyId}:rotate",
        scope="keys:write",
        summary="Create a key that may do the same, which is shown only now; the former one ends after `overlap`",
        handler=rotate_key,
        body=RotateBody,
        body_is_optional=True,
        result=RotatedKey,
        status=201,
        keeps_first_answer=True,
    ),
    Operation(
        name="getKey",
        method="GET",
        path="/v1/keys/{keyId}",
        scope="keys:read",
        summary="Read a key: what it may do, until when, and when it was last used",
        handler=get_key,
        result=KeyView,
    ),
    Operation(
        name="limitKey",
        method="POST",
        path="/v1/keys/{keyId}:limit",
        scope="keys:write",
        summary="Change how fast a key may call, within what its tenant may; null takes the limit away",
        handler=limit_key,
        body=KeyLimit,
        result=KeyView,
    ),
    Operation(
        name="revokeKey",
        method="DELETE",
        path="/v1/keys/{keyId}",
        scope="keys:write",
        summary="Revoke a key: within 5 seconds it opens nothing any more",
        handler=revoke_key,
        result=KeyView,
    ),
)
