"""Two columns side by side: what is measured of them, and the intervals of both means.

As in `plan.intervals.forms`, everything is vectorised over groups and nothing is simulated. The parts of a
pair are S, T (sums of both distances from the middles), P (of their products), Q, R (of their squares, less
shifts) and n (the count).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Expression, call, literal, to_wire
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.intervals.forms import Blend, Floats, mean_interval
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates.base import Ends, argument_of
from sfumato.plan.questions.nodes import AggregateCall, Measurement
from sfumato.plan.questions.sums import Range, range_of
from sfumato.plan.questions.sums import products as products_of

__all__ = ["EPS", "SHARE", "Centred", "Pair", "Pooled", "hull", "products", "size"]

SHARE = 1 / 32
"""Of the risk, for each of the means and variances that must be placed first."""
EPS = 2.0**-50
_LARGEST = 1e308  # what is larger in absolute value is as good as infinite


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns over the rows where both are present, in an order that does not depend on the question's.

    Each column is made missing where the other is; where the other never is, its sums are those that AVG and
    VARIANCE measure. Infinite numbers count as missing here, unless nothing may be missing.

    Attributes:
        first: One column where the other is present.
        second: The other one where the first is.
        count: How often both are.
        product: The sum of the products of their distances from the middles.
    """

    first: Range
    second: Range
    count: Measurement
    product: Measurement

    @classmethod
    def of(cls, name: str, asked: AggregateCall, columns: Mapping[str, Facts]) -> Pair:
        """The pair of these arguments.

        Raises:
            QueryRefused: if one is missing, or has no range.
        """
        first, second = argument_of(asked, columns), asked.other
        if first is None or second is None:
            raise QueryRefused("This aggregate takes two columns.", "Write CORR(y, x).")
        first, second = sorted((first, second), key=lambda argument: str(to_wire(argument)))
        plain, alone = range_of(name, first, columns), range_of(name, second, columns)
        there = _there((first, second), columns)
        one = range_of(name, _only(there, first) if alone.nullable and first != second else first, columns)
        two = range_of(name, _only(there, second) if plain.nullable and first != second else second, columns)
        count = one.present() if plain.nullable else two.present()
        sides = replace(one, argument=plain.argument), replace(two, argument=alone.argument)
        return cls(one, two, count, products_of(*sides, there))


def _only(there: Expression | None, argument: Expression) -> Expression:
    return argument if there is None else call("case", there, argument, Constant(None, None))


def _there(arguments: tuple[Expression, ...], columns: Mapping[str, Facts]) -> Expression | None:
    """Whether all of these are numbers; None where none of them can be missing."""
    conditions: list[Expression] = []
    for argument in dict.fromkeys(arguments):
        facts = facts_of(argument, columns)
        if facts.nullable and facts.kind == "float":  # NaN is above all numbers
            conditions.append(call("less_equal", call("abs", argument), literal(_LARGEST)))
        elif facts.nullable:
            conditions.append(call("not", call("is_null", argument)))
    return conditions[0] if len(conditions) == 1 else call("and", *conditions) if conditions else None


@dataclass(frozen=True, slots=True)
class Pooled:
    """The noise of the parts, where two of them may be one measurement (as of x and of x − 1).

    Attributes:
        blend: The noises of the different measurements.
        rows: Which of them each part has.
    """

    blend: Blend
    rows: tuple[int, ...]

    @classmethod
    def of(cls, places: Sequence[int], noises: Sequence[Noise]) -> Pooled:
        """Noises by the places of their measurements."""
        different = dict(zip(places, noises, strict=True))
        order = list(different)
        return cls(Blend(tuple(different.values())), tuple(order.index(place) for place in places))

    def form(self, sizes: Sequence[Floats]) -> Floats:
        """Bounds on the coefficients of the noises from bounds on those of the parts."""
        pooled = np.zeros((len(self.blend.noises), *np.broadcast_shapes(*(array.shape for array in sizes))))
        for row, size in zip(self.rows, sizes, strict=True):
            pooled[row] += size
        return pooled


def hull(*corners: Floats) -> Ends:
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def products(one: Ends, two: Ends) -> Ends:
    return hull(*(a * b for a in one for b in two))


def size(ends: Ends) -> Floats:
    return np.maximum(np.abs(ends[0]), np.abs(ends[1]))


@dataclass(frozen=True, slots=True)
class Centred:
    """A pair of columns, with intervals for both means that miss with probability 2·SHARE·risk at most.

    Attributes:
        parts: The noisy parts.
        one: The mean of the first column.
        two: The mean of the second.
    """

    parts: Sequence[Floats]
    one: Ends
    two: Ends

    @classmethod
    def of(
        cls, halves: tuple[Fraction, Fraction], parts: Sequence[Floats], noises: Sequence[Noise], risk: float
    ) -> Centred:
        """Both means at their share of the risk."""
        one, two = (
            mean_interval(
                parts[i], parts[-1], (noises[i], noises[-1]), lower=-half, upper=half, risk=risk * SHARE
            )
            for i, half in enumerate(map(float, halves))
        )
        return cls(parts, one, two)

    @property
    def products(self) -> Ends:
        """P − a·T − b·S + a·b·n, which is linear in each mean, over all means a and b."""
        s, t, p, n = self.parts[0], self.parts[1], self.parts[2], self.parts[-1]
        return hull(*(p - a * t - b * s + a * b * n for a in self.one for b in self.two))
