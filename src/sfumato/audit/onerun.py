"""What guesses about many canaries prove after a single training run: the arithmetic alone."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from sfumato._dataclasses import dataclass
from sfumato.audit.bounds import asked_at, below
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["FAMILIES", "Family", "OneRun", "check_family", "one_run", "one_run_fdp", "one_run_p_value"]

_HALVINGS = 60
_LARGEST = 700.0  # e^-epsilon is still a normal number
_COINS = "each canary was put in or left out by a fair coin of its own that the guesser did not see"
_PURE = f"Assumes that {_COINS}; nothing is assumed about the mechanism."


@dataclass(frozen=True, slots=True)
class OneRun:
    """A lower bound on epsilon from guesses about canaries in one run, with what it rests on.

    Attributes:
        epsilon: no mechanism with a smaller epsilon at this delta would have let so many guesses be right,
            but with probability at most 1 - confidence.
        delta: the delta it was asked for.
        confidence: the probability, before the coins were tossed, that the bound is true.
        correct: how many guesses were right.
        guesses: how many were made; about the other canaries nothing was said.
        canaries: how many coins were tossed.
        assumption: what has to be true for the bound to hold, in a sentence.
    """

    epsilon: float
    delta: float
    confidence: float
    correct: int
    guesses: int
    canaries: int
    assumption: str

    def refutes(self, claim: float) -> bool:
        """Whether a claimed epsilon is proven false at this confidence."""
        return self.epsilon > claim

    def __str__(self) -> str:
        return textwrap.fill(
            f"epsilon >= {self.epsilon:.4g} at delta = {self.delta:g} "
            f"with confidence {below(self.confidence)}: "
            f"{self.correct} of {self.guesses} guesses about {self.canaries} canaries were right. "
            f"{self.assumption}",
            80,
        )


def one_run_p_value(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float) -> float:
    """An upper bound on the chance of so many right guesses if the mechanism were (epsilon, delta)-private.

    Privacy:
        Claim: of m canaries that fair coins put in or left out, the number of right guesses among r is at
        most a Binomial(r, e^epsilon/(1 + e^epsilon)) plus a number between 0 and m whose mean is at most
        2·m·delta, in the stochastic order; so P(right >= v) <= beta + 2·m·delta·alpha with beta =
        P(Binomial >= v) and alpha the largest of P(v > Binomial >= v - i)/i. Conditions: independent fair
        coins; adding or removing one canary makes neighbours. Guesses may be withheld for any reason that
        does not look at the coins. Source: Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1)
        training run", Theorem 5.2 and the p-value that the paper prints.
    """
    right = 1 / (1 + math.exp(-epsilon))
    if correct == 0:
        return 1.0
    beta = float(special.betainc(correct, guesses - correct + 1, right))  # P(Binomial >= correct)
    if delta == 0:
        return min(1.0, beta)
    steps = np.arange(1, correct + 1)
    below = np.cumsum(stats.binom.pmf(correct - steps, guesses, right))
    bound = beta + float(np.max(below / steps)) * 2 * canaries * delta
    # For three canaries and values near 1 the printed bound has been found a little too small; a value above
    # one half rejects nothing anyway.
    return 1.0 if bound > 0.5 else bound


def one_run(
    correct: int, guesses: int, canaries: int, *, delta: float = 0.0, confidence: float = 0.95
) -> OneRun:
    """The epsilon that right guesses prove, whatever the mechanism: one training run is enough.

    It assumes that each canary was put in or left out by a fair coin of its own that the guesser did not see,
    and nothing about the mechanism; the result says so, too.

    Args:
        correct: how many guesses were right.
        guesses: how many were made; fewer than canaries where some were not sure enough.
        canaries: how many were put in or left out, each by a fair coin of its own.
        delta: the delta at which epsilon is asked for.
        confidence: the probability that the bound is true, over coins and mechanism.

    Privacy:
        The claim of `one_run_p_value`, at the largest epsilon that it rejects. A low bound proves nothing:
        canaries that get in each other's way, or a poor score, look like privacy.

    Raises:
        InvalidParameter: if the counts do not fit each other, or delta or confidence is out of range.
    """
    correct, guesses, canaries, delta, confidence = _checked(correct, guesses, canaries, delta, confidence)

    def rejected(epsilon: float) -> bool:
        p = one_run_p_value(correct, guesses, canaries, epsilon=epsilon, delta=delta)
        return p <= 1 - confidence

    epsilon = _largest(rejected)
    return OneRun(epsilon, delta, confidence, correct, guesses, canaries, _PURE)


class Family(NamedTuple):
    """Trade-off curves that one number orders, from perfect privacy at 0 to none.

    Attributes:
        name: for words.
        falls_to: of the number and a probability y, the least chance that an event may have under one of two
            neighbours if it has chance y under the other: the inverse of 1 - f.
        epsilon: of the number and delta, the epsilon of the curve, rounded down.
        claim: the assumption in words, to follow "Assumes that the mechanism is".
    """

    name: str
    falls_to: Callable[[float, float], float]
    epsilon: Callable[[float, float], float]
    claim: str


def one_run_fdp(
    correct: int,
    guesses: int,
    canaries: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    family: str = "gaussian",
) -> OneRun:
    """The epsilon that right guesses prove about a mechanism whose trade-off curve is of a known family.

    It is larger than `one_run` gives, because a curve says more than one pair (epsilon, delta). It assumes
    what `one_run` does, and that the mechanism is at least as private as one of the family; the result says
    so, too.

    Args:
        correct: how many guesses were right.
        guesses: how many were made, a number fixed beforehand.
        canaries: how many were put in or left out, each by a fair coin of its own.
        delta: the delta at which epsilon is asked for; above 0 for the Gaussian family.
        confidence: the probability that the bound is true, over coins and mechanism.
        family: "gaussian", "laplace" or "pure": the curves among which the mechanism's is.

    Privacy:
        Claim: with probability at least `confidence`, no curve of the family with a smaller epsilon holds for
        the mechanism. Where the mechanism has a curve of another shape, its own epsilon may be smaller than
        the bound: the claim that is refuted is the curve. Conditions: independent fair coins, a number of
        guesses that is fixed beforehand. Source: Mahloujifar, Melis and Chaudhuri 2024, "Auditing
        f-differential privacy in one run", for canaries that are in or out. With p_n the chance of
        n right guesses, r_j = sum over n >= j of n·p_n/m and h_j that of (c' - n)·p_n/m, f-privacy gives
        h_j >= g(r_(j+1)) for g the inverse of 1 - f, and r_j follows from h_j. If P(right >= c) were at least
        tau, then r_0 + h_0 would be at least what this recursion gives from r_c = tau·c/m and h_c =
        tau·(c' - c)/m; but it is c'/m.

    Raises:
        InvalidParameter: if the counts do not fit each other, or a number or the family is not known.
    """
    correct, guesses, canaries, delta, confidence = _checked(correct, guesses, canaries, delta, confidence)
    curves = check_family(family, delta)
    number = _largest(
        lambda size: _impossible(
            lambda y: curves.falls_to(size, y), correct, guesses, canaries, 1 - confidence
        )
    )
    words = f"Assumes that {_COINS}, and that the mechanism is {curves.claim}: the bound is about that curve."
    return OneRun(curves.epsilon(number, delta), delta, confidence, correct, guesses, canaries, words)


def _impossible(
    falls_to: Callable[[float], float], correct: int, guesses: int, canaries: int, tau: float
) -> bool:
    """Whether so many right guesses with a chance of tau or more contradict the curve."""
    r, h, most = tau * correct / canaries, tau * (guesses - correct) / canaries, guesses / canaries
    for place in range(correct - 1, -1, -1):
        if r + h > most:
            return True
        raised = max(h, falls_to(min(r, 1.0)))
        if raised == h:
            return False  # then nothing will change any more
        r, h = r + place / (guesses - place) * (raised - h), raised
    return r + h > most


def _largest(rejected: Callable[[float], bool]) -> float:
    """The largest number that is rejected with all below it, rounded down; 0 if none is."""
    if not rejected(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while rejected(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _checked(
    correct: int, guesses: int, canaries: int, delta: float, confidence: float
) -> tuple[int, int, int, float, float]:
    known = {"correct": correct, "guesses": guesses, "canaries": canaries}
    right, guessed, tossed = (as_integer(number, name, least=0) for name, number in known.items())
    if not right <= guessed <= tossed or tossed == 0:
        raise InvalidParameter("There are at most as many right guesses as guesses, and as many as canaries.")
    return right, guessed, tossed, *asked_at(delta, confidence)


def check_family(family: str, delta: float) -> Family:
    """The family of that name, if it has an epsilon at this delta.

    Raises:
        InvalidParameter: if it has none, or there is no such family.
    """
    if not isinstance(family, str) or family not in FAMILIES:
        raise InvalidParameter(f"family is one of {', '.join(map(repr, FAMILIES))}.")
    if family == "gaussian" and delta == 0:
        raise InvalidParameter(
            "A Gaussian curve has no finite epsilon at delta 0; ask at a delta such as 1e-5."
        )
    return FAMILIES[family]


def _gaussian_falls(mu: float, y: float) -> float:
    return float(special.ndtr(special.ndtri(y) - mu))


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """Balle and Wang 2018, Theorem 8; in logarithms, so that small deltas keep their digits."""
    first = float(special.log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(0.0, second - first))


def _gaussian_epsilon(mu: float, delta: float) -> float:
    return 0.0 if mu == 0 else _largest(lambda epsilon: _gaussian_delta(mu, epsilon) > delta)


def _pure_falls(epsilon: float, y: float) -> float:
    return max(math.exp(-epsilon) * y, 1 - math.exp(min(epsilon, _LARGEST)) * (1 - y), 0.0)


def _pure_epsilon(epsilon: float, delta: float) -> float:
    """Randomized response at delta: (e^epsilon - e^x)/(1 + e^epsilon) = delta."""
    return max(0.0, epsilon + math.log(max(1 - delta * (1 + math.exp(-epsilon)), math.exp(-_LARGEST))))


def _laplace_falls(epsilon: float, y: float) -> float:
    """The distribution function of a Laplace variable, moved by epsilon scales, of its quantile at y."""
    if y <= 0 or y >= 1:
        return max(0.0, min(1.0, y))
    quantile = math.log(2 * y) if y <= 0.5 else -math.log(2 * (1 - y))
    moved = quantile - epsilon
    return math.exp(moved) / 2 if moved <= 0 else 1 - math.exp(-moved) / 2


def _laplace_epsilon(epsilon: float, delta: float) -> float:
    """1 - e^((x - epsilon)/2) = delta."""
    return max(0.0, epsilon + 2 * math.log1p(-delta))


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "gaussian",
            _gaussian_falls,
            _gaussian_epsilon,
            "at least as private as some Gaussian mechanism (its trade-off curve lies above that one)",
        ),
        Family(
            "laplace",
            _laplace_falls,
            _laplace_epsilon,
            "at least as private as some Laplace mechanism (its trade-off curve lies above that one)",
        ),
        Family("pure", _pure_falls, _pure_epsilon, "epsilon-private with delta 0 for some epsilon"),
    )
}
"""The families that `one_run_fdp` knows, by name."""
