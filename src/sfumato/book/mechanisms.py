"""Chapters 3 to 6 and 8 of the textbook: noise on numbers and vectors, and what many releases cost.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). All originals draw
floats from NumPy's Mersenne Twister: whoever sees 624 words of it knows the rest, and the low bits of a float
tell the value it was added to (Mironov 2012). Here noise is drawn exactly, from a cryptographic generator.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.accounting import optimal
from sfumato.book._data import Floats, floats_of, many
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.numeric.exact import Rational, as_integer, decimal_up, positive

__all__ = [
    "adv_comp",
    "avg_attack",
    "gaussian_mech",
    "gaussian_mech_RDP_vec",
    "gaussian_mech_vec",
    "gaussian_mech_zCDP_vec",
    "laplace_mech",
    "laplace_mech_vec",
    "pct_error",
    "renyi_rho",
    "seq_comp",
]

_MOST_ANSWERS = 10**7  # to average, held in memory together


def laplace_mech(v: float, sensitivity: Rational, epsilon: Rational) -> float:
    """One number with Laplace noise of scale sensitivity/epsilon.

    Trap of the original: handed a column, it adds *one* draw to all of it, so that the differences between
    its entries are told exactly; here a column is refused. And it is only as private as `sensitivity` is
    true: a sum or a mean has none until its values are clamped to bounds that are not read off the data.

    Privacy:
        Total: epsilon (pure), for a value that moves by at most `sensitivity` between neighbours; see
        `sfumato.mechanisms.Laplace`.

    Raises:
        InvalidParameter: if epsilon or the sensitivity is not a positive finite number.
        InvalidValue: if the value is not one finite number.
    """
    return Laplace(epsilon, sensitivity).release(_one(v))


def laplace_mech_vec(vec: ArrayLike, sensitivity: Rational, epsilon: Rational) -> Floats:
    """Every number of a vector with Laplace noise of its own.

    Traps of the original: `sensitivity` is of the *whole vector* in L1, the sum of what all its entries move.
    With that of one entry, k entries cost k·epsilon. And a vector of answers is meant, not a column of the
    table: that has an entry a person, which moves by the whole range of its values.

    Privacy:
        Total: epsilon (pure), for vectors that move by at most `sensitivity` in L1 between neighbours.

    Raises:
        InvalidParameter: if epsilon or the sensitivity is not a positive finite number.
        InvalidValue: if the vector holds anything but finite numbers.
    """
    return Laplace(epsilon, sensitivity).release(_vector(vec))


def gaussian_mech(v: float, sensitivity: Rational, epsilon: Rational, delta: Rational) -> float:
    """One number with the least Gaussian noise that is (epsilon, delta)-private.

    Traps of the original: σ = √(2·ln(1.25/δ))·Δ/ε is proven for ε < 1 alone and falls short of its promise
    for large ones (`sfumato.accounting.gaussian_classic`); here σ inverts the exact curve, for every ε, and
    is smaller where the formula holds. The chapter writes `delta = 10e-5` for 10⁻⁵, but that is 10⁻⁴. And
    δ = 1/n² takes the number of rows from the private data: choose a public one.

    Privacy:
        Total: (epsilon, delta), for a value that moves by at most `sensitivity` between neighbours; see
        `sfumato.mechanisms.Gaussian`.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the value is not one finite number.
    """
    return Gaussian(epsilon, delta, sensitivity=sensitivity).release(_one(v))


def gaussian_mech_vec(vec: ArrayLike, sensitivity: Rational, epsilon: Rational, delta: Rational) -> Floats:
    """Every number of a vector with Gaussian noise of its own, (epsilon, delta)-private in all.

    Traps of the original: those of `gaussian_mech`. `sensitivity` is of the whole vector, in L2: the root of
    the sum of squares of what all entries move.

    Privacy:
        Total: (epsilon, delta), for vectors that move by at most `sensitivity` in L2 between neighbours.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the vector holds anything but finite numbers.
    """
    return Gaussian(epsilon, delta, sensitivity=sensitivity).release(_vector(vec))


def gaussian_mech_RDP_vec(  # noqa: N802 - the textbook's name
    vec: ArrayLike, sensitivity: Rational, alpha: Rational, epsilon_bar: Rational
) -> Floats:
    """Every number of a vector with Gaussian noise of its own, (alpha, epsilon_bar)-Rényi private in all.

    Trap of the original: the noise has a whole Rényi curve, ε̄(α') = α'·epsilon_bar/alpha at every order, and
    the chapter converts at the one order that was asked for. The order that is best for a given δ is hardly
    ever that one, and the exact curve of Gaussian noise beats them all: `price(…).epsilon(delta)`.

    Privacy:
        Total: ρ = epsilon_bar/alpha in zCDP, with the exact curve of Gaussian noise; in particular
        (alpha, epsilon_bar)-RDP. Source: Mironov 2017, Cor. 3. For vectors that move by at most
        `sensitivity` in L2.

    Raises:
        InvalidParameter: if a parameter is out of range; an order must exceed 1.
        InvalidValue: if the vector holds anything but finite numbers.
    """
    return gaussian_mech_zCDP_vec(vec, sensitivity, renyi_rho(alpha, epsilon_bar))


def gaussian_mech_zCDP_vec(vec: ArrayLike, sensitivity: Rational, rho: Rational) -> Floats:  # noqa: N802
    """Every number of a vector with Gaussian noise of its own, rho-zero-concentrated private in all.

    Trap of the original: a loop that draws floats one by one; and the chapter turns ρ into
    ε = ρ + 2√(ρ·ln(1/δ)), which is more than Gaussian noise costs: `price(…).epsilon(delta)` is exact.

    Privacy:
        Total: rho (zCDP), with the exact curve of Gaussian noise. Source: Bun, Steinke 2016, Prop. 1.6. For
        vectors that move by at most `sensitivity` in L2.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the vector holds anything but finite numbers.
    """
    return Gaussian(rho=rho, sensitivity=sensitivity).release(_vector(vec))


def renyi_rho(alpha: Rational, epsilon_bar: Rational) -> Fraction:
    """The ρ of Gaussian noise that is (alpha, epsilon_bar)-Rényi private.

    Raises:
        InvalidParameter: if a parameter is out of range; an order must exceed 1.
    """
    order = positive(alpha, "alpha")
    if order <= 1:
        raise InvalidParameter("alpha must exceed 1: Rényi privacy has no order below.")
    return positive(epsilon_bar, "epsilon_bar") / order


def seq_comp(k: int, epsilon: Rational) -> float:
    """What k releases of epsilon each cost together by adding up, rounded up.

    Privacy:
        A figure, not a release: kε. Source: Dwork, McSherry, Nissim, Smith 2006.

    Raises:
        InvalidParameter: if k is not a positive whole number or epsilon not positive.
    """
    return decimal_up(as_integer(k, "k") * positive(epsilon, "epsilon"))


def adv_comp(k: int, epsilon: Rational, delta: Rational) -> float:
    """The least epsilon that k releases of (pure) epsilon each have together at this delta, rounded up.

    Traps of the original: `2ε√(2k·ln(1/δ))` leaves out the term kε(e^ε − 1) of the theorem that it quotes,
    and promises too much: 858 for k = 10⁴ and ε = 1, where nothing below 4947 is true. The chapter also
    calls 966 "much lower" than the 500 of k = 500 releases added up. The theorem has since been replaced by
    an exact one, which is never above the sum.

    Privacy:
        A figure, not a release. Exact for releases that are ε-DP and nothing more is known. Source: Kairouz,
        Oh, Viswanath 2015, Thm. 3.3. Condition: epsilon is fixed in advance.

    Raises:
        InvalidParameter: if a parameter is out of range.
    """
    return min(optimal(epsilon, as_integer(k, "k"), delta), seq_comp(k, epsilon=epsilon))


def avg_attack(query: float, epsilon: Rational, k: int) -> float:
    """The average of k noisy answers to one question that moves by at most 1: for a contrast, not for use.

    Trap of the original: every answer is paid for with epsilon, so that 500 of them at epsilon 1 cost 500,
    and it reads as if the noise had been averaged away for 1. Here epsilon is the price of the whole, a share
    of 1/k for each answer, and the average is √k times as far off as one answer for all of it would be.

    Args:
        query: The true answer; neighbours move it by at most 1.
        epsilon: The price of the whole, by basic composition.
        k: How often it is asked.

    Privacy:
        Total: epsilon (pure): k answers that move by 1 each are a vector that moves by k in L1.

    Raises:
        InvalidParameter: if epsilon is not a positive finite number, or k not a whole number up to 10⁷.
        InvalidValue: if the answer is not one finite number.
    """
    times = as_integer(k, "k")
    if times > _MOST_ANSWERS:
        raise InvalidParameter("k must be at most ten million answers; √k tells what more of them would do.")
    return float(np.mean(Laplace(epsilon, times).release(np.full(times, _one(query)))))


def pct_error(orig: ArrayLike, priv: ArrayLike) -> Any:
    """By how many percent private answers are off: a number, or an array for arrays.

    Trap of the original: the true answer is in it, so that whoever has the private answer and its error has
    the truth. It is for the steward; an analyst gets the `error(confidence)` of a mechanism, which is public.
    It also comes out negative for a negative truth.

    Privacy:
        None: an exact function of the true answer.

    Raises:
        InvalidValue: if a true answer is 0, or not a finite number.
    """
    true, answer = floats_of(orig, "orig"), floats_of(priv, "priv")
    if not np.isfinite(true).all() or not true.all():
        raise InvalidValue("A percentage needs true answers that are finite and not 0.")
    off = np.abs(true - answer) / np.abs(true) * 100.0
    return off if off.ndim else float(off)


def _one(value: Any) -> float:
    if many(value) or np.ndim(value):
        raise InvalidValue(
            "This is noise for one number: aggregate a column first (count it, or clip and sum it), then add "
            "noise; a vector of answers goes to the function that ends in _vec, with the sensitivity of the "
            "whole vector (L1 for Laplace noise, L2 for Gaussian), not of one entry."
        )
    number: float = value
    return number


def _vector(values: Any) -> ArrayLike:
    if not many(values):
        raise InvalidValue("Give a vector of numbers; take the function without _vec for one number.")
    vector: ArrayLike = values
    return vector
