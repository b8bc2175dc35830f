"""The chain of receipts: rows, their canonical bytes and the keyed hash that ties each to all before it."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, LedgerTampered
from sfumato.render import is_text, is_visible

__all__ = ["GENESIS", "Chain", "Row", "canonical", "plain", "text"]

GENESIS = 0  # the number before the first receipt
_LONGEST_NAME = 200
_LARGEST_BODY = 2**20
_DEEPEST = 50
_BLOCK = 64  # bytes: of SHA-256
_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Row:
    """One receipt as it is stored: what is searched for in columns, everything else in `body`."""

    number: int
    kind: str
    dataset: str
    analyst: str | None
    fingerprint: str | None
    body: str
    mac: bytes = b""

    @property
    def facts(self) -> dict[str, Any]:
        """What the body says, to look at and not to change: whoever asks next is given the same."""
        return _facts(self.body)

    def content(self) -> bytes:
        """Everything that the mac covers, unambiguously: `canonical` of a list, written out for speed."""
        analyst = "null" if self.analyst is None else quoted(self.analyst)
        question = "null" if self.fingerprint is None else quoted(self.fingerprint)
        head = f"[{self.number},{quoted(self.kind)},{quoted(self.dataset)},{analyst},{question}"
        return f"{head},{quoted(self.body)}]".encode("ascii")


class Chain:
    """Seals rows with HMAC-SHA256 under a key that the database never sees.

    Privacy:
        Claim: without the key nobody can change, insert, drop or reorder receipts up to a mac that is known
        from elsewhere (the anchor), because each mac covers the one before it and the number. What was cut
        off at the end shows only against such a mac. Condition: the key is kept from whoever can write to
        the database.
    """

    __slots__ = ("_inner", "_outer", "ledger")

    def __init__(self, key: bytes, ledger: str) -> None:
        self.ledger = ledger
        block = (key if len(key) <= _BLOCK else hashlib.sha256(key).digest()).ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def seal(self, purpose: str, content: str) -> str:
        """A mac for something that is not a receipt: the ledger's identity, its anchor."""
        return self._mac(f"{purpose}\n{self.ledger}\n{content}".encode()).hex()

    @property
    def start(self) -> bytes:
        """What the first receipt is tied to."""
        return self._mac(f"genesis\n{self.ledger}".encode())

    def sealed(self, row: Row, previous: bytes) -> Row:
        """The row with its mac, tied to the mac before it."""
        return replace(row, mac=self._mac(b"receipt\n" + previous + row.content()))

    def holds(self, row: Row, previous: bytes) -> bool:
        """Whether this row was sealed under this key after that mac."""
        return hmac.compare_digest(self._mac(b"receipt\n" + previous + row.content()), row.mac)

    def check(self, row: Row, number: int, previous: bytes) -> None:
        """Refuses a row that is not the sealed receipt of this number after that mac."""
        if row.number != number:
            raise LedgerTampered(
                f"Receipt {number} is missing from the ledger: it was deleted or the rows were reordered. "
                "Restore the ledger from a copy that is whole."
            )
        if not self.holds(row, previous):
            raise LedgerTampered(
                f"Receipt {number} is not what was written: it or one before it was changed. "
                "Restore the ledger from a copy that is whole."
            )

    def _mac(self, content: bytes) -> bytes:
        """HMAC (RFC 2104) from the two states that the key leads to: half the time of the library's."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(content)
        outer.update(inner.digest())
        return outer.digest()


def canonical(value: Any) -> str:
    """The one JSON text of a plain value: sorted keys, no spaces, ASCII."""
    return _ENCODER.encode(value)


@lru_cache(maxsize=4)  # one receipt is looked at from several sides
def _facts(body: str) -> dict[str, Any]:
    facts, end = _DECODER.raw_decode(body)
    if not isinstance(facts, dict) or end != len(body):
        raise ValueError("no facts")
    return facts


def plain(value: Any, name: str) -> Any:
    """A value as JSON would give it back: fractions as text, tuples as lists; anything else is refused."""
    data = _plain(value, name, 0)
    if len(canonical(data)) > _LARGEST_BODY:
        raise InvalidParameter(f"{name} is too long for a receipt: at most a million characters.")
    return data


def _plain(value: Any, name: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise InvalidParameter(f"{name} is nested too deeply for a receipt.")
    if isinstance(value, str) and not is_text(value):
        raise InvalidParameter(f"{name} holds half a character, which no text can hold.")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidParameter(f"The keys of {name} must be text.")
        return {_plain(key, name, depth): _plain(part, name, depth + 1) for key, part in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(part, name, depth + 1) for part in value]
    raise InvalidParameter(
        f"{name} may hold text, finite numbers, truth values, lists and mappings, not {type(value).__name__}."
    )


def text(value: str, name: str) -> str:
    """A name in its one Unicode form, so that two spellings of it are one name."""
    if not isinstance(value, str):
        raise InvalidParameter(f"{name} must be text, not {type(value).__name__}.")
    form = unicodedata.normalize("NFC", value)
    if not 1 <= len(form) <= _LONGEST_NAME or form != form.strip():
        raise InvalidParameter(
            f"{name} must have 1 to {_LONGEST_NAME} characters and no space at either end."
        )
    if form.isascii() and form.isprintable():
        return form
    if not is_visible(form):  # names that look alike are alike
        raise InvalidParameter(f"{name} must not contain control characters or invisible ones.")
    return form
