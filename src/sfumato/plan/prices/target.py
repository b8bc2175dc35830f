"""The least price that reaches a wanted accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from typing import assert_never

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import Rational, positive
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.columns import Form
from sfumato.plan.prices.price import Instrument, Priced, instruments, price, whole_price
from sfumato.plan.prices.split import POWERS, Mechanics
from sfumato.plan.prices.split import shares as best_shares
from sfumato.plan.questions.nodes import Measured

__all__ = ["Target", "cheapest", "wanted"]

_DIGITS, _FINER = 6, 8  # of epsilon, and of the parts it is made of
_FAR = 1e100  # noise beside a width: beyond any price, and its square is still a float
_LEAST, _MOST = Fraction(1, 10**11), Fraction(10**9)  # beyond, no noise can be drawn or is left


@dataclass(frozen=True, slots=True)
class Target:
    """Half-widths that columns should have, at a confidence, in groups of about `rows` rows."""

    widths: Mapping[str, Fraction]
    confidence: Fraction
    rows: float | None


def wanted(
    error: Mapping[str, Rational] | Rational, forms: Sequence[Form], confidence: Fraction, rows: float | None
) -> Target:
    """The half-widths that are asked for, by column.

    Raises:
        InvalidParameter: for a column that the result does not have, naming the nearest.
        QueryRefused: for one whose error depends on the data, or that has none.
    """
    by_name = {form.name: form for form in forms}
    noisy = [form.name for form in forms if not form.public]
    if not noisy:
        raise InvalidParameter("No column of this result has noise: give an epsilon instead of an error.")
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
                "Give an epsilon instead of an error."
                + (
                    " For an average over a whole table, without WHERE and GROUP BY, a size that the steward "
                    "declares is enough."
                    if form.per_row
                    else ""
                ),
            )
    widths = {name: positive(width, f"the error of {name}") for name, width in asked.items()}
    return Target(widths, confidence, rows)


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
    measurement that no target is about gets its usual share beside them. For columns of several measurements
    it is the least for the better of two splits: the usual one, and one that suits the targets.

    Raises:
        QueryRefused: if no price is enough, since rounding alone is off by more.
    """
    bound = [form for form in forms if form.name in target.widths]
    single = all(form.single is not None for form in bound)
    portions = (_apart if single else _together)(instruments(measured), bound, target, law, shares)
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
        short = partial(_short, tools[index], law, form.name, width, target.confidence)
        guess = _guess(law, tools[index].size(law), width, target.confidence)
        needed[index] = max(needed.get(index, Fraction(0)), _least(short, guess, form.name))
    known, share = sum(needed.values()), sum(shares[index] for index in needed)
    return [needed.get(i, _up(known * shares[i] / share, _FINER)) for i in range(len(shares))]


def _short(
    tool: Instrument, law: Mechanics, name: str, width: float, confidence: Fraction, portion: Fraction
) -> str | None:
    return None if tool.noise(tool.mechanism(law, portion)).quantile(confidence) <= width else name


def _together(
    tools: Sequence[Instrument],
    bound: Sequence[Form],
    target: Target,
    law: Mechanics,
    shares: Sequence[Fraction],
) -> list[Fraction]:
    """What all measurements need together: in their usual shares or in those that suit the targets better."""

    def noises(whole: Fraction, split: Sequence[Fraction]) -> list[Noise]:
        pairs = zip(tools, split, strict=True)
        return [tool.noise(tool.mechanism(law, whole * share)) for tool, share in pairs]

    def excess(split: Sequence[Fraction]) -> float:
        """The worst half-width at a price of 1, beside the wanted one."""
        drawn = noises(Fraction(1), split)
        widths = (form.width(drawn, target.confidence, target.rows) for form in bound)
        return max(
            math.inf if width is None else width / wide for width, wide in zip(widths, wanted, strict=True)
        )

    def short(whole: Fraction) -> str | None:
        drawn = noises(whole, split)
        for form, wide in zip(bound, wanted, strict=True):
            if not form.within(wide, drawn, target.confidence, target.rows):
                return form.name
        return None

    wanted = [float(target.widths[form.name]) for form in bound]
    excesses = {split: excess(split) for split in (tuple(shares), _suited(tools, bound, target, law, shares))}
    split = min(excesses, key=excesses.__getitem__)
    guess = min(excesses[split], _FAR) ** (2 / POWERS[law])
    whole = _least(short, guess, bound[0].name)
    return [whole * share for share in split]


def _suited(
    tools: Sequence[Instrument],
    bound: Sequence[Form],
    target: Target,
    law: Mechanics,
    shares: Sequence[Fraction],
) -> tuple[Fraction, ...]:
    """Shares for the least sum of squared half-widths beside the wanted ones; the rest keep theirs."""
    costs: dict[int, float] = {}
    for form in bound:
        for index, factor in form.terms or ():
            width = min(abs(factor) * tools[index].size(law) / float(target.widths[form.name]), _FAR)
            costs[index] = costs.get(index, 0.0) + width * width
    known = sum(shares[index] for index in costs)
    suited = dict(zip(costs, best_shares(list(costs.values()), law), strict=True))
    return tuple(known * suited[i] if i in suited else share for i, share in enumerate(shares))


def _guess(law: Mechanics, size: float, width: float, confidence: Fraction) -> float:
    risk = float(1 - confidence)
    beside = min(size / width, _FAR) if width else _FAR
    match law:
        case "laplace":
            return -math.log(risk) * beside
        case "gaussian":
            from scipy import special

            return (math.sqrt(2) * float(special.erfcinv(risk)) * beside) ** 2 / 2
        case unknown:
            assert_never(unknown)


def _least(short: Callable[[Fraction], str | None], guess: float, name: str) -> Fraction:
    """The least part of a price that is enough, to eight digits.

    Args:
        short: The column that a price is not enough for; None: it is enough for all.
        guess: About its size.
        name: Some column.
    """

    def reached(value: Fraction) -> bool:
        nonlocal name
        try:
            column = short(value)
        except InvalidParameter:  # so little that the noise cannot be drawn, or so much that none is left
            return False
        name = column or name
        return column is None

    low = high = Fraction(min(max(guess, float(_LEAST)), float(_MOST)))
    stride = Fraction(1, 2**20)
    while not reached(high):
        if high > _MOST:
            raise QueryRefused(
                f"No price makes {name} that accurate: rounding alone is off by as much.",
                "Ask for a larger error.",
            )
        low, high, stride = high, high * (1 + stride), 4 * stride
    while low == high or (reached(low) and low > _LEAST):
        high, low, stride = low, low / (1 + stride), 4 * stride
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
    match law:
        case "laplace":
            epsilon = _up(total, _DIGITS)
        case "gaussian":
            epsilon = _up(Fraction(GaussianLoss(total).epsilon(delta)), _DIGITS)
            while whole_price(law, epsilon, delta) < total:
                epsilon += _unit(epsilon, _DIGITS)
        case unknown:
            assert_never(unknown)
    rest = whole_price(law, epsilon, delta) - total
    return price(measured, law, epsilon=epsilon, delta=delta, portions=[portions[0] + rest, *portions[1:]])
