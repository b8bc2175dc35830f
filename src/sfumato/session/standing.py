"""What the ledger says of a quote: its answer is on record, or its price is more than what is left."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.errors import AccessDenied, BudgetExceeded, UnsupportedLoss
from sfumato.loss import PrivacyLoss, PureLoss
from sfumato.plan.prices.words import exact
from sfumato.purchase import Purchase, known
from sfumato.purchase.buying import offers_of
from sfumato.render import shown
from sfumato.session.states import answered_before, state_of

if TYPE_CHECKING:
    from sfumato.ledger import Budget, Counter
    from sfumato.plan.prices.quoting import Quote
    from sfumato.schema import Windows
    from sfumato.session.payload import Answer
    from sfumato.session.session import Session

__all__ = ["OF_OTHERS", "ON_RECORD", "each_told", "standing"]

ON_RECORD = "An answer is on record: asking for this again is free."
"""What is told where the very answer is there, and open to whoever asks."""
OF_OTHERS = "Somebody else has paid for an answer: to read it counts"
"""The same of somebody else's; what it counts follows, which may be more than the price that is asked for."""


def each_told(budget: Budget, windows: Windows | None, owner: str | None) -> tuple[str, ...]:
    """In which windows a question is paid, and what that leaves of a promise for life."""
    if windows is None:
        return ()
    all_ = "" if windows.count == 1 else f": in full in each of the {windows.count:,}"
    many = "10 times" if budget.each == "year" else "12 times"
    return (
        f"Paid in {windows}{all_}. The budget is for {budget.span}, and none is for life: a "
        f"{owner or 'unit'} who is in the data for {many} as long may lose {many} its epsilon "
        f"{shown(budget.epsilon)}.",
    )


def standing(
    session: Session,
    quote: Quote,
    asked: Fraction | None,
    purchase: Callable[[Quote, Fraction | None], Purchase[Answer]],
) -> tuple[tuple[str, str], ...]:
    """What is to be known before paying, by what it is about; nothing where an answer would be paid as usual.

    Args:
        session: Who asks.
        quote: What, and for how much.
        asked: The price that was asked for, with the part of it that went into a profile.
        purchase: What would be bought for a quote.

    Privacy:
        It tells what the record tells to whoever asks: no row is read, and nothing is counted.
    """
    ledger, paying = session.ledger, session.dataset_of(quote.report)
    dataset, adds = paying.name, paying.budget.accountant == "basic"
    try:
        if not quote.first:  # what is bought before decides on what is asked then
            wanted = purchase(quote, asked)
            if known(ledger, wanted) is not None:
                return (("record", ON_RECORD),)
            if (price := _counted(ledger, paying.budget, wanted)) is not None:
                return (("record", f"{OF_OTHERS} {price} toward your limit alone."),)
            if (earlier := answered_before(session, quote)) is not None:
                return (("record", _earlier(session, quote, earlier)),)
        first: list[PrivacyLoss] = [PureLoss(quote.first)] if quote.first and adds else []
        windows = session.windows_of(quote.report)
        ledger.refuse_several(dataset, [(loss, True, windows) for loss in (*first, quote.loss)])
    except BudgetExceeded:
        left = session.balance(dataset, window=session.windows_of(quote.report))
        figures = f"epsilon {shown(left.remaining)}"
        figures += f" and delta {shown(left.remaining_delta)}" if left.delta or quote.delta else ""
        figures += f" in {left.window}" if left.window else ""
        return (("left", f"This is more than what is left, {figures}: it would be refused."),)
    except (AccessDenied, UnsupportedLoss):
        return ()  # the release says why
    return ()


def _counted(ledger: Counter, budget: Budget, wanted: Purchase[Answer]) -> str | None:
    """What the answer of somebody else counts that a release would give; None: it would give none of them."""
    offers = offers_of(ledger, wanted)
    while (offer := wanted.choose(iter(offers))) is not None:
        paid = offer.receipt
        assert paid.loss is not None  # it is a debit
        try:
            ledger.refuse_several(wanted.dataset, [(paid.loss, False, paid.windows)])
        except BudgetExceeded:  # as in `buy`: the next one then, or one of their own
            offers = [other for other in offers if other.receipt.number != paid.number]
        else:
            counts = zip(budget.units, budget.totals(budget.filter().price(paid.loss)), strict=True)
            return ", ".join(f"{unit} {exact(part)}" for unit, part in counts if part)
    return None


def _earlier(session: Session, quote: Quote, states: tuple[str, ...]) -> str:
    """That older data have an answer, and what it costs to ask about all of them."""
    table = quote.measured.table
    now, last, price = state_of(session.tables, table), states[-1], shown(quote.epsilon)
    together = shown(quote.epsilon * (len(states) + 1))
    return (
        f"The answer about {last} is on record: at({last!r}) reads it free. {now} is other data, and is "
        f"paid; at this price {len(states) + 1} states cost epsilon {together} together. A series has one "
        f"price, such as epsilon {price}, for all its steps: stream."
    )
