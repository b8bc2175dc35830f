"""The least price that reaches a wanted accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import partial

from scipy import special

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import Rational, positive, probability
from sfumato.plan.columns import Form
from sfumato.plan.nodes import Measured
from sfumato.plan.price import Instrument, Priced, instruments, price, whole_price
from sfumato.plan.split import Mechanics

__all__ = ["Target", "cheapest", "wanted"]

_DIGITS, _FINER = 6, 8  # of epsilon, and of the parts it is made of
_MOST = Fraction(10**9)


@dataclass(frozen=True, slots=True)
class Target:
    """Half-widths that columns should have, at a confidence, in groups of about `rows` rows."""

    widths: Mapping[str, Fraction]
    confidence: Fraction
    rows: float | None


def wanted(
    error: Mapping[str, Rational] | Rational, forms: Sequence[Form], confidence: Rational, rows: float | None
) -> Target:
    """The half-widths that are asked for, by column.

    Raises:
        InvalidParameter: for a column that the result does not have, naming the nearest.
        QueryRefused: for one whose error depends on the data, or that has none.
    """
    by_name = {form.name: form for form in forms}
    noisy = [form.name for form in forms if not form.public]
    asked = error if isinstance(error, Mapping) else dict.fromkeys(noisy, error)
    if not asked:
        raise InvalidParameter('error needs a half-width: error={"n": 50}, or one number for all columns.')
    for name in asked:
        if name not in by_name:
            near = get_close_matches(str(name), noisy, 1) or noisy[:1]
            raise InvalidParameter(f"The result has no column {str(name)[:60]!r}; did you mean {near[0]!r}?")
        form = by_name[name]
        if form.public:
            raise InvalidParameter(
                f"{name} is public and has no error: give one for {', '.join(noisy)[:60]}."
            )
        if form.terms is None or (form.per_row and rows is None):
            raise QueryRefused(
                f"How far off {name} will be depends on the data, so its price cannot be named beforehand.",
                "Give an epsilon"
                + (
                    ", or let the steward declare the table's size."
                    if form.per_row
                    else " instead of an error."
                ),
            )
    widths = {name: positive(width, f"the error of {name}") for name, width in asked.items()}
    return Target(widths, probability(confidence, "confidence"), rows)


def cheapest(
    measured: Measured,
    forms: Sequence[Form],
    target: Target,
    law: Mechanics,
    *,
    delta: Fraction,
    shares: Sequence[Fraction],
) -> Priced:
    """The least epsilon, to six digits, at which all wanted half-widths hold.

    Where each wanted column depends on one measurement this is exact: each gets just what it needs, and a
    measurement that no target is about gets its usual share beside them. Elsewhere the usual shares are kept.

    Raises:
        QueryRefused: if no price is enough, since rounding alone is off by more.
    """
    bound = [form for form in forms if form.name in target.widths]
    each = all(form.single is not None for form in bound)
    portions = (_apart if each else _together)(instruments(measured), bound, target, law, shares)
    return _settle(measured, portions, law, delta)


def _apart(
    tools: Sequence[Instrument],
    bound: Sequence[Form],
    target: Target,
    law: Mechanics,
    shares: Sequence[Fraction],
) -> list[Fraction]:
    """What each measurement needs for its own columns."""
    needed: dict[int, Fraction] = {}
    for form in bound:
        assert form.single is not None
        index, factor = form.single
        width = float(target.widths[form.name]) / abs(factor)
        enough = partial(_enough, tools[index], law, width, target.confidence)
        guess = _guess(law, tools[index].size(law), width, target.confidence)
        needed[index] = max(needed.get(index, Fraction(0)), _least(enough, guess, form.name))
    known, share = sum(needed.values()), sum(shares[index] for index in needed)
    return [needed.get(i, _up(known * shares[i] / share, _FINER)) for i in range(len(shares))]


def _enough(tool: Instrument, law: Mechanics, width: float, confidence: Fraction, portion: Fraction) -> bool:
    return tool.noise(tool.mechanism(law, portion)).quantile(confidence) <= width


def _together(
    tools: Sequence[Instrument],
    bound: Sequence[Form],
    target: Target,
    law: Mechanics,
    shares: Sequence[Fraction],
) -> list[Fraction]:
    """What all measurements need in their usual shares."""

    def enough(whole: Fraction) -> bool:
        noises = [
            each.noise(each.mechanism(law, whole * share)) for each, share in zip(tools, shares, strict=True)
        ]
        widths = ((form.width(noises, target.confidence, target.rows), form.name) for form in bound)
        return all(width is not None and width <= target.widths[name] for width, name in widths)

    whole = _least(enough, 1.0, bound[0].name)
    return [whole * share for share in shares]


def _guess(law: Mechanics, size: float, width: float, confidence: Fraction) -> float:
    risk = float(1 - confidence)
    if law == "laplace":
        return -size * math.log(risk) / width
    return (size * math.sqrt(2) * float(special.erfcinv(risk)) / width) ** 2 / 2


def _least(enough: Callable[[Fraction], bool], guess: float, name: str) -> Fraction:
    """The least part of a price that is enough, to eight digits, from a guess at its size."""

    def reached(value: Fraction) -> bool:
        try:
            return enough(value)
        except (
            InvalidParameter
        ):  # noise beyond what can be drawn: at the small end too much, at the large none
            return False

    high = Fraction(max(1e-9, min(guess, 1e9)))
    while not reached(high):
        high *= 2
        if high > _MOST:
            raise QueryRefused(
                f"No price makes {name} that accurate: rounding alone is off by as much.",
                "Ask for a larger error.",
            )
    low = high / 2
    while reached(low) and low > Fraction(1, 10**9):
        high, low = low, low / 2
    unit = _unit(high, _FINER)
    top, bottom = math.ceil(high / unit), math.floor(low / unit)
    while top - bottom > 1:
        middle = (top + bottom) // 2
        top, bottom = (middle, bottom) if reached(middle * unit) else (top, middle)
    return top * unit


def _unit(value: Fraction, digits: int) -> Fraction:
    """The last of so many significant digits."""
    exponent = math.floor(math.log10(value))
    return Fraction(10) ** (exponent - digits + 1)


def _up(value: Fraction, digits: int) -> Fraction:
    """Rounded up to so many significant digits."""
    unit = _unit(value, digits)
    return math.ceil(value / unit) * unit


def _settle(measured: Measured, portions: Sequence[Fraction], law: Mechanics, delta: Fraction) -> Priced:
    """The rounded price; what rounding left over goes to the first measurement."""
    total = sum(portions, Fraction(0))
    if law == "laplace":
        epsilon = _up(total, _DIGITS)
    else:
        epsilon = _up(Fraction(GaussianLoss(total).epsilon(delta)), _DIGITS)
        while whole_price(law, epsilon, delta) < total:
            epsilon += _unit(epsilon, _DIGITS)
    rest = whole_price(law, epsilon, delta) - total
    return price(measured, law, epsilon=epsilon, delta=delta, portions=[portions[0] + rest, *portions[1:]])
