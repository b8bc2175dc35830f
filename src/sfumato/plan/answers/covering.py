"""Intervals that cover the value over all rows: the noise, and what limits left out, together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Protocol

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.plan.answers.boxes import Affine, Box, Solver, plain, times
from sfumato.plan.expressions.linear import linear_form
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, columns_of
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.questions.cut import Cut

__all__ = ["Covering", "LeftOut", "Overs"]

_ALMOST_1 = 1 - 2.0**-40
_WIDER = 1 + 2.0**-28
_TRIED = 0.05  # a risk at which it is seen whether a bound is there at all
_CUT, _MOVED = 0.4, 0.2  # of a risk: for a bound on what was left out; of the noise where that moves an end


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Upper bounds on what limits left out of any one group; without one, it may be any number.

    Attributes:
        rows: More rows than were left out, but for a probability of so much.
        groups: The same for the groups of units, where units are counted.
        names: The aggregates (`a0`, …) that limits on rows or groups cut, and nothing else does.
        beside: Of quantiles, which are asked for beside the rest, more rows than were left out of each.
    """

    rows: Callable[[float], float]
    groups: Callable[[float], float]
    names: frozenset[str]
    beside: Mapping[str, Callable[[float], float]] = field(default_factory=dict)

    def of(self, name: str, cut: Cut, risk: float) -> float:
        """How many parts of an aggregate were left out at most."""
        if not risk or (name not in self.names and name not in self.beside):
            return math.inf
        bound = self.beside.get(name, self.groups if cut.by_groups else self.rows)(risk)
        return bound * _WIDER  # weights are rounded down, by less than one part in 2**29


class Overs(Protocol):
    """Intervals, over all rows, of what looks at several released groups."""

    def solves(self, expression: Expression) -> bool:
        """Whether it is such a thing."""
        ...

    def covering(self, expression: Expression, risk: float) -> Box:
        """Its interval on the rows that are shown."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _PerRow:
    """Sums over rows, divided by the number of all rows: an average of numbers that each row has.

    Attributes:
        ends: The least and the greatest that such a number can be.
        rows: The aggregate that counts the rows.
        names: All aggregates in it.
    """

    ends: Box
    rows: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Covering:
    """Intervals for the values over all rows, whatever the data are.

    Limits leave rows out or weigh them down, so a count, or a sum of numbers that are not below 0, is at most
    what it is over all rows: "at least x" holds, with all of the risk on one side. Where a row that is left
    out could move the value either way (averages, quantiles, sums of both signs) nothing holds but what is
    public: the declared range, or from 0 to 1 for the share of a condition. A bound on how many rows were
    left out makes counts, sums, averages and shares two-sided, and totals and ranks of groups by these; and
    quantiles, whose rank it moves.

    Attributes:
        solver: Intervals for the noise alone.
        cuts: By aggregate (`a0`, …), what limits may take from it.
        counts: Of each average, the form that counts its rows.
        left_out: What they took at most; None: nothing is known of it.
        over: The intervals of window functions over released groups, and of shares of their totals.
        ranks: Of each quantile, its interval at a risk where so many rows may have been left out.
    """

    solver: Solver
    cuts: Mapping[str, Cut]
    counts: Mapping[str, Affine] = field(default_factory=dict)
    left_out: LeftOut | None = None
    over: Overs | None = None
    ranks: Mapping[str, Callable[[float, float], Box]] = field(default_factory=dict)

    def interval(self, expression: Expression, risk: float) -> Box:
        """Ends that hold the value over all rows with probability at least 1 − risk, a row.

        As `Solver.interval`: the largest parts that have an interval of their own share the risk, and the box
        they span goes through interval arithmetic. At risk 0, what is certain beforehand.

        An end that nothing moves has half of its part's risk. One that is moved has a tenth, and the bound of
        what was left out, one event for all parts, has four tenths of the whole. With a part that is moved,
        one that is not has six tenths of its share for both of its ends: together at most all of the risk.
        """
        expression = plain(expression)
        if not self.cut(expression):
            return self.solver.interval(expression, risk)
        parts = tuple(dict.fromkeys(self._parts(expression)))
        share = risk / max(1, len({self.solver.source(part) for part in parts}))
        most = self._most(risk * _CUT)
        moved = {part: self._moved(part, most) for part in parts}
        still = share * (1 - _CUT) if any(moved.values()) else share
        with np.errstate(all="ignore"):
            solved = {part: self._solved(part, share if moved[part] else still, most) for part in parts}
            return self.solver.walk(expression, solved)

    def summed(self, expression: Expression, risk: float, moved: float) -> tuple[Box, Box] | None:
        """Of a count or a sum: its ends on every row, and how far what was left out moves all rows together.

        None: it is neither.

        Args:
            expression: The count or sum.
            risk: With which the ends may fail to hold what was measured, each by itself.
            moved: With which the other two may fail: all values over all rows together are at most the first
                below, and the second above, what was measured, since no row is in two groups.
        """
        expression = plain(expression)
        if self._mix(expression) is None or not self.cut(expression):
            return None
        adds, takes = self._moves(expression, self._most(moved))
        return self._over_rows(*self.solver.solved(expression, risk)), self._over_rows(
            takes.max(), adds.max()
        )

    def _most(self, risk: float) -> dict[str, float]:
        """Of each aggregate, how many parts were left out at most."""
        if self.left_out is None:
            return dict.fromkeys(self.cuts, math.inf)
        return {name: self.left_out.of(name, cut, risk) for name, cut in self.cuts.items()}

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
        most = self._most(_TRIED)
        return any(self._tells(part, most) for part in self._parts(plain(expression)))

    def _open(self, name: str) -> bool:
        cut = self.cuts[name]
        return cut.adds > 0 or cut.takes > 0

    def _parts(self, expression: Expression) -> Iterator[Expression]:
        if not self.solver.noisy_in(expression):
            return
        if isinstance(expression, Column) or self._over(expression) or self._solvable(expression):
            yield expression
        elif isinstance(expression, Call):
            for argument in expression.arguments:
                yield from self._parts(argument)

    def _over(self, expression: Expression) -> bool:
        return self.over is not None and self.over.solves(expression)

    def _solvable(self, expression: Expression) -> bool:
        return self._mix(expression) is not None or self._per_row(expression) is not None

    def _tells(self, part: Expression, most: Mapping[str, float]) -> bool:
        if self._over(part):
            assert self.over is not None
            tried, certain = (self.over.covering(part, risk) for risk in (_TRIED, 0.0))
            return any(bool((one != other).any()) for one, other in zip(tried, certain, strict=True))
        if self._diluted(part, most) is not None or self._ranked(part, most) is not None:
            return True
        adds, takes = self._moves(part, most)
        return bool(np.isfinite(adds).any() or np.isfinite(takes).any())

    def _moved(self, part: Expression, most: Mapping[str, float]) -> bool:
        """Whether a bound of what was left out moves an end of its interval."""
        if self._over(part):
            return False  # it has a bound of its own
        if (diluted := self._diluted(part, most)) is not None:
            return diluted[2] > 0
        if (ranked := self._ranked(part, most)) is not None:
            return ranked[1] > 0
        adds, takes = self._moves(part, most)
        return any(bool((np.isfinite(each) & (each > 0)).any()) for each in (adds, takes))

    def _diluted(self, part: Expression, most: Mapping[str, float]) -> tuple[Affine, Box, float] | None:
        """Of an average: what counts its rows, its range, and how many rows were left out; None: unknown."""
        if isinstance(part, Column) and part.name in self.counts and part.name in self.cuts:
            cut, names = self.cuts[part.name], frozenset({part.name})
            counted, ends = self.counts[part.name], (np.array([cut.least]), np.array([cut.most]))
        elif (share := self._per_row(part)) is not None and share.rows in self.solver.affine:
            counted, ends, names = self.solver.affine[share.rows], share.ends, share.names
        else:
            return None
        left_out = max(most[name] for name in names)
        finite = math.isfinite(left_out) and all(np.isfinite(end).all() for end in ends)
        return (counted, ends, left_out) if finite else None

    def _ranked(
        self, part: Expression, most: Mapping[str, float]
    ) -> tuple[Callable[[float, float], Box], float] | None:
        """Of a quantile: its interval, and how many rows were left out; None: not known."""
        if not isinstance(part, Column) or part.name not in self.ranks:
            return None
        cut, left_out = self.cuts[part.name], most[part.name]
        known = math.isfinite(left_out) and math.isfinite(cut.least) and math.isfinite(cut.most)
        return (self.ranks[part.name], left_out) if known and not cut.inside else None

    def _moves(self, part: Expression, most: Mapping[str, float]) -> tuple[Floats, Floats]:
        """How far above and below what was measured the value over all rows can be."""
        if self._per_row(part) is not None:
            return np.array([math.inf]), np.array([math.inf])
        mix = self._mix(part)
        up = {name: _product(cut.adds, most[name]) for name, cut in self.cuts.items()}
        down = {name: _product(cut.takes, most[name]) for name, cut in self.cuts.items()}
        if mix is None:
            assert isinstance(part, Column)
            return np.array([up[part.name]]), np.array([down[part.name]])
        adds = self._summed(mix, [*zip(down.values(), up.values(), strict=True)])
        return adds, self._summed(mix, [*zip(up.values(), down.values(), strict=True)])

    def _solved(self, part: Expression, risk: float, most: Mapping[str, float]) -> Box:
        if self._over(part):
            assert self.over is not None
            return self._over_rows(*self.over.covering(part, risk))
        if risk > 0 and (diluted := self._diluted(part, most)) is not None:
            return self._average(part, risk, *diluted)
        if risk > 0 and (ranked := self._ranked(part, most)) is not None:
            within, left_out = ranked
            return self._over_rows(*within(risk * (1 - _CUT) if left_out else risk, left_out))
        if (share := self._per_row(part)) is not None:
            return self._over_rows(*share.ends)
        mix = self._mix(part)
        if mix is None:
            assert isinstance(part, Column)
            cut = self.cuts[part.name]
            ends = np.array([cut.least]), np.array([cut.most])
        else:
            ends = self._range(mix)
        adds, takes = self._moves(part, most)
        if risk <= 0 or not self._tells(part, most):
            return self._over_rows(*ends)
        low = self._end_of_noise(0, part, risk, takes, adds)
        high = self._end_of_noise(1, part, risk, adds, takes)
        return self._over_rows(np.clip(low - takes, *ends), np.clip(high + adds, *ends))

    def _end_of_noise(self, side: int, part: Expression, risk: float, moved: Floats, other: Floats) -> Floats:
        """Where the noise leaves one end, which is then moved; the other end may be open.

        The noise is symmetric, and intervals for groups that were selected have half of the risk on either
        side: an end that is the only one and stays may fail twice as often.
        """
        cases = [(moved > 0, risk * _MOVED), (np.isinf(other), min(2 * risk, _ALMOST_1))]
        end, done = np.zeros(1), np.zeros(1, dtype=bool)
        for holds, share in (*cases, (np.ones(1, dtype=bool), risk)):
            here = holds & ~done
            if here.any():
                end = np.where(here, self.solver.solved(part, share)[side], end)
            done = done | holds
        return end

    def _average(self, part: Expression, risk: float, counted: Affine, ends: Box, left_out: float) -> Box:
        """An average over n rows between a and b, to which up to m rows within the range are added.

        It is between (n·a + m·lower)/(n + m) and (n·b + m·upper)/(n + m), furthest out for the least n.
        """
        if not left_out:
            return self._over_rows(*self.solver.solved(part, risk))
        low, high = self.solver.solved(part, risk * _MOVED)
        rows = np.maximum(self.solver.spread(counted, risk * _MOVED)[0], 0.0)
        added = left_out / np.maximum(rows + left_out, 1e-300)
        least, most = ends
        return self._over_rows(
            np.clip(low + added * (least - low), least, most),
            np.clip(high + added * (most - high), least, most),
        )

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
        low, high = low + 0.0, high + 0.0  # a zero has no sign
        return np.broadcast_to(low, rows), np.broadcast_to(high, rows)

    def _per_row(self, expression: Expression) -> _PerRow | None:
        """Sums over rows divided by the number of all rows; None: it is something else."""
        sides = self.solver.sides(expression)
        if sides is None or not self.cut(expression):
            return None
        top, bottom = (linear_form(side, self._any_leaf) for side in sides)
        if top is None or bottom is None or top.constant.any() or bottom.constant.any():
            return None
        names = list(self.cuts)
        used = [name for name, row in zip(names, bottom.form, strict=True) if row.any()]
        if len(used) != 1 or self.cuts[used[0]].row != (1.0, 1.0):
            return None
        each = bottom.form[names.index(used[0])]
        if not (each > 0).all():
            return None
        low, high = self._ends(top, [cut.row for cut in self.cuts.values()])
        summed = {name for name, row in zip(names, top.form, strict=True) if row.any()}
        return _PerRow((low / each, high / each), used[0], frozenset({used[0], *summed}))


def _product(each: float, many: float) -> float:
    return 0.0 if not each or not many else each * many
