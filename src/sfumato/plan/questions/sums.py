"""Sums of numbers with a known range: what is taken off each of them, and the clamp that holds the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.numeric.exact import floor_log2
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Call, Expression, call, only_column
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.questions.nodes import Measurement

__all__ = ["Range", "bounded_range", "held", "products", "range_of"]

_FINE = 29  # the bound of a fraction is 2**29 to 2**30 units: rounding to them is invisible beside the noise
_EXACT = 2**53  # beyond, engines that compute in floats would round whole numbers
_FINEST = 500
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Range:
    """What is known about the numbers that are aggregated.

    Attributes:
        argument: The numbers.
        lower: The least.
        upper: The greatest.
        whole: Whether they are whole.
        nullable: Whether some may be missing.
    """

    argument: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    nullable: bool

    @property
    def middle(self) -> Fraction:
        """The middle of the range, exact for whole numbers and else the nearest float."""
        exact = (self.lower + self.upper) / 2
        return exact if self.whole else Fraction(float(exact))

    @property
    def center(self) -> Fraction:
        """A point near the middle, whole for whole numbers, so that sums of distances from it stay whole."""
        return Fraction(math.floor(self.middle)) if self.whole else self.middle

    def reach(self, center: Fraction) -> Fraction:
        """How far from `center` a number can be."""
        return max(self.upper - center, center - self.lower)

    def present(self) -> Measurement:
        """The count of the rows that have a number: of all rows where none may be missing."""
        return Measurement("present", self.argument) if self.nullable else Measurement("rows")

    def total(self, center: Fraction) -> Measurement:
        """The sum of the numbers less `center`, which is their middle or 0."""
        grid = (0 if center.denominator == 1 else 1) if self.whole else None
        return _sum(_less(self.argument, center), self.lower - center, self.upper - center, grid)

    def squares(self) -> tuple[Measurement, Fraction]:
        """The sum of the squared distances from the middle, less what halves their range; and that shift."""
        center = self.middle
        most = self.reach(center) ** 2
        if most > _EXACT:
            raise QueryRefused(
                "The range is too wide: squares of its numbers can be larger than 2**53.",
                "Divide the numbers by a constant, or hold them within closer bounds.",
            )
        grid = (0 if center.denominator == 1 else 2) if self.whole else None
        shift = (
            Fraction(float(most / 2)) if grid is None else Fraction(math.floor(most * 2**grid / 2), 2**grid)
        )
        distance = _less(self.argument, center)
        square = _less(call("multiply", distance, distance), shift)
        return _sum(square, -shift, most - shift, grid), shift


def products(first: Range, second: Range, there: Expression | None) -> Measurement:
    """The sum of the products of both distances from the middles: at most reach times reach, either way.

    Both numbers are held within their ranges first, as they are in the sums of each.

    Args:
        first: One column.
        second: The other one.
        there: Whether a row has both, if some may be missing.
    """
    centers = first.middle, second.middle
    most = first.reach(centers[0]) * second.reach(centers[1])
    if most > _EXACT:
        raise QueryRefused(
            "The ranges are too wide: products of their numbers can be larger than 2**53.",
            "Divide the numbers by a constant, or hold them within closer bounds.",
        )
    grid = None
    if first.whole and second.whole:
        grid = sum(center.denominator != 1 for center in centers)
    factors = (
        _less(_within(numbers.argument, numbers.lower, numbers.upper), center)
        for numbers, center in zip((first, second), centers, strict=True)
    )
    product = call("multiply", *factors)
    if there is not None:
        product = call("case", there, product, Constant(None, None))
    return _sum(product, -most, most, grid)


def _within(argument: Expression, lower: Fraction, upper: Fraction) -> Expression:
    """The argument held within bounds; what is missing becomes one of them."""
    whole = lower.denominator == upper.denominator == 1
    low, high = (
        Constant(int(end), "integer") if whole else Constant(float(end), "float") for end in (lower, upper)
    )
    return call("least", call("greatest", argument, low), high)


def held(argument: Expression, lower: Fraction, upper: Fraction, columns: Mapping[str, Facts]) -> Expression:
    """The argument held within bounds that the question gives; what is missing stays missing.

    Raises:
        QueryRefused: if it is not a number, or the bounds are invalid.
    """
    facts = facts_of(argument, columns)
    if facts.kind not in ("integer", "float"):
        raise QueryRefused("Bounds for each row are for numbers.", "Leave them out.")
    if lower > upper or max(abs(lower), abs(upper)) >= 2**63:
        raise QueryRefused(
            "The bounds for each row are not understood.", "Write the lower one first, both below 2**63."
        )
    value = _within(argument, lower, upper)
    if not facts.nullable:
        return value
    return call("case", call("not", call("is_null", argument)), value, Constant(None, None))


def _less(argument: Expression, value: Fraction) -> Expression:
    if not value:
        return argument
    if abs(value) >= 2**63:
        raise QueryRefused(
            "The numbers to aggregate are larger than 2**63, where floats lose whole numbers.",
            "Divide them by a constant.",
        )
    whole = value.denominator == 1
    constant = Constant(int(value), "integer") if whole else Constant(float(value), "float")
    return call("subtract", argument, constant)


def _sum(argument: Expression, lower: Fraction, upper: Fraction, grid: int | None) -> Measurement:
    """A sum in fixed point: exact where the numbers lie on a grid of 2**-grid, else fine."""
    most = max(abs(lower), abs(upper))
    if most > _EXACT:
        raise QueryRefused(
            "The numbers to add up can be larger than 2**53, where floats lose whole numbers.",
            "Divide them by a constant, or hold them within bounds: SUM(LEAST(GREATEST(x, 0), 1000000)).",
        )
    if grid is not None and most * 2**grid <= _EXACT:
        bits = grid
    else:
        bits = min(_FINEST, max(0, _FINE - floor_log2(most))) if most else 0
    low, high = math.trunc(lower * 2**bits), math.trunc(upper * 2**bits)
    # Where all numbers are 0 the clamp leaves room for 1, so that there is a sensitivity to speak of.
    return Measurement("sum", argument, low, high if (low or high) else 1, bits, grid == 0 and bits == 0)


def range_of(name: str, argument: Expression | None, columns: Mapping[str, Facts]) -> Range:
    """The range of an aggregate's argument.

    Raises:
        QueryRefused: if it is not a number, or nothing bounds it.
    """
    if argument is None:
        raise QueryRefused(f"{name} needs something to aggregate.", f"Write {name}(x) with a column x.")
    facts = facts_of(argument, columns)
    if facts.kind not in ("integer", "float", "boolean"):
        raise _not_numbers(name, argument, facts)
    if facts.lower is None or facts.upper is None:
        raise _unbounded(name, argument, columns)
    whole = facts.kind != "float" or _on_whole_grid(facts)
    lower, upper = facts.lower, facts.upper
    if whole:
        lower, upper = Fraction(math.ceil(lower)), Fraction(math.floor(upper))
    if lower > upper:  # nothing passes the filter: any clamp will do
        lower = upper = _ZERO
    number = _as_number(argument) if facts.kind == "boolean" else argument
    return Range(number, lower, upper, whole, facts.nullable)


def bounded_range(
    argument: Expression | None, columns: Mapping[str, Facts], lower: Fraction, upper: Fraction
) -> Range:
    """The range of an argument whose bounds, for a unit's figure in a group, the question gives.

    Raises:
        QueryRefused: if it is not a number.
    """
    facts = None if argument is None else facts_of(argument, columns)
    if argument is None or facts is None or not facts.numeric:
        raise QueryRefused("SUM and AVG are for numbers.", "Aggregate a number, or COUNT it.")
    whole = facts.kind == "integer" and lower.denominator == upper.denominator == 1
    return Range(argument, lower, upper, whole, nullable=True)


def _on_whole_grid(facts: Facts) -> bool:
    if facts.step is None or facts.lower is None:
        return False
    return facts.step.denominator == 1 and facts.lower.denominator == 1


def _as_number(truth: Expression) -> Expression:
    yes, no, neither = Constant(1, "integer"), Constant(0, "integer"), Constant(None, None)
    return Call("case", (truth, yes, call("not", truth), no, neither))


_MEANT = (
    ' If it holds numbers, have it declared with type = "int" or "float". The file must have them plainly: '
    "1000, not € 1,000."
)
_PARTS: dict[str | None, str] = {"date": "YEAR", "timestamp": "HOUR", "time": "HOUR"}


def _not_numbers(name: str, argument: Expression, facts: Facts) -> QueryRefused:
    return QueryRefused(
        "{name} is for numbers, and this is {what}.",
        f"Aggregate a number, such as {_PARTS[facts.kind]}({{column}}), or write COUNT({{column}})."
        if facts.kind in _PARTS
        else "Write COUNT({column}), or COUNT(DISTINCT {column})." + (_MEANT if facts.kind == "text" else ""),
        name=name,
        what="NULL" if facts.kind is None else f"a {'time of day' if facts.kind == 'time' else facts.kind}",
        column=only_column(argument) or "x",
    )


def _unbounded(name: str, argument: Expression, columns: Mapping[str, Facts]) -> QueryRefused:
    column = only_column(argument)
    inside = column is not None and column != argument
    numeric = column is not None and facts_of(column, columns).numeric
    held = "LEAST(GREATEST({held}, LOW), HIGH)"  # names, since numbers would be copied as they are
    written = f"{held} in place of {{held}}" if inside and numeric else f"{{name}}({held})"
    if name != "SUM" and not (inside and numeric):
        # SQL's own GREATEST makes 0 of NULL, which an average would count.
        written += " FILTER (WHERE {held} IS NOT NULL)"
    if inside and not numeric:
        written += ", with the whole argument as x"
    return QueryRefused(
        "{name} needs bounds for {what}: without them one row could move it by any amount.",
        f"Write {written}, or have lower = LOW, upper = HIGH declared in sfumato.toml: the least and "
        'greatest value that you expect. --bounds auto (Python: bounds="auto") buys some.',
        name=name,
        what=column if numeric else "its argument",
        column=column or "x",
        held=column if numeric else "x",
    )
