"""Tells of each request once it is over."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from typing import Any

from sfumato.server.events import Event, Watch
from sfumato.server.http.guard import App, Receive, Scope, Send

__all__ = ["PAID", "RECEIPT", "Watched"]

RECEIPT, PAID = "Sfumato-Receipt", "Sfumato-Paid"
"""Headers of an answer: the number of its receipt, and `yes` or `no`, whether it was paid now."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Watched:
    """An application whose requests somebody watches.

    Args:
        app: What is behind it.
        watch: Who is told.
    """

    def __init__(self, app: App, watch: Watch) -> None:
        self._app, self._watch = app, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, start = time.monotonic(), dict[str, Any]()

        async def noting(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._watch(_event(scope, start, time.monotonic() - begun))


def _event(scope: Scope, start: MutableMapping[str, Any], seconds: float) -> Event:
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    receipt = headers.get(RECEIPT.lower().encode())
    asker = scope.get("state", {}).get("asker")
    return Event(
        front="http",
        act=_act(scope),
        status=str(start.get("status", 499)),
        who="" if asker is None else asker.name,
        address=(scope.get("client") or ("", 0))[0],
        receipt=None if receipt is None else int(receipt),
        free=headers.get(PAID.lower().encode()) == b"no",
        seconds=seconds,
    )


def _act(scope: Scope) -> str:
    """The address as it is documented: what is in a path is the client's, and may be a token."""
    path = getattr(scope.get("route"), "path", None)
    method = scope["method"] if scope["method"] in _METHODS else "OTHER"
    return "other" if path is None else f"{method} {path}"
