"""Takes secrets out of what is kept for people to read."""

import base64
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import msgspec

HIDDEN: Final = "[secret]"
SHORTEST: Final = 6
"""Characters: what is shorter stands in any text by chance, and is guessed sooner than read."""


class Redaction:
    """Knows some secrets, and how they look in addresses, in JSON and in base64."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def hide(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


KNOWS_NOTHING: Final = Redaction()


def _forms(secret: str) -> Iterable[str]:
    plain = secret.encode(errors="surrogateescape")
    yield secret
    yield quote(secret, safe="", errors="replace")
    yield msgspec.json.encode(secret.encode(errors="replace").decode()).decode()[1:-1]
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        # What stands before it shifts the letters: of each of three places, the part that does not depend on it.
        for before in range(3):
            letters = encode(b"\0" * before + plain).decode().rstrip("=")
            first, last = -(-before * 8 // 6), (before + len(plain)) * 8 // 6
            if last - first >= SHORTEST:
                yield letters[first:last]
