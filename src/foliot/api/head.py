"""The head of a request has an end: whoever sends headers for ever is not listened to for ever."""

from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from foliot.wire.problems import Problem

LARGEST: Final = 64 << 10
"""Bytes of address and headers together, and then what had come with them in one piece."""
_SAID: Final = msgspec.json.encode(
    Problem(
        type="urn:foliot:problem:head-too-large",
        title="Request header fields too large",
        status=431,
        detail=f"the address and the headers are larger than {LARGEST:,} bytes",
        hint="send less in the address and in the headers; what is long belongs into the body",
        errors=[],
    )
)
_ANSWER: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(_SAID), _SAID)
)


class BoundedHead(HttpToolsProtocol):
    """The parser keeps a header until it is complete, however long that takes: so what comes is counted before."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._waits_for_head = True
        self._had = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._waits_for_head and not self.transport.is_closing():
            self._had += len(data)
            if self._had > LARGEST:
                self.transport.write(_ANSWER)
                self.transport.close()

    def on_message_begin(self) -> None:
        self._waits_for_head, self._had = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._waits_for_head = False
        super().on_headers_complete()
