"""Operations on secrets and on encryption."""

import msgspec

from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import PageQuery
from foliot.wire.pages import Page
from foliot.wire.secrets import EncryptionBody, EncryptionView, RotationBody, SecretBody, SecretView


class TenantQuery(msgspec.Struct, forbid_unknown_fields=True):
    tenant: str | None = None


async def list_secrets(call: Call) -> Reply:
    page = await call.services.secrets.page(call.tenant.id, limit=call.query.limit, cursor=call.query.cursor)
    return Reply(page)


async def put_secret(call: Call) -> Reply:
    kept, is_new = await call.services.secrets.put(call.tenant.id, call.path["secret"], call.body.value)
    return Reply(kept, status=201 if is_new else 200)


async def get_secret(call: Call) -> Reply:
    return Reply(await call.services.secrets.read(call.tenant.id, call.path["secret"]))


async def delete_secret(call: Call) -> Reply:
    return Reply(await call.services.secrets.delete(call.tenant.id, call.path["secret"]))


async def get_encryption(call: Call) -> Reply:
    return Reply(await call.services.encryption.read(call.tenant.authority, call.query.tenant))


async def switch_encryption(call: Call) -> Reply:
    asked: EncryptionBody = call.body
    switched = await call.services.encryption.switch(call.tenant.authority, asked.tenant, enabled=asked.enabled)
    return Reply(switched)


async def rotate_encryption(call: Call) -> Reply:
    asked: RotationBody = call.body or RotationBody()
    return Reply(await call.services.encryption.rotate(call.tenant.authority, asked.tenant))


OPERATIONS = (
    Operation(
        name="listSecrets",
        method="GET",
        path="/v1/secrets",
        scope="secrets:read",
        summary="List the names of secrets, their versions and when they changed; never what they are",
        handler=list_secrets,
        query=PageQuery,
        result=Page[SecretView],
    ),
    Operation(
        name="putSecret",
        method="PUT",
        path="/v1/secrets/{secret}",
        scope="secrets:write",
        summary='Keep a secret, or another value of it, for runs that refer to it as {"$secret": name}',
        handler=put_secret,
        takes_secret=True,
        body=SecretBody,
        result=SecretView,
        also=(201,),
    ),
    Operation(
        name="getSecret",
        method="GET",
        path="/v1/secrets/{secret}",
        scope="secrets:read",
        summary="Read a secret's version and when it changed; never what it is",
        handler=get_secret,
        result=SecretView,
    ),
    Operation(
        name="deleteSecret",
        method="DELETE",
        path="/v1/secrets/{secret}",
        scope="secrets:write",
        summary="Delete a secret: runs that refer to it fail from now on",
        handler=delete_secret,
        result=SecretView,
    ),
    Operation(
        name="getEncryption",
        method="GET",
        path="/v1/encryption",
        scope="secrets:read",
        summary="Whether a tenant's payloads are encrypted, and with which version of its key",
        handler=get_encryption,
        query=TenantQuery,
        result=EncryptionView,
    ),
    Operation(
        name="switchEncryption",
        method="PUT",
        path="/v1/encryption",
        scope="secrets:write",
        summary="Encrypt what a tenant writes from now on, and what it has stored in the background; or no more",
        handler=switch_encryption,
        body=EncryptionBody,
        result=EncryptionView,
    ),
    Operation(
        name="rotateEncryption",
        method="POST",
        path="/v1/encryption:rotate",
        scope="secrets:write",
        summary="Give a tenant a new data key; what is stored is encrypted with it in the background",
        handler=rotate_encryption,
        body=RotationBody,
        body_is_optional=True,
        result=EncryptionView,
    ),
)
