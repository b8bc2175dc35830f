"""The cookie of a login: the token, sealed with the server's key, for a working day."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import field
from http.cookies import CookieError, SimpleCookie

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato._dataclasses import dataclass
from sfumato.random import salt

__all__ = ["LASTS", "Cookies", "Opened"]

LASTS = 12 * 3600
"""Seconds after which one logs in again."""
_NONCE, _TIME = 12, 8
_NAME, _LONGEST = "sfumato", 4_096


@dataclass(frozen=True, slots=True)
class Opened:
    """What is in a cookie.

    Attributes:
        token: Of whoever logged in.
        login: What the login is known by; it opens nothing.
        until: When it is over, in seconds since 1970.
    """

    token: str = field(repr=False)
    login: bytes
    until: int


class Cookies:
    """Makes and opens the cookies of logins.

    Privacy:
        A cookie holds the token, encrypted and authenticated (AES-256-GCM) with a key that only the server
        has: who steals it can use this page as its owner for `LASTS` seconds at most, and not the API, nor
        PostgreSQL's protocol. A token that is revoked ends its cookies, too, and a logout the one it is of
        (see `Logins`). Scripts cannot read it, other sites' requests do not bring it along, and over TLS it
        is never sent in plain text.

    Args:
        key: 32 bytes.
        clock: Seconds since 1970.
    """

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key, self._sealing, self._clock = key, AESGCM(key), clock

    def made(self, token: str, *, secure: bool) -> str:
        """The header `Set-Cookie` that logs somebody in."""
        until = int(self._clock()) + LASTS
        nonce = salt(_NONCE)
        sealed = self._sealing.encrypt(nonce, until.to_bytes(_TIME, "big") + token.encode(), b"login")
        value = base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")
        return f"{_name(secure)}={value}; Max-Age={LASTS}; {_manners(secure)}"

    def ended(self, *, secure: bool) -> str:
        """The header `Set-Cookie` that logs somebody out."""
        return f"{_name(secure)}=; Max-Age=0; {_manners(secure)}"

    def found(self, header: str, *, secure: bool) -> str:
        """The value of the cookie in a header `Cookie`; empty if there is none."""
        if len(header) > _LONGEST:
            return ""
        try:
            morsel = SimpleCookie(header).get(_name(secure))
        except CookieError:
            return ""
        return "" if morsel is None else morsel.value

    def opened(self, value: str) -> Opened | None:
        """What is in a cookie; None if it is none of ours, or too old."""
        try:
            data = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
            plain = self._sealing.decrypt(data[:_NONCE], data[_NONCE:], b"login")
        except (InvalidTag, ValueError, binascii.Error):
            return None
        until = int.from_bytes(plain[:_TIME], "big")
        if self._clock() >= until:
            return None
        return Opened(plain[_TIME:].decode(), hashlib.sha256(data[:_NONCE]).digest(), until)

    def form(self, value: str) -> str:
        """What the forms of this login hold, so that no other site can send one."""
        return hmac.new(self._key, b"form " + value.encode(), "sha256").hexdigest()

    def is_form(self, value: str, sent: str) -> bool:
        """Whether that is what a form of this login holds."""
        return hmac.compare_digest(self.form(value).encode(), sent.encode("utf-8", "replace"))


def _name(secure: bool) -> str:
    return f"__Host-{_NAME}" if secure else _NAME


def _manners(secure: bool) -> str:
    return "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
