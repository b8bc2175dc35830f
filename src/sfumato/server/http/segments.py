"""Names with a slash in an address: `%2F` is a part of a name, `/` stands between two parts."""

from __future__ import annotations

import re
from urllib.parse import unquote

from sfumato.server.http.guard import App, Receive, Scope, Send

__all__ = ["Segments", "whole"]

_SENT = re.compile(r"%2f", re.IGNORECASE)
_SLASH = "\0"  # in the place of a slash that is a part of a name; no name can hold it


def whole(part: str) -> str:
    """A part of an address as it was meant, slashes included."""
    return part.replace(_SLASH, "/")


class Segments:
    """Keeps apart what servers hand over alike: the subjects of identity providers are often addresses.

    Args:
        app: Reads parts of its addresses with `whole`.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        sent = (scope.get("raw_path") or b"").decode("latin-1")
        if _SENT.search(sent) and unquote(sent) == scope["path"]:
            scope["path"] = unquote(_SENT.sub("%00", sent))
        await self._app(scope, receive, send)
