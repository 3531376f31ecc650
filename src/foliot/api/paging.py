"""What every list can be asked for."""

from typing import Annotated

import msgspec
from msgspec import Meta

Limit = Annotated[int, Meta(ge=1, le=500)]


class PageQuery(msgspec.Struct, forbid_unknown_fields=True):
    limit: Limit = 50
    cursor: str | None = None
