"""The least price that reaches a wanted accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction

from scipy import special

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import Rational, positive, probability
from sfumato.plan.columns import Form
from sfumato.plan.noise import Noise
from sfumato.plan.nodes import Measured
from sfumato.plan.price import Priced, draw, price, whole_price
from sfumato.plan.sensitivity import sensitivities, step
from sfumato.plan.split import Mechanics
from sfumato.schema import PrivacyUnit

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
                f"How far off {name} will be depends on the data, so no price can be named for it beforehand.",
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
    if all(form.single is not None for form in bound):
        portions = _each(measured, bound, target, law, shares)
    else:
        portions = _all(measured, bound, target, law, shares, delta)
    return _settle(measured, portions, law, delta)


def _each(
    measured: Measured, bound: Sequence[Form], target: Target, law: Mechanics, shares: Sequence[Fraction]
) -> list[Fraction]:
    """What each measurement needs for its own column."""
    unit = PrivacyUnit.from_dict(dict(measured.unit))
    found = sensitivities(measured)
    needed: dict[int, Fraction] = {}
    for form in bound:
        assert form.single is not None
        index, factor = form.single
        width = float(target.widths[form.name]) / abs(factor)
        each = measured.measurements[index]
        worth = step(each, unit, keyed=bool(measured.keys))

        def enough(portion: Fraction, each=each, index=index, worth=worth, width=width) -> bool:  # type: ignore[no-untyped-def]
            noise = Noise.of(draw(law, each, found[index], portion, worth), worth, rounded=each.whole)
            return noise.quantile(target.confidence) <= width

        size = float((found[index].l1 if law == "laplace" else found[index].l2) * worth)
        guess = _guess(law, size, width, target.confidence)
        needed[index] = max(needed.get(index, Fraction(0)), _least(enough, guess, _FINER, form.name))
    known, share = sum(needed.values()), sum(shares[index] for index in needed)
    return [needed.get(i, _up(known * shares[i] / share, _FINER)) for i in range(len(shares))]


def _all(
    measured: Measured,
    bound: Sequence[Form],
    target: Target,
    law: Mechanics,
    shares: Sequence[Fraction],
    delta: Fraction,
) -> list[Fraction]:
    """What all measurements need together, in their usual shares."""
    unit = PrivacyUnit.from_dict(dict(measured.unit))
    found = sensitivities(measured)
    worths = [step(each, unit, keyed=bool(measured.keys)) for each in measured.measurements]

    def enough(whole: Fraction) -> bool:
        noises = [
            Noise.of(draw(law, each, found[i], whole * shares[i], worths[i]), worths[i], rounded=each.whole)
            for i, each in enumerate(measured.measurements)
        ]
        widths = ((form.width(noises, target.confidence, target.rows), form.name) for form in bound)
        return all(width is not None and width <= float(target.widths[name]) for width, name in widths)

    del delta
    whole = _least(enough, 1.0, _FINER, bound[0].name)
    return [whole * share for share in shares]


def _guess(law: Mechanics, size: float, width: float, confidence: Fraction) -> float:
    risk = float(1 - confidence)
    if law == "laplace":
        return -size * math.log(risk) / width
    return (size * math.sqrt(2) * float(special.erfcinv(risk)) / width) ** 2 / 2


def _least(enough: Callable[[Fraction], bool], guess: float, digits: int, name: str) -> Fraction:
    """The least number of so many digits that is enough, from a guess at its size."""

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
    unit = _unit(high, digits)
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
