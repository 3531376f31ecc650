"""What every list can be asked for, and the cursors that lead from page to page."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Limit = Annotated[int, Meta(ge=1, le=500)]
_ORDERED = msgspec.json.Encoder(order="deterministic")


class PageQuery(msgspec.Struct, forbid_unknown_fields=True):
    limit: Limit = 50
    cursor: str | None = None


def is_paged(query: Any) -> bool:
    """Whether a query of this type asks for a page."""
    return query is not None and "cursor" in query.__struct_fields__


def list_of(operation: str, tenant: int, path: Any, query: Any) -> bytes:
    """Which list a cursor belongs to: who asks, and for what; pages may change their size on the way."""
    filters = {name: value for name, value in msgspec.structs.asdict(query).items() if name not in {"limit", "cursor"}}
    return _ORDERED.encode([operation, tenant, dict(path), filters])
