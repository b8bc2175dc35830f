"""Filters: budgets whose sums are proven when every loss is chosen by earlier answers.

A filter is a frozen value with exact sums. `after(loss)` is the filter once the loss is admitted; a loss that
does not fit raises `BudgetExceeded` and changes nothing. A filter starts with nothing spent; `after` gives
one with more, and `resumed` one that goes on from sums that were written down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

from sfumato._dataclasses import dataclass
from sfumato.errors import BudgetExceeded, InvalidParameter, UnsupportedLoss
from sfumato.loss import (
    ApproximateLoss,
    ComposedLoss,
    ConcentratedLoss,
    GaussianLoss,
    PrivacyLoss,
    PureLoss,
    RenyiLoss,
)
from sfumato.loss.base import Adjacency
from sfumato.loss.split import exact_of
from sfumato.numeric.exact import Rational, decimal_up, delta_of, positive, show

__all__ = ["BasicFilter", "ConcentratedFilter", "Filter", "GaussianFilter", "RenyiFilter"]

_ZERO = Fraction(0)


class Filter(Protocol):
    """What every filter offers: a gate that holds for losses chosen by earlier answers."""

    adaptive: ClassVar[bool]

    @property
    def budget(self) -> Any:
        """The sums that it admits in all, in the shape of `spent`."""
        ...

    @property
    def spent(self) -> Any:
        """The exact sums so far."""
        ...

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours that the losses admitted so far hold for, if one of them says so."""
        ...

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of all that the whole budget admits together: what to debit for a fit that it gates."""
        ...

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted; raises `BudgetExceeded` if it does not fit."""
        ...

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether this loss still fits."""
        ...

    def price(self, loss: PrivacyLoss) -> Any:
        """What admitting this loss adds to `spent`, in the same shape; exact."""
        ...

    def resumed(self, spent: Any, adjacency: Adjacency | None = None) -> Self:
        """The filter with these exact sums already spent, as an earlier one had them."""
        ...

    def epsilon(self, delta: Rational) -> float:
        """The ε at this δ that the whole budget guarantees, whatever is asked; rounded up."""
        ...


class _Admits(ABC):
    __slots__ = ()
    adaptive: ClassVar[bool] = True
    adjacency: Adjacency | None
    spent: Any

    @abstractmethod
    def after(self, loss: PrivacyLoss) -> Self: ...

    def resumed(self, spent: Any, adjacency: Adjacency | None = None) -> Self:
        """The filter with these exact sums already spent, in the shape of `spent`.

        Privacy:
            Claim: `filter.resumed(earlier.spent, earlier.adjacency)` admits exactly what `earlier` admits,
            where both have the same budget; with a smaller or a larger one, exactly what a filter of that
            budget would after the same losses. Condition: the sums are those of every loss admitted so far.
        """
        if _shape(spent) != _shape(self.spent) or min(_flat(spent)) < 0:
            raise InvalidParameter(
                "The sums to resume a budget from must be exact and look like those it keeps."
            )
        if adjacency not in (None, "add-remove", "exchange"):
            raise InvalidParameter("adjacency must be 'add-remove', 'exchange' or None.")
        later = copy(self)
        _set(later, spent=spent, adjacency=adjacency)
        return later

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether this loss still fits."""
        try:
            self.after(loss)
        except BudgetExceeded:
            return False
        return True

    def _having(self, spent: Any, loss: PrivacyLoss) -> Self:
        own = loss.adjacency
        if own is not None and self.adjacency not in (None, own):
            raise UnsupportedLoss(
                f"This budget has admitted losses for {self.adjacency} neighbours and cannot add one for "
                f"{own} neighbours: restate it, or open another budget."
            )
        later = copy(self)
        _set(later, spent=spent, adjacency=own or self.adjacency)
        return later


def _flat(spent: Any) -> tuple[Any, ...]:
    return spent if isinstance(spent, tuple) else (spent,)


def _shape(spent: Any) -> tuple[bool, tuple[type, ...]]:
    return isinstance(spent, tuple), tuple(type(part) for part in _flat(spent))


def _set(target: object, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(target, name, value)


def _is_loss(loss: object) -> None:
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(f"A filter admits losses, not {type(loss).__name__}; pass mechanism.loss.")


def _check(unit: str, spent: Fraction, price: Fraction, limit: Fraction) -> Fraction:
    total = spent + price
    if total > limit:
        raise BudgetExceeded(
            f"The total {unit} would be {show(total)}, above the budget of {show(limit)}; "
            f"{show(limit - spent)} is left and nothing was spent."
        )
    return total


@dataclass(frozen=True, slots=True, init=False)
class BasicFilter(_Admits):
    """A budget of ε and δ that add up exactly: ten times 0.1 is 1.

    Attributes:
        budget: (ε, δ) in all.
        spent: (ε, δ) so far.
        adjacency: the neighbours that the losses admitted so far hold for, if one of them says so.

    Privacy:
        Claim: whatever losses are chosen by earlier answers, while both sums stay within the budget the whole
        interaction is (ε, δ)-DP. Source: Rogers, Roth, Ullman, Vadhan 2016, the filter by basic
        composition. Condition: a loss is priced once, when it is admitted.
    """

    budget: tuple[Fraction, Fraction]
    spent: tuple[Fraction, Fraction]
    adjacency: Adjacency | None

    def __init__(self, epsilon: Rational, delta: Rational = 0) -> None:
        """Open a budget of this ε and δ, with nothing spent."""
        _set(
            self, budget=(positive(epsilon, "epsilon"), delta_of(delta)), spent=(_ZERO, _ZERO), adjacency=None
        )

    @property
    def remaining(self) -> tuple[Fraction, Fraction]:
        """(ε, δ) left."""
        return self.budget[0] - self.spent[0], self.budget[1] - self.spent[1]

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole budget: (ε, δ), pure where δ is 0."""
        epsilon, delta = self.budget
        return ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)

    def admits(self, loss: PrivacyLoss, delta: Rational | None = None) -> bool:
        """Whether this loss still fits, priced as `after` does."""
        try:
            self.after(loss, delta)
        except BudgetExceeded:
            return False
        return True

    def after(self, loss: PrivacyLoss, delta: Rational | None = None) -> Self:
        """The filter with this loss admitted, priced at its own point or at its ε for a given `delta`."""
        price = self.price(loss, delta)
        epsilon = _check("epsilon", self.spent[0], price[0], self.budget[0])
        return self._having((epsilon, _check("delta", self.spent[1], price[1], self.budget[1])), loss)

    def price(self, loss: PrivacyLoss, delta: Rational | None = None) -> tuple[Fraction, Fraction]:
        """(ε, δ) of a loss: its own point, or its ε for a given `delta`."""
        _is_loss(loss)
        if delta is None:
            point = loss.approximate
        else:
            exact = delta_of(delta)
            epsilon = loss.epsilon(exact)
            point = (exact_of(epsilon), exact) if epsilon < float("inf") else None
        if point is None:
            raise UnsupportedLoss(
                f"{type(loss).__name__} has no exact (ε, δ) point to add up: calibrate it, or give a delta."
            )
        return point

    def epsilon(self, delta: Rational) -> float:
        """The budget's ε for any δ from the budget's on; infinity below."""
        return float("inf") if delta_of(delta) < self.budget[1] else decimal_up(self.budget[0])


@dataclass(frozen=True, slots=True, init=False)
class ConcentratedFilter(_Admits):
    """A budget of ρ, and of δ set aside by approximate losses.

    Attributes:
        budget: (ρ, δ) in all.
        spent: (ρ, δ) so far.
        adjacency: the neighbours that the losses admitted so far hold for, if one of them says so.

    Privacy:
        Claim: while Σρ and Σδ stay within the budget, the whole interaction is δ-approximately ρ-zCDP,
        whatever is chosen by earlier answers. Source: Whitehouse, Ramdas, Rogers, Wu 2023; for δ = 0
        Feldman, Zrnic 2021.
    """

    budget: tuple[Fraction, Fraction]
    spent: tuple[Fraction, Fraction]
    adjacency: Adjacency | None

    def __init__(self, rho: Rational, delta: Rational = 0) -> None:
        """Open a budget of this ρ and δ, with nothing spent."""
        _set(self, budget=(positive(rho, "rho"), delta_of(delta)), spent=(_ZERO, _ZERO), adjacency=None)

    @property
    def remaining(self) -> tuple[Fraction, Fraction]:
        """(ρ, δ) left."""
        return self.budget[0] - self.spent[0], self.budget[1] - self.spent[1]

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole budget: δ-approximate ρ-zCDP."""
        return ConcentratedLoss(*self.budget)

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted, priced at its ρ and the δ it sets aside."""
        price = self.price(loss)
        rho = _check("rho", self.spent[0], price[0], self.budget[0])
        return self._having((rho, _check("delta", self.spent[1], price[1], self.budget[1])), loss)

    def price(self, loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
        """(ρ, δ) of a loss."""
        _is_loss(loss)
        known = loss.concentrated
        if known is None:
            raise UnsupportedLoss(f"{type(loss).__name__} has no ρ, so a zCDP budget cannot admit it.")
        return known

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return self.loss.epsilon(delta)


@dataclass(frozen=True, slots=True, init=False)
class GaussianFilter(_Admits):
    """A budget of Σμ², kept exactly as Σρ with ρ = μ²/2, for losses that have a μ.

    Attributes:
        budget: Σμ²/2 in all.
        spent: Σμ²/2 so far.
        adjacency: the neighbours that the losses admitted so far hold for, if one of them says so.
        point: the exact (ε, δ) that the whole budget was calibrated to, if it was: what it costs under basic
            composition.

    Privacy:
        Claim: while Σμ² stays within the budget, the whole interaction is μ-GDP, whatever is chosen by
        earlier answers.
        Source: Koskela, Tobaben, Honkela 2022; Smith, Thakurta 2022. Condition: a loss
        without a μ (a *discrete* Gaussian, a sampled one) is refused: its ρ is not a μ.
    """

    budget: Fraction
    spent: Fraction
    adjacency: Adjacency | None
    point: tuple[Fraction, Fraction] | None

    def __init__(
        self,
        rho: Rational | None = None,
        *,
        mu: Rational | None = None,
        point: tuple[Fraction, Fraction] | None = None,
    ) -> None:
        """Open a budget of this ρ, or of this μ (which is ρ = μ²/2), with nothing spent."""
        if rho is not None and mu is None:
            budget = positive(rho, "rho")
        elif mu is not None and rho is None:
            budget = positive(mu, "mu") ** 2 / 2
        else:
            raise InvalidParameter("Give a Gaussian budget its rho or its mu, and not both.")
        _set(self, budget=budget, spent=_ZERO, adjacency=None, point=point)

    @property
    def remaining(self) -> Fraction:
        """Σμ²/2 left."""
        return self.budget - self.spent

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole budget: μ-GDP; a point that it does not meet is refused here."""
        return GaussianLoss(self.budget, self.point)

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted."""
        price = self.price(loss)
        if loss.pure == 0:
            return self
        return self._having(_check("rho, half of mu squared,", self.spent, price, self.budget), loss)

    def price(self, loss: PrivacyLoss) -> Fraction:
        """μ²/2 of a loss."""
        _is_loss(loss)
        if loss.pure == 0:
            return _ZERO
        if loss.mu is None or (rho := loss.rho) is None:
            raise UnsupportedLoss(
                f"A budget kept by 'gaussian' admits Gaussian noise alone, and {type(loss).__name__} has no "
                "μ: ask with mechanism='gaussian', or open a budget kept by 'zcdp', which admits more."
            )
        return rho

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return self.loss.epsilon(delta)


@dataclass(frozen=True, slots=True)
class RenyiFilter(_Admits):
    """A budget of Rényi divergence at one order, committed to before the first answer.

    Attributes:
        order: the one order.
        budget: the divergence in all.
        spent: the divergence so far.
        adjacency: the neighbours that the losses admitted so far hold for, if one of them says so.

    Privacy:
        Claim: while the divergences at that order sum to no more than the budget, so does that of the whole
        interaction, whatever is chosen by earlier answers. Source: Feldman, Zrnic 2021. Condition:
        one order; choosing the best afterwards is not covered. Each divergence is an exact number not below
        the true one.
    """

    order: Fraction
    budget: Fraction
    spent: Fraction = field(default=_ZERO, init=False)
    adjacency: Adjacency | None = field(default=None, init=False)

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

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole budget: a bound at the one order."""
        return RenyiLoss([self.order], [self.budget])

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once this loss is admitted, priced at its divergence."""
        unit = f"Rényi divergence of order {show(self.order)}"
        return self._having(_check(unit, self.spent, self.price(loss), self.budget), loss)

    def price(self, loss: PrivacyLoss) -> Fraction:
        """The divergence of a loss at this order: exact where it is αρ, else a float rounded up."""
        _is_loss(loss)
        if isinstance(loss, ComposedLoss):
            return sum((self.price(part) * count for part, count in loss.parts), _ZERO)
        rho = loss.rho
        linear = None if rho is None else rho * self.order
        if linear is not None and loss.pure is None and loss.mu is not None:
            return linear
        cost = loss.rdp(self.order)
        if cost == float("inf"):
            raise UnsupportedLoss(
                f"{type(loss).__name__} has no Rényi divergence at order {show(self.order)}."
            )
        return Fraction(cost) if linear is None else min(linear, Fraction(cost))

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return self.loss.epsilon(delta)
