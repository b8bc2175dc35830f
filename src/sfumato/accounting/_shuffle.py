"""Amplification by shuffling: n local reports in a forgotten order, under exchange with public n."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.numeric.binomial import log_masses, outside
from sfumato.numeric.exact import Rational, as_integer, float_down, float_up, positive, probability
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["shuffled", "shuffled_closed_form", "shuffled_delta", "shuffled_response"]

_TAIL = 2.0**-36
"""Relative error budgeted for a binomial tail of SciPy: 1.5e-11, hundreds of times what the tests find."""

_MOST_USERS = 10**12
"""Beyond this the sums would not fit in memory; more users only ever lower the figure."""

_GROUPS = 4096
"""How many different numbers of clones are told apart: costs a few millionths of ε."""

_CLOSE = 1e-9
"""How close, relatively, the answer is brought to where the profile meets delta."""


def shuffled(epsilon0: Rational, n: int, delta: Rational) -> float:
    """The ε of n shuffled reports, each from an epsilon0-private local randomizer, at a given delta.

    Privacy:
        Exchange adjacency, n public, randomizers fixed in advance. Numerically from the reduction of
        Feldman, McMillan and Talwar (FOCS 2021, "Hiding among the clones"), which holds for
        *every* epsilon0-private randomizer. Write R₀, R₁ for the outputs on the two values of the user who
        changes. By Kairouz, Oh and Viswanath they are mixtures of two laws Q₀, Q₁ with weights e^ε₀ : 1 and
        1 : e^ε₀. Everyone else's output is at least e^-ε₀·(R₀ + R₁)/2 = e^-ε₀·(Q₀ + Q₁)/2, so with
        probability e^-ε₀ it is drawn from Q₀ or Q₁ by a fair coin. How many outputs came from Q₀ and from
        Q₁ decides everything: C ~ Bin(n - 1, e^-ε₀), A ~ Bin(C, ½). The sharper clone probability 2/(e^ε₀ +
        1) of their later work (2023) is used for binary randomized response alone, where it is proved here
        (`shuffled_response`); for all randomizers the safer one is kept. Truncated sums are added to δ; the
        result is rounded up and never above epsilon0, which shuffling cannot worsen.
    """
    return _epsilon(epsilon0, n, delta, _any_clones)


def shuffled_response(epsilon0: Rational, n: int, delta: Rational) -> float:
    """The ε of n shuffled answers of binary randomized response, each epsilon0-private, at a given delta.

    Privacy:
        As `shuffled`, with clone probability 2/(e^ε₀ + 1): an answer is with that probability a fair coin
        and otherwise the truth, which whoever knows the other users' values can subtract (the blanket of
        Balle, Bell, Gascón, Nissim 2019).
    """
    return _epsilon(epsilon0, n, delta, _response_clones)


def shuffled_delta(epsilon0: Rational, n: int, epsilon: Rational) -> float:
    """The δ of n shuffled reports, each from an epsilon0-private local randomizer, at a given epsilon.

    Privacy:
        As `shuffled`: the same curve, read the other way, rounded up.
    """
    local = _local(epsilon0)
    at = float_down(positive(epsilon, "epsilon"))
    return _profile(at, local, _users(n), _any_clones(local))


def shuffled_closed_form(epsilon0: Rational, n: int, delta: Rational) -> float:
    """The closed-form ε of Feldman, McMillan and Talwar: the contrast that `shuffled` improves on.

    Privacy:
        FOCS 2021, Theorem 3.1: log(1 + (e^ε₀ - 1)/(e^ε₀ + 1)·(8√(e^ε₀ log(4/δ)/n) + 8e^ε₀/n)) as long as
        ε₀ ≤ log(n/(16 log(2/δ))); epsilon0 itself otherwise. Rounded up.
    """
    local = float_up(positive(epsilon0, "epsilon0"))
    small = float_down(probability(delta, "delta"))
    users = _users(n)
    if local >= math.log(users / (16.0 * math.log(2.0 / small))) * (1 - 1e-12) - 1e-12:
        return local
    grown = math.exp(local)
    inner = 8.0 * math.sqrt(grown * math.log(4.0 / small) / users) + 8.0 * grown / users
    return min(local, math.log1p(math.tanh(local / 2) * inner) * (1 + 1e-12))


def _any_clones(epsilon0: float) -> float:
    """Log odds of the clone probability e^-ε₀."""
    return -math.log(math.expm1(epsilon0))


def _response_clones(epsilon0: float) -> float:
    """Log odds of the clone probability 2/(e^ε₀ + 1)."""
    return math.log(2.0) - math.log(math.expm1(epsilon0))


def _local(epsilon0: Rational) -> float:
    local = float_up(positive(epsilon0, "epsilon0"))
    if local > 50.0:
        raise InvalidParameter("epsilon0 must be at most 50: beyond that shuffling hides nobody.")
    return local


def _users(n: int) -> int:
    users = as_integer(n, "n")
    if users > _MOST_USERS:
        raise InvalidParameter(f"n must be at most {_MOST_USERS:,}: state a smaller n, which is safe.")
    return users


def _epsilon(epsilon0: Rational, n: int, delta: Rational, clones: Callable[[float], float]) -> float:
    local = _local(epsilon0)
    small = float_down(probability(delta, "delta"))
    users = _users(n)
    odds = clones(local)

    def excess(epsilon: float) -> float:
        """Log of the profile over delta: at most 0 where delta is met."""
        value = _profile(epsilon, local, users, odds)
        return math.log(value / small) if value > 0.0 else -math.inf

    low, high = 0.0, local  # at epsilon0 the local guarantee already gives delta 0
    at_low, at_high = excess(low), -math.inf
    if at_low <= 0.0:
        return 0.0
    for turn in range(100):
        if high - low <= _CLOSE * high:
            break
        guess = 0.5 * (low + high)
        if turn % 3 and math.isfinite(at_high):  # two chords for each halving
            guess = low + (high - low) * at_low / (at_low - at_high) + 0.3 * _CLOSE * high
            guess = min(max(guess, low + 0.1 * _CLOSE * high), high - 0.1 * _CLOSE * high)
        value = excess(guess)
        if value <= 0.0:
            high, at_high = guess, value
        else:
            low, at_low = guess, value
    return high


def _profile(epsilon: float, epsilon0: float, n: int, odds: float) -> float:
    """An upper bound on the hockey-stick divergence of the two pairs of counts; both directions are the same.

    Given C = c and with N = c + 1, the number a of outputs from Q₀ has P(a) - e^ε Q(a) proportional to
    α·a + β·(N - a), α = p - e^ε(1 - p) > 0 > β = (1 - p) - e^ε p, times the mass of Bin(N, ½): positive from
    some a on, so that two binomial tails give the sum.
    """
    if epsilon >= epsilon0:
        return 0.0
    p = 1.0 / (1.0 + math.exp(-epsilon0))
    alpha = -math.expm1(epsilon - epsilon0) * p
    beta = math.exp(-epsilon0) * p * -math.expm1(epsilon + epsilon0)
    if n == 1:
        return alpha * (1 + 8 * LIBRARY)
    clones, mass, missed = _clone_counts(n - 1, odds)
    if len(clones) > _GROUPS:
        # More clones hide no less (whoever sees them can add one more by a coin), so each run of counts is
        # priced at its least.
        starts = np.arange(0, len(clones), -(-len(clones) // _GROUPS))
        clones, mass = clones[starts], np.add.reduceat(mass, starts) * (1 + 64 * U)
    total = clones + 1.0
    first = np.floor(total * (-beta / (alpha - beta))) + 1.0  # the least a that counts
    more, less = _tail(first - 1.0, clones), _tail(first, clones)
    value = alpha * more + beta * less
    # An off-by-one in `first` only drops or adds a term that is 0 up to rounding.
    error = (_TAIL + 16 * LIBRARY) * (alpha * more - beta * less)
    whole = float(np.sum(mass * np.clip(value + error, 0.0, 1.0)))
    return min(1.0, whole * (1 + 128 * U) + missed)


def _tail(least: Floats, count: Floats) -> Floats:
    """P[Bin(count, ½) ≥ least]."""
    from scipy.special import betainc

    inside = np.clip(least, 1.0, np.maximum(count, 1.0))
    value = betainc(inside, np.maximum(count, 1.0) - inside + 1.0, 0.5)
    result: Floats = np.where(least <= 0.0, 1.0, np.where(least > count, 0.0, value))
    return result


def _clone_counts(n: int, odds: float) -> tuple[Floats, Floats, float]:
    """The likely values of Bin(n, 1/(1 + e^-odds)), their masses rounded up, and what the others weigh."""
    mean = n / (1.0 + math.exp(-odds))
    spread = math.sqrt(mean / (1.0 + math.exp(odds)))
    low = max(0, math.floor(mean - 12 * spread) - 60)
    high = min(n, math.ceil(mean + 12 * spread) + 60)
    clones = np.arange(low, high + 1, dtype=np.float64)
    log_mass, error = log_masses(clones, n, odds)
    return clones, np.exp(log_mass + error) * (1 + 2 * LIBRARY), outside(low, high, n, odds)
