"""Programs go to the API, people to the page."""

from __future__ import annotations

from sfumato.server.http.guard import App, Receive, Scope, Send, names_a_token

__all__ = ["Parted"]

_PAGES = frozenset({"", "ask", "feel", "login", "logout", "public", "show", "start", "static", "watch"})


class Parted:
    """Sends programs to the API and people to the page.

    Args:
        api: Whatever is not the page's, what is nowhere included.
        page: The addresses that people open.
    """

    def __init__(self, api: App, page: App) -> None:
        self._api, self._page = api, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        people = scope["type"] == "http" and _is_page(scope)
        await (self._page if people else self._api)(scope, receive, send)


def _is_page(scope: Scope) -> bool:
    path: str = scope["path"]
    first = path[1:].partition("/")[0]
    return path.startswith("/") and first in _PAGES and not path.startswith("//") and not names_a_token(scope)
