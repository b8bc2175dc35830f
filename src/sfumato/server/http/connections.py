"""HTTP/1.1 from one client: what is no request is refused like all else, and none may go on for ever."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sfumato.server.crowds import Crowd
from sfumato.server.http.failures import refusal
from sfumato.server.http.guard import HEADERS

__all__ = ["Connection", "connections"]

MOST_BYTES = 1 << 16  # of the lines before and after a body
_AROUND = 8  # bytes for each of a body, which may come in parts of one byte, each with its length
SECONDS_TO_BEGIN = 20.0  # in which these lines must be there; for a body the guard has its own
SECONDS_TO_READ = 60.0  # in which a client must take something of an answer
MOST_WAITING = 16  # requests that came before those ahead of them were answered
_QUIET = logging.getLogger("sfumato.server.connections")
_QUIET.setLevel(logging.ERROR)  # what clients send wrong is theirs to know, and would fill a log


def connections(crowd: Crowd) -> type[Connection]:
    """Connections of a server that counts them by address."""
    return type("Connection", (Connection,), {"crowd": crowd})


class _Enough(Exception):
    """Nothing more of a connection is looked at."""


class Connection(HttpToolsProtocol):
    """A connection whose requests have heads of bounded length, that come and whose answers go in time.

    Attributes:
        crowd: Counts connections.
    """

    crowd = Crowd()

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.logger = _QUIET
        self._within, self._number = False, 0  # whether a request has begun, and which
        self._length, self._body = 0, 0  # its bytes so far, and those of its body
        self._counted_at: str | None = None
        self._enough = False  # whether too many requests wait
        self._beginning: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def enter(self, address: str) -> bool:
        """Counts it, unless it is one too many."""
        if self._counted_at is None and self.crowd.enter(address):
            self._counted_at = address
        return self._counted_at is not None

    def leave(self) -> None:
        """Counts it no more."""
        if self._counted_at is not None:
            self.crowd.leave(self._counted_at)
            self._counted_at = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there."""
        super().connection_made(transport)
        if not self.enter("" if self.client is None else self.client[0]):
            self._refuse(429, "too_many_connections", "There are too many connections.")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self.leave()
        self._unset()
        if self._reading is not None:
            self._reading.cancel()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._beginning is None and not self.transport.is_closing():
            self._beginning = self.loop.call_later(SECONDS_TO_BEGIN, self._too_slow)

    def _unset(self) -> None:
        if self._beginning is not None:
            self._beginning.cancel()
            self._beginning = None

    def _too_slow(self) -> None:
        self._beginning = None
        if not self.transport.is_closing():
            self._refuse(408, "too_slow", "The request did not arrive in time.")

    def data_received(self, data: bytes) -> None:
        """Takes what came."""
        if self._enough:
            self.flow.pause_reading()  # until what waits is answered: then it ends
            return
        if self.transport.is_closing():
            return
        going_on = self._number if self._within else None
        super().data_received(data)
        if self._within and self._number == going_on:
            self._length += len(data)
            if self._length > MOST_BYTES + _AROUND * self._body and not self.transport.is_closing():
                self._refuse(431, "too_large", f"The lines around a body may have {MOST_BYTES:,} bytes.")
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()  # also for what is no line of a request yet

    def on_message_begin(self) -> None:
        """A head begins."""
        self._within, self._length, self._body = True, 0, 0
        self._number += 1
        self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is there; one that would wait behind too many is refused in its turn, and is the last."""
        self._unset()
        super().on_headers_complete()
        if len(self.pipeline) > MOST_WAITING:
            self.pipeline[0] = self.cycle, _too_many
            self._enough = True
            raise _Enough  # so that the parser leaves the rest alone

    def on_body(self, body: bytes) -> None:
        """Something of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is there, with the lines after a body, which are bounded as those before it."""
        self._within = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client takes nothing: for a while."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(SECONDS_TO_READ, self.transport.abort)

    def resume_writing(self) -> None:
        """It goes on."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read, whatever is wrong with it."""
        del msg
        if not self._enough:
            self._refuse(400, "invalid_request", "This is no request of HTTP/1.1.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._unset()
        if not self.pipeline and not self._begun:  # else it would be taken for the answer to something else
            found = refusal(status, code, message, {"Connection": "close"})
            lines = [b"HTTP/1.1 %d " % status]
            lines += [b"%s: %s" % pair for pair in (*found.raw_headers, *HEADERS)]
            self.transport.write(b"\r\n".join([*lines, b"", bytes(found.body)]))
        self.transport.close()

    @property
    def _begun(self) -> bool:
        """Whether a part of an answer was sent."""
        cycle = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete


async def _too_many(scope: Any, receive: Any, send: Any) -> None:
    """The answer to a request that came while too many wait."""
    message = f"A connection may have {MOST_WAITING} requests that wait: send the next after an answer."
    found = refusal(429, "too_many_requests", message, {"Connection": "close"})
    found.raw_headers += HEADERS
    await found(scope, receive, send)
