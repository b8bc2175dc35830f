"""Which values rows have, where nobody declared them: shown with noise, above a threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.accounting import Filter, GaussianFilter
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.loss import ApproximateLoss, GaussianLoss, PrivacyLoss, compose
from sfumato.mechanisms import Gaussian
from sfumato.numeric.balls import sqrt_up
from sfumato.numeric.exact import Rational, positive, probability

if TYPE_CHECKING:
    from typing import Self

    from sfumato.loss.base import Adjacency

__all__ = ["SearchFilter", "Sought", "gate_of", "lone_loss", "search_price", "threshold"]

_RISK = Fraction(1, 10)  # the part of delta with which a value of one unit alone may be shown


class Sought(NamedTuple):
    """How many units have each of the values that there are; the values are as private as the counts.

    Attributes:
        values: Each once, in an order that says nothing.
        counts: How many units have each; each unit counts once for a value.
        most: How many values one unit has, at most; public and proven where the counts are made.
    """

    values: tuple[str, ...]
    counts: NDArray[Any]
    most: int

    @property
    def sensitivity(self) -> Fraction:
        """The most that adding or removing one unit moves the counts, in L2: √most, rounded up."""
        return Fraction(sqrt_up(Fraction(self.most)))


def threshold(mechanism: Gaussian, most: int, risk: Rational) -> float:
    """What a noisy count must be above for its value to be shown.

    Args:
        mechanism: The noise of the counts.
        most: How many values one unit has, at most.
        risk: The probability with which one of those that it has alone may be shown.

    Privacy:
        Claim: of at most `most` values that one unit each has, none is shown, but for a probability of
        `risk`. Proof: their counts are 1, and the noise of none of `most` is beyond `error`, but for that
        probability; the threshold is one more than that, rounded up.
    """
    beyond = mechanism.error(1 - probability(risk, "risk"), size=most)
    return math.nextafter(1 + beyond, math.inf)


def lone_loss(risk: Rational) -> ApproximateLoss:
    """What it costs that values of one unit alone are shown with a probability of at most `risk`."""
    part = probability(risk, "risk")
    return ApproximateLoss(part / (1 - part), part)


def search_price(epsilon: Rational, delta: Rational) -> tuple[Fraction, Fraction, Fraction]:
    """What is left of a price for noise where values are searched for: its epsilon and delta, and the risk.

    Raises:
        InvalidParameter: if delta is no probability, or too large beside epsilon.
    """
    whole, own = positive(epsilon, "epsilon"), probability(delta, "delta")
    risk = own * _RISK
    rest = whole - lone_loss(risk).point[0]
    if rest <= 0:
        raise InvalidParameter("delta is too large beside epsilon: give a smaller one, such as 1e-9.")
    return rest, own - risk, risk


def gate_of(paid: GaussianLoss, risk: Fraction) -> Filter:
    """The filter of a fit: of its noise alone, or also of the risk that values of one unit are shown."""
    noise = GaussianFilter(paid.rho, point=paid.point)
    return SearchFilter(noise, risk) if risk else noise


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """A budget of Σμ² for noise, and of the risk that values which one unit alone has are shown.

    Attributes:
        noise: The filter of all noise.
        risk: The probability in all with which such a value may be shown.
        taken: How much of it is used up.

    Privacy:
        Claim: while both stay within the budget, the whole interaction carries the loss of Gaussian noise
        with this Σμ², composed with (r/(1 − r), r)-DP where r is the risk, whatever is chosen by earlier
        answers. Proof. Let D and E be neighbours. A value that D has and E has not is one of the differing
        unit alone; call it lone. Let f(D) be what the interaction gives if lone values are never shown. All
        noisy counts that f sees are of values in both D and E, which is fixed with the pair, so f is an
        adaptive composition of Gaussian mechanisms whose Σμ² the noise's filter bounds: D against E it
        carries that Gaussian loss. The noise of lone values is drawn by itself. Given f(D), a lone value is
        above its threshold in one of the searches with a probability of at most Σ risk ≤ r, whatever f(D)
        is: each search claims that for its own, and which searches there are follows from f(D) as long as
        no lone value is shown. So the interaction is a function of f(D) and of a second part, which says
        "nothing" with a probability of at least 1 − r and otherwise all of D. Of that part, two inputs are
        told apart by (r/(1 − r), r) at most: P("nothing") is between 1 − r and 1 for both, the rest has at
        most r, and 1/(1 − r) ≤ e^(r/(1 − r)). The second part's bound holds given f's answers, so that both
        compose.
    """

    adaptive: ClassVar[bool] = True
    noise: GaussianFilter
    risk: Fraction
    taken: Fraction = Fraction(0)

    @property
    def budget(self) -> tuple[Fraction, Fraction]:
        """Σμ²/2 and the risk, in all."""
        return self.noise.budget, self.risk

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """Σμ²/2 and the risk, so far."""
        return self.noise.spent, self.taken

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours that the losses admitted so far hold for."""
        return self.noise.adjacency

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole budget."""
        return compose([self.noise.loss, lone_loss(self.risk)])

    def after(self, loss: PrivacyLoss) -> Self:
        """The filter once noise, or the risk of a search (`lone_loss`), is admitted."""
        risk = self._risk(loss)
        if risk is None:
            return self._with(self.noise.after(loss), self.taken)
        if self.taken + risk > self.risk:
            raise BudgetExceeded("The search risks more than was paid for; nothing was spent.")
        return self._with(self.noise, self.taken + risk)

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether this loss still fits."""
        try:
            self.after(loss)
        except BudgetExceeded:
            return False
        return True

    def price(self, loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
        """What admitting a loss adds to `spent`."""
        risk = self._risk(loss)
        return (self.noise.price(loss), Fraction(0)) if risk is None else (Fraction(0), risk)

    def resumed(self, spent: Any, adjacency: Adjacency | None = None) -> Self:
        """The filter with these exact sums already spent."""
        rho, risk = spent
        return self._with(self.noise.resumed(rho, adjacency), risk)

    def epsilon(self, delta: Rational) -> float:
        """The ε of the whole budget at this δ."""
        return self.loss.epsilon(delta)

    def _with(self, noise: GaussianFilter, taken: Fraction) -> Self:
        return type(self)(noise, self.risk, taken)

    @staticmethod
    def _risk(loss: PrivacyLoss) -> Fraction | None:
        """The risk of a search; None: it is something else, such as noise."""
        point = loss.approximate
        return point[1] if point is not None and point[1] and loss == lone_loss(point[1]) else None
