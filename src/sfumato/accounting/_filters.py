"""Filters: budgets whose sums are proven when every loss is chosen by earlier answers.

A filter is a frozen value with exact sums. `after(loss)` is the filter once the loss is admitted; a loss that
does not fit raises `BudgetExceeded` and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, Self

from sfumato.errors import BudgetExceeded, InvalidParameter, UnsupportedLoss
from sfumato.loss import ComposedLoss, ConcentratedLoss, GaussianLoss, PrivacyLoss, RenyiLoss
from sfumato.numeric.exact import Rational, decimal_up, delta_of, positive, show

__all__ = ["BasicFilter", "ConcentratedFilter", "Filter", "GaussianFilter", "RenyiFilter"]

_ZERO = Fraction(0)


class Filter(Protocol):
    """What every filter offers."""

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted; raises `BudgetExceeded` if it does not fit."""
        ...

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether this loss still fits."""
        ...

    def epsilon(self, delta: Rational) -> float:
        """The ε at this δ that the whole budget guarantees, whatever is asked; rounded up."""
        ...


class _Admits:
    __slots__ = ()

    def after(self, loss: PrivacyLoss) -> Self:
        raise NotImplementedError

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether this loss still fits."""
        try:
            self.after(loss)
        except BudgetExceeded:
            return False
        return True


def _check(unit: str, total: Fraction, limit: Fraction) -> None:
    if total > limit:
        raise BudgetExceeded(
            f"The total {unit} would be {show(total)}, above the budget of {show(limit)}; nothing was spent."
        )


@dataclass(frozen=True, slots=True)
class BasicFilter(_Admits):
    """A budget of ε and δ that add up exactly: ten times 0.1 is 1.

    Privacy:
        Claim: whatever losses are chosen by earlier answers, while both sums stay within the budget the whole
        interaction is (ε, δ)-DP. Source: Rogers, Roth, Ullman, Vadhan 2016, the filter by basic
        composition. Condition: a loss is priced once, when it is admitted.
    """

    budget_epsilon: Fraction
    budget_delta: Fraction = _ZERO
    spent_epsilon: Fraction = _ZERO
    spent_delta: Fraction = _ZERO

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget_epsilon", positive(self.budget_epsilon, "epsilon"))
        object.__setattr__(self, "budget_delta", delta_of(self.budget_delta))

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """(ε, δ) so far."""
        return self.spent_epsilon, self.spent_delta

    @property
    def remaining(self) -> tuple[Fraction, Fraction]:
        """(ε, δ) left."""
        return self.budget_epsilon - self.spent_epsilon, self.budget_delta - self.spent_delta

    def after(self, loss: PrivacyLoss, delta: Rational | None = None) -> Self:
        """The filter with this loss admitted, priced at its own point or at its ε for a given `delta`."""
        if delta is None:
            point = loss.approximate
        else:
            exact = delta_of(delta)
            found = loss.epsilon(exact)
            point = (Fraction(found), exact) if found < float("inf") else None
        if point is None:
            raise UnsupportedLoss(
                f"{type(loss).__name__} has no exact (ε, δ) point to add up: calibrate it, or give a delta."
            )
        epsilon, total = self.spent_epsilon + point[0], self.spent_delta + point[1]
        _check("epsilon", epsilon, self.budget_epsilon)
        _check("delta", total, self.budget_delta)
        return replace(self, spent_epsilon=epsilon, spent_delta=total)

    def epsilon(self, delta: Rational) -> float:
        """The budget's ε for any δ from the budget's on; infinity below."""
        return float("inf") if delta_of(delta) < self.budget_delta else decimal_up(self.budget_epsilon)


@dataclass(frozen=True, slots=True)
class ConcentratedFilter(_Admits):
    """A budget of ρ, and of δ set aside by approximate losses.

    Privacy:
        Claim: while Σρ and Σδ stay within the budget, the whole interaction is δ-approximately ρ-zCDP,
        whatever is chosen by earlier answers. Source: Whitehouse, Ramdas, Rogers, Wu 2023; for δ = 0
        Feldman, Zrnic 2021.
    """

    budget_rho: Fraction
    budget_delta: Fraction = _ZERO
    spent_rho: Fraction = _ZERO
    spent_delta: Fraction = _ZERO

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget_rho", positive(self.budget_rho, "rho"))
        object.__setattr__(self, "budget_delta", delta_of(self.budget_delta))

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """(ρ, δ) so far."""
        return self.spent_rho, self.spent_delta

    @property
    def remaining(self) -> tuple[Fraction, Fraction]:
        """(ρ, δ) left."""
        return self.budget_rho - self.spent_rho, self.budget_delta - self.spent_delta

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted, priced at its ρ and the δ it sets aside."""
        known = loss.concentrated
        if known is None:
            raise UnsupportedLoss(f"{type(loss).__name__} has no ρ, so a zCDP budget cannot admit it.")
        rho, total = self.spent_rho + known[0], self.spent_delta + known[1]
        _check("rho", rho, self.budget_rho)
        _check("delta", total, self.budget_delta)
        return replace(self, spent_rho=rho, spent_delta=total)

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return ConcentratedLoss(self.budget_rho, self.budget_delta).epsilon(delta)


@dataclass(frozen=True, slots=True)
class GaussianFilter(_Admits):
    """A budget of Σμ², kept exactly as Σρ with ρ = μ²/2, for losses that have a μ.

    Privacy:
        Claim: while Σμ² stays within the budget, the whole interaction is μ-GDP, whatever is chosen by
        earlier answers.
        Source: Koskela, Tobaben, Honkela 2022; Smith, Thakurta 2022. Condition: a loss
        without a μ (a *discrete* Gaussian, a sampled one) is refused: its ρ is no μ.
    """

    budget_rho: Fraction
    spent_rho: Fraction = _ZERO

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget_rho", positive(self.budget_rho, "rho"))

    @property
    def spent(self) -> Fraction:
        """Σμ²/2 so far."""
        return self.spent_rho

    @property
    def remaining(self) -> Fraction:
        """Σμ²/2 left."""
        return self.budget_rho - self.spent_rho

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted."""
        if loss.pure == 0:
            return self
        if loss.mu is None or (rho := loss.rho) is None:
            raise UnsupportedLoss(f"{type(loss).__name__} has no μ, so a Gaussian budget cannot admit it.")
        _check("squared mu, halved,", self.spent_rho + rho, self.budget_rho)
        return replace(self, spent_rho=self.spent_rho + rho)

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return GaussianLoss(self.budget_rho).epsilon(delta)


@dataclass(frozen=True, slots=True)
class RenyiFilter(_Admits):
    """A budget of Rényi divergence at one order, committed to before the first answer.

    Privacy:
        Claim: while the divergences at that order sum to no more than the budget, so does that of the whole
        interaction, whatever is chosen by earlier answers. Source: Feldman, Zrnic 2021. Condition:
        one order; choosing the best afterwards is not covered. Each divergence is an exact number not below
        the true one.
    """

    order: Fraction
    budget: Fraction
    spent: Fraction = _ZERO

    def __post_init__(self) -> None:
        order = positive(self.order, "order")
        if order <= 1:
            raise InvalidParameter("The order of a Rényi budget must be above 1.")
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "budget", positive(self.budget, "budget"))

    @property
    def remaining(self) -> Fraction:
        """Divergence left."""
        return self.budget - self.spent

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted, priced at its divergence."""
        total = self.spent + self.price(loss)
        _check(f"Rényi divergence of order {show(self.order)}", total, self.budget)
        return replace(self, spent=total)

    def price(self, loss: PrivacyLoss) -> Fraction:
        """The divergence of a loss at this order: exact where it is αρ, else a float rounded up."""
        if isinstance(loss, ComposedLoss):
            return sum((self.price(part) * count for part, count in loss.parts), _ZERO)
        rho = loss.rho
        linear = None if rho is None else rho * self.order
        if linear is not None and loss.pure is None and loss.mu is not None:
            return linear
        found = loss.rdp(self.order)
        if found == float("inf"):
            raise UnsupportedLoss(
                f"{type(loss).__name__} has no Rényi divergence at order {show(self.order)}."
            )
        return Fraction(found) if linear is None else min(linear, Fraction(found))

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return RenyiLoss([self.order], [self.budget]).epsilon(delta)
