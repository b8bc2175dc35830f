"""An allocation put on record: limits in a ledger, written and taken back by the steward."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.games.allocation import Allocation, Request, Rule, allocate
from sfumato.ledger import Budget, Ledger, Receipt, Steward
from sfumato.ledger.budget import amount
from sfumato.numeric.exact import Rational, positive

__all__ = ["Grants", "grants"]

_ZERO = Fraction(0)
_GRAIN = Fraction(1, 10**9)  # to which limits are rounded down, to be short to read and to type
_PARTS = 6  # digits of a share that are kept where it is smaller than that


@dataclass(frozen=True, slots=True)
class Grants:
    """What an allocation would write into a ledger. Nothing is written before `write`.

    Attributes:
        dataset: Whose budget is divided.
        allocation: Who gets how much, in `unit`.
        unit: What the budget's gate adds up: epsilon under "basic", else rho or another.
        limits: By team, what it may spend in all, with what it has spent already; None: nothing more.
        promised: What earlier allotments leave to teams that are not asked now; it is not given twice.
    """

    dataset: str
    allocation: Allocation
    unit: str
    limits: Mapping[str, Budget | None]
    promised: Fraction

    def write(self, ledger: Ledger, *, reason: str) -> list[Receipt]:
        """Put the limits on record, all or none: a steward's act. `Steward.take_back` undoes it.

        Raises:
            LedgerMismatch: if so much was spent since that the limits no longer fit.
        """
        return Steward(ledger).allot(self.dataset, self.limits, reason=reason)

    def __str__(self) -> str:
        """What each team may spend, one line each."""
        lines = [
            f"  {team}: {'nothing more' if limit is None else limit}" for team, limit in self.limits.items()
        ]
        return "\n".join((f"Limits on {self.dataset}, not on record before write:", *lines))


def grants(
    ledger: Ledger,
    dataset: str,
    requests: Sequence[Request],
    *,
    rule: Rule = "max_min",
    total: Rational | None = None,
) -> Grants:
    """Divide what a dataset's budget has left among teams, by a rule under which lying does not help.

    ```python
    wishes = [Request("health", 1), Request("roads", "0.2"), Request("tax", 3)]
    planned = grants(ledger, "people", wishes)
    planned.write(ledger, reason="spring term")
    sf.Steward(ledger).take_back("people", reason="summer term")
    ```

    What is divided is what the gate of the budget adds up: epsilon under "basic", rho under "zcdp". Delta
    goes with it in the same proportion, and in an auction a value is that of a unit of it. A limit counts
    what a team has spent before. Limits bound each team; so that nobody else eats into the shares, list in
    the toml who may ask at all.

    Args:
        ledger: Where the budget is.
        dataset: Whose budget.
        requests: What the teams ask for.
        rule: See `allocate`.
        total: The epsilon to divide; else all that is left and not promised to other teams by an earlier
            allotment.

    Raises:
        BudgetExceeded: if there is nothing left to give, or less than `total`.
        InvalidParameter: see `allocate`.
        LedgerMismatch: if the ledger has no such dataset.
    """
    balance = ledger.balance(dataset)
    budget = next(entry.budget for entry in ledger.datasets() if entry.name == balance.dataset)
    asked = list(requests)
    promised = ledger.promised(dataset, {request.team for request in asked if isinstance(request, Request)})
    free = [limit - spent - promised[unit] for unit, (spent, limit) in balance.gate.items()]
    kept = promised[budget.units[0]]
    there = free[0] if total is None else _units(budget, positive(total, "total"))
    if balance.closed or free[0] <= 0:
        why = ": what is left is kept for other teams by an earlier allotment" if kept else ""
        raise BudgetExceeded(f"The budget of {dataset!r} has nothing left to give{why}.")
    if there > free[0]:
        raise BudgetExceeded(
            f"The budget of {dataset!r} has {budget.units[0]} {amount(free[0])} left to give: ask for no "
            "larger total, or raise it."
        )
    allocation = allocate(_sized(budget, asked), there, rule=rule)
    limits: dict[str, Budget | None] = {}
    known: dict[tuple[Fraction, ...], Budget | None] = {}
    for team, share in allocation.shares.items():
        spent = [own for own, _ in ledger.balance(dataset, team).gate.values()]
        # What goes along with the first figure does so in proportion, and never twice either.
        along = [own + share / free[0] * max(rest, _ZERO) for own, rest in zip(spent, free, strict=True)][1:]
        wanted = (_down(spent[0] + share, share), *along)
        if wanted[0] <= spent[0]:
            limits[team] = None
            continue
        if (share, *wanted) not in known:
            known[share, *wanted] = _limit(budget, wanted, share)
        limits[team] = known[share, *wanted]
    return Grants(dataset, allocation, budget.units[0], limits, kept)


def _sized(budget: Budget, requests: Sequence[Request]) -> list[Request]:
    """The requests in what the gate of a budget adds up."""
    known: dict[Fraction, Fraction] = {}
    sized = []
    for request in requests:
        if not isinstance(request, Request):
            return list(requests)  # which `allocate` refuses
        if request.epsilon not in known:
            try:
                known[request.epsilon] = _units(budget, request.epsilon)
            except InvalidParameter as small:
                raise InvalidParameter(f"The request of {request.team[:60]}: {small}") from None
        sized.append(
            Request(request.team, known[request.epsilon], weight=request.weight, value=request.value)
        )
    return sized


def _units(budget: Budget, epsilon: Fraction) -> Fraction:
    """An epsilon in what the gate of a budget adds up."""
    if epsilon > budget.epsilon:
        return budget.limits[0] * epsilon / budget.epsilon  # beyond the budget no figure of its own matters
    smaller = Budget(epsilon, budget.delta, budget.accountant, order=budget.order, aside=budget.aside)
    return smaller.limits[0]


def _limit(budget: Budget, wanted: tuple[Fraction, ...], share: Fraction) -> Budget | None:
    """The largest limit whose gate adds up to no more than this; None where that is too little for any."""
    aside = wanted[1] if len(wanted) > 1 else _ZERO
    exact = Fraction(budget.spent_epsilon(wanted))
    part = exact * share / wanted[0]
    short, less = _down(exact, part), _grain(part)
    # An epsilon is computed rounded up, so that the one found may allow a little more: go down until not.
    while short > 0:
        try:
            if budget.accountant == "basic":
                return Budget(short, aside)
            smaller = Budget(short, budget.delta, budget.accountant, order=budget.order, aside=aside)
        except InvalidParameter:
            return None
        if smaller.limits[0] <= wanted[0]:
            return smaller
        short, less = short - less, 2 * less
    return None


def _grain(share: Fraction) -> Fraction:
    """What a share of this size is rounded to."""
    size = math.floor(math.log10(share)) if float(share) > 0 else 0
    return min(_GRAIN, Fraction(10) ** (size - _PARTS))


def _down(exact: Fraction, share: Fraction) -> Fraction:
    """A figure rounded down, so finely that a share of this size is not lost."""
    grain = _grain(share)
    return exact // grain * grain
