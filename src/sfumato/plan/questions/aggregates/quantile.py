"""MIN, MAX, MEDIAN and other quantiles: cells of a public grid, selected in a question of their own."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational, float_down, float_up
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.aggregates.base import Statistic, argument_of
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import range_of
from sfumato.plan.questions.terms import Agg, Col, expression_of, level_of, one

__all__ = ["STATISTICS", "Quantile", "max", "median", "min", "quantile"]


@dataclass(frozen=True, slots=True)
class Quantile(Statistic):
    """The value that a part of all values does not exceed.

    Attributes:
        level: Which part, where the name says so; None: the call does.
    """

    level: Fraction | None = None

    adds: ClassVar[bool] = False
    external: ClassVar[bool] = True

    def named(self, call: AggregateCall) -> str:
        """By its level."""
        level = self.level if call.level is None else call.level
        known = {Fraction(0): "minimum", Fraction(1, 2): "median", Fraction(1): "maximum"}
        return known.get(level or Fraction(0)) or f"{float(level or 0):.6g}-quantile"

    def cut(self, call: AggregateCall, columns: Mapping[str, Facts]) -> Cut:
        """Whatever is left out, it is within the bounds; an extreme is further out than what is measured."""
        known = range_of(self.title, argument_of(call, columns), columns)
        least, most = float_down(known.lower), float_up(known.upper)
        level = self.level if call.level is None else call.level
        if level == 0:
            return Cut(adds=0.0, least=least, most=most, inside=True)
        if level == 1:
            return Cut(takes=0.0, least=least, most=most, inside=True)
        return Cut(least=least, most=most)

    def result(self, argument: Facts | None) -> Facts:
        """Of the kind of its argument, and within the same bounds."""
        if argument is None:
            return Facts("float", nullable=True)
        return Facts(argument.kind, True, argument.lower, argument.upper)


STATISTICS = (
    Quantile("min", ("MIN",), Fraction(0)),
    Quantile("max", ("MAX",), Fraction(1)),
    Quantile(
        "quantile",
        ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "MEDIAN", "PERCENTILE_CONT", "PERCENTILE_DISC"),
    ),
)


def min(column: str | Col) -> Agg:
    """The least value of a column or expression with bounds."""
    return one("min", column)


def max(column: str | Col) -> Agg:
    """The greatest value of a column or expression with bounds."""
    return one("max", column)


def quantile(column: str | Col, level: Rational) -> Agg:
    """The value that this share of all values of a column or expression with bounds does not exceed.

    Raises:
        InvalidParameter: unless 0 ≤ level ≤ 1.
    """
    return Agg((AggregateCall("quantile", expression_of(column), level=level_of(level)),), Column("a0"))


def median(column: str | Col) -> Agg:
    """The middle value of a column or expression with bounds."""
    return quantile(column, Fraction(1, 2))
