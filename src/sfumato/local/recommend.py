"""Which randomizer to take for a price, a domain and a number of people, with the reasons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.local.base import Randomizer
from sfumato.local.domain import Domain
from sfumato.numeric.exact import Rational, as_integer, positive

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Alternative", "Recommendation", "recommend"]

_WIDTH = 1.959964  # of a 95 % interval, in standard deviations
_NEAR = 1.05  # errors are as good as equal within this factor
_UNSEEN = 1e-3  # people that a count may be off without anybody noticing
_PATIENCE = 3600.0  # seconds of one processor that adding up all reports may take
_LONG = 1 << 13  # bytes that a person can be expected to send
_LISTED = 1 << 24  # values of a domain that can be listed


@dataclass(frozen=True, slots=True)
class Alternative:
    """A randomizer with what it is good for.

    Attributes:
        name: What it is called.
        randomizer: Ready to be used.
        error: The half-width of a 95 % interval for how many people have a rare value.
        bytes: The size of a report.
        encode: Seconds of a processor to make a report, about.
        aggregate: Seconds of a processor to add up the reports of all people, about.
        estimate: Seconds of a processor to estimate every value from that once, with its interval, about.
        obstacle: Why it cannot be taken; None if it can.
    """

    name: str
    randomizer: Randomizer[Any]
    error: float
    bytes: int
    encode: float
    aggregate: float
    estimate: float
    obstacle: str | None

    @property
    def seconds(self) -> float:
        """What the server takes in all: to add up, and to estimate once."""
        return self.aggregate + self.estimate


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The randomizer to take.

    Attributes:
        randomizer: Ready to be used.
        why: The reasons, in words.
        alternatives: All that were looked at, the one taken first, then by error.
        people: How many are expected to report.
    """

    randomizer: Randomizer[Any]
    why: str
    alternatives: tuple[Alternative, ...]
    people: int

    @property
    def table(self) -> pa.Table:
        """The alternatives: randomizer, error, share, bytes, encode, aggregate, estimate, obstacle."""
        import pyarrow as pa

        rows = [
            {
                "randomizer": alternative.name,
                "error": alternative.error,
                "share": alternative.error / self.people,
                "bytes": alternative.bytes,
                "encode": alternative.encode,
                "aggregate": alternative.aggregate,
                "estimate": alternative.estimate,
                "obstacle": alternative.obstacle,
            }
            for alternative in self.alternatives
        ]
        return pa.Table.from_pylist(rows)

    def __str__(self) -> str:
        return self.why


def recommend(epsilon: Rational, domain: int | Sequence[Any] | Domain, people: int) -> Recommendation:
    """The best randomizer to count the values of a domain, for a price and a number of people.

    The one with the least error for a rare value is taken. Where others err at most 5 % more, the one with
    the shortest report is, and of those the quickest to add up and estimate. What would take the server more
    than an hour, or people more than 8 kB, is left out. The error of a table of hashed counts has the
    collisions with a value that everybody has, the worst case.

    Raises:
        InvalidParameter: for an unusable epsilon, domain or number of people.
    """
    price, values, count = positive(epsilon, "epsilon"), Domain(domain), as_integer(people, "people")
    ranked = sorted(_alternatives(price, values, count), key=lambda way: way.error)
    usable = [way for way in ranked if way.obstacle is None]
    if not usable:
        raise InvalidParameter(
            f"With {ranked[0].name}, the best by error, {ranked[0].obstacle}: ask fewer people, or about "
            "fewer values."
        )
    near = [way for way in usable if _as_good(way, usable[0])]
    best = min(near, key=lambda way: (way.bytes, way.seconds))
    rest = [way for way in ranked if way is not best]
    return Recommendation(best.randomizer, _why(best, rest, count), (best, *rest), count)


def _alternatives(epsilon: Any, domain: Domain, people: int) -> Iterator[Alternative]:
    """Every randomizer that exists for the domain. Times are those of one processor of a server of today."""
    from sfumato.local.hadamard import HadamardResponse
    from sfumato.local.hashing import LocalHashing
    from sfumato.local.heavy import HeavyHitters
    from sfumato.local.response import BinaryResponse, KaryResponse
    from sfumato.local.sketch import CountMeanSketch
    from sfumato.local.subset import SubsetSelection
    from sfumato.local.unary import UnaryEncoding

    size = domain.size

    def alternative(
        name: str,
        build: Callable[[], Any],
        encode: float,
        aggregate: float,
        *,
        value: float = 150,
        cells: float = math.inf,
    ) -> Alternative:
        """With the nanoseconds to make a report, to add it up and to estimate a value, and a table's size."""
        randomizer = build()
        error = _WIDTH * math.sqrt(people * randomizer.variance + people * people / cells)
        sent = randomizer.report_dtype.itemsize * math.prod(randomizer.report_shape)
        adding, estimating = people * aggregate * 1e-9, min(size, _LISTED) * value * 1e-9
        obstacle = None
        if adding + estimating > _PATIENCE:
            obstacle = "the server would take more than an hour"
        elif sent > _LONG:
            obstacle = "reports are too long"
        return Alternative(name, randomizer, error, sent, encode * 1e-9, adding, estimating, obstacle)

    if size > _LISTED:
        if domain.labels is None:
            bits = (size - 1).bit_length()
            yield alternative(
                "heavy hitters", lambda: HeavyHitters(epsilon, bits=bits), 400, 300, value=20, cells=2**18
            )
        sketch = alternative(
            "count-mean sketch", lambda: CountMeanSketch(epsilon, domain), 50, 100, value=0, cells=2**20
        )
        yield _but(sketch, "it answers only for values that are asked for" if domain.labels is None else None)
        return
    if size == 2:
        yield alternative("binary response", lambda: BinaryResponse(epsilon, domain), 25, 4)
    yield alternative("k-ary response", lambda: KaryResponse(epsilon, domain), 25, 4)
    hadamard = HadamardResponse(epsilon, domain)
    yield alternative("Hadamard response", lambda: hadamard, 25, 7 * (2**hadamard.parities - 1), value=300)
    yield alternative(
        "local hashing", lambda: LocalHashing(epsilon, domain), 45, size * (1 if size <= 1 << 16 else 2)
    )
    hashed = CountMeanSketch(epsilon, domain)
    # A value has a cell in every row, and each is looked up.
    yield alternative("count-mean sketch", lambda: hashed, 50, 100, value=6 * hashed.rows, cells=2**20)
    if size <= 8 * _LONG:
        # Their reports are as long as the domain; beyond this they are out of the question.
        yield alternative(
            "unary encoding", lambda: UnaryEncoding(epsilon, domain), 40 + 1.2 * size, 50 + size / 4
        )
        yield alternative(
            "subset selection", lambda: SubsetSelection(epsilon, domain), 100 + 12 * size, 60 + size / 3
        )


def _but(given: Alternative, obstacle: str | None) -> Alternative:
    return replace(given, obstacle=obstacle)


def _why(best: Alternative, others: list[Alternative], people: int) -> str:
    """The reasons, one sentence each."""
    bytes_ = f"{best.bytes} byte{'s' if best.bytes > 1 else ''}"
    lines = [
        f"{best.name[0].upper()}{best.name[1:]}: a rare value is counted to ± {_number(best.error)} of "
        f"{people:,} people ({percent(best.error / people)}, 95 % confidence), with {bytes_} a report and "
        f"{_duration(best.seconds)} to add up and estimate."
    ]
    lines += [f"Not {other.name}: {_against(other, best)}." for other in others]
    if best.error > people / 4:
        lines.append("So few people say little at this epsilon: only what most of them have can be seen.")
    return " ".join(lines)


def _as_good(other: Alternative, best: Alternative) -> bool:
    """Whether an error is about as small, or nobody would notice it."""
    return other.error <= max(_NEAR * best.error, _UNSEEN)


def _against(other: Alternative, best: Alternative) -> str:
    """Why not this one."""
    if other.obstacle is not None:
        return other.obstacle
    if not _as_good(other, best):
        return f"it errs {other.error / best.error:.3g} times as much" if best.error else "it errs more"
    if other.bytes > best.bytes:
        return f"about the same error, but {other.bytes} bytes a report"
    slower, quicker = _duration(other.seconds), _duration(best.seconds)
    if slower != quicker:
        return f"about the same error, but {slower} to add up and estimate"
    return "about the same in every way; it would do as well"


def percent(share: float) -> str:
    """A share in two digits, and in whole digits from 10 % on: 2.7 %, 390 %."""
    return f"{100 * share:,.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    return f"about {seconds:,.0f} s" if seconds < 120 else f"about {seconds / 60:,.0f} min"
