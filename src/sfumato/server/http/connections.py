"""HTTP/1.1 from one client: what is no request is refused like all else, and none may go on for ever."""

from __future__ import annotations

import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sfumato.server.http.failures import refusal
from sfumato.server.http.guard import HEADERS

__all__ = ["Connection"]

MOST_BYTES = 1 << 16  # of the lines before a body
_QUIET = logging.getLogger("sfumato.server.connections")
_QUIET.setLevel(logging.ERROR)  # what clients send wrong is theirs to know, and would fill a log


class Connection(HttpToolsProtocol):
    """A connection whose requests have heads of bounded length."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.logger = _QUIET
        self._within, self._length = False, 0  # a head that has begun, and its bytes so far

    def data_received(self, data: bytes) -> None:
        """Takes what came."""
        going_on = self._within
        super().data_received(data)
        if self._within and going_on:
            self._length += len(data)
            if self._length > MOST_BYTES and not self.transport.is_closing():
                self._refuse(431, "too_large", f"The lines before a body may have {MOST_BYTES:,} bytes.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._within, self._length = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is there."""
        self._within = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read, whatever is wrong with it."""
        del msg
        self._refuse(400, "invalid_request", "This is no request of HTTP/1.1.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        found = refusal(status, code, message, {"Connection": "close"})
        lines = [b"HTTP/1.1 %d " % status]
        lines += [b"%s: %s" % pair for pair in (*found.raw_headers, *HEADERS)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(found.body)]))
        self.transport.close()
