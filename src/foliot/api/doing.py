"""Who is calling, as the audit trail tells it."""

import itertools
import re
import secrets
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from foliot.api.operation import Operation, Tenant
from foliot.domain.address import Network
from foliot.domain.audit import NOBODY
from foliot.domain.origin import origin_of
from foliot.store.audit import Deed

REQUEST_ID: Final = b"x-request-id"
FORWARDED: Final = b"x-forwarded-for"
_ID: Final = re.compile(r"[\x21-\x7e]{1,100}")
_KEY: Final = re.compile(r"fol_([a-z0-9]{1,40})_")
_BOOT: Final = secrets.token_hex(4)
_COUNT: Final = itertools.count(1)
_NAME: Final = "foliot.request"
"""Where a request has the id that we gave it."""


def deed_of(
    request: Request, operation: Operation, tenant: Tenant | None, token: str, proxies: Sequence[Network] = ()
) -> Deed:
    """What a call wants, and who wants it. Of a caller that is not known, the key that it says it has."""
    ip = _ip(request, proxies)
    name = request_id(request) or request.scope.setdefault(_NAME, f"{_BOOT}-{next(_COUNT):x}")
    if tenant is None:
        claimed = _KEY.match(token)
        return Deed(NOBODY, "unknown", None if claimed is None else claimed[1], ip, name, operation.name)
    return Deed(tenant.id, tenant.name, tenant.key or None, ip, name, operation.name)


def _ip(request: Request, proxies: Sequence[Network]) -> str | None:
    if request.client is None or not proxies:
        return None if request.client is None else request.client.host
    said = [value.decode("latin-1") for name, value in request.scope["headers"] if name == FORWARDED]
    return origin_of(request.client.host, ",".join(said), proxies)


def request_id(request: Request) -> str | None:
    """The id that the caller, or the proxy before us, has given to the request; or we, if it was noted."""
    given = header(request, REQUEST_ID)
    return given if given is not None and _ID.fullmatch(given) else request.scope.get(_NAME)


def header(request: Request, name: bytes) -> str | None:
    """A header by its name in small letters: found in a tenth of the time that `request.headers` takes."""
    for each, value in request.scope["headers"]:
        if each == name:
            return value.decode("latin-1")  # type: ignore[no-any-return]
    return None
