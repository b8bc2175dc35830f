"""Basic composition of pieces that each know their own ε for a δ, and the inverse of any such rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sfumato.loss.base import PrivacyLoss
from sfumato.numeric.exact import float_up

__all__ = ["apart", "exact_of", "least_delta"]

Pieces = Sequence[tuple[PrivacyLoss, int]]
_LEAST = Fraction(1, 10**300)


def exact_of(figure: float) -> Fraction:
    """A number not below what a figure means, as its binary value and as the decimal that it shows."""
    return max(Fraction(figure), Fraction(repr(figure)))


def apart(pieces: Pieces, delta: Fraction) -> float:
    """The ε of pieces priced one by one at a total δ, rounded up; infinity if this rule has none.

    Two ways to share δ: those with a point of their own at that point and the rest equally over the others;
    or to each the δ that no ε removes, and the rest equally.

    Privacy:
        Claim: ε and δ add up. Source: Dwork, Roth 2014, Thm. 3.16.
    """
    fixed = [None if piece.approximate is None else piece.approximate[1] for piece, _ in pieces]
    by_point = [(piece, count, share) for (piece, count), share in zip(pieces, fixed, strict=True)]
    by_curve = [(piece, count, None) for piece, count in pieces]
    return min(_shared(by_point, delta, _nothing), _shared(by_curve, delta, _unremovable))


def _shared(
    pieces: Sequence[tuple[PrivacyLoss, int, Fraction | None]],
    delta: Fraction,
    floor: Callable[[PrivacyLoss], Fraction],
) -> float:
    least = [floor(piece) if fixed is None else fixed for piece, _, fixed in pieces]
    left = delta - sum((need * count for need, (_, count, _) in zip(least, pieces, strict=True)), Fraction(0))
    number = sum(count for _, count, fixed in pieces if fixed is None)
    if left < 0 or (number and left / number < _LEAST):
        return math.inf
    total = Fraction(0)
    for need, (piece, count, fixed) in zip(least, pieces, strict=True):
        point = piece.approximate
        if fixed is not None and point is not None:
            total += point[0] * count
            continue
        cost = piece.epsilon(need + left / number)
        if cost == math.inf:
            return math.inf
        total += exact_of(cost) * count
    return float_up(total)


def _nothing(piece: PrivacyLoss) -> Fraction:
    del piece
    return Fraction(0)


def _unremovable(piece: PrivacyLoss) -> Fraction:
    """A δ that the piece keeps at every ε: its mass at infinity, or what its Rényi bound sets aside."""
    ways = piece.directions()
    if ways is None:
        return piece.failure
    masses = [
        sum((Fraction(term.law.infinity(term.parameters)) * term.count for term in way), Fraction(0))
        for way in ways
    ]
    return max(masses)


def least_delta(price: Callable[[Fraction], float], epsilon: Fraction | float, most: float) -> float:
    """The least δ up to `most` that a rule shows at an ε, to within 1e-6; `most` if it shows no less.

    `price` is the rule's ε at a δ, and should not increase. The answer is a δ at which it was seen to be no
    more than `epsilon`, as the decimal that it shows.
    """

    def excess(log_delta: float) -> float:
        cost = price(Fraction(math.exp(log_delta)))
        if cost == math.inf:
            return math.inf
        over = Fraction(repr(cost)) - Fraction(epsilon)
        return max(5e-324, float(over)) if over > 0 else min(0.0, float(over))

    high = math.log(min(most, 1 - 2**-50)) if most > 1e-290 else -math.inf
    if high == -math.inf or (at_high := excess(high)) > 0:
        return most
    low, step = high, 1.0
    while True:
        low, step = max(-667.0, low - step), 2 * step
        if (at_low := excess(low)) > 0:
            break
        high, at_high = low, at_low
        if low == -667.0:
            return math.exp(high)
    for number in itertools.count():
        if high - low <= 1e-6:
            return math.exp(high)
        # A secant step aimed a little to one side and then to the other, so that both ends close in; every
        # third step halves, which ends the search whatever the curve.
        root = high + at_high * (high - low) / (at_low - at_high) if at_low < math.inf else math.nan
        middle = root + (0.4e-6 if number % 3 == 0 else -0.4e-6)
        if number % 3 == 2 or not low < middle < high:
            middle = (low + high) / 2
        if (value := excess(middle)) > 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return most
