"""An allocation put on record: limits in a ledger, written and taken back by the steward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.games.allocation import Allocation, Request, Rule, allocate
from sfumato.ledger import Budget, Ledger, Receipt
from sfumato.ledger.budget import amount
from sfumato.numeric.exact import Rational, positive

__all__ = ["Grants", "grants"]

_ZERO = Fraction(0)
_DIGITS = 10**9  # limits are rounded down to so many parts of a unit, to be short to read and to type
_HALVINGS = 60


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
        """Put the limits on record, all or none: a steward's act. `ledger.take_back` undoes it.

        Raises:
            LedgerMismatch: if so much was spent since that the limits no longer fit.
        """
        return ledger.allot(self.dataset, self.limits, reason=reason)


def grants(
    ledger: Ledger,
    dataset: str,
    requests: Sequence[Request],
    *,
    rule: Rule = "max_min",
    total: Rational | None = None,
) -> Grants:
    """Divide what a dataset's budget has left among teams, by a rule under which lying is no use.

    ```python
    wishes = [Request("health", 1), Request("roads", "0.2"), Request("tax", 3)]
    planned = grants(ledger, "people", wishes)
    planned.write(ledger, reason="spring term")
    ledger.take_back("people", reason="summer term")
    ```

    What is divided is what the gate of the budget adds up: epsilon under "basic", rho under "zcdp". Delta
    goes with it in the same proportion. A limit counts what a team has spent before. Limits bound each team;
    so that nobody else eats into the shares, list in the toml who may ask at all.

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
    budget = next(each.budget for each in ledger.datasets() if each.name == balance.dataset)
    asked = list(requests)
    teams = {each.team for each in asked if isinstance(each, Request)}
    left = [limit - spent for spent, limit in balance.gate.values()]
    promised = _promised(ledger, dataset, teams)
    free = left[0] - promised
    there = free if total is None else _units(budget, positive(total, "total"))
    if balance.closed or free <= 0:
        kept = ": what is left is kept for other teams by an earlier allotment" if promised else ""
        raise BudgetExceeded(f"The budget of {dataset!r} has nothing left to give{kept}.")
    if there > free:
        raise BudgetExceeded(
            f"The budget of {dataset!r} has {budget.units[0]} {amount(free)} left to give: ask for no larger "
            "total, or raise it."
        )
    sized = [
        Request(each.team, _units(budget, each.epsilon), weight=each.weight, value=each.value)
        if isinstance(each, Request)
        else each
        for each in asked
    ]
    found = allocate(sized, there, rule=rule)
    limits = {
        team: _limit(ledger, dataset, budget, team, share, share / left[0], left)
        for team, share in found.shares.items()
    }
    return Grants(dataset, found, budget.units[0], limits, promised)


def _promised(ledger: Ledger, dataset: str, teams: set[str]) -> Fraction:
    """What earlier allotments leave to others than these teams."""
    allotted: dict[str, bool] = {}
    for receipt in ledger.entries(dataset):
        if receipt.kind in ("limit", "revoke") and receipt.analyst is not None:
            allotted[receipt.analyst] = "allotment" in receipt.memo and receipt.kind == "limit"
    rests = []
    for team, own in allotted.items():
        if own and team not in teams:
            spent, limit = next(iter(ledger.balance(dataset, team).gate.values()))
            rests.append(limit - spent)
    return sum((rest for rest in rests if rest > 0), _ZERO)


def _units(budget: Budget, epsilon: Fraction) -> Fraction:
    """An epsilon in what the gate of a budget adds up."""
    if epsilon > budget.epsilon:
        return budget.limits[0] * epsilon / budget.epsilon  # beyond the budget no figure of its own matters
    made = Budget(epsilon, budget.delta, budget.accountant, order=budget.order, aside=budget.aside)
    return made.limits[0]


def _limit(
    ledger: Ledger,
    dataset: str,
    budget: Budget,
    team: str,
    share: Fraction,
    part: Fraction,
    left: Sequence[Fraction],
) -> Budget | None:
    """What a team may spend in all, so that it may still spend its share."""
    spent = [own for own, _ in ledger.balance(dataset, team).gate.values()]
    wanted = _down(spent[0] + share)
    if wanted <= spent[0]:
        return None
    if budget.accountant == "basic":
        return Budget(wanted, spent[1] + part * left[1])
    aside = spent[1] + part * left[1] if len(left) > 1 else _ZERO
    low, high = _ZERO, budget.epsilon
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _reach(budget, middle, aside) <= wanted else (low, middle)
    short = _down(low)
    if not short:
        return None
    return Budget(short, budget.delta, budget.accountant, order=budget.order, aside=aside)


def _reach(budget: Budget, epsilon: Fraction, aside: Fraction) -> Fraction:
    """What a limit of this epsilon lets the gate add up: nothing where it is too small to be a limit."""
    try:
        made = Budget(epsilon, budget.delta, budget.accountant, order=budget.order, aside=aside)
    except InvalidParameter:
        return _ZERO
    return made.limits[0]


def _down(exact: Fraction) -> Fraction:
    return Fraction(exact * _DIGITS // 1, _DIGITS)
