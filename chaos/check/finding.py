"""What a check has to say."""

from typing import Any

import msgspec


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that should not be, and what it is about."""

    check: str
    """S…: safety, must never be; L…: quality. What each is called: titles.py."""
    rule: str
    """Which of the check's rules; one word or two."""
    message: str
    run: str | None = None
    job: str | None = None
    at: float | None = None
    """When, if it happened at a moment."""
    numbers: dict[str, Any] = {}

    @property
    def violation(self) -> bool:
        return self.check.startswith("S")
