"""Whether all that a question buys will be admitted, before the first part of it is paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.loss import ApproximateLoss
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quoting import Quote
from sfumato.plan.prices.terms import Terms
from sfumato.purchase import Forecast, Purchase
from sfumato.session.auto import bounds_on_record, wanted_for_bounds
from sfumato.session.payload import Answer
from sfumato.session.profile import Limits
from sfumato.session.quoted import price_of, with_bounds

if TYPE_CHECKING:
    from sfumato.session.session import Session

__all__ = ["affordable"]


def affordable(
    session: Session,
    limits: Limits,
    quoted: Callable[[Plan, Terms], Quote],
    purchase: Callable[[Quote, Fraction | None], Purchase[Answer]],
) -> Limits:
    """Refuse what could not be paid for to its end, before the first part of it is paid or counted.

    What is asked in the end may depend on what is bought before: then it is priced as a new question, by
    a plan that stands in for it. Its noise is chosen then, and is not Gaussian where no delta is left for
    that.

    Args:
        session: Where it is asked.
        limits: What is asked, and what is bought before for limits.
        quoted: The quote of a plan.
        purchase: What is bought for a quote, and the price that was asked for.

    Returns:
        The same, or with Laplace noise.

    Raises:
        BudgetExceeded: if it could not; nothing was spent.
    """
    plan, terms = limits.plan, limits.terms
    if not limits.first and terms.bounds is None:
        return limits  # one purchase is paid or refused as a whole
    due = Forecast(session.ledger, session.dataset_of(plan.report).name)
    certain = True
    if limits.first:
        foreseen = limits.foreseen(session, due)
        plan, certain = (plan, False) if foreseen is None else (foreseen, True)
    if terms.bounds is not None:
        price = price_of(terms)
        found = [due.expect(each, new=not certain) for each in wanted_for_bounds(session, plan, price)]
        certain = certain and None not in found
        chosen = bounds_on_record(session, plan, price) if certain else None
        plan, terms, _ = with_bounds(session, plan, terms, chosen)
    asked = limits.asked if terms.bounds is None else None
    quote = quoted(plan, terms)
    due.expect(purchase(quote, asked), new=not certain)
    due.check()
    budget = session.dataset_of(plan.report).budget
    most = terms.available
    fixed = certain or terms.mechanism is not None or budget.accountant != "basic" or most <= quote.delta
    if fixed or due.admits(ApproximateLoss(quote.epsilon, most)):
        return limits
    return replace(limits, terms=replace(limits.terms, mechanism="laplace"))
