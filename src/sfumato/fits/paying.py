"""The one purchase that a whole fit on a session is, and what the ledger says of it beforehand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import (
    AccessDenied,
    BudgetExceeded,
    EngineFailed,
    InvalidParameter,
    SfumatoError,
    UnsupportedLoss,
)
from sfumato.fits.kept import Kept
from sfumato.fits.meter import Meter, price
from sfumato.fits.searching import gate_of
from sfumato.ledger import Memo, Right
from sfumato.ledger.spare import Spare
from sfumato.purchase import Bought, Purchase, is_no_dearer, known

if TYPE_CHECKING:
    from sfumato.loss import GaussianLoss, PrivacyLoss
    from sfumato.numeric.exact import Rational
    from sfumato.schema import Windows
    from sfumato.session.session import Session

__all__ = [
    "ON_RECORD",
    "Released",
    "delta_of",
    "fit_purchase",
    "gaussian_purchase",
    "note_of",
    "priced",
    "spared",
    "units_told",
]

ON_RECORD = "It is on record"
"""How the note of a quote begins whose answer is free."""

T = TypeVar("T")
Released: TypeAlias = tuple[Mapping[str, NDArray[Any]], Mapping[str, tuple[Fraction, Fraction]]]
"""What a fit releases: arrays by name, and the bounds that it bought, by column."""


def spared(session: Session, table: str) -> Spare:
    """What the budget of a table spares of delta for a fit that names none; 0 where it has none.

    Where nothing is left, it is priced as if there were: a fit on record is found so, and the debit refuses
    what is not.
    """
    dataset = session.dataset_with(session.tables[table])
    spare = session.ledger.spare(dataset.name)
    if spare.delta or not dataset.budget.delta:
        return spare
    told = f"a hundredth of the budget's, though {spare.told}"
    return replace(spare, delta=dataset.budget.hundredth, told=told)


def delta_of(session: Session, table: str, delta: Rational | None) -> tuple[Rational, Spare | None]:
    """The delta of a fit, and where it comes from if nobody named it.

    Raises:
        InvalidParameter: if it is 0, or the budget has none to spare.
    """
    spare = spared(session, table) if delta is None else None
    point = delta if spare is None else spare.delta
    if not point:
        reason = "The noise here needs a delta, and the budget has none to spare"
        raise InvalidParameter(f"{reason}: open a budget with delta, and give delta=1e-9.").in_shell(
            f"{reason}: write delta = 1e-6 into its section of sfumato.toml."
        )
    return point, spare


def priced(
    session: Session, table: str, epsilon: Rational, delta: Rational | None
) -> tuple[GaussianLoss, Spare | None]:
    """The price of a whole fit, and where its delta comes from if nobody named it.

    Raises:
        InvalidParameter: if there is no delta, or the price is invalid.
    """
    point, spare = delta_of(session, table, delta)
    return price(epsilon, point), spare


def gaussian_purchase(
    session: Session,
    paid: GaussianLoss,
    *,
    memo: Memo,
    facts: Any,
    reads: Sequence[str],
    check: Callable[[], None],
    learn: Callable[[Right, Meter], Released],
    exchange: bool,
    spare: Spare | None = None,
    risk: Fraction = Fraction(0),
    windows: Windows | None = None,
) -> Purchase[Kept]:
    """The one purchase of a fit that all comes out of one meter.

    Args:
        session: Who pays.
        paid: The price of the whole fit, but for `risk`.
        memo: Who spends, in which words, and on which table.
        facts: All that the answer depends on but the price, as plain data.
        reads: Fingerprints of what is read, once each.
        check: Refuses what cannot be read, before it is paid.
        learn: From the right to read and the noise to what is released.
        exchange: Whether the meter doubles what a unit can move, since units are exchanged.
        spare: Where delta comes from, if nobody named it.
        risk: The probability with which values that one unit alone has may be shown; 0: none are searched.
        windows: Which windows of time are read, where the budget is for each; None: it does not say.

    Privacy:
        Claim: what is recorded carries `paid`, composed with `lone_loss` of the risk. The debit is for the
        loss of a filter, and each draw of noise is counted by it first (`Right.steps`); the rest is
        `fit_purchase`.
    """
    gate = gate_of(paid, risk)

    def released(right: Right) -> Released:
        return learn(right, Meter(paid.rho, right.steps(gate).take, exchange=exchange, risk=risk))

    return fit_purchase(
        session,
        gate.loss,
        memo=replace(memo, mechanism="gaussian"),
        facts=facts,
        reads=reads,
        check=check,
        released=released,
        spare=spare,
        windows=windows,
    )


def fit_purchase(
    session: Session,
    loss: PrivacyLoss,
    *,
    memo: Memo,
    facts: Any,
    reads: Sequence[str],
    check: Callable[[], None],
    released: Callable[[Right], Released],
    spare: Spare | None = None,
    windows: Windows | None = None,
) -> Purchase[Kept]:
    """One purchase of whatever is learned from data that is read once.

    Args:
        session: Who pays.
        loss: What all of it costs, calibrated to an (epsilon, delta).
        memo: Who spends, in which words, with which noise and on which table.
        facts: All that the answer depends on but the price, as plain data.
        reads: Fingerprints of what is read, once each.
        check: Refuses what cannot be read, before it is paid.
        released: From the right to read to what is released.
        spare: Where delta comes from, if nobody named it.
        windows: Which windows of time are read, where the budget is for each; None: it does not say.

    Privacy:
        Claim: what is recorded carries `loss`, if what `released` gives does. Data is read once, for this
        debit. Whatever fails after the debit stays paid, and its refusal says nothing of the rows. An answer
        on record serves if it cost no less: it follows from the same data by the same rule.
    """
    assert loss.approximate is not None  # prices of fits are calibrated
    epsilon, delta = loss.approximate
    dataset = session.dataset_with(session.tables[memo.table])

    def answer(right: Right) -> Kept:
        learned, bounds = _guarded(lambda: released(right))
        return Kept(learned, epsilon, delta, bounds)

    def as_good(kept: Iterator[Bought[Kept]]) -> Bought[Kept] | None:
        return next(
            (each for each in kept if each.answer.epsilon >= epsilon and each.answer.delta >= delta), None
        )

    whole = [memo.spender, facts, *reads]
    return Purchase(
        dataset=dataset.name,
        loss=loss,
        fingerprint=hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest(),
        memo=replace(memo, epsilon=epsilon, delta=delta, unnamed=() if spare is None else ("delta",)),
        answer=answer,
        write=Kept.to_bytes,
        read_back=Kept.from_bytes,
        choose=as_good,
        reads=tuple(reads),
        check=check,
        takes=lambda receipt: is_no_dearer(dataset.budget, receipt, loss),
        windows=windows,
    )


def note_of(session: Session, wanted: Purchase[Kept], *, again: str = "fit") -> str:
    """What the ledger says to a purchase: that it is on record, or more than what is left; else nothing.

    Args:
        session: Who would pay.
        wanted: What.
        again: What is done again, free, in a word.

    Raises:
        QueryRefused: if the data cannot be read so.
    """
    wanted.check()
    try:
        if known(session.ledger, wanted) is not None:
            return f"{ON_RECORD}: to {again} it again is free."
        session.ledger.refuse_several(wanted.dataset, [(wanted.loss, True, wanted.windows)])
    except BudgetExceeded:
        return "This is more than what is left: it would be refused."
    except (AccessDenied, UnsupportedLoss):
        pass  # the fit says why
    return ""


def units_told(max_rows: int | None) -> str:
    """How many rows of a unit are read, in a sentence; nothing where each row is a unit."""
    if max_rows is None:
        return ""
    said = "1 row of each unit is" if max_rows == 1 else f"{max_rows} rows of each unit are"
    return f"At most {said} read."


def _guarded(learn: Callable[[], T]) -> T:
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
