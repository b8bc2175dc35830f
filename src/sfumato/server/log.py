"""`Log`: one line of JSON for each event."""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

from sfumato.server.events import Event

__all__ = ["Log"]


class Log(logging.Handler):
    """Writes who did what, how it ended and which receipt it was about.

    It takes what this package's own loggers say of the server, too: a class and a line of code.

    Privacy:
        No text of a question, no value, no token and no duration is in a line: a log may be read by people
        who may not see what a steward may.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream, self._one = stream or sys.stderr, threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write one."""
        line: dict[str, Any] = {"front": event.front, "act": event.act, "status": event.status}
        if event.who:
            line["who"] = event.who
        if event.address:
            line["address"] = event.address
        if event.receipt is not None:
            line |= {"receipt": event.receipt, "free": event.free}
        self._write(line)

    def emit(self, record: logging.LogRecord) -> None:
        """What a logger says."""
        self._write({"trouble": record.getMessage()})

    def _write(self, line: dict[str, Any]) -> None:
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"time": when, **line}, ensure_ascii=True)
        with self._one:
            self._stream.write(f"{text}\n")
            self._stream.flush()
