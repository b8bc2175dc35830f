"""One point of a series: read, given its noise, and kept; the same again if it is read again."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.continual import Continual, Course
from sfumato.errors import LedgerUnusable

__all__ = ["Courses", "Point"]

_FORMAT = 1
_NONCE = 12
_EVERY = 64  # points after which what the noise has come to is kept, sealed


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """What is kept of a point.

    Attributes:
        units: The noisy numbers of each measurement, in whole steps of its grid.
        salt: What its noise depends on beside the secret; it says nothing to whoever has not the secret.
        state: What the noise has come to, sealed; empty for most points.
    """

    units: tuple[NDArray[np.int64], ...]
    salt: bytes
    state: bytes = b""

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads back."""
        head = {"format": _FORMAT, "salt": self.salt.hex(), "sizes": [array.size for array in self.units]}
        body = b"".join(array.astype("<i8").tobytes() for array in self.units)
        return json.dumps(head).encode() + b"\n" + body + self.state

    @classmethod
    def from_bytes(cls, data: bytes) -> Point:
        """The point that `to_bytes` wrote.

        Raises:
            LedgerUnusable: for a format of another version.
        """
        first, _, rest = data.partition(b"\n")
        try:
            head = json.loads(first)
            if head["format"] != _FORMAT:
                raise ValueError("another format")
            units, at = list[NDArray[np.int64]](), 0
            for size in head["sizes"]:
                units.append(np.frombuffer(rest[at : at + 8 * size], "<i8").astype(np.int64))
                at += 8 * size
            return cls(tuple(units), bytes.fromhex(head["salt"]), rest[at:])
        except (ValueError, KeyError, TypeError):
            raise LedgerUnusable(
                "A stored point was written by another version of Sfumato; upgrade to read it."
            ) from None


class Courses:
    """The noise of all measurements of a series, at the point that is next.

    Privacy:
        Claim: whoever computes a point again from the same rows draws the same noise, and from other rows
        other noise that has nothing to do with it. The salt of a point is a keyed digest of the exact
        numbers, so that it takes the secret to learn anything from it; the noise follows from secret, salt,
        point and measurement. So even a ledger that is put back to an earlier copy does not give two answers
        with the same noise, whose difference would be exact.
    """

    def __init__(self, noises: Sequence[Continual], secret: bytes, points: Sequence[Point] = ()) -> None:
        """At the point after those on record."""
        self._noises, self._secret = noises, secret
        sealed = [place for place, point in enumerate(points) if point.state]
        begin = sealed[-1] + 1 if sealed else 0
        self._courses = self._resumed(points[sealed[-1]].state) if sealed else self._new()
        for point in points[begin:]:
            for course in self._courses:
                course.skip(salt=point.salt)

    def _new(self) -> list[Course]:
        return [noise.start(self._secret, measure=place) for place, noise in enumerate(self._noises)]

    @property
    def next(self) -> int:
        """The point that is next."""
        return self._courses[0].time

    def release(self, exact: Sequence[NDArray[Any]]) -> Point:
        """The next point, of the exact integers of each measurement."""
        step = self.next
        salt = self._salt(step, exact)
        units = tuple(
            course.release(values, at=step, salt=salt)
            for course, values in zip(self._courses, exact, strict=True)
        )
        return Point(units, salt, self._sealed() if (step + 1) % _EVERY == 0 else b"")

    def _salt(self, step: int, exact: Sequence[NDArray[Any]]) -> bytes:
        digest = hmac.new(self._secret, f"salt {step}".encode(), hashlib.sha256)
        for values in exact:
            digest.update(json.dumps(values.tolist()).encode() + b"\n")
        return digest.digest()

    def _cipher(self) -> AESGCM:
        return AESGCM(hmac.new(self._secret, b"state", hashlib.sha256).digest())

    def _sealed(self) -> bytes:
        states = [course.save() for course in self._courses]
        whole = json.dumps([len(state) for state in states]).encode() + b"\n" + b"".join(states)
        nonce = random.salt(_NONCE)
        return nonce + self._cipher().encrypt(nonce, whole, None)

    def _resumed(self, sealed: bytes) -> list[Course]:
        whole = self._cipher().decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        first, _, rest = whole.partition(b"\n")
        found, at = list[Course](), 0
        for place, (noise, size) in enumerate(zip(self._noises, json.loads(first), strict=True)):
            found.append(noise.resume(self._secret, rest[at : at + size], measure=place))
            at += size
        return found
