"""`Badged`: how many alerts somebody has, beside the name of a section, on every page that they open."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from sfumato.errors import SfumatoError
from sfumato.server.access import Account
from sfumato.server.deadlines import Overrun
from sfumato.server.http.asking import Threads
from sfumato.server.http.guard import ASKER, App, Receive, Scope, Send
from sfumato.server.page.looks import BADGES
from sfumato.server.turns import TooBusy

__all__ = ["Badged"]

_FRESH, _MOST = 2.0, 1_024


class Badged:
    """Stands between the hall and the pages, and looks up what is shown beside sections.

    Args:
        app: What is behind it.
        run: Runs work in a thread.
        count: How many alerts somebody has.
        where: The section that they are of.
        ticks: A time that never goes back.
    """

    def __init__(
        self,
        app: App,
        run: Threads,
        count: Callable[[Account], int],
        where: str,
        *,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._run, self._count, self._where, self._ticks = app, run, count, where, ticks
        self._known: OrderedDict[Account, tuple[float, int]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        who: Account | None = scope["state"].get(ASKER)
        shown = scope["method"] == "GET" and not scope["path"].startswith("/static/")
        if who is not None and shown and not any(name == b"x-form" for name, _ in scope["headers"]):
            own = scope["path"].startswith(self._where)
            scope["state"][BADGES] = {self._where: await self._alerts(who, fresh=own)}
        await self._app(scope, receive, send)

    async def _alerts(self, who: Account, *, fresh: bool) -> int:
        """How many; the same for a moment, but where they are read as a page of their own."""
        until, known = self._known.get(who, (float("-inf"), 0))
        if self._ticks() < until and not fresh:
            return known
        try:
            found = await self._run(lambda: self._count(who))
        except (SfumatoError, TooBusy, Overrun):  # the page itself says what is wrong
            return 0
        self._known[who] = self._ticks() + _FRESH, found
        self._known.move_to_end(who)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found
