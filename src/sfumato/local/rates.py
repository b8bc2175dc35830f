"""How well anybody can estimate from reports of local privacy: the rates of Duchi, Jordan and Wainwright."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.local._numbers import priced, ranged
from sfumato.local.response import KaryResponse
from sfumato.local.unary import UnaryEncoding
from sfumato.numeric.exact import Rational, as_integer

__all__ = ["Minimax", "minimax_frequencies", "minimax_mean"]


@dataclass(frozen=True, slots=True)
class Minimax:
    """The least mean squared error, for the worst population, that reports of so many people allow.

    People are drawn from a population, and what is estimated is the population's: the people's own mean or
    shares differ from it by chance already.

    Attributes:
        rate: As the theorem has it: the least error lies between two constants times this, which it does not
            name, for epsilon up to 1. Above 1 it is taken at 1: then what people were drawn decides.
        lower: Whatever randomizer and estimator are taken, some population is estimated no better than this.
        attained: The error of the worst population with a randomizer of this package.
    """

    rate: float
    lower: float
    attained: float

    def __str__(self) -> str:
        return (
            f"No mean squared error below {self.lower:.4g}; {self.attained:.4g} is attained "
            f"(of the order {self.rate:.4g})."
        )


def minimax_mean(epsilon: Rational, people: int, *, lower: Rational = -1, upper: Rational = 1) -> Minimax:
    """The least error of a mean of numbers in a range: of the order 1/(n·ε²) for the range from −1 to 1.

    `attained` is `DuchiMean`'s, 1/(n·tanh²(ε/2)) for that range. `lower` is Le Cam's bound for two
    populations on the ends of the range, whose means are ±δ. By Theorem 1 of Duchi, Jordan, Wainwright 2018
    their reports differ by at most n·min(4, e^2ε)·(e^ε − 1)²·δ² in the sum of both divergences, and so, with
    Pinsker's inequality, by s·δ in total variation, s = √n·(e^ε − 1)·min(2, e^ε)/2. Hence no error is below
    δ²(1 − s·δ)/2, and the best δ is 2/(3s), or 1 where that is more. The rate is that of the same paper for
    bounded numbers (their families of k moments, k → ∞), min(1, 1/(n·ε²)) for ε ≤ 1.

    Raises:
        InvalidParameter: for an epsilon above 50, no people, or a lower that is not below upper.
    """
    price, count, (low, high) = priced(epsilon), as_integer(people, "people"), ranged(lower, upper)
    square = float((high - low) / 2) ** 2
    rate = min(1.0, _order(price, count))
    attained = 1 / (count * math.tanh(float(price) / 2) ** 2)
    return Minimax(square * rate, square * _two_points(price, count), square * attained)


def minimax_frequencies(epsilon: Rational, people: int, *, values: int) -> Minimax:
    """The least error of the shares of d values, their squared errors added up.

    The rate is min(1, 1/√(n·ε²), d/(n·ε²)) for ε ≤ 1 (Duchi, Jordan, Wainwright 2013 and 2018, multinomial
    estimation). `attained` is that of `KaryResponse` for fewer than 3e^ε + 2 values, else `UnaryEncoding`,
    where all shares are alike, which is their worst population. `lower` is that of `minimax_mean` for
    populations on two of the values, whose errors are half as large: its constant is explicit, but it does
    not grow with d.

    Raises:
        InvalidParameter: for an epsilon above 50, no people or fewer than two values.
    """
    price, count = priced(epsilon), as_integer(people, "people")
    size = as_integer(values, "values", least=2)
    few = size < 3 * math.exp(float(price)) + 2
    randomizer = KaryResponse(price, size) if few else UnaryEncoding(price, size)
    supported = randomizer.q + randomizer.gap / size
    attained = size * supported * (1 - supported) / randomizer.gap**2 / count
    order = _order(price, count)
    return Minimax(min(1.0, math.sqrt(order), size * order), _two_points(price, count) / 2, attained)


def _order(epsilon: Fraction, people: int) -> float:
    """1/(n·ε²), with epsilon at most 1."""
    return 1 / (people * min(float(epsilon), 1.0) ** 2)


def _two_points(epsilon: Fraction, people: int) -> float:
    """Le Cam's bound for means on [−1, 1]."""
    growth = math.expm1(float(epsilon)) * min(2.0, math.exp(float(epsilon))) / 2
    told = math.sqrt(people) * growth
    return 2 / (27 * told * told) if told >= 2 / 3 else (1 - told) / 2
