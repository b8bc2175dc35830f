"""One point of a series: read, given its noise, and kept; the same again if it is read again."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.continual import Continual, Course
from sfumato.errors import LedgerUnusable
from sfumato.session.columnar import key_of_plain, plain_key
from sfumato.session.series.finding import Finding, Group, name_of, placed
from sfumato.session.series.roster import Roster

if TYPE_CHECKING:
    from sfumato.session.reading import Reading

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
        found: The groups that join the series with it, where groups are found; they come after the others.
        roster: Who has counted in it, sealed, where units count in few steps. Then the last of `units` is the
            number of them.
    """

    units: tuple[NDArray[np.int64], ...]
    salt: bytes
    state: bytes = b""
    found: tuple[Group, ...] = ()
    roster: bytes = b""

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads back."""
        sizes = [array.size for array in self.units]
        head: dict[str, Any] = {"format": _FORMAT, "salt": self.salt.hex(), "sizes": sizes}
        if self.found:
            head["found"] = [list(map(plain_key, group)) for group in self.found]
        if self.roster:
            head["roster"] = len(self.roster)
        body = b"".join(array.astype("<i8").tobytes() for array in self.units)
        return json.dumps(head).encode() + b"\n" + body + self.roster + self.state

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
            found = tuple(tuple(map(key_of_plain, group)) for group in head.get("found", ()))
            end = at + head.get("roster", 0)
            return cls(tuple(units), bytes.fromhex(head["salt"]), rest[end:], found, rest[at:end])
        except (ValueError, KeyError, TypeError):
            raise LedgerUnusable(
                "A stored point was written by another version of Sfumato; upgrade to read it."
            ) from None


class Courses:
    """The noise of all measurements of a series, at the point that is next.

    Privacy:
        Claim: whoever computes a point again from the same rows draws the same noise, and from other rows
        other noise that has nothing to do with it; also the noise that decides which groups join. The salt of
        a point is a keyed digest of the exact numbers and of the salt before it, so that it takes the secret
        to learn anything from it; the noise follows from secret, salt, point and measurement. So even a
        ledger that is put back to an earlier copy does not give two answers with the same noise, whose
        difference would be exact. Once a point has other rows, all later ones have other noise, too: the
        noise of points hangs together, and a later one with the same rows would give the difference away.
    """

    def __init__(
        self,
        noises: Sequence[Continual],
        secret: bytes,
        points: Sequence[Point] = (),
        finding: Finding | None = None,
        most: int | None = None,
    ) -> None:
        """At the point after those on record.

        Args:
            noises: Of each measurement; of how many units count after them, where units count in few steps.
            secret: Of the series.
            points: Those on record.
            finding: How groups are found, where they are not public.
            most: In how many steps a unit counts; None: in all that it has rows in.
        """
        self._noises, self._secret, self._finding = noises, secret, finding
        self.roster = None if most is None else Roster(secret, most)
        self._before = points[-1].salt if points else b""
        sealed = next((place for place in reversed(range(len(points))) if points[place].state), None)
        self._known: dict[str, int] = {}
        self._courses = self._new() if sealed is None else self._resumed(points[sealed].state)
        for point in points[0 if sealed is None else sealed + 1 :]:
            self._join(map(name_of, point.found))
            for course, units in zip(self._courses, point.units, strict=True):
                if not course.mechanism.groups:
                    course.widen(units.size)
                course.skip(salt=point.salt)
        if self.roster is not None:
            for point in points:
                self.roster.follow(point.roster)

    def _new(self) -> list[Course]:
        return [noise.start(self._secret, measure=place) for place, noise in enumerate(self._noises)]

    @property
    def next(self) -> int:
        """The point that is next."""
        return self._courses[0].time

    def release(self, exact: Sequence[NDArray[Any]]) -> Point:
        """The next point, of the exact integers of each measurement."""
        exact = self._with_units(exact)
        return self._released(exact, self._salt(self.next, exact))

    def _with_units(self, exact: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The integers of a point with the number of those who count in it, where units count in few."""
        return [*exact] if self.roster is None else [*exact, np.array([len(self.roster.now)])]

    def release_found(self, reading: Reading) -> Point:
        """The next point of a series whose groups are found: which join it now, and the numbers of all.

        Privacy:
            Claim: that of `Finding.joining` for what joins, and of `Continual` for the numbers, both with
            noise of this step. A group that joins has numbers from this step on; what earlier steps had of it
            is not read, now or ever.
        """
        assert self._finding is not None
        assert reading.units is not None
        groups = self._finding.groups(reading)
        names = [name_of(group) for group in groups]
        whole = self._with_units([np.array(names, object), reading.units, *reading.columns])
        salt = self._salt(self.next, whole)
        key = hmac.new(self._secret, b"groups " + salt, hashlib.sha256).digest()
        joined = self._finding.joining(names, reading.units, self._known, key).tolist()
        self._join(names[row] for row in joined)
        for course in self._courses:
            if not course.mechanism.groups:
                course.widen(len(self._known))
        exact = self._with_units([placed(column, names, self._known) for column in reading.columns])
        return self._released(exact, salt, tuple(groups[row] for row in joined))

    def _join(self, names: Iterable[str]) -> None:
        """Put groups after those that are known."""
        for name in names:
            self._known[name] = len(self._known)

    def _released(self, exact: Sequence[NDArray[Any]], salt: bytes, found: tuple[Group, ...] = ()) -> Point:
        step, self._before = self.next, salt
        units = tuple(
            course.release(values, at=step, salt=salt)
            for course, values in zip(self._courses, exact, strict=True)
        )
        state = self._sealed() if (step + 1) % _EVERY == 0 else b""
        return Point(units, salt, state, found, self._rostered(units))

    def _rostered(self, units: Sequence[NDArray[np.int64]]) -> bytes:
        """Who counts in the point, sealed; empty where units count in all of their steps."""
        if self.roster is None:
            return b""
        noise = self._noises[-1]
        noisy = float(noise.floats(units[-1])[0])
        return self.roster.closed(noisy, noise.deviation(np.ones(1)))

    def _salt(self, step: int, exact: Sequence[NDArray[Any]]) -> bytes:
        digest = hmac.new(self._secret, f"salt {step}\n".encode() + self._before, hashlib.sha256)
        for values in exact:
            digest.update(json.dumps(values.tolist()).encode() + b"\n")
        return digest.digest()

    def _cipher(self) -> AESGCM:
        return AESGCM(hmac.new(self._secret, b"state", hashlib.sha256).digest())

    def _sealed(self) -> bytes:
        states = [course.save() for course in self._courses]
        head = {"sizes": [len(state) for state in states], "known": list(self._known)}
        whole = json.dumps(head if self._finding else head["sizes"]).encode() + b"\n" + b"".join(states)
        nonce = random.salt(_NONCE)
        return nonce + self._cipher().encrypt(nonce, whole, None)

    def _resumed(self, sealed: bytes) -> list[Course]:
        whole = self._cipher().decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        first, _, rest = whole.partition(b"\n")
        head, found, at = json.loads(first), list[Course](), 0
        if self._finding is not None:
            self._join(head["known"])
            head = head["sizes"]
        for place, (noise, size) in enumerate(zip(self._noises, head, strict=True)):
            found.append(noise.resume(self._secret, rest[at : at + size], measure=place))
            at += size
        return found
