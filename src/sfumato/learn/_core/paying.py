"""A fit on a session: its one purchase, and the quote of that."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.accounting import GaussianFilter
from sfumato.errors import AccessDenied, BudgetExceeded, EngineFailed, SfumatoError, UnsupportedLoss
from sfumato.fits.kept import Kept
from sfumato.fits.meter import Meter, price
from sfumato.learn._core.buying import BoundsPaid, bounds_price
from sfumato.learn._core.declared import Number
from sfumato.learn._core.reading import Reading
from sfumato.ledger import Memo, Right
from sfumato.ledger.spare import Spare
from sfumato.numeric.exact import show
from sfumato.purchase import Bought, Purchase, is_no_dearer, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sfumato.loss import GaussianLoss, PrivacyLoss
    from sfumato.session.session import Session

__all__ = [
    "FitQuote",
    "Released",
    "note_of",
    "purchase",
    "quoted",
    "quoted_alone",
    "spared",
    "units_told",
    "whole_purchase",
]

_WIDTH = 80

Released: TypeAlias = tuple[Mapping[str, NDArray[Any]], Mapping[str, Number]]
"""What a fit releases: arrays by name, and the bounds that it bought, by column."""


def spared(session: Session, reading: Reading) -> Spare:
    """What the budget spares of delta for a fit that names none; 0 where it has none.

    Where nothing is left, it is priced as if there were: a fit on record is found so, and the debit refuses
    what is not.
    """
    budget = session.dataset_with(session.tables[reading.wanted.table]).budget
    spare = session.ledger.spare(reading.wanted.dataset)
    if spare.delta or not budget.delta:
        return spare
    return replace(spare, delta=budget.hundredth, told=f"a hundredth of the budget's, though {spare.told}")


def purchase(
    session: Session,
    reading: Reading,
    paid: GaussianLoss,
    *,
    facts: Any,
    words: str,
    learn: Callable[[Right, Meter], Released],
    spare: Spare | None = None,
) -> Purchase[Kept]:
    """The one purchase that a whole fit is.

    Args:
        session: Who pays.
        reading: What is read.
        paid: The price of the whole fit.
        facts: All else that the answer depends on but the price, as plain data.
        words: What is learned, for people.
        learn: From the right to read and the noise to what is released, and the bounds that were bought.
        spare: Where delta comes from, if nobody named it.

    Privacy:
        Claim: what is recorded carries `paid`. The debit is for the loss of a Gaussian filter, and each draw
        of noise is counted by it first (`Right.steps`); the rest is `whole_purchase`.
    """
    gate = GaussianFilter(paid.rho, point=paid.point)

    def released(right: Right) -> Released:
        steps = right.steps(gate)
        return learn(right, Meter(paid.rho, steps.take, exchange=reading.wanted.exchange))

    return whole_purchase(
        session,
        reading,
        gate.loss,
        memo=Memo("fit", words, mechanism="gaussian"),
        facts=facts,
        released=released,
        spare=spare,
    )


def whole_purchase(
    session: Session,
    reading: Reading,
    loss: PrivacyLoss,
    *,
    memo: Memo,
    facts: Any,
    released: Callable[[Right], Released],
    spare: Spare | None = None,
) -> Purchase[Kept]:
    """One purchase of whatever is learned from rows that are read once.

    Args:
        session: Who pays.
        reading: What is read.
        loss: What all of it costs, calibrated to an (epsilon, delta).
        memo: Who spends, in which words and with which noise.
        facts: All else that the answer depends on but the price, as plain data.
        released: From the right to read to what is released, and the bounds that were bought.
        spare: Where delta comes from, if nobody named it.

    Privacy:
        Claim: what is recorded carries `loss`, if what `released` gives does. Rows are read once, for this
        debit. Whatever fails after the debit stays paid, and its refusal says nothing of the rows. An answer
        on record serves if it cost no less: it follows from the same data by the same rule.
    """
    assert loss.approximate is not None  # prices of fits are calibrated
    taken, (epsilon, delta) = reading.taken, loss.approximate
    budget = session.dataset_with(session.tables[reading.wanted.table]).budget
    whole = [memo.spender, facts, taken.fingerprint, reading.design.to_dict()]

    def answer(right: Right) -> Kept:
        learned, found = _guarded(lambda: released(right))
        bounds = {name: (column.lower, column.upper) for name, column in found.items()}
        return Kept(learned, epsilon, delta, bounds)

    def as_good(kept: Iterator[Bought[Kept]]) -> Bought[Kept] | None:
        return next(
            (each for each in kept if each.answer.epsilon >= epsilon and each.answer.delta >= delta), None
        )

    return Purchase(
        dataset=reading.wanted.dataset,
        loss=loss,
        fingerprint=hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest(),
        memo=replace(
            memo,
            epsilon=epsilon,
            delta=delta,
            table=reading.wanted.table,
            unnamed=() if spare is None else ("delta",),
        ),
        answer=answer,
        write=Kept.to_bytes,
        read_back=Kept.from_bytes,
        choose=as_good,
        reads=tuple(read.fingerprint for read in (taken, reading.moments) if read is not None),
        check=taken.check,
        takes=lambda receipt: is_no_dearer(budget, receipt, loss),
    )


def _guarded(learn: Callable[[], Released]) -> Released:
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


@dataclass(frozen=True, slots=True, repr=False)
class FitQuote:
    """What a fit will cost, before it is paid; making one is free and reads nothing.

    Attributes:
        model: The model's name.
        table: Whose rows are learned from; empty: arrays, which no ledger pays for.
        columns: What is learned from.
        epsilon: The price.
        delta: Its other half.
        loss: What the ledger is charged.
        note: What the ledger says: that it is on record, or more than what is left; else empty.
        bounds: Which part of it pays for bounds; None: all are declared.
        delta_told: Where delta comes from, if nobody named it.
        max_rows: How many rows of one unit are read, at most; None: each row is a unit.
        numbers: Which of the columns are of numbers.
    """

    model: str
    table: str
    columns: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction
    loss: GaussianLoss
    note: str
    bounds: BoundsPaid | None = None
    delta_told: str = ""
    max_rows: int | None = None
    numbers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Such as `LogisticRegression on people, from age and sex: epsilon 1, delta 1e-06`."""
        *first, last = self.columns or ("the target alone",)
        listed = f"{', '.join(first)} and {last}" if first else last
        where = f" on {self.table}, from {listed}" if self.table else ""
        told = f" ({self.delta_told})" if self.delta_told else ""
        price = f"epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}{told}"
        said = f"{self.model}{where}: {price} for the whole fit."
        parts = (said, units_told(self.max_rows), str(self.bounds or ""), self.note)
        return textwrap.fill(" ".join(part for part in parts if part), _WIDTH)

    def __repr__(self) -> str:
        return str(self)


def units_told(max_rows: int | None) -> str:
    """How many rows of a unit are read, in a sentence; nothing where each row is a unit."""
    if max_rows is None:
        return ""
    said = "1 row of each unit is" if max_rows == 1 else f"{max_rows} rows of each unit are"
    return f"At most {said} read."


def quoted(session: Session, wanted: Purchase[Kept], reading: Reading, model: str) -> FitQuote:
    """The quote of a fit.

    Raises:
        QueryRefused: if the rows cannot be read so.
    """
    assert wanted.memo.epsilon is not None
    assert wanted.memo.delta is not None
    return FitQuote(
        model=model,
        table=reading.wanted.table,
        columns=tuple(column.name for column in reading.design.columns),
        epsilon=wanted.memo.epsilon,
        delta=wanted.memo.delta,
        loss=wanted.loss,  # type: ignore[arg-type]
        delta_told=spared(session, reading).told if wanted.memo.unnamed else "",
        note=note_of(session, wanted),
        bounds=bounds_price(price(wanted.memo.epsilon, wanted.memo.delta).rho, reading.unbought),
        max_rows=reading.wanted.max_rows if reading.wanted.has_units else None,
        numbers=tuple(column.name for column in reading.design.columns if isinstance(column, Number)),
    )


def note_of(session: Session, wanted: Purchase[Kept]) -> str:
    """What the ledger says to a purchase: that it is on record, or more than what is left; else nothing.

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


def quoted_alone(paid: GaussianLoss, model: str) -> FitQuote:
    """The quote of a fit on arrays, which no ledger pays for."""
    assert paid.point is not None
    epsilon, delta = paid.point
    note = "No ledger counts what is spent on arrays: each fit costs it again."
    return FitQuote(model, "", (), epsilon, delta, paid, note)
