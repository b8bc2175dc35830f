"""A running total: what everything so far costs, after each spend."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.loss import PrivacyLoss, compose
from sfumato.loss.composed import common_adjacency
from sfumato.numeric.exact import Rational, decimal_up, delta_of, float_down
from sfumato.numeric.laws import Term
from sfumato.numeric.running import Running

__all__ = ["Tally"]


class Tally:
    """The total ε at a fixed δ after each of many losses, in constant time a spend.

    It answers too when some losses know only a Rényi bound (a vector of discrete Gaussian noise, a bare ρ).
    The figure is then `tally.loss.epsilon(delta)`, computed again at each call: the smaller of the sum of all
    Rényi curves at its best order, and of basic composition of the losses with a curve and those without.

    Privacy:
        Claim: while every loss has a curve, `epsilon()` is the numerical accountant's figure for the losses
        added so far, certified and rounded up (see `numeric.running`); otherwise see `ComposedLoss`.
        Condition: like that accountant it is for a plan fixed in advance; as a retrospective figure it never
        gates. Budgets are gated by a filter.
    """

    __slots__ = ("_bare", "_delta", "_losses", "_point", "_pure", "_terms", "_ways", "_witness")

    def __init__(self, delta: Rational) -> None:
        self._delta = delta_of(delta)
        if self._delta == 0:
            raise InvalidParameter(
                "A tally needs a delta above 0; at 0 add up the pure bounds with BasicFilter."
            )
        self._ways = [Running(float_down(self._delta))]
        self._terms: list[Term] = []
        self._losses: list[PrivacyLoss] = []
        self._pure: Fraction | None = Fraction(0)
        self._point: tuple[Fraction, Fraction] | None = (Fraction(0), Fraction(0))
        self._bare = False
        # The first loss that states its neighbours: all later ones must agree with it.
        self._witness: tuple[PrivacyLoss, ...] = ()

    def add(self, loss: PrivacyLoss) -> None:
        """Count one more loss."""
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(f"A tally adds up losses, not {type(loss).__name__}; pass mechanism.loss.")
        common_adjacency((*self._witness, loss))
        if not self._witness and loss.adjacency is not None:
            self._witness = (loss,)
        self._losses.append(loss)
        pure, point = loss.pure, loss.approximate
        self._pure = None if pure is None or self._pure is None else self._pure + pure
        self._point = (
            None
            if point is None or self._point is None
            else (self._point[0] + point[0], self._point[1] + point[1])
        )
        directions = loss.directions()
        if directions is None:
            self._bare = True
            return
        if len(directions) > len(self._ways):
            # The first loss with two directions: until now both had the same terms.
            other = Running(float_down(self._delta))
            for term in self._terms:
                other.add(term)
            self._ways.append(other)
        if len(self._ways) == 1:
            self._terms += directions[0]
        for way, running in enumerate(self._ways):
            for term in directions[way % len(directions)]:
                running.add(term)

    def epsilon(self) -> float:
        """The total ε so far, rounded up."""
        if self._bare:
            # A loss without a pair of distributions is among them: no running sum covers it.
            return self.loss.epsilon(self._delta)
        bound = math.inf if self._pure is None else decimal_up(self._pure)
        if self._point is not None and self._point[1] <= self._delta:
            bound = min(bound, decimal_up(self._point[0]))
        if not self._losses or bound == 0:
            return 0.0
        return max(0.0, min(bound, max(running.epsilon().upper for running in self._ways)))

    @property
    def loss(self) -> PrivacyLoss:
        """Everything so far as one loss."""
        return compose(self._losses)

    def __len__(self) -> int:
        """How many losses were added."""
        return len(self._losses)
