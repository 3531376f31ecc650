"""Secrets and encryption on the wire. No answer has a field for a secret's value."""

from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.domain.secret import LONGEST_VALUE
from foliot.wire.timing import Instant


class SecretBody(msgspec.Struct, forbid_unknown_fields=True):
    """A secret's value: text of up to 64 KiB. It is never shown again."""

    value: Annotated[str, Meta(min_length=1, max_length=LONGEST_VALUE)]

    def __repr__(self) -> str:
        return "SecretBody()"


class SecretView(msgspec.Struct, rename="camel"):
    """A secret, without what it is."""

    name: str
    version: int
    updated_at: Instant


class EncryptionBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether what a tenant writes is encrypted from now on: one's own or, for operators, another."""

    enabled: bool
    tenant: str | None = None


class RotationBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whose data key is to be replaced: one's own tenant's or, for operators, another's."""

    tenant: str | None = None


class EncryptionView(msgspec.Struct, kw_only=True, rename="camel"):
    """How a tenant's payloads are kept. `operationId`: what encrypts all that was stored before."""

    tenant: str
    enabled: bool
    key_version: int | None
    master_keys: list[str]
    key_created_at: Instant | None
    operation_id: str | None
