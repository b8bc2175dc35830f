"""Intervals that cover the value over all rows: the noise, and what limits left out, together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sfumato.plan.answers.boxes import Affine, Box, Solver, plain, times
from sfumato.plan.expressions.linear import linear_form
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, columns_of
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.questions.cut import Cut

__all__ = ["Covering", "LeftOut"]

_ALMOST_1 = 1 - 2.0**-40


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An upper bound on how many rows limits left out of any one group; without one, any number may be.

    Attributes:
        rows: The bound.
        risk: The probability that it does not hold, which the intervals that rely on it pay for.
    """

    rows: float = math.inf
    risk: float = 0.0


@dataclass(frozen=True, slots=True)
class Covering:
    """Intervals for the values over all rows, whatever the data are.

    Limits leave rows out or weigh them down, so a count, or a sum of numbers that are not below 0, is at most
    what it is over all rows: "at least x" holds, with all of the risk on one side. Where a row that is left
    out could move the value either way (averages, quantiles, sums of both signs) nothing holds but what is
    public: the declared range, or from 0 to 1 for the share of a condition.

    Attributes:
        solver: Intervals for the noise alone.
        cuts: By aggregate (`a0`, …), what limits may take from it.
        left_out: How many rows they took at most.
    """

    solver: Solver
    cuts: Mapping[str, Cut]
    left_out: LeftOut = LeftOut()

    def interval(self, expression: Expression, risk: float) -> Box:
        """Ends that hold the value over all rows with probability at least 1 − risk, a row.

        As `Solver.interval`: the largest parts that have an interval of their own share the risk, and the box
        they span goes through interval arithmetic. At risk 0, what is certain beforehand.
        """
        expression = plain(expression)
        if not self.cut(expression):
            return self.solver.interval(expression, risk)
        parts = tuple(dict.fromkeys(self._parts(expression)))
        relies = any(self._relies(part) for part in parts)
        share = max(0.0, risk - (self.left_out.risk if relies else 0.0))
        share /= max(1, len({self.solver.source(part) for part in parts}))
        with np.errstate(all="ignore"):
            solved = {part: self._solved(part, share) for part in parts}
            return self.solver.walk(expression, solved)

    def cut(self, expression: Expression) -> bool:
        """Whether limits may leave something out of it."""
        return any(self._open(name) for name in columns_of(expression) if name in self.cuts)

    def whole(self, expression: Expression) -> str:
        """What its value would be over if nothing were left out."""
        open_ = [name for name in columns_of(expression) if name in self.cuts and self._open(name)]
        wholes = {self.cuts[name].whole for name in open_}
        return wholes.pop() if len(wholes) == 1 else Cut().whole

    def tells(self, expression: Expression) -> bool:
        """Whether an interval says more than what is certain beforehand."""
        return any(self._tells(part) for part in self._parts(plain(expression)))

    def _open(self, name: str) -> bool:
        cut = self.cuts[name]
        return cut.adds > 0 or cut.takes > 0

    def _parts(self, expression: Expression) -> Iterator[Expression]:
        if not self.solver.noisy_in(expression):
            return
        if isinstance(expression, Column) or self._solvable(expression):
            yield expression
        elif isinstance(expression, Call):
            for argument in expression.arguments:
                yield from self._parts(argument)

    def _solvable(self, expression: Expression) -> bool:
        return self._mix(expression) is not None or self._quotient(expression) is not None

    def _tells(self, part: Expression) -> bool:
        adds, takes = self._moves(part)
        return bool(np.isfinite(adds).any() or np.isfinite(takes).any())

    def _relies(self, part: Expression) -> bool:
        return bool(self.left_out.risk) and self._tells(part)

    def _moves(self, part: Expression) -> tuple[Floats, Floats]:
        """How far above and below what was measured the value over all rows can be."""
        if self._quotient(part) is not None:
            return np.array([math.inf]), np.array([math.inf])
        mix = self._mix(part)
        if mix is None:
            assert isinstance(part, Column)
            adds, takes = np.array([self.cuts[part.name].adds]), np.array([self.cuts[part.name].takes])
        else:
            adds = self._summed(mix, [(cut.takes, cut.adds) for cut in self.cuts.values()])
            takes = self._summed(mix, [(cut.adds, cut.takes) for cut in self.cuts.values()])
        most = np.array([self.left_out.rows])
        return times(adds, most), times(takes, most)

    def _solved(self, part: Expression, risk: float) -> Box:
        quotient = self._quotient(part)
        if quotient is not None:
            return quotient
        adds, takes = self._moves(part)
        mix = self._mix(part)
        if mix is None:
            assert isinstance(part, Column)
            cut = self.cuts[part.name]
            least, most = np.array([cut.least]), np.array([cut.most])
        else:
            least, most = self._range(mix)
        # The noise is symmetric, and intervals for groups that were selected have half of the risk on either
        # side: an end that is the only one may fail twice as often.
        one_sided = bool((np.isinf(adds) | np.isinf(takes)).all())
        low, high = self._noise(part, min(2 * risk, _ALMOST_1) if one_sided else risk)
        return self._over_rows(np.clip(low - takes, least, most), np.clip(high + adds, least, most))

    def _noise(self, part: Expression, risk: float) -> Box:
        if risk <= 0 or not self._tells(part):
            return np.array([-math.inf]), np.array([math.inf])
        return self.solver.solved(part, risk)

    def _mix(self, expression: Expression) -> Affine | None:
        """A linear form of aggregates, which are linear in the measurements themselves."""
        with np.errstate(all="ignore"):  # a constant may be beyond floats: then the column is infinite
            return linear_form(expression, self._leaf)

    def _leaf(self, part: Column | Literal) -> Affine | None:
        if isinstance(part, Column) and part.name in self.cuts and part.name not in self.solver.affine:
            return None
        return self._any_leaf(part)

    def _any_leaf(self, part: Column | Literal) -> Affine | None:
        if isinstance(part, Column) and part.name in self.cuts:
            form = np.array([[float(name == part.name)] for name in self.cuts])
            return Affine(np.zeros(1), form)
        fixed = self.solver.leaf(part)
        return None if fixed is None else replace(fixed, form=np.zeros((len(self.cuts), 1)))

    def _range(self, mix: Affine) -> Box:
        """What the value over all rows is between, whatever the data are."""
        low, high = self._ends(mix, [(cut.least, cut.most) for cut in self.cuts.values()])
        return mix.constant + low, mix.constant + high

    def _summed(self, mix: Affine, sides: list[tuple[float, float]]) -> Floats:
        """Σ |f|·(the second of each pair where its coefficient f is positive, else the first)."""
        total = np.zeros(1)
        for coefficient, (below, above) in zip(mix.form, sides, strict=True):
            side = np.where(coefficient > 0, above, below)
            with np.errstate(all="ignore"):
                total = total + times(np.abs(coefficient), side)
        return total

    def _ends(self, mix: Affine, ranges: list[tuple[float, float]]) -> Box:
        """The ends of the form, but for its constant, if each aggregate is in its range."""
        low = self._summed(mix, [(-most, least) for least, most in ranges])
        return low, self._summed(mix, [(-least, most) for least, most in ranges])

    def _over_rows(self, low: Floats, high: Floats) -> Box:
        """One end a row; infinite where arithmetic beyond floats gave none."""
        rows = (self.solver.rows,)
        low, high = np.where(np.isnan(low), -math.inf, low), np.where(np.isnan(high), math.inf, high)
        return np.broadcast_to(low, rows), np.broadcast_to(high, rows)

    def _quotient(self, expression: Expression) -> Box | None:
        """The certain range of sums over rows divided by the number of all rows; None: it is not one."""
        sides = self.solver.sides(expression)
        if sides is None or not self.cut(expression):
            return None
        top, bottom = (linear_form(side, self._any_leaf) for side in sides)
        if top is None or bottom is None or top.constant.any() or bottom.constant.any():
            return None
        every = [cut.row == (1.0, 1.0) for cut in self.cuts.values()]
        used = [place for place, row in enumerate(bottom.form) if row.any()]
        if len(used) != 1 or not every[used[0]] or not (bottom.form[used[0]] > 0).all():
            return None
        low, high = self._ends(top, [cut.row for cut in self.cuts.values()])
        return self._over_rows(low / bottom.form[used[0]], high / bottom.form[used[0]])
