"""Just enough of PostgreSQL's wire protocol to see when a client is about to commit something that matters."""

import re
from typing import Final

SSL, GSS, CANCEL = 80877103, 80877104, 80877102
READY: Final = b"Z\x00\x00\x00\x05I"
"""ReadyForQuery outside a transaction: what was asked before has been committed or refused."""

_TABLES: Final = (
    "run|ready|timer|claim|history|firing|schedule|subscription|job|idempotency|dead_letter|api_key|data_key"
)
# Of the audit trail, sealing: what tells of a change comes with it, and of what was denied every second.
_WRITE: Final = re.compile(
    rf"(INSERT\s+INTO|DELETE\s+FROM|(?<!FOR )(?<!KEY )UPDATE)\s+(foliot\.)?({_TABLES})\b"
    r"|\bUPDATE\s+audit\b|\bfoliot\.submit\(".encode(),
    re.IGNORECASE,
)
_BEGIN: Final = re.compile(rb"\s*(BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_END: Final = re.compile(rb"\s*(COMMIT|ROLLBACK|END)\b", re.IGNORECASE)
_COMMIT: Final = re.compile(rb"\s*(COMMIT|END)\b", re.IGNORECASE)


class ClientStream:
    """What one client says, cut into whole messages; tells which of them commits a change to Foliot's tables."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._greeting = True
        self._opaque = False
        self._writes: dict[bytes, bool] = {}
        self._in_transaction = False
        self._wrote = False
        self._bound = False

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """Whole messages, each with whether the change it belongs to is committed when the server has done it."""
        if self._opaque:
            return [(data, False)]
        self._buffer += data
        found = []
        while (message := self._next()) is not None:
            found.append((message, self._look_at(message)))
        return found

    def _next(self) -> bytes | None:
        start = 0 if self._greeting else 1
        if len(self._buffer) < start + 4:
            return None
        length = start + int.from_bytes(self._buffer[start : start + 4], "big")
        if len(self._buffer) < length:
            return None
        message = bytes(self._buffer[:length])
        del self._buffer[:length]
        return message

    def _look_at(self, message: bytes) -> bool:
        if self._greeting:
            code = int.from_bytes(message[4:8], "big")
            self._greeting = code in {SSL, GSS}
            self._opaque = code == CANCEL
            return False
        match message[:1]:
            case b"P":
                name, _, rest = message[5:].partition(b"\0")
                self._writes[name] = _WRITE.search(rest.partition(b"\0")[0]) is not None
            case b"B":
                _, _, rest = message[5:].partition(b"\0")
                self._bound = self._writes.get(rest.partition(b"\0")[0], False)
            case b"E":
                self._wrote |= self._bound
                # Outside a transaction block the Sync that follows commits; cutting here keeps both from the server.
                return self._bound and not self._in_transaction
            case b"Q":
                return self._simple(message[5:-1])
            case _:
                pass
        return False

    def _simple(self, text: bytes) -> bool:
        if _BEGIN.match(text):
            self._in_transaction, self._wrote = True, False
            return False
        if _END.match(text):
            commits = self._in_transaction and self._wrote and _COMMIT.match(text) is not None
            self._in_transaction = self._wrote = False
            return commits
        if _WRITE.search(text):
            self._wrote = True
            return not self._in_transaction
        return False
