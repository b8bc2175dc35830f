"""What every request passes before it is routed: who asks, how much is sent, and what browsers are told."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from starlette.responses import Response

from sfumato.errors import AccessDenied, TooManyTries
from sfumato.server.access import Account
from sfumato.server.crowds import Rates, TooFast
from sfumato.server.http.failures import refusal
from sfumato.server.troubles import note

__all__ = [
    "ASKER",
    "ASKING",
    "HEADERS",
    "App",
    "Guard",
    "Known",
    "Receive",
    "Scope",
    "Send",
    "is_ambiguous",
    "names_a_token",
    "received",
    "replayed",
    "too_long",
    "with_headers",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ASKER = "asker"
"""In the request's state: whose token it has."""
ASKING: ContextVar[Account | None] = ContextVar("asking", default=None)
"""The same for what is done in the request's task: in whose turn."""
MOST_BYTES = 1 << 20
SECONDS_TO_SEND = 20.0
_DIGITS = 20  # of a length: Python refuses to read very long ones, zeros included
_TOKEN_WORDS = frozenset(
    {"token", "access_token", "id_token", "authorization", "bearer", "api_key", "apikey", "key"}
)
_PREFIX = "sfu_"
_CLOSED = ("/api", "/metrics")  # and all below /api
_CLOSE = {"Connection": "close"}
_ONCE = (
    b"authorization",
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"content-type",
    b"idempotency-key",
)
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""What browsers are told of every answer."""


Known: TypeAlias = Callable[[str, str], Account]
"""From a token, and the address that it came from, to whose it is.

Raises:
    AccessDenied: if it is nobody's, or too many wrong ones came.
"""


class Guard:
    """Lets requests to `/api` and `/metrics` through that have a token, none that is too large or slow.

    Args:
        app: What is behind it.
        known: Whose a token is; asked in a thread.
        recent: The same for a token that was checked a moment ago, at once; None for all others.
        rates: How often an account may ask.
    """

    def __init__(
        self,
        app: App,
        known: Known,
        recent: Callable[[str], Account | None] = lambda _: None,
        rates: Rates | None = None,
    ) -> None:
        self._app, self._known, self._recent, self._rates = app, known, recent, rates or Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        telling = with_headers(send)
        refused = await self._refused(scope)
        if refused is not None:
            await refused(scope, receive, telling)
            return
        try:
            body = await received(receive)
        except TimeoutError:
            refused = refusal(408, "too_slow", "The request did not arrive in time.", _CLOSE)
            await refused(scope, receive, telling)
            return
        if body is None:
            await _too_large()(scope, receive, telling)
            return
        try:
            with suppress(Exception):  # it is answered, and ends here: a server would log its text
                await self._app(scope, replayed(body, receive), telling)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            await _ending()(scope, receive, telling)
            raise

    async def _refused(self, scope: Scope) -> Response | None:
        path, sent = scope["path"], dict(scope["headers"])
        if names_a_token(scope):
            return refusal(
                400,
                "token_in_address",
                "Addresses are written into logs: send the token in the header Authorization: Bearer TOKEN, "
                "and have this one revoked.",
            )
        if is_ambiguous(scope["headers"]):
            return refusal(400, "ambiguous", "A header that decides something came twice.", _CLOSE)
        if too_long(scope["headers"]):
            return _too_large()
        if path not in _CLOSED and not path.startswith("/api/"):
            return None
        kind, _, token = sent.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not token or not token.isascii():
            return _unknown("Send a token: the header Authorization: Bearer TOKEN.")
        address = (scope.get("client") or ("", 0))[0]
        try:
            asker = self._recent(token.decode())
            if asker is None:
                asker = await asyncio.to_thread(self._known, token.decode(), address)
        except TooManyTries as error:
            wait = {"Retry-After": str(math.ceil(error.wait))}
            return refusal(429, error.code, str(error), wait)
        except AccessDenied as error:
            return _unknown(str(error))
        except Exception as error:  # the accounts cannot be read: whose token it is stays open
            note(error)
            return refusal(503, "unready", "Tokens cannot be checked now: ask again in a moment.", _CLOSE)
        scope.setdefault("state", {})[ASKER] = asker
        ASKING.set(asker)
        try:
            self._rates.admit(asker.name)
        except TooFast as error:
            return refusal(429, "too_many_requests", str(error), {"Retry-After": str(error.wait)})
        return None


def _unknown(message: str) -> Response:
    return refusal(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})


def is_ambiguous(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether what stands before this server may have read another request than it does."""
    names = [name for name, _ in headers if name in _ONCE]
    return len(names) != len({*names})


def too_long(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request says of itself that it is too long, or not how long it is."""
    length = dict(headers).get(b"content-length", b"0")
    return not length.isdigit() or len(length) > _DIGITS or int(length) > MOST_BYTES


def names_a_token(scope: Scope) -> bool:
    """Whether the address of a request holds what should be in none."""
    if _PREFIX in scope["path"]:
        return True
    if not scope["query_string"]:
        return False
    words = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=None)
    return any(key.lower() in _TOKEN_WORDS or _PREFIX in key or _PREFIX in value for key, value in words)


async def received(receive: Receive) -> bytes | None:
    """The whole body of a request; None: it is too long.

    Raises:
        TimeoutError: if it takes too long to arrive.
    """
    parts, size = list[bytes](), 0
    async with asyncio.timeout(SECONDS_TO_SEND):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return b""  # they went away
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MOST_BYTES:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Gives a body that has arrived, then what else comes."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()  # whether they are still there
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _too_large() -> Response:
    return refusal(413, "too_large", f"A request may have {MOST_BYTES:,} bytes.", _CLOSE)


def _ending() -> Response:
    return refusal(
        503,
        "ending",
        "The server ends. What was begun is charged and kept on record: ask again later, and it is free.",
        _CLOSE,
    )


def with_headers(send: Send, headers: Iterable[tuple[bytes, bytes]] = HEADERS) -> Send:
    """Sends, with what browsers are told of every answer that does not tell them something else."""

    async def telling(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            told = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in headers if name not in told]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return telling
