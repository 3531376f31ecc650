"""What goes wrong, on the wire."""

import msgspec


class FieldError(msgspec.Struct):
    field: str
    message: str
    hint: str = ""


class Problem(msgspec.Struct, kw_only=True):
    """What went wrong and what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    hint: str = ""
    errors: list[FieldError] = []
