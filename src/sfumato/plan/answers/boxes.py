"""Intervals of expressions over results: closed forms where the expression has one, boxes otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.numeric.exact import float_down, float_up
from sfumato.plan.expressions.functions import FUNCTIONS, evaluate
from sfumato.plan.expressions.linear import linear_form
from sfumato.plan.expressions.ranges import Facts, constant
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, columns_of
from sfumato.plan.intervals.forms import Blend, Floats, quotient
from sfumato.plan.intervals.noise import Noise

__all__ = ["TOTAL", "Affine", "Box", "Solver", "plain", "times"]

Box: TypeAlias = tuple[Floats, Floats]
"""Lower and upper ends, one a row; infinite where nothing is known, NaN where there is no value at all."""

# Non-decreasing in the first argument for every real number; the other arguments are constants.
_MONOTONE = frozenset({"floor", "ceil", "trunc", "round", "sign", "exp", "to_float", "to_integer"})
_WIDER = 2.0**-48  # of the larger end: what rounding in a few operations can take off


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ form_i·measurement_i, for every row (or one column for all of them).

    Attributes:
        constant: What is added.
        form: The coefficients, one row a measurement.
    """

    constant: Floats
    form: Floats

    @property
    def fixed(self) -> bool:
        """Whether no measurement enters."""
        return not self.form.any()

    def scaled(self, factor: Floats | int) -> Affine:
        """Each row times its factor."""
        return Affine(self.constant * factor, self.form * factor)

    def plus(self, other: Affine) -> Affine:
        """The sum."""
        return Affine(self.constant + other.constant, self.form + other.form)


@dataclass(frozen=True, slots=True)
class Solver:
    """What an expression over results can refer to, on some rows.

    Attributes:
        noisy: The noisy measurements.
        noises: The noise of what is released.
        laws: The noise of the numbers at hand, which may not be rounded yet.
        keys: The keys `k0`, … as arrays.
        affine: The aggregates that are affine in the measurements.
        solve: The interval of an aggregate at a risk.
        rows: How many rows there are, which nothing else tells where only extra questions were asked.
    """

    noisy: tuple[Floats, ...]
    noises: tuple[Noise, ...]
    laws: tuple[Noise, ...]
    keys: Mapping[str, NDArray[Any]]
    affine: Mapping[str, Affine]
    solve: Callable[[str, float], Box]
    rows: int
    _known: dict[tuple[Expression, float], Box] = field(default_factory=dict, repr=False, compare=False)

    def interval(self, expression: Expression, risk: float) -> Box:
        """Ends that hold the value of the expression before noise with probability at least 1 − risk, a row.

        Aggregates, affine forms of measurements and ratios of two such forms have intervals of their own. Any
        other expression is split into the largest parts that have one, with k sources of noise: each gets
        risk/k (Bonferroni), and the box they span goes through interval arithmetic.
        """
        expression = plain(expression)
        if (expression, risk) not in self._known:  # an answer is shown in several ways
            self._known[expression, risk] = self._interval(expression, risk)
        return self._known[expression, risk]

    def _interval(self, expression: Expression, risk: float) -> Box:
        parts = tuple(dict.fromkeys(self._parts(expression)))
        share = risk / max(1, len({self.source(part) for part in parts}))
        with np.errstate(all="ignore"):
            solved = {part: self.solved(part, share) for part in parts}
            return self.walk(expression, solved)

    def noisy_in(self, expression: Expression) -> bool:
        """Whether an aggregate occurs in it."""
        return any(name not in self.keys for name in columns_of(expression))

    def _parts(self, expression: Expression) -> Iterator[Expression]:
        if not self.noisy_in(expression):
            return
        if self._solvable(expression):
            yield expression
        elif isinstance(expression, Call):
            for argument in expression.arguments:
                yield from self._parts(argument)

    def source(self, part: Expression) -> Expression | int:
        """What its interval can miss by: forms of one measurement all miss together."""
        form = self._affine(part)
        used = [] if form is None else self._used(form)
        return used[0] if len(used) == 1 else part

    def _solvable(self, expression: Expression) -> bool:
        if isinstance(expression, Column):
            return True
        return self._affine(expression) is not None or self._ratio(expression) is not None

    def solved(self, expression: Expression, risk: float) -> Box:
        """The interval of a part that has one of its own."""
        if (expression, risk) not in self._known:
            self._known[expression, risk] = self._solve(expression, risk)
        return self._known[expression, risk]

    def _solve(self, expression: Expression, risk: float) -> Box:
        if isinstance(expression, Column):
            return self.solve(expression.name, risk)
        if (form := self._affine(expression)) is not None:
            return self.spread(form, risk)
        ratio = self._ratio(expression)
        assert ratio is not None  # `_parts` yields nothing else
        top, bottom = ratio
        used = self._used(top, bottom)
        low, high = quotient(
            Blend(tuple(self.laws[i] for i in used)),
            risk,
            top=top.form[used],
            bottom=bottom.form[used],
            numerator=self.value(top),
            denominator=self.value(bottom),
        )
        return _wider(low, high)

    def spread(self, form: Affine, risk: float) -> Box:
        """The interval of an affine form: its noisy value, give or take the width of its noise.

        A single measurement has the exact quantile of its own law. Where that is on whole numbers, so is the
        value before noise, and the interval is around the rounded number.
        """
        used = self._used(form)
        if len(used) == 1:
            (i,) = used
            noise = self.noises[i] if self.noises[i].whole else self.laws[i]
            value = np.rint(self.noisy[i]) if noise.whole else self.noisy[i]
            width, factor = noise.width(risk), form.form[i]
            ends = [form.constant + factor * (value + side) for side in (-width, width)]
            low, high = np.minimum(*ends), np.maximum(*ends)
            exact = (factor == np.rint(factor)).all() and (form.constant == np.rint(form.constant)).all()
            return (low, high) if exact else _wider(low, high)
        widths = Blend(tuple(self.laws[i] for i in used)).width(form.form[used], risk)
        middle = self.value(form)
        return _wider(middle - widths, middle + widths)

    def value(self, form: Affine) -> Floats:
        """The noisy value of an affine form."""
        total = np.zeros(len(self.noisy[0])) + form.constant
        for i in self._used(form):
            total = total + form.form[i] * self.noisy[i]
        return total

    def _used(self, *forms: Affine) -> list[int]:
        return [i for i in range(len(self.noisy)) if any(form.form[i].any() for form in forms)]

    def _fixed(self, value: Any) -> Affine:
        return Affine(np.asarray(value, dtype=np.float64), np.zeros((len(self.noisy), 1)))

    def _affine(self, expression: Expression) -> Affine | None:
        with np.errstate(all="ignore"):  # a constant may be beyond floats: then the column is infinite
            return linear_form(expression, self.leaf)

    def leaf(self, part: Column | Literal) -> Affine | None:
        """The linear form of a column or a constant, if it has one."""
        if isinstance(part, Literal):
            return self._fixed([part.value]) if part.kind in ("integer", "float") else None
        if part.name in self.keys:
            key = self.keys[part.name]
            return self._fixed(key) if key.dtype.kind in "iuf" else None
        return self.affine.get(part.name)

    def sides(self, expression: Expression) -> tuple[Expression, Expression] | None:
        """What is divided by what; None where nothing is."""
        if not isinstance(expression, Call) or expression.function != "divide":
            return None
        above, below = expression.arguments
        if isinstance(below, Call) and below.function == "nullif" and not self.noisy_in(below.arguments[1]):
            below = below.arguments[0]
        return above, below

    def _ratio(self, expression: Expression) -> tuple[Affine, Affine] | None:
        sides = self.sides(expression)
        if sides is None:
            return None
        top, bottom = (self._affine(side) for side in sides)
        return None if top is None or bottom is None or bottom.fixed else (top, bottom)

    def walk(self, expression: Expression, solved: Mapping[Expression, Box]) -> Box:
        """The box of an expression whose parts are solved, by interval arithmetic."""
        if expression in solved:
            return solved[expression]
        if not self.noisy_in(expression):
            return self._exact(expression, self.rows)
        assert isinstance(expression, Call)  # a column with noise is solved
        name = expression.function
        if name == "case":
            return self._case(expression, solved)
        boxes = [self.walk(argument, solved) for argument in expression.arguments]
        if name in _ARITHMETIC:
            # NULL is skipped by these: what may be missing does not hold the result on its side.
            loose = name in ("greatest", "least") and not all(map(_present, expression.arguments))
            return _hull(*boxes) if loose else _ARITHMETIC[name](*boxes)
        if name in _MONOTONE and not any(self.noisy_in(argument) for argument in expression.arguments[1:]):
            return self._ends(expression, boxes[0])
        return _by_rule(expression, boxes)

    def _exact(self, expression: Expression, rows: int) -> Box:
        exact = evaluate(expression, self.keys or {"": np.zeros(rows)})
        if exact.dtype.kind not in "fb":
            return np.full(rows, -np.inf), np.full(rows, np.inf)
        values = np.broadcast_to(np.ma.filled(exact.astype(np.float64), np.nan), (rows,))
        return values, values

    def _ends(self, expression: Call, box: Box) -> Box:
        """A non-decreasing function of the first argument, at both ends; infinite where it has no value."""
        changed = Call(expression.function, (Column("end"), *expression.arguments[1:]))
        known = {name: self.keys[name] for name in columns_of(changed) if name in self.keys}
        low, high = (evaluate(changed, {"end": end, **known}).astype(np.float64) for end in box)
        return np.ma.filled(low, -np.inf), np.ma.filled(high, np.inf)

    def _case(self, expression: Call, solved: Mapping[Expression, Box]) -> Box:
        """The hull of the branches that could be taken: conditions on keys are known, those on noise not."""
        rows = self.rows
        low, high = np.full(rows, np.nan), np.full(rows, np.nan)
        open_ = np.ones(rows, dtype=bool)
        *pairs, default = expression.arguments
        for condition, result in [*zip(pairs[::2], pairs[1::2], strict=True), (None, default)]:
            branch = self.walk(result, solved)
            taken = open_
            if condition is not None and not self.noisy_in(condition):
                holds = np.asarray(evaluate(condition, self.keys or {"": np.zeros(rows)}).filled(False), bool)
                taken, open_ = open_ & holds, open_ & ~holds
            low = np.where(taken, np.fmin(low, branch[0]), low)
            high = np.where(taken, np.fmax(high, branch[1]), high)
        return low, high


TOTAL = _MONOTONE - {"to_integer"} | {"add", "subtract", "multiply", "negate", "abs"}
"""Functions that are NULL only where an argument is."""


def _present(expression: Expression) -> bool:
    """Whether it is surely not NULL, before noise and after: no key or aggregate is, a total may be."""
    if isinstance(expression, Literal):
        return expression.value is not None
    if isinstance(expression, Column):
        return expression.name[0] != "w"
    if expression.function == "divide" and isinstance(expression.arguments[1], Literal):
        return bool(expression.arguments[1].value) and _present(expression.arguments[0])
    return expression.function in TOTAL and all(map(_present, expression.arguments))


def plain(expression: Expression) -> Expression:
    """The same without COALESCE around what is never NULL."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(plain(argument) for argument in expression.arguments)
    if expression.function == "coalesce" and _present(arguments[0]):
        return arguments[0]
    return Call(expression.function, arguments)


def times(first: Floats, second: Floats) -> Floats:
    """The product, where 0 times infinity is 0: an end at infinity is never reached."""
    idle = ((first == 0) & np.isinf(second)) | ((second == 0) & np.isinf(first))
    with np.errstate(all="ignore"):
        return np.where(idle, 0.0, first * second)


def _multiply(first: Box, second: Box) -> Box:
    corners = np.stack([times(a, b) for a in first for b in second])
    return corners.min(axis=0), corners.max(axis=0)


def _divide(first: Box, second: Box) -> Box:
    """Dividing by exactly 0 gives NULL, so an end at 0 is a limit."""
    low, high = second
    inverse_low = np.where(high == 0, -np.inf, 1 / np.where(high == 0, 1.0, high))
    inverse_high = np.where(low == 0, np.inf, 1 / np.where(low == 0, 1.0, low))
    across = (low < 0) & (high > 0)
    inverse = np.where(across, -np.inf, inverse_low), np.where(across, np.inf, inverse_high)
    return _multiply(first, inverse)


def _abs(box: Box) -> Box:
    low, high = box
    inner = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return inner, np.maximum(np.abs(low), np.abs(high))


def _hull(*boxes: Box) -> Box:
    low, high = boxes[0]
    for box in boxes[1:]:
        low, high = np.fmin(low, box[0]), np.fmax(high, box[1])
    return low, high


def _greatest(*boxes: Box) -> Box:
    low, high = boxes[0]
    for box in boxes[1:]:
        low, high = np.fmax(low, box[0]), np.fmax(high, box[1])
    return low, high


def _least(*boxes: Box) -> Box:
    low, high = boxes[0]
    for box in boxes[1:]:
        low, high = np.fmin(low, box[0]), np.fmin(high, box[1])
    return low, high


def _root(box: Box) -> Box:
    """Negative numbers have no root, so they count for nothing."""
    return np.sqrt(np.maximum(box[0], 0.0)), np.sqrt(np.maximum(box[1], 0.0))


def _logarithm(log: Callable[[Floats], Floats]) -> Callable[[Box], Box]:
    return lambda box: (log(np.maximum(box[0], 0.0)), log(np.maximum(box[1], 0.0)))


_ARITHMETIC: dict[str, Callable[..., Box]] = {
    "add": lambda first, second: (first[0] + second[0], first[1] + second[1]),
    "subtract": lambda first, second: (first[0] - second[1], first[1] - second[0]),
    "negate": lambda only: (-only[1], -only[0]),
    "multiply": _multiply,
    "divide": _divide,
    "abs": _abs,
    "coalesce": _hull,
    "nullif": lambda first, _: first,
    "greatest": _greatest,
    "least": _least,
    "sqrt": _root,
    "ln": _logarithm(np.log),
    "log10": _logarithm(np.log10),
    "log2": _logarithm(np.log2),
}


def _wider(low: Floats, high: Floats) -> Box:
    room = _WIDER * np.maximum(np.abs(low), np.abs(high))
    room = np.where(np.isfinite(room), room, 0.0)
    return low - room, high + room


def _by_rule(expression: Call, boxes: list[Box]) -> Box:
    """Row by row through the function's own rule for facts; everything where that refuses."""
    rows = len(boxes[0][0])
    low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
    rule = FUNCTIONS[expression.function].rule
    for row in range(rows):
        ends = [(float(box[0][row]), float(box[1][row])) for box in boxes]
        if any(np.isnan(end) for pair in ends for end in pair):
            low[row] = high[row] = np.nan
            continue
        try:
            facts = rule(*map(_known, expression.arguments, ends))
        except QueryRefused:
            return low, high
        low[row] = -np.inf if facts.lower is None else float_down(facts.lower)
        high[row] = np.inf if facts.upper is None else float_up(facts.upper)
    return low, high


def _known(argument: Expression, ends: tuple[float, float]) -> Facts:
    if isinstance(argument, Literal):
        return constant(argument.value, argument.kind)
    return Facts("float", True, _bound(ends[0]), _bound(ends[1]))


def _bound(end: float) -> Fraction | None:
    return Fraction(end) if np.isfinite(end) else None
