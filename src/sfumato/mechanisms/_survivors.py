"""What ways to select groups share: counts, rounded Gaussian noise and its tails, intervals of survivors."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._grid import INPUT_LIMIT, bounded
from sfumato.mechanisms._numbers import integers_of
from sfumato.mechanisms.base import Example, Side
from sfumato.mechanisms.gaussian import drawable_price
from sfumato.numeric.figures import ball, failure
from sfumato.samplers.wholes import Wholes

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

__all__ = [
    "MARGIN",
    "Counts",
    "above",
    "beyond",
    "counts_of",
    "erfc",
    "example_of",
    "for_noise",
    "limits",
    "places_of",
    "with_gaussian",
]

Counts: TypeAlias = int | tuple[int, ...]
Integers: TypeAlias = NDArray[np.int64]
Small: TypeAlias = Callable[[Integers], NDArray[np.bool_]]

MARGIN = 1e-10
"""Above the relative error of a quotient of two tails in floats."""


def counts_of(counts: ArrayLike) -> Integers:
    """How many units are in each group, clamped to 2**61.

    Raises:
        InvalidValue: for anything but integers, and for negative ones.
    """
    true = integers_of(counts)
    if true.size and true.min() < 0:
        raise InvalidValue("A group cannot have fewer than 0 units: give the number of units in each.")
    return np.minimum(true, INPUT_LIMIT)


def for_noise(epsilon: Fraction, risk: Fraction) -> Fraction:
    """What is left of a price for Gaussian noise where lone groups show with a probability of `risk`.

    The proofs of the selections with Gaussian noise lose a factor 1/(1 − r) ≤ e^(r/(1 − r)).

    Raises:
        InvalidParameter: if nothing is.
    """
    rest = drawable_price(epsilon) - risk / (1 - risk)
    if rest <= 0:
        raise InvalidParameter(
            "delta is too large beside epsilon for Gaussian noise: use a smaller delta, or "
            "PartitionSelection."
        )
    return rest


def with_gaussian(numbers: Integers, variance: Fraction) -> Integers:
    """floor(number + X + 1/2) for Gaussian X, exactly."""
    if not numbers.size:
        return numbers
    flat = numbers.reshape(-1)
    added = random.add_gaussian(Wholes(flat), np.zeros(flat.size, np.uint64), variance)
    noisy = added.near.copy()
    for place, total in added.far.items():
        noisy[place] = bounded(total)
    return noisy.reshape(numbers.shape)


def beyond(variance: Fraction, risk: Fraction, groups: int) -> arb:
    """The x that one of so many independent Gaussian numbers is above with probability `risk`."""
    return places_of(2 * failure(1 - risk, groups), variance)


def places_of(twice: arb, variance: Fraction) -> arb:
    """The x with P(X > x) = twice/2, for probabilities on either side of 1/2."""
    root = twice.erfcinv() if twice < 1 else -(2 - twice).erfcinv()
    return (2 * ball(variance)).sqrt() * root


def above(place: arb, variance: Fraction) -> arb:
    """P(X > place) at the current precision."""
    return (place / (2 * ball(variance)).sqrt()).erfc() / 2


def limits(
    lower: tuple[Integers, Integers, Small], upper: tuple[Integers, Integers, Small]
) -> tuple[Integers, Integers]:
    """The least and the greatest counts of which neither tail is surely small, by bisection.

    The upper tail of what is seen grows with the count and the lower one falls, so that each limit is where
    a tail becomes small.

    Args:
        lower: A count whose upper tail is small or 0, one whose is not, and which tails are small.
        upper: A count whose lower tail is not small, one whose is, and which tails are small.
    """
    low, enough, small = lower
    while (enough - low > 1).any():
        n = (low + enough) // 2
        too_few = small(n)
        low, enough = np.where(too_few, n, low), np.where(too_few, enough, n)
    high, much, small = upper
    high = np.maximum(high, enough)
    while (much - high > 1).any():
        n = (high + much) // 2
        too_many = small(n)
        high, much = np.where(too_many, high, n), np.where(too_many, n, much)
    return enough, high


def example_of(
    name: str,
    mechanism: Mechanism,
    release: Callable[[Any], Any],
    left: Counts,
    right: Counts,
    law: Callable[[int], dict[int, float]],
) -> Example:
    """Two neighbouring inputs of a selection by counts; noisy counts are drawn, 0 where none is shown."""

    def draw(side: Side, count: int) -> Integers:
        one = np.asarray(left if side == "left" else right)
        noisy: Integers = release(np.broadcast_to(one, (count, *one.shape)))[1]
        return noisy

    def pmf(side: Side) -> dict[int, float]:
        return law(int(np.asarray(left if side == "left" else right)))

    return Example(name, mechanism, left, right, draw, pmf if isinstance(left, int) else None)


def erfc(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The complementary error function of each."""
    return np.array([math.erfc(value) for value in values.ravel().tolist()]).reshape(values.shape)
