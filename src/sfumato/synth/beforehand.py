"""What is to follow a fit, refused before it is paid: nobody buys a model for what it will not answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.fits.meter import price
from sfumato.purchase import on_record
from sfumato.synth._asked.question import read
from sfumato.synth.fitting import purchase_of
from sfumato.synth.planning import planned

if TYPE_CHECKING:
    from sfumato.numeric.exact import Rational
    from sfumato.session import Session

__all__ = ["refuse_beforehand"]


def refuse_beforehand(
    session: Session,
    table: Any,
    *,
    epsilon: Rational,
    delta: Rational | None,
    check: Rational | None,
    questions: Sequence[str],
    **given: Any,
) -> None:
    """Refuse what a fit is bought for and would be refused once it is paid; nothing is read or spent.

    Args:
        session: Whose ledger pays.
        table: As `fit` takes it.
        epsilon: What the fit costs.
        delta: Likewise.
        check: What a check of the model is to cost; None: there will be none.
        questions: To be estimated by the model.
        given: What else `fit` takes.

    Raises:
        QueryRefused: for a question that the model will not answer.
        BudgetExceeded: if fit and check together do not fit.
        InvalidParameter: if the price of the check is none.
    """
    plan = planned(session, table, **given)
    for text in () if plan.searches else questions:  # which texts there are to group by is not known yet
        read(text, plan.wanted.table, plan.columns)
    if check is None:
        return
    wanted, _ = purchase_of(session, table, plan, epsilon, delta)
    assert wanted.memo.delta is not None
    beside = price(check, wanted.memo.delta)
    if on_record(session.ledger, wanted) is None:
        session.ledger.refuse_several(
            wanted.dataset, [(wanted.loss, True, wanted.windows), (beside, True, wanted.windows)]
        )
