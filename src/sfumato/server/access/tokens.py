"""Tokens as text, and the server's key: what is kept of a token, and how rows are sealed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from typing import NoReturn

from sfumato.ledger.names import alike
from sfumato.random import salt
from sfumato.server.access.scram import ScramKeys

__all__ = ["ServerKey", "draw", "id_of", "person"]

_SECRET, _ID = 32, 5  # bytes: 256 bits that nobody knows, and 40 that anybody may
_LONGEST = 200  # characters that are looked at
_FORM = re.compile("sfu_([a-z2-7]{8})_[a-z2-7]{52}")


def draw() -> tuple[str, str]:
    """The id and the text of a new token: `sfu_`, its id, and 256 random bits in letters and digits."""
    name = _letters(salt(_ID))
    return name, f"sfu_{name}_{_letters(salt(_SECRET))}"


def id_of(text: str) -> str:
    """The public id in a token's text; empty if it has not the form of one."""
    found = _FORM.fullmatch(text)
    return "" if found is None else found[1]


def person(name: str) -> str:
    """What all spellings of an account's name share, in a form that every database can hold."""
    return hashlib.sha256(_bytes(alike(name))).hexdigest()


class ServerKey:
    """The server's key, in a file of its own: without it nothing in the database can be made or checked.

    Privacy:
        A token is kept as HMAC-SHA-256 of its whole text, and as the keys of SCRAM, which whoever holds them
        could only guess at, 256 bits at a time. Rows are sealed: whoever writes to the database alone cannot
        make an account, a role or a later expiry. They can put back a row that was there before.
    """

    __slots__ = ("_names", "_rows", "_tokens", "cookies")

    def __init__(self, secret: bytes) -> None:
        self._tokens = _keyed(secret, b"sfumato server: tokens")
        self._rows = _keyed(secret, b"sfumato server: rows")
        self._names = _keyed(secret, b"sfumato server: names")
        self.cookies = _keyed(secret, b"sfumato server: cookies")

    def token(self, text: str) -> bytes:
        """What is kept of a token for HTTP, and what one that is presented is compared by."""
        return _keyed(self._tokens, _bytes(text if len(text) <= _LONGEST else ""))

    def seal(self, kind: str, *values: str | int | bytes | None) -> bytes:
        """The proof that a row was written with this key."""
        plain = [value.hex() if isinstance(value, bytes) else value for value in values]
        return _keyed(self._rows, json.dumps([kind, *plain]).encode("ascii"))

    def salt(self, who: str) -> bytes:
        """The salt of a name's passwords, whether or not there is such an account."""
        return _keyed(self._names, f"salt {who}".encode("ascii"))[:16]

    def mock(self, who: str, number: int) -> ScramKeys:
        """The keys of a password that nobody has: of unknown names, and beside the real ones of others."""
        halves = (_keyed(self._names, f"{half} {number} {who}".encode("ascii")) for half in ("c", "s"))
        return ScramKeys("", *halves)

    def __reduce__(self) -> NoReturn:
        raise TypeError("The server's key is not pickled.")


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _letters(value: bytes) -> str:
    return base64.b32encode(value).decode("ascii").rstrip("=").lower()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
