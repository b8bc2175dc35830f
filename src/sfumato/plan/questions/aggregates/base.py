"""What an aggregate is: its name, what is measured for it, and how its value and its interval follow.

To add one, write a file here with a `Statistic` in `STATISTICS` and, unless sums or averages give its value,
an `Estimator` of its own. Its sensitivity is that of its measurements, which `plan.questions.bounding`
proves once for all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.expressions.written import written_argument
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.bounding import Bounding, Scope
from sfumato.plan.questions.bounding.base import several
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.estimand import Estimand
from sfumato.plan.questions.nodes import AggregateCall, Measurement
from sfumato.plan.questions.sums import held

__all__ = [
    "Ends",
    "Estimator",
    "Linear",
    "Part",
    "Statistic",
    "argument_of",
    "arguments_of",
    "as_whole",
    "nullable",
]

Ends: TypeAlias = tuple[Floats, Floats]
"""The lower and the upper ends of intervals, one for each group."""

_MOST = 2.0**63


@dataclass(frozen=True, slots=True)
class Estimator(ABC):
    """How one aggregate follows from its noisy measurements, in natural units (not in fixed point).

    Attributes:
        parts: Indices into `Measured.measurements`, in the order that the formula names them.
        lower: The least value that the aggregate can have by declaration; None for counts and sums.
        upper: The greatest one.
        whole: Whether the true value is a whole number, so that the released one is rounded.
    """

    parts: tuple[int, ...]
    lower: Fraction | None = None
    upper: Fraction | None = None
    whole: bool = False

    names: ClassVar[tuple[str, ...]] = ()
    """What the parts are called beside the name of the aggregate's column."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its parts."""
        return self.names

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest value; infinite where there is none."""
        lower = -math.inf if self.lower is None else float(self.lower)
        return lower, math.inf if self.upper is None else float(self.upper)

    @property
    def scale(self) -> float:
        """What `gradients` leave out, at the same typical place, for a group of one row."""
        return 1.0

    @abstractmethod
    def gradients(self) -> tuple[float, ...]:
        """How strongly each part's noise moves the value, at a typical place and but for a common factor."""

    @abstractmethod
    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The released value in each group, from the noisy parts."""

    @abstractmethod
    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """An interval for the value before noise, which misses it with probability `risk` at most."""


@dataclass(frozen=True, slots=True)
class Linear(Estimator):
    """A constant plus multiples of the parts: counts, sums, and averages over a public number of rows.

    Its interval is that of a linear form, which `plan.answers` solves together with others of its kind.

    Attributes:
        constant: What is added.
        weights: The coefficients of the parts.
        rows: The number of rows where that is public and replaces a measured count.
        rounds: Whether the parts are rounded to whole numbers first, as sums of whole numbers are released.
        averages: Whether the aggregate takes a number of rows: sums and averages do, counts do not.
    """

    constant: Fraction = Fraction(0)
    weights: tuple[Fraction, ...] = (Fraction(1),)
    rows: int | None = None
    rounds: bool = False
    averages: bool = False

    names: ClassVar[tuple[str, ...]] = ("", ".count")

    @property
    def labels(self) -> tuple[str, ...]:
        """An average has a sum for its part."""
        return self.names if self.lower is None else (".sum",)

    def gradients(self) -> tuple[float, ...]:
        """The weights, whatever the data are."""
        return tuple(abs(float(weight)) for weight in self.weights)

    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The sum, in the type of the part where that is all of it."""
        if not self.constant and [*self.weights] == [1] and parts[0].dtype.kind in "iu":
            return parts[0].astype(np.int64) if self.whole else parts[0].astype(np.float64)
        total: NDArray[np.float64] = np.full(1 if not parts else len(parts[0]), float(self.constant))
        for weight, part in zip(self.weights, parts, strict=True):
            total = total + float(weight) * (np.rint(part) if self.rounds else part)
        return as_whole(total) if self.whole else np.clip(total, *self.limits)

    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """Not from here."""
        raise NotImplementedError("linear forms are solved together")


def as_whole(values: NDArray[Any]) -> NDArray[Any]:
    """Rounded to whole numbers, int64 where they fit."""
    rounded: NDArray[Any] = np.rint(values)
    return rounded.astype(np.int64) if not (np.abs(rounded) >= _MOST).any() else rounded


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate's measurements, and its estimator with indices into them."""

    measurements: tuple[Measurement, ...]
    estimator: Estimator


@dataclass(frozen=True, slots=True)
class Statistic(ABC):
    """An aggregate: how it is written, what it measures and what follows.

    Attributes:
        name: Its name in plans and on record.
        spelled: Its names in SQL; messages use the first.
    """

    name: str
    spelled: tuple[str, ...]

    arity: ClassVar[int] = 1
    """How many expressions it takes."""
    bounds: ClassVar[Literal["group", "row"] | None] = "row"
    """What a question's own bounds hold: a unit's figure in a group, each row, or nothing."""
    adds: ClassVar[bool] = True
    """Whether it follows from sums that add up over groups."""
    external: ClassVar[bool] = False
    """Whether it needs a question of its own beside the sums (`plan.prices.extras`)."""
    buys_bounds: ClassVar[bool] = True
    """Whether bounds="auto" finds bounds for it."""
    squares: ClassVar[bool] = False
    """Whether squares are summed, which are dear outside of the bounds."""
    noun: ClassVar[str] = "figure"
    """What it is called in words: `mean`, as in `mean of age over rows`."""
    own: ClassVar[str] = "figure"
    """What a unit's own figure in a group is called, where the bounds are for that."""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.spelled[0] if self.spelled else self.name.upper()

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """The ways to measure it, the one that is best alone first.

        Raises:
            QueryRefused: if an argument has no range, with what would give it one.
        """
        del call, columns
        raise QueryRefused(f"{self.title} is not measured by sums and counts.")

    def ways_over_all(
        self, call: AggregateCall, columns: Mapping[str, Facts], rows: int
    ) -> tuple[Part, ...] | None:
        """How it is measured over all rows of a table if their number is public; None: as over any rows.

        See `plan.questions.whole`, which has the claim.
        """
        del call, columns, rows
        return None

    def per_group(
        self, call: AggregateCall, columns: Mapping[str, Facts], lower: Fraction, upper: Fraction
    ) -> Part:
        """How it is measured with bounds on a unit's own figure in each group.

        Raises:
            QueryRefused: if there is no such way.
        """
        del call, columns, lower, upper
        raise QueryRefused(
            "Bounds per group are for COUNT, SUM and AVG.",
            "For others give bounds for each row, as contribution_bounds_per_row or in the expression.",
        )

    def estimand(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> Estimand:
        """What a column with it estimates: what it is of, and what counts of a unit."""
        what = self.what(call, scope, bounding)
        if scope.unit.column is None:
            return Estimand(what)
        if call.bounds is None or call.bounds[0] != "group":
            return Estimand(what, self.limit(call, scope, bounding))
        held_in = f"each {scope.whose}'s {self.own} in a group held in {_ends_of(call)}"
        return Estimand(what, f"{held_in}, in at most {several(scope.unit.max_groups, 'group')}")

    def what(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """What it is of, before any limit."""
        del scope, bounding
        return f"{self.named(call)} of {arguments_of(call)} over rows"

    def named(self, call: AggregateCall) -> str:
        """What this call is called in words."""
        del call
        return self.noun

    def limit(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """What counts of a unit: of its rows, unless something else is counted."""
        del call
        return bounding.rows_limit(scope)

    def cut(self, call: AggregateCall, columns: Mapping[str, Facts]) -> Cut:
        """How far it may be from its value over all rows; by default nothing is known of that."""
        del call, columns
        return Cut()

    def result(self, argument: Facts | None) -> Facts:
        """What is known about its value before it is measured."""
        del argument
        return Facts("float", nullable=True)


def argument_of(call: AggregateCall, columns: Mapping[str, Facts]) -> Expression | None:
    """What an aggregate is over: its argument, held within the bounds that the question gives for each row.

    Raises:
        QueryRefused: if the bounds are invalid, or for another aggregate.
    """
    if call.bounds is None or call.bounds[0] != "row":
        return call.argument
    if call.argument is None or call.function in ("count", "count_distinct", "count_values"):
        raise QueryRefused("A count takes no bounds for each row.", "Leave them out, or bound each group.")
    return held(call.argument, *call.bounds[1:], columns)


def arguments_of(call: AggregateCall) -> str:
    """What an aggregate is over, in words, with the bounds that the question gives for each row."""
    names = [written_argument(part) for part in (call.argument, call.other) if part is not None]
    held_in = f" held in {_ends_of(call)}" if call.bounds is not None and call.bounds[0] == "row" else ""
    return " and ".join(names) + held_in


def _ends_of(call: AggregateCall) -> str:
    assert call.bounds is not None
    low, high = (f"{float(bound):.6g}" for bound in call.bounds[1:])
    return f"{low}..{high}"


def nullable(argument: Expression | None, columns: Mapping[str, Facts]) -> bool:
    """Whether an argument can be missing."""
    return argument is not None and facts_of(argument, columns).nullable
