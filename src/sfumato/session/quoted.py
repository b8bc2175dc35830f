"""What a session adds to the price of a question: what the budget spares, bounds that are bought, remarks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quoting import Quote, make_quote
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.unbounded import FALLBACK, bounded
from sfumato.session.auto import SHARE, Bounds, refuse_unpayable
from sfumato.session.standing import each_told
from sfumato.sql.asking import Asking

if TYPE_CHECKING:
    from sfumato.schema import Windows
    from sfumato.session.session import Session

__all__ = ["price_of", "quoted_in", "spared", "with_bounds"]


def spared(session: Session, plan: Plan, terms: Terms, windows: Windows | None) -> Terms:
    """The terms with what the budget spares of delta, looked up once for all that is bought together.

    Where nothing is left and the question cannot do without, it is priced as if there were: an answer on
    record is found so, and the debit refuses what is not.
    """
    dataset = session.dataset_of(plan.report)
    if terms.delta is not None or not dataset.budget.delta:
        return terms
    finds = any(key.values is None for key in plan.report.child.keys)
    spare = session.ledger.spare(dataset.name, finds=finds, windows=windows)
    if not spare.delta and (finds or terms.mechanism == "gaussian"):
        told = f"a hundredth of the budget's, though {spare.told}"
        spare = replace(spare, delta=dataset.budget.hundredth, told=told)
    return replace(terms, spare=spare.delta, spare_told=spare.told)


def with_bounds(
    session: Session, plan: Plan, terms: Terms, bounds: Bounds | None
) -> tuple[Plan, Terms, tuple[str, ...]]:
    """The plan with bounds for what has none, the terms with what is left, and what to say about it."""
    price = price_of(terms)
    rest = replace(terms, epsilon=price - price * SHARE)  # spent or not: asked again, it costs the same
    if bounds is None:
        refuse_unpayable(session, plan)
        assumed = bounded(plan.report, dict.fromkeys(plan.unbounded, FALLBACK))
        told = (
            "Bounds would be bought first, and kept for later questions; the errors above are for "
            "numbers from 0 to 1 and declared limits, and change with what is found."
        )
        return replace(plan, report=assumed), rest, (told,)
    kept = "Bounds that were bought are kept for later questions."
    return bounds.plan, rest, (*bounds.notes, *((kept,) if bounds.spent else ()))


def quoted_in(
    session: Session,
    asking: Asking,
    plan: Plan,
    terms: Terms,
    *,
    told: tuple[str, ...],
    windows: Windows | None,
) -> Quote:
    """The quote of a plan, with what is to be said of it.

    Args:
        session: Whose tables and budget.
        asking: What was asked.
        plan: What is priced, which may have bounds and limits that were bought.
        terms: The price.
        told: What was bought for it, in words.
        windows: In which windows of time it is paid, where the budget is for each.

    Raises:
        QueryRefused: if a number has no bounds, or the budget cannot pay for groups that are not public.
    """
    gate = session.dataset_of(plan.report).budget
    why = None
    if terms.mechanism is None and gate.accountant != "basic" and terms.available:
        terms = replace(terms, mechanism="gaussian")
        why = f"Gaussian: a budget kept by {gate.accountant} is charged least for it."
    if asking.lacking is not None and plan.unbounded:
        raise QueryRefused(*asking.lacking)
    quote = make_quote(plan, terms, why=why, adds=gate.accountant == "basic")
    if quote.selection is not None and gate.accountant != "basic" and not gate.aside:
        raise QueryRefused(
            f"A budget kept by {gate.accountant} cannot pay for groups that are not public: finding them "
            "needs a delta of its own.",
            "List the values of the keys in WHERE, or have the budget opened as basic, or as zcdp with a "
            "part of delta aside.",
        )
    paid = each_told(gate, windows, plan.rows.owner)
    notes = (*filter(None, (session.remark,)), *asking.notes, *told, *paid)
    return replace(quote, notes=(*quote.notes, *notes)) if notes else quote


def price_of(terms: Terms) -> Fraction:
    """The price of which a part is for bounds."""
    if terms.error is not None:
        raise InvalidParameter("Bounds that are bought need a price: give epsilon instead of error.")
    if terms.epsilon is None:
        raise InvalidParameter("Bounds that are bought need a price: give an epsilon.")
    return terms.epsilon
