"""`Total`: an exact sum with what one unit can move it; `Meter`: noise and choices, out of what was paid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting import selection_epsilon
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.searching import Sought, gate_of, lone_loss, threshold
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.mechanisms import Exponential, Gaussian
from sfumato.numeric.exact import Rational, positive

__all__ = ["Meter", "Total", "price"]

Floats: TypeAlias = NDArray[np.float64]

_LEAST = Fraction(1, 2**40)  # a thousandth of it still pays for the rounding of 2**28 numbers


class Total(NamedTuple):
    """Exact sums over all units, in whole multiples of a unit of length.

    Attributes:
        values: The integers, of 64 bits or Python's; private.
        sensitivity: The most that adding or removing one unit moves them, in L2 over all of them, as such
            multiples; public and proven where the sum is made.
        step: What one of the multiples is: a power of two.
    """

    values: NDArray[Any]
    sensitivity: Fraction
    step: Fraction


def price(epsilon: Rational, delta: Rational) -> GaussianLoss:
    """The loss of a whole fit: that of one Gaussian release, which all its measurements add up to.

    Raises:
        InvalidParameter: if epsilon is not above 0, or both are so small that a share buys no noise that can
            be drawn, or delta is not between 0 and 1.
    """
    paid = Gaussian(epsilon, delta, sensitivity=1).loss
    if paid.rho < _LEAST:
        raise InvalidParameter("The price is too small for a fit to learn anything: raise epsilon.")
    return paid


class Meter:
    """Gives sums their noise, makes choices and searches, each for a share of what was paid for the fit.

    Attributes:
        rho: Of the whole fit.
        risk: The probability in all with which `shown` may show a value that one unit alone has.

    Privacy:
        Claim: all that `noisy` and `chosen` give, however later sums, scores and shares depend on earlier
        answers, carries the loss of one Gaussian mechanism with this rho. Source: what is μ-GDP composes by
        Σμ², also fully adaptively within a budget (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2022);
        `take` is that filter, asked before each draw. A choice is μ-GDP by docs/proofs/selection.md. What
        `shown` gives carries the loss of `searching.SearchFilter`, where a risk was paid for, too.
        Conditions: a `Total`'s sensitivity, and that of scores, is true for the neighbours that the loss is
        about; where units are exchanged, both move by that of the one that leaves and of the one that
        comes: twice.
    """

    def __init__(
        self,
        rho: Fraction,
        take: Callable[[PrivacyLoss], Any],
        *,
        exchange: bool = False,
        risk: Fraction = Fraction(0),
    ) -> None:
        self.rho, self.risk = rho, risk
        self._take, self._moves = take, 2 if exchange else 1

    @classmethod
    def alone(cls, paid: GaussianLoss, *, exchange: bool = False, risk: Fraction = Fraction(0)) -> Meter:
        """One that no ledger pays for: a filter of its own holds it within the price."""
        gate = [gate_of(paid, risk)]

        def take(loss: PrivacyLoss) -> None:
            gate[0] = gate[0].after(loss)

        return cls(paid.rho, take, exchange=exchange, risk=risk)

    def mechanism(self, sensitivity: Fraction, share: Rational) -> Gaussian:
        """The noise of a sum that a unit moves by so much, for a share of the whole."""
        return Gaussian(rho=self.rho * _part(share), sensitivity=sensitivity * self._moves)

    def sigma(self, sensitivity: Fraction | float, share: Rational) -> float:
        """The standard deviation of that noise, in the same unit as the sensitivity."""
        return float(sensitivity) * self._moves / math.sqrt(2 * self.rho * positive(share, "share"))

    def noisy(self, total: Total, share: Rational) -> Floats:
        """The sums with noise, as lengths.

        Args:
            total: Exact sums.
            share: Which part of what was paid it may cost.

        Raises:
            BudgetExceeded: if the shares add up to more than 1.
        """
        mechanism = self.mechanism(total.sensitivity, share)
        self._take(mechanism.loss)
        whole = total.values.dtype == object
        noisy = mechanism.release_whole(total.values.tolist()) if whole else mechanism.release(total.values)
        return np.asarray(noisy) * float(total.step)

    def selection(self, sensitivity: Rational, share: Rational) -> Exponential:
        """The choice among scores that a unit moves by so much each, for a share of the whole."""
        bound = positive(sensitivity, "sensitivity") * self._moves
        return Exponential(selection_epsilon(self.rho * _part(share)), bound)

    def chosen(
        self, scores: Sequence[int] | NDArray[np.integer[Any]], sensitivity: Rational, share: Rational
    ) -> int:
        """The place of one of several public candidates, better ones more likely: the exponential mechanism.

        Args:
            scores: One for each, whole numbers of any size; private.
            sensitivity: The most that adding or removing one unit moves any one of them.
            share: Which part of what was paid it may cost.

        Raises:
            BudgetExceeded: if the shares add up to more than 1.
            InvalidValue: if scores are not whole numbers, or there are none.
        """
        # Of a list NumPy would make floats or not, as the scores are.
        whole = scores if isinstance(scores, np.ndarray) else np.array(list(scores), object)
        if whole.ndim != 1 or not whole.size or not _are_whole(whole):
            raise InvalidValue("Scores are a flat list of whole numbers, one for each of the candidates.")
        mechanism = self.selection(sensitivity, share)
        self._take(GaussianLoss(self.rho * _part(share)))
        return mechanism.select(whole)

    def shown(self, sought: Sought, share: Rational, risk: Rational) -> dict[str, float]:
        """The values that enough units have, by name, with noisy counts; all others stay hidden.

        Args:
            sought: Private values, and how many units have each.
            share: Which part of what was paid it may cost.
            risk: The probability with which a value that one unit alone has may be shown.

        Raises:
            BudgetExceeded: if the shares or the risks add up to more than was paid.

        Privacy:
            Claim: with `SearchFilter` as the filter, its loss. Noise and threshold are public. Values are
            shown in their own order, which says nothing of rows.
        """
        mechanism = self.mechanism(sought.sensitivity, share)
        self._take(mechanism.loss)
        self._take(lone_loss(risk))
        least = threshold(mechanism, sought.most, risk)
        noisy = np.asarray(mechanism.release(sought.counts)) if len(sought.values) else np.zeros(0)
        above = np.flatnonzero((noisy > least) & (sought.counts > 0))
        return dict(sorted((sought.values[at], float(noisy[at])) for at in above))

    def part(self, share: Rational) -> Meter:
        """A meter for what is left to do: a share of it is so much less of this one."""
        return _Part(self, positive(share, "share"))


class _Part(Meter):
    """A part of a meter; the whole one draws and pays."""

    def __init__(self, whole: Meter, share: Fraction) -> None:
        super().__init__(whole.rho * share, whole._take, exchange=whole._moves == 2, risk=whole.risk)
        self._whole, self._share = whole, share

    def noisy(self, total: Total, share: Rational) -> Floats:
        """The sums with noise, for a share of this part."""
        return self._whole.noisy(total, self._share * positive(share, "share"))

    def chosen(
        self, scores: Sequence[int] | NDArray[np.integer[Any]], sensitivity: Rational, share: Rational
    ) -> int:
        """The place of one of several candidates, for a share of this part."""
        return self._whole.chosen(scores, sensitivity, self._share * positive(share, "share"))

    def shown(self, sought: Sought, share: Rational, risk: Rational) -> dict[str, float]:
        """The values that enough units have, for a share of this part."""
        return self._whole.shown(sought, self._share * positive(share, "share"), risk)


def _part(share: Rational) -> Fraction:
    part = positive(share, "share")
    if part > 1:
        raise InvalidParameter("A share is at most 1.")
    return part


def _are_whole(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "O":
        return values.dtype.kind in "iu"
    return all(type(value) is int for value in values)
