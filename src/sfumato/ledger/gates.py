"""Losses before the gates of a budget: whether it admits them, in each window, and the words where not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import add
from typing import Any, NamedTuple

from sfumato.errors import BudgetExceeded, LedgerMismatch
from sfumato.ledger.budget import Budget, Totals, amount
from sfumato.ledger.chain import Row
from sfumato.ledger.receipt import fraction, windows_of
from sfumato.ledger.spans import Piece, Spans, added
from sfumato.loss import PrivacyLoss
from sfumato.schema import Windows
from sfumato.schema.windows import Each, span_of

__all__ = [
    "Asked",
    "exceeded",
    "parts_of",
    "problems_of_sums",
    "refuse_in_windows",
    "refuse_unfit",
    "sums_in",
    "windows_in",
]


class Asked(NamedTuple):
    """A loss that would be paid: whether by the dataset, too, or by a reader alone, and in which windows."""

    loss: PrivacyLoss
    pays: bool = True
    windows: Windows | None = None


def windows_in(facts: Mapping[str, Any], each: Each | None) -> Windows | None:
    """The windows that a receipt names; None: it counts in all there are, or the budget is for all time.

    Raises:
        ValueError: if they are not windows of such a length.
    """
    windows = None if each is None else windows_of(facts)
    if windows is not None and windows.each != each:
        raise ValueError("windows of another length")
    return windows


def refuse_unfit(name: str, declaration: Mapping[str, Any], budget: Budget) -> None:
    """Refuse a budget for each window of time where units are not windows of that length.

    Privacy:
        Parallel composition is about disjoint parts of which each unit has rows in one alone. Where a unit
        may take the place of another one, two windows change at once: only units that are added or removed
        have such a budget.

    Raises:
        LedgerMismatch: with the unit that would do.
    """
    if budget.each is None:
        return
    unit = declaration.get("unit")
    window = unit.get("window") if isinstance(unit, Mapping) else None
    if not isinstance(unit, Mapping) or window != budget.each:
        has = "are not windows of time" if window is None else f"are windows of one {span_of(window)}"
        raise LedgerMismatch(
            f"A budget for {budget.span} needs units that are windows of just that length, and those of "
            f"{name!r} {has}: declare PrivacyUnit(…, window={budget.each!r}, time=…), or leave each out."
        )
    if unit.get("adjacency", "add-remove") != "add-remove":
        raise LedgerMismatch(
            f"A budget for {budget.span} needs units that are added or removed, and those of {name!r} are "
            "exchanged, which may change two windows at once: leave adjacency or each out."
        )


def sums_in(piece: Piece, budget: Budget) -> Totals:
    """What is spent in the windows of a stretch, in the budget's units."""
    return piece.sums or (Fraction(0),) * len(budget.units)


def refuse_in_windows(
    whose: str, budget: Budget, spans: Spans, asked: Sequence[Asked], adjacency: str | None
) -> None:
    """Refuse losses that would not all be admitted in a row, in some window that they name.

    Raises:
        BudgetExceeded: for the first window in which they do not fit.
    """
    trial, prices = spans.copy(), [budget.totals(budget.filter().price(one.loss)) for one in asked]
    for one, price in zip(asked, prices, strict=True):
        for piece in trial.fullest(one.windows):
            try:
                budget.filter(sums_in(piece, budget), adjacency).after(one.loss)
            except BudgetExceeded:
                at = _only(one.windows, piece)
                total = _met(asked, prices, at)
                spent = sums_in(spans.over(at)[0], budget)
                raise exceeded(f"{whose} in {at}", budget, total, spent) from None
        trial.add(one.windows, price)


def _only(windows: Windows | None, piece: Piece) -> Windows:
    """The first window of a stretch, of those that were asked for."""
    assert windows is not None
    first = windows.first if piece.first is None else max(piece.first, windows.first)
    return Windows(windows.each, first, first)


def _met(asked: Sequence[Asked], prices: Sequence[Totals], at: Windows) -> Totals:
    """What all of these losses cost in one window."""
    total: Totals = ()
    for one, price in zip(asked, prices, strict=True):
        if one.windows is None or one.windows.first <= at.first <= one.windows.last:
            total = added(total, price)
    return total


def problems_of_sums(
    row: Row,
    whose: str,
    pieces: Sequence[Piece],
    price: Totals,
    stored: Mapping[str, str],
    gates: tuple[Budget, Budget | None],
) -> list[str]:
    """What is wrong with the sums of a receipt, given what was spent before it where most was.

    Args:
        row: The receipt.
        whose: Whose sums, in a word.
        pieces: What was spent before, of the windows that it names, where most was.
        price: What it adds.
        stored: The sums that it has.
        gates: The dataset's budget, and the one that these sums must be within, if any.
    """
    (cap, budget), wrong = gates, list[str]()
    before = [sums_in(piece, cap) for piece in pieces]
    largest = added(tuple(map(max, zip(*before, strict=True))), price)
    if largest != tuple(fraction(stored[unit]) for unit in cap.units):
        wrong.append(f"Receipt {row.number} has sums of its {whose} that do not add up.")
    after = [tuple(map(add, sums, price)) for sums in before]
    if budget is not None and any(a > b for each in after for a, b in zip(each, budget.limits, strict=True)):
        wrong.append(f"Receipt {row.number} overdraws the budget of its {whose}.")
    return wrong


def exceeded(whose: str, budget: Budget | None, price: Totals, spent: Totals) -> BudgetExceeded:
    """Why a loss of this price is not admitted, and what would be."""
    assert budget is not None
    parts = parts_of(budget, price, spent)
    if spent[0] >= budget.limits[0]:
        return BudgetExceeded(
            f"{whose[0].upper()}{whose[1:]} is used up: {parts}. Nothing was spent; answers on record stay "
            "free, and the steward may raise it."
        )
    fix = "ask for less"
    if "delta" in budget.units and spent[0] + price[0] <= budget.limits[0]:  # it is delta that does not fit
        fix = (
            "ask for less delta, or name none: then a small part of what is left is taken"
            if spent[1] < budget.limits[1]
            else "list the groups and take Laplace noise, which need no delta; the steward may raise it"
        )
        if not budget.limits[1]:
            fix = _without_delta(whose, budget)
    return BudgetExceeded(f"Not within {whose}: {parts}. Nothing was spent; {fix}.")


_LIMIT = re.compile(r"the limit of '([^']*)'")


def _without_delta(whose: str, budget: Budget) -> str:
    """What to do where there is no delta at all: nothing that needs some can be asked for less of it."""
    analyst = _LIMIT.match(whose)
    if analyst is None:
        return "this budget has no delta, and the steward may give it some; listed groups need none"
    name = analyst[1] if re.fullmatch(r"[A-Za-z0-9_-]+", analyst[1]) else f'"{analyst[1]}"'
    return (
        f"{analyst[1]} has no delta. The steward can give some, as in {name} = {{ epsilon = "
        f"{amount(budget.limits[0])}, delta = 1e-7 }}; or ask for listed groups, which need none"
    )


def parts_of(budget: Budget | None, price: Totals, spent: Totals) -> str:
    """What is asked, spent and left, of everything that the budget adds up and that does not fit."""
    assert budget is not None
    parts = []
    for unit, asked, so_far, limit in zip(budget.units, price, spent, budget.limits, strict=True):
        if so_far + asked > limit or unit == budget.units[0]:
            left = amount(max(limit - so_far, Fraction(0)))
            parts.append(
                f"asked {unit} {amount(asked)}, spent {amount(so_far)} of {amount(limit)}, left {left}"
            )
    return "; ".join(parts)
