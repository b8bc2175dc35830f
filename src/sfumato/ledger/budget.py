"""`Budget`: how much may be spent, and by which proven gate that is held."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.accounting import (
    BasicFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    RenyiFilter,
    gaussian_sigma,
)
from sfumato.errors import InvalidParameter, LedgerUnusable
from sfumato.loss import ConcentratedLoss, GaussianLoss, RenyiLoss
from sfumato.numeric.exact import Rational, as_fraction, delta_of, float_up, positive, read_fraction
from sfumato.schema.unit import window_of
from sfumato.schema.windows import Each, span_of

__all__ = ["Accountant", "Budget", "amount"]

Accountant: TypeAlias = Literal["basic", "zcdp", "gaussian", "rdp"]
Totals: TypeAlias = tuple[Fraction, ...]

_ZERO = Fraction(0)
_LIMITS_EACH = "limits_each"
_DIGITS = Context(prec=12, rounding=ROUND_DOWN)  # of a limit that was searched for: short to read and to add


@dataclass(frozen=True, slots=True)
class _Gate:
    """How one accountant turns (ε, δ) into exact limits, and sums back into an ε."""

    units: tuple[str, ...]
    limits: Callable[[Fraction, Fraction, Fraction | None, Fraction], tuple[Totals, Fraction | None]]
    filter: Callable[[Totals, Fraction | None], Filter]
    spent: Callable[[Any], Totals]  # what a filter keeps, as a tuple
    shape: Callable[[Totals], Any]  # and back
    epsilon: Callable[[Totals, Fraction, Fraction | None], float]


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """An (ε, δ) that a dataset or an analyst may spend, held by one accountant for good.

    Args:
        epsilon: ε in all.
        delta: δ in all; every accountant but "basic" needs one above 0.
        accountant: "basic" adds up ε and δ; "zcdp" adds up ρ; "gaussian" adds up μ², for Gaussian noise
            alone; "rdp" adds up the Rényi divergence of one order.
        order: the order of "rdp"; left out, the one that leaves Gaussian noise the most room.
        aside: for "zcdp", the part of δ kept for losses that hold only up to a δ of their own; 0 unless
            given, so that such losses are refused and all of δ goes into ρ.
        each: "day", "week", "month", "quarter", "year" or a number of days: then so much may be spent in each
            such window of time, and every window has a budget of its own. Only for a dataset whose units are
            windows of that length: `PrivacyUnit("patient", window="month")`. None: (ε, δ) is for all time.

    Attributes:
        limits: what the gate compares with, exact: (ε, δ), (ρ, δ aside), (μ²/2,) or (divergence,). Computed
            once, rounded down and stored with the budget, so that a later version gates it alike.

    Privacy:
        Claim: whatever is asked in answer to earlier answers, all that a budget admits is (ε, δ)-DP together.
        Source: each accountant is the fully adaptive filter of `sfumato.accounting` of that name, and its
        limits imply (ε, δ) by that filter's own `epsilon`, which is rounded up. With `each`, that is the
        claim for a unit, which is a person in one window: a debit is charged in each window whose rows it may
        read, and reads no row of another (docs/proofs/windows.md). A person in n windows may lose n times ε.
    """

    epsilon: Fraction
    delta: Fraction
    accountant: Accountant
    order: Fraction | None
    aside: Fraction
    limits: Totals = field(compare=False)
    each: Each | None

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational = 0,
        accountant: Accountant = "basic",
        *,
        order: Rational | None = None,
        aside: Rational = 0,
        each: Each | None = None,
    ) -> None:
        if accountant not in _GATES:
            raise InvalidParameter(
                f"accountant must be one of {', '.join(_GATES)}, not {str(accountant)[:40]!r}."
            )
        e, d, a = positive(epsilon, "epsilon"), delta_of(delta), delta_of(aside, "aside")
        if order is not None and accountant != "rdp":
            raise InvalidParameter("order belongs to the accountant 'rdp' alone.")
        if a and accountant != "zcdp":
            raise InvalidParameter("aside belongs to the accountant 'zcdp' alone.")
        if accountant != "basic" and not a < d:
            raise InvalidParameter(
                f"The accountant {accountant!r} needs a delta above {'aside' if a else '0'}: "
                "give one, such as 1e-6, or use 'basic'."
            )
        limits, chosen = _GATES[accountant].limits(
            e, d, None if order is None else as_fraction(order, "order"), a
        )
        self._set(e, d, accountant, chosen, a, limits, window_of(each, "each"))

    def _set(self, *values: object) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def units(self) -> tuple[str, ...]:
        """The names of what the gate adds up."""
        return _GATES[self.accountant].units

    @property
    def hundredth(self) -> Fraction:
        """A hundredth of delta: at which the ε of Gaussian noise is told where no delta is named."""
        return self.delta / 100

    def filter(self, spent: Totals | None = None, adjacency: Any = None) -> Filter:
        """The gate itself, with nothing spent or with these sums."""
        gate = _GATES[self.accountant]
        fresh = gate.filter(self.limits, self.order)
        return fresh if spent is None else fresh.resumed(gate.shape(spent), adjacency)

    def totals(self, spent: Any) -> Totals:
        """What a filter of this budget keeps or charges, as a tuple that goes with `units`."""
        return _GATES[self.accountant].spent(spent)

    def spent_epsilon(self, spent: Totals) -> Fraction | float:
        """The ε at the budget's δ that these sums amount to: exact under basic, rounded up otherwise."""
        if self.accountant == "basic" or not any(spent):
            return spent[0] if self.accountant == "basic" else 0.0
        epsilon = _GATES[self.accountant].epsilon(spent, self.delta, self.order)
        within = all(sum_ <= limit for sum_, limit in zip(spent, self.limits, strict=True))
        return min(epsilon, float_up(self.epsilon)) if within else epsilon

    def at_order_of(self, other: Budget) -> Budget:
        """The same budget at the order that another has committed to."""
        if self.accountant != "rdp" or other.accountant != "rdp" or self.order == other.order:
            return self
        return Budget(self.epsilon, self.delta, "rdp", order=other.order, each=self.each)

    @property
    def span(self) -> str:
        """For how long it is, in words: `each month`, `each 30 days`; empty for all time."""
        return "" if self.each is None else f"each {span_of(self.each)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back, limits included."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "accountant": self.accountant,
            "order": None if self.order is None else str(self.order),
            "aside": str(self.aside),
            # A version that knows no windows does not find the limits, and refuses the ledger.
            "limits" if self.each is None else _LIMITS_EACH: [str(limit) for limit in self.limits],
        } | ({} if self.each is None else {"each": self.each})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Budget:
        """The budget that `to_dict` wrote, with the limits it was opened with."""
        try:
            accountant, order, each = data["accountant"], data["order"], data.get("each")
            limits = data["limits" if each is None else _LIMITS_EACH]
            budget = cls.__new__(cls)
            budget._set(
                read_fraction(data["epsilon"]),
                read_fraction(data["delta"]),
                accountant,
                None if order is None else read_fraction(order),
                read_fraction(data["aside"]),
                tuple(read_fraction(limit) for limit in limits),
                window_of(each, "each"),
            )
            if len(budget.limits) != len(_GATES[accountant].units):
                raise ValueError
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise LedgerUnusable(
                "A stored budget cannot be understood: upgrade Sfumato, or restore the ledger."
            ) from None
        return budget

    def __str__(self) -> str:
        """Such as `epsilon 2, delta 1e-06 (basic)`."""
        of = f" of order {amount(self.order)}" if self.order is not None else ""
        span = f" for {self.span}" if self.each is not None else ""
        return f"epsilon {amount(self.epsilon)}, delta {amount(self.delta)} ({self.accountant}{of}){span}"


def amount(value: Fraction | float) -> str:
    """A number for people: up to twelve digits, so that two which differ rarely look alike."""
    try:
        return f"{float(value):.12g}"
    except OverflowError:
        return "more than 1e308"


# ── the four gates


def _basic(
    epsilon: Fraction, delta: Fraction, order: Fraction | None, aside: Fraction
) -> tuple[Totals, Fraction | None]:
    del order, aside
    return (epsilon, delta), None


def _zcdp(
    epsilon: Fraction, delta: Fraction, order: Fraction | None, aside: Fraction
) -> tuple[Totals, Fraction | None]:
    del order
    return (_largest(lambda rho: ConcentratedLoss(rho, aside).epsilon(delta), epsilon), aside), None


def _gaussian(
    epsilon: Fraction, delta: Fraction, order: Fraction | None, aside: Fraction
) -> tuple[Totals, Fraction | None]:
    del order, aside
    sigma = gaussian_sigma(epsilon, delta)
    return (1 / (2 * sigma * sigma),), None


def _rdp(
    epsilon: Fraction, delta: Fraction, order: Fraction | None, aside: Fraction
) -> tuple[Totals, Fraction | None]:
    del aside
    chosen = _best_order(epsilon, delta) if order is None else order
    if chosen <= 1:
        raise InvalidParameter("order must be above 1.")
    return (_largest(lambda bound: RenyiLoss([chosen], [bound]).epsilon(delta), epsilon),), chosen


def _largest(epsilon_of: Callable[[Fraction], float], epsilon: Fraction) -> Fraction:
    """The largest short decimal whose ε, rounded up, is within the budget's."""

    def holds(exponent: float) -> Fraction | None:
        limit = Fraction(_DIGITS.create_decimal(Decimal(10.0**exponent)))
        implied = epsilon_of(limit)
        return limit if implied < math.inf and Fraction(implied) <= epsilon else None

    high = math.log10(float_up(epsilon)) + 0.01  # no sum is worth more than the ε it implies
    low = high - 1
    while (best := holds(low)) is None:
        low, high = low - 4, low
        if low < -290:
            raise InvalidParameter(
                "epsilon is too small for this accountant and delta: no loss would ever fit. "
                "Raise it, raise delta, or use 'basic'."
            )
    while high - low > 1e-13:
        middle = (low + high) / 2
        if (fitting := holds(middle)) is None:
            high = middle
        else:
            low, best = middle, fitting
    return best


def _best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order at which Gaussian noise, whose divergence is αρ, is left the most ρ. Never to change."""
    e, log_delta = float(epsilon), math.log(float_up(delta))

    def room(order: float) -> float:
        # Canonne, Kamath, Steinke 2020, Prop. 12.
        spare = math.log1p(-1 / order) - (log_delta + math.log(order)) / (order - 1)
        return (e - spare) / order

    fine = [Fraction(n, 16) for n in range(17, 256)]
    coarse = [Fraction(round(16 * 1.02**k)) for k in range(900)]
    return max((*fine, *coarse), key=lambda order: room(float(order)))


_GATES: dict[str, _Gate] = {
    "basic": _Gate(
        units=("epsilon", "delta"),
        limits=_basic,
        filter=lambda limits, _order: BasicFilter(*limits),
        spent=tuple,
        shape=tuple,
        epsilon=lambda spent, _delta, _order: float_up(spent[0]),
    ),
    "zcdp": _Gate(
        units=("rho", "delta"),
        limits=_zcdp,
        filter=lambda limits, _order: ConcentratedFilter(*limits),
        spent=tuple,
        shape=tuple,
        epsilon=lambda spent, delta, _order: ConcentratedLoss(spent[0], spent[1]).epsilon(delta),
    ),
    "gaussian": _Gate(
        units=("rho",),
        limits=_gaussian,
        filter=lambda limits, _order: GaussianFilter(limits[0]),
        spent=lambda spent: (spent,),
        shape=lambda totals: totals[0],
        epsilon=lambda spent, delta, _order: GaussianLoss(spent[0]).epsilon(delta),
    ),
    "rdp": _Gate(
        units=("divergence",),
        limits=_rdp,
        filter=lambda limits, order: RenyiFilter(order or _ZERO, limits[0]),
        spent=lambda spent: (spent,),
        shape=lambda totals: totals[0],
        epsilon=lambda spent, delta, order: RenyiLoss([order or _ZERO], [spent[0]]).epsilon(delta),
    ),
}
