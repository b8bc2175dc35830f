"""The one purchase that a whole fit on a session is, and what the ledger says of it beforehand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting import GaussianFilter
from sfumato.errors import AccessDenied, BudgetExceeded, EngineFailed, SfumatoError, UnsupportedLoss
from sfumato.fits.kept import Kept
from sfumato.fits.meter import Meter
from sfumato.ledger import Memo, Right
from sfumato.ledger.spare import Spare
from sfumato.purchase import Bought, Purchase, is_no_dearer, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sfumato.loss import GaussianLoss
    from sfumato.session.rows_wanted import RowsTaken, RowsWanted
    from sfumato.session.session import Session

__all__ = ["fit_purchase", "said_before", "spared"]

Bounds = Mapping[str, tuple[Fraction, Fraction]]
Learn = Callable[[Right, Meter], tuple[Mapping[str, NDArray[Any]], Bounds]]


def spared(session: Session, wanted: RowsWanted) -> Spare:
    """What the budget spares of delta for a fit that names none; 0 where it has none.

    Where nothing is left, it is priced as if there were: a fit on record is found so, and the debit refuses
    what is not.
    """
    budget = session.dataset_with(session.tables[wanted.table]).budget
    spare = session.ledger.spare(wanted.dataset)
    if spare.delta or not budget.delta:
        return spare
    return replace(spare, delta=budget.hundredth, told=f"a hundredth of the budget's, though {spare.told}")


def fit_purchase(
    session: Session,
    wanted: RowsWanted,
    taken: RowsTaken,
    paid: GaussianLoss,
    *,
    spender: str,
    facts: Any,
    words: str,
    learn: Learn,
    reads: Sequence[str] = (),
    spare: Spare | None = None,
) -> Purchase[Kept]:
    """The one purchase that a whole fit is.

    Args:
        session: Who pays.
        wanted: The rows that are wanted.
        taken: As what they are read.
        paid: The price of the whole fit.
        spender: What kind of fit it is, in a word.
        facts: All else that the answer depends on but the price, as plain data.
        words: What is learned, for people.
        learn: From the right to read and the noise to what is released, and the bounds that were bought.
        reads: Fingerprints of what is read beside the rows.
        spare: Where delta comes from, if nobody named it.

    Privacy:
        Claim: what is recorded carries `paid`. The debit is for the loss of a Gaussian filter, and each draw
        of noise is counted by it first (`Right.steps`); rows are read once, for this debit. Whatever fails
        after the debit stays paid, and its refusal says nothing of the rows. A fit on record serves if it
        cost no less: its answer follows from the same data by the same rule.
    """
    gate = GaussianFilter(paid.rho, point=paid.point)
    assert paid.point is not None  # prices of fits are calibrated
    epsilon, delta = paid.point
    budget = session.dataset_with(session.tables[wanted.table]).budget
    whole = [spender, facts, taken.fingerprint]

    def answer(right: Right) -> Kept:
        steps = right.steps(gate)
        meter = Meter(paid.rho, steps.take, exchange=wanted.exchange)
        learned, bounds = _guarded(lambda: learn(right, meter))
        return Kept(learned, epsilon, delta, bounds)

    def as_good(kept: Iterator[Bought[Kept]]) -> Bought[Kept] | None:
        return next(
            (each for each in kept if each.answer.epsilon >= epsilon and each.answer.delta >= delta), None
        )

    return Purchase(
        dataset=wanted.dataset,
        loss=gate.loss,
        fingerprint=hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest(),
        memo=Memo(
            spender,
            words,
            epsilon,
            delta,
            "gaussian",
            wanted.table,
            unnamed=() if spare is None else ("delta",),
        ),
        answer=answer,
        write=Kept.to_bytes,
        read_back=Kept.from_bytes,
        choose=as_good,
        reads=(taken.fingerprint, *reads),
        check=taken.check,
        takes=lambda receipt: is_no_dearer(budget, receipt, gate.loss),
    )


def said_before(session: Session, wanted: Purchase[Kept]) -> str:
    """What the ledger says of a fit before it is paid: that it is on record, or too dear; else nothing.

    Raises:
        QueryRefused: if the rows cannot be read so.
    """
    wanted.check()
    try:
        if known(session.ledger, wanted) is not None:
            return "It is on record: to fit it again is free."
        session.ledger.refuse_several(wanted.dataset, [(wanted.loss, True)])
    except BudgetExceeded:
        return "This is more than what is left: it would be refused."
    except (AccessDenied, UnsupportedLoss):
        pass  # the fit says why
    return ""


def _guarded(learn: Callable[[], Any]) -> Any:
    """What is learned; whatever fails says nothing of the rows, in its words or in its chain."""
    refusal: SfumatoError
    try:
        with np.errstate(all="ignore"):  # whether something overflows is a fact about the rows
            return learn()
    except SfumatoError as failed:
        refusal = type(failed)(*failed.args) if isinstance(failed, EngineFailed | AccessDenied) else _failed()
    except Exception:
        refusal = _failed()
    raise refusal


def _failed() -> EngineFailed:
    return EngineFailed("The fit could not be finished; the price stays paid.")
