"""A fit on a session: its one purchase, and the quote of that."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.fits.kept import Kept
from sfumato.fits.meter import Meter, price
from sfumato.fits.paying import Released, fit_purchase, gaussian_purchase, note_of, spared, units_told
from sfumato.learn._core.buying import BoundsPaid, bounds_price
from sfumato.learn._core.declared import Number
from sfumato.learn._core.reading import Reading
from sfumato.ledger import Memo, Right
from sfumato.ledger.spare import Spare
from sfumato.numeric.exact import show
from sfumato.purchase import Purchase

if TYPE_CHECKING:
    from sfumato.loss import GaussianLoss, PrivacyLoss
    from sfumato.session.session import Session

__all__ = [
    "FitQuote",
    "purchase",
    "quoted",
    "quoted_alone",
    "whole_purchase",
]

_WIDTH = 80


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
    """The one purchase that a whole fit is; see `gaussian_purchase`.

    Args:
        session: Who pays.
        reading: What is read.
        paid: The price of the whole fit.
        facts: All else that the answer depends on but the price, as plain data.
        words: What is learned, for people.
        learn: From the right to read and the noise to what is released.
        spare: Where delta comes from, if nobody named it.
    """
    return gaussian_purchase(
        session,
        paid,
        memo=Memo("fit", words, table=reading.wanted.table),
        facts=[facts, reading.design.to_dict()],
        reads=_reads(reading),
        check=reading.taken.check,
        learn=learn,
        exchange=reading.wanted.exchange,
        spare=spare,
        windows=session.windows_in(reading.taken.measured),
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
    """One purchase of whatever is learned from rows that are read once; see `fit_purchase`.

    Args:
        session: Who pays.
        reading: What is read.
        loss: What all of it costs, calibrated to an (epsilon, delta).
        memo: Who spends, in which words and with which noise.
        facts: All else that the answer depends on but the price, as plain data.
        released: From the right to read to what is released.
        spare: Where delta comes from, if nobody named it.
    """
    return fit_purchase(
        session,
        loss,
        memo=replace(memo, table=reading.wanted.table),
        facts=[facts, reading.design.to_dict()],
        reads=_reads(reading),
        check=reading.taken.check,
        released=released,
        spare=spare,
        windows=session.windows_in(reading.taken.measured),
    )


def _reads(reading: Reading) -> tuple[str, ...]:
    return tuple(read.fingerprint for read in (reading.taken, reading.moments) if read is not None)


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
        delta_told=spared(session, reading.wanted.table).told if wanted.memo.unnamed else "",
        note=note_of(session, wanted),
        bounds=bounds_price(price(wanted.memo.epsilon, wanted.memo.delta).rho, reading.unbought),
        max_rows=reading.wanted.max_rows if reading.wanted.has_units else None,
        numbers=tuple(column.name for column in reading.design.columns if isinstance(column, Number)),
    )


def quoted_alone(paid: GaussianLoss, model: str) -> FitQuote:
    """The quote of a fit on arrays, which no ledger pays for."""
    assert paid.point is not None
    epsilon, delta = paid.point
    note = "No ledger counts what is spent on arrays: each fit costs it again."
    return FitQuote(model, "", (), epsilon, delta, paid, note)
