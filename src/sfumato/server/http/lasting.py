"""Answers that were free before, given again as they were sent while the ledger ends where it did."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from sfumato._dataclasses import dataclass
from sfumato.errors import SfumatoError
from sfumato.ledger.anchor import Mark
from sfumato.server.access import Account
from sfumato.server.http.guard import ASKER, App, Receive, Scope, Send

__all__ = ["Ends", "Lasting", "lasting"]

Message: TypeAlias = MutableMapping[str, Any]
_LASTS = "lasts"  # in the request's state
_MOST, _BYTES, _LARGEST = 4_096, 2**25, 2**20


def lasting(request: Request, response: Response, lasts: bool) -> Response:
    """The response, and whether it was free and follows from request, asker and ledger alone."""
    setattr(request.state, _LASTS, lasts)
    return response


class Ends:
    """Where the ledger ends, looked up once for all who wait for it.

    Args:
        look: Looks it up; in a thread.
    """

    def __init__(self, look: Callable[[], Mark]) -> None:
        self._look = look
        self._running: asyncio.Task[Mark | None] | None = None
        self._next: asyncio.Task[Mark | None] | None = None

    async def now(self) -> Mark | None:
        """Where it ended at some moment after this was called; None: it cannot be read."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_task(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Task[Mark | None] | None) -> Mark | None:
        if running is not None and not running.done():
            await asyncio.wait([running])  # it began before some of them asked
        self._running, self._next = self._next, None
        with suppress(SfumatoError):
            return await asyncio.to_thread(self._look)
        return None


@dataclass(frozen=True, slots=True)
class _Sent:
    """An answer as it was sent, where the ledger ended before and after it was made, and its address."""

    end: Mark
    route: Any
    messages: tuple[Message, ...]
    size: int


class Lasting:
    """Stands between the guard and the application: for requests whose answer was free a while ago.

    Privacy:
        Claim: what is given from here is what the application would answer now, byte for byte. An answer is
        kept if the application says that it was free and that it follows from the request, its asker and the
        ledger (`lasting`), and if the ledger ended at one receipt before and after it was made. It is given
        again for the same request of the same account and role, while the ledger, looked up after the
        request came, ends there still: no debit, limit, revocation or declaration came between. Whether the
        token is valid was decided by the guard.

    Args:
        app: What answers.
        end: Where the ledger ends.
    """

    def __init__(self, app: App, end: Callable[[], Mark]) -> None:
        self._app, self._ends = app, Ends(end)
        self._kept: OrderedDict[bytes, _Sent | None] = OrderedDict()  # None: free once, not kept yet
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or ASKER not in scope.get("state", ()):
            await self._app(scope, receive, send)
            return
        body = await receive()
        key = _key(scope, body)
        if key not in self._kept:
            await self._app(scope, _again(body, receive), send)
            if scope["state"].get(_LASTS):
                self._keep(key, None)
            return
        end = await self._ends.now()
        known = self._kept.get(key)
        if known is not None and known.end == end:
            self._kept.move_to_end(key)
            scope["route"] = known.route  # as the application says it, for whoever watches
            for message in known.messages:
                await send(message)
            return
        sent: list[Message] = []

        async def copying(message: Message) -> None:
            sent.append(message)
            await send(message)

        await self._app(scope, _again(body, receive), copying)
        if scope["state"].get(_LASTS) and end is not None and await self._ends.now() == end:
            self._keep(key, _Sent(end, scope.get("route"), tuple(sent), _size(sent)))

    def _keep(self, key: bytes, sent: _Sent | None) -> None:
        """Keeps it as the last, and lets go of the first ones where there are too many."""
        if sent is not None and sent.size > _LARGEST:
            return
        self._drop(key)
        self._kept[key] = sent
        self._bytes += 0 if sent is None else sent.size
        while len(self._kept) > _MOST or self._bytes > _BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        known = self._kept.pop(key, None)
        self._bytes -= 0 if known is None else known.size


def _key(scope: Scope, body: Message) -> bytes:
    """All that an answer may depend on besides the ledger; of the token, whose it is.

    As a hash, so that what is remembered is small, however long a request is.
    """
    asker: Account = scope["state"][ASKER]
    headers = tuple(pair for pair in scope["headers"] if pair[0] != b"authorization")
    where = scope["method"], scope["path"], scope["query_string"]
    told = repr((asker.name, asker.role.value, where, headers)).encode("utf-8", "surrogatepass")
    parts = hashlib.sha256(told).digest(), hashlib.sha256(body.get("body", b"")).digest()
    return b"".join(parts)


def _size(sent: list[Message]) -> int:
    return sum(len(message.get("body", b"")) for message in sent)


def _again(body: Message, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return body

    return again
