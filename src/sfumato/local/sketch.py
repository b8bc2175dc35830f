"""The count-mean sketch: counts of a huge domain from a table of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._table import Keys, Sums, Table, law_of_pair
from sfumato.local.base import Aggregate, register
from sfumato.local.domain import Domain
from sfumato.local.estimates import Frequencies, sure_of
from sfumato.local.examples import Example
from sfumato.local.hadamard import word_type
from sfumato.local.support import SupportAggregate, SupportRandomizer
from sfumato.loss import ResponseLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer
from sfumato.numeric.frozen import freeze, shown

__all__ = ["CountMeanSketch", "SketchAggregate", "examples"]

_LISTED = 1 << 24


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class CountMeanSketch(SupportRandomizer):
    """Hashes values into a table of public functions and reports one cell of a row by Hadamard response.

    The server's table has rows × width numbers, whatever the domain. Values that share a cell are counted
    together there, and corrected by what the average value shares. Over the choice of functions (`salt`) the
    estimate is unbiased; its variance is that of the response and, beyond it, of collisions: Σ c²/width, c
    being the people of another value in one row. That is the price of the table: with few rows it is large,
    as the people of a frequent value collide together. Intervals contain an estimate of it.

    Attributes:
        epsilon: The price of one report.
        domain: The values; an estimate of all of them lists at most 2**24.
        rows: How many functions.
        width: How many cells each has.
        salt: A public number that the functions follow from.

    Privacy:
        Claim: ε-DP, with the loss of the Hadamard response over the cells. Proof: the row does not depend on
        the value, and the report is a response about a function of it. Source: Apple's Differential Privacy
        Team 2017 ("Hadamard count mean sketch").
    """

    wire: ClassVar[str] = "sketch.1"
    epsilon: Fraction
    domain: Domain
    rows: int
    width: int
    salt: int
    _table: Table = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        domain: int | Sequence[Any] | Domain,
        *,
        rows: int = 1024,
        width: int = 1024,
        salt: int = 0,
    ) -> None:
        """Choose the size of the table.

        Raises:
            InvalidParameter: for an unusable epsilon or domain, or a size that is not a power of two.
        """
        values, number = Domain(domain), as_integer(salt, "salt", least=0)
        table = Table(epsilon, rows, width, str(number))
        freeze(self, epsilon=table.response.epsilon, domain=values, rows=rows, width=width, salt=number)
        freeze(self, _table=table)

    def __repr__(self) -> str:
        return shown("CountMeanSketch", epsilon=self.epsilon, **self._parameters())

    @property
    def loss(self) -> ResponseLoss:
        """What one report costs at most."""
        return self._table.response.loss

    @property
    def p(self) -> float:
        """The probability that a report supports the own value."""
        return self._table.response.p

    @property
    def q(self) -> float:
        """The probability that a report supports another value, over the choice of functions."""
        return self._table.response.q + self._table.response.gap / self.width

    @property
    def gap(self) -> float:
        """How much likelier the own value is."""
        return self._table.response.gap * (1 - 1 / self.width)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The shortest words that hold a row and a response."""
        return word_type(self._table.used)

    def _parameters(self) -> dict[str, Any]:
        return {
            "domain": self.domain.to_json(), "rows": self.rows, "width": self.width, "salt": self.salt,
        }  # fmt: skip

    def encode(self, values: Any) -> NDArray[Any]:
        """One report for each value.

        Raises:
            InvalidValue: for a value outside the domain, which is not shown; nothing was randomised then.
        """
        keys = self.domain.indices(values).astype(np.uint64)
        return self._table.encode(keys).astype(self.report_dtype)

    def start(self) -> SketchAggregate:
        """An aggregate without reports."""
        return SketchAggregate(self)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        if batch.size and int(batch.max()) >> self._table.used:
            raise InvalidValue("A report has bits that no report of this randomizer has.")

    def _supports(self, batch: NDArray[Any]) -> NDArray[np.int64]:
        total = self.start()
        total.add(batch)
        return total.supports


class SketchAggregate(SupportAggregate):
    """The table of a sketch."""

    __slots__ = ("sums",)
    randomizer: CountMeanSketch

    def __init__(self, randomizer: CountMeanSketch) -> None:
        Aggregate.__init__(self, randomizer)
        self.sums = Sums(randomizer._table)

    @property
    def supports(self) -> NDArray[np.int64]:  # type: ignore[override]
        """How many reports support each value of the domain."""
        return self.sums.counted(self._all())

    def estimate(self, confidence: float = 0.95) -> Frequencies:
        """Counts of all values, with intervals.

        Raises:
            InvalidValue: without reports.
            InvalidParameter: for a domain too large to list; `count` some of its values then.
        """
        labels = self.randomizer.domain.labels
        keys = self._all()
        return self._found(keys, labels or tuple(range(keys.size)), confidence)

    def count_of(self, values: Any, confidence: float = 0.95) -> Frequencies:
        """Counts of some values, with intervals.

        Raises:
            InvalidValue: without reports, or for a value outside the domain.
        """
        keys = self.randomizer.domain.indices(values).astype(np.uint64)
        return self._found(keys, tuple(np.asarray(values).tolist()), confidence)

    def _found(self, keys: Keys, values: tuple[Any, ...], confidence: float) -> Frequencies:
        level = sure_of(confidence)
        if not self.count:
            raise InvalidValue("There are no reports to estimate from.")
        return Frequencies(values, *self.sums.estimate(keys, level), level, self.count)

    def _all(self) -> Keys:
        if self.randomizer.domain.size > _LISTED:
            raise InvalidParameter("The domain is too large to list; ask for the counts of some values.")
        return np.arange(self.randomizer.domain.size, dtype=np.uint64)

    def _add(self, batch: NDArray[Any]) -> None:
        self.sums.add(batch.astype(np.uint64))

    def _merged(self, other: Self) -> Self:
        total = type(self)(self.randomizer)
        total.sums = self.sums.merged(other.sums)
        return total

    def _state(self) -> list[int]:
        return self.sums.written()

    def _restore(self, state: Any) -> None:
        self.sums = Sums.read(self.randomizer._table, state, self.count)


def _example(name: str, randomizer: CountMeanSketch, left: int, right: int) -> Example:
    """What tells two values apart is which of them the report supports."""
    table, keys = randomizer._table, np.array([left, right], np.uint64)

    def read(reports: NDArray[Any]) -> NDArray[Any]:
        wide = reports.astype(np.uint64)
        seen: NDArray[Any] = 2 * table.supported(wide, left) + table.supported(wide, right)
        return seen

    def pmf(side: Side) -> dict[int, float]:
        return law_of_pair([table], keys[:1], keys[1:], side)

    return Example(name, randomizer, left, right, read, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (_example("count-mean sketch", CountMeanSketch(1, 10**6, rows=4, width=256), 0, 999_999),)
