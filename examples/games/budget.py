"""One budget and five teams: who gets how much, so that nobody gains by asking for more than they need.

Run it with `python examples/games/budget.py`; it takes a second.
"""

from __future__ import annotations

import textwrap
from fractions import Fraction

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.games import Request, allocate, grants

NEEDS = {"health": "0.9", "roads": "0.2", "schools": "0.6", "tax": "1.5", "water": "0.1"}
TOTAL = 2


def requests(needs: dict[str, object]) -> list[Request]:
    return [Request(team, str(need)) for team, need in needs.items()]


def proportional(needs: dict[str, object]) -> dict[str, Fraction]:
    """The obvious rule, which is a mistake: what is short is cut by the same factor for all."""
    asked = {team: Fraction(str(need)) for team, need in needs.items()}
    return {team: min(1, TOTAL / sum(asked.values())) * need for team, need in asked.items()}


def show(title: str, shares: dict[str, Fraction]) -> None:
    print(f"  {title:<32}" + "".join(f"{float(share):>9.3f}" for share in shares.values()))


def main() -> None:
    needs: dict[str, object] = dict(NEEDS)
    print(f"The data of a city has epsilon {TOTAL} left, and five teams need more than that.\n")
    print(f"  {'':<32}" + "".join(f"{team:>9}" for team in needs))
    show("what they need", {team: Fraction(need) for team, need in NEEDS.items()})
    show("cut all by the same factor", proportional(needs))
    show("max-min fair", dict(allocate(requests(needs), TOTAL).shares))

    print("\nNow schools says that it needs 3:\n")
    lied = needs | {"schools": "3"}
    show("cut all by the same factor", proportional(lied))
    show("max-min fair", dict(allocate(requests(lied), TOTAL).shares))
    print("\nThe first rule pays for the lie, and soon everybody asks for the moon. Under")
    print("the second a share grows only until the request is met: the truth is best.")

    print("\nAn auction knows more: what a unit is worth to each, in credits of the house.")
    worth = {"health": 5, "roads": 2, "schools": 4, "tax": 3, "water": 1}
    bids = [Request(team, need, value=worth[team]) for team, need in NEEDS.items()]
    held = allocate(bids, TOTAL, rule="auction")
    show("shares", dict(held.shares))
    show("credits paid", dict(held.payments))
    print("Each pays what the others lose by its share, whatever it said itself.")

    print("\nOn record, in a real ledger:")
    with sf.Ledger.open(None) as ledger:
        ledger.register("city", {"unit": "person", "version": None}, sf.Budget(TOTAL))
        planned = grants(ledger, "city", requests(needs))
        planned.write(ledger, reason="spring term")
        spend = sf.Laplace(epsilon=planned.limits["tax"].epsilon, sensitivity=1).loss
        ledger.debit("city", spend, fingerprint="income by district", analyst="tax")
        try:
            ledger.debit("city", sf.Laplace(0.1, 1).loss, fingerprint="one more", analyst="tax")
        except BudgetExceeded as refused:
            print(
                textwrap.fill(
                    f"tax asks once more: {refused}", 80, initial_indent="  ", subsequent_indent="  "
                )
            )
        sf.Steward(ledger).take_back("city", reason="summer term")
        print(f"  taken back by the steward; the ledger holds: {ledger.verify().ok}")


if __name__ == "__main__":
    main()
