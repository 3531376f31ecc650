"""Takes secrets out of what is kept for people to read."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec

HIDDEN: Final = "[secret]"
SHORTEST: Final = 6
"""Characters: what is shorter stands in any text by chance, and is guessed sooner than read."""

_ESCAPE: Final = re.compile("%[0-9A-F]{2}")


class Redaction:
    """Knows some secrets, and how they look in addresses, in JSON and in base64."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}

    def hide(self, text: str) -> str:
        # Nearly every text has none of them, and to look for each costs a fraction of making the pattern.
        return self._pattern.sub(HIDDEN, text) if any(form in text for form in self._forms) else text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self._forms, key=len, reverse=True))))


KNOWS_NOTHING: Final = Redaction()


def _forms(secret: str) -> Iterator[str]:
    plain = secret.encode(errors="surrogateescape")
    yield secret
    yield from _in_addresses(secret)
    text = secret.encode(errors="replace").decode()
    yield msgspec.json.encode(text).decode()[1:-1]
    yield json.dumps(text)[1:-1]
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        # What stands before it shifts the letters: of each of three places, the part that does not depend on it.
        for before in range(3):
            letters = encode(b"\0" * before + plain).decode().rstrip("=")
            first, last = -(-before * 8 // 6), (before + len(plain)) * 8 // 6
            if last - first >= SHORTEST:
                yield letters[first:last]


def _in_addresses(secret: str) -> Iterator[str]:
    """Libraries differ in what they leave as it is, in how they write a blank, and in the case of their digits."""
    for escaped in (
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    ):
        yield escaped
        yield _ESCAPE.sub(lambda match: match[0].lower(), escaped)
