"""A fit on a session: the rows that it reads, its one purchase, and the quote of that."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
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
from sfumato.learn._core.declared import AUTO, Category, Declared, Number, Unbought, is_auto
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.records import Records
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.session_rows import SessionRows, engine_moments
from sfumato.ledger import Memo, Right
from sfumato.ledger.spare import Spare
from sfumato.numeric.exact import show
from sfumato.purchase import Bought, Purchase, is_no_dearer, known
from sfumato.session.rows_wanted import (
    Coded,
    MomentsTaken,
    Plain,
    RowsTaken,
    RowsWanted,
    Scaled,
    Taking,
    days,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sfumato.loss import GaussianLoss
    from sfumato.session.session import Session

__all__ = ["FitQuote", "Reading", "public_bounds", "purchase", "quoted", "quoted_alone"]

_WIDTH = 80

Released: TypeAlias = tuple[Mapping[str, NDArray[Any]], Mapping[str, Number]]
"""What a fit releases: arrays by name, and the bounds that it bought, by column."""
ReadTarget: TypeAlias = Callable[[list[NDArray[Any]]], NDArray[Any] | None]


def public_bounds(bounds: Any, wanted: RowsWanted, names: Sequence[str]) -> Any:
    """The bounds that were given; by column, and without any, those that the table declares fill in.

    Days may be written as dates. Where all bounds are to be bought, declared categories stay.
    """
    if is_auto(bounds):
        columns = [wanted.column(name) for name in names]
        return {
            column.name: AUTO if column.values is None else Category(column.name, tuple(column.values))
            for column in columns
        }
    if bounds is not None and not isinstance(bounds, Mapping):
        return bounds
    places = {str(place): name for place, name in enumerate(names) if str(place) not in names}
    given = {places.get(str(name), str(name)): pair for name, pair in (bounds or {}).items()}
    for name in names:
        column = wanted.column(name)
        if name not in given and column.kind == "category" and column.values is not None:
            given[name] = Category(name, tuple(column.values))
        elif name not in given and column.lower is not None and column.upper is not None:
            given[name] = (column.lower, column.upper)
        elif column.is_date and isinstance(given.get(name), tuple) and len(given[name]) == 2:
            given[name] = tuple(map(days, given[name]))
    return given


@dataclass(frozen=True, slots=True)
class Reading:
    """What a fit reads of a session: its columns as coordinates, and what is to be learned.

    Attributes:
        wanted: The rows.
        design: The coordinates of the columns that are learned from.
        target: The columns of what is to be learned, each with what is declared of it.
    """

    wanted: RowsWanted
    design: Design
    target: tuple[Declared, ...]

    @property
    def unbought(self) -> tuple[str, ...]:
        """The columns whose bounds the fit buys."""
        columns = (*self.design.columns, *self.target)
        return tuple(column.name for column in columns if isinstance(column, Unbought))

    @property
    def taken(self) -> RowsTaken:
        """The rows as integers. Those without a number or without what is to be learned are left out.

        Where bounds are bought, numbers are read as they are.
        """
        steps = UNIT * (1 + self.design.signed)
        plain = bool(self.unbought)
        ways = {column.name: _way(column, steps, plain=plain) for column in self.design.columns}
        for column in self.target:
            ways[column.name] = _way(column, UNIT, plain=isinstance(column, Unbought))
        needed = [column.name for column in self.design.columns if isinstance(column, Number)]
        return self.wanted.taking(ways, complete=[*needed, *(column.name for column in self.target)])

    @property
    def moments(self) -> MomentsTaken | None:
        """The second moments that the engine can add up; None: it cannot."""
        return None if self.unbought else engine_moments(self.design, self.taken)

    def rows(self, right: Right, target: ReadTarget) -> Rows | Records:
        """The rows of a fit, read once: when they are looked at, unless bounds are bought.

        Args:
            right: To `taken` and `moments`.
            target: From the columns of the target to what is to be learned, one a row.

        Privacy:
            Claim: neighbours differ in the rows of one unit (`Vault.rows`), and each row is what
            `Design.integers` makes of the same values: a category that is missing or not listed is none of
            them, and rows without a number are not there.
        """
        width, exchange = len(self.design.columns), self.wanted.exchange
        if not self.unbought:
            return SessionRows(
                self.design,
                lambda: self._read(right, target),
                right,
                self.moments,
                exchange=exchange,
                has_units=self.wanted.has_units,
            )
        read = self.taken.read(right)
        columns = [
            values if isinstance(column, Number) else np.where(missing, -1, values)
            for column, values, missing in zip(
                self.design.columns, read.columns[:width], read.missing[:width], strict=True
            )
        ]
        learned = target(list(read.columns[width:]))
        lacking = next((column for column in self.target if isinstance(column, Unbought)), None)
        return Records(self.design, columns, learned, read.units, exchange=exchange, target_column=lacking)

    def _read(
        self, right: Right, target: ReadTarget
    ) -> tuple[NDArray[np.int16], NDArray[Any] | None, NDArray[np.int64] | None]:
        """The coordinates of each row, what is to be learned, and whose it is."""
        read = self.taken.read(right)
        integers = np.zeros((read.size, len(self.design.coordinates)), np.int16)
        for at, coordinate in enumerate(self.design.coordinates):
            values, missing = read.columns[coordinate.column], read.missing[coordinate.column]
            if coordinate.category is None:
                integers[:, at] = values - UNIT if self.design.signed else values
            else:
                integers[:, at] = np.where(~missing & (values == coordinate.category), UNIT, 0)
        return integers, target(list(read.columns[len(self.design.columns) :])), read.units


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


def _way(column: Declared, steps: int, *, plain: bool) -> Taking:
    if isinstance(column, Category):
        return Coded(column.values)
    return Plain() if plain else Scaled(float(column.lower), float(column.upper), steps)


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
        of noise is counted by it first (`Right.steps`); rows are read once, for this debit. Whatever fails
        after the debit stays paid, and its refusal says nothing of the rows. A fit on record serves if it
        cost no less: its answer follows from the same data by the same rule.
    """
    taken, gate = reading.taken, GaussianFilter(paid.rho, point=paid.point)
    assert paid.point is not None  # prices of fits are calibrated
    epsilon, delta = paid.point
    budget = session.dataset_with(session.tables[reading.wanted.table]).budget
    whole = ["fit", facts, taken.fingerprint, reading.design.to_dict()]

    def answer(right: Right) -> Kept:
        steps = right.steps(gate)
        meter = Meter(paid.rho, steps.take, exchange=reading.wanted.exchange)
        learned, found = _guarded(lambda: learn(right, meter))
        bounds = {name: (column.lower, column.upper) for name, column in found.items()}
        return Kept(learned, epsilon, delta, bounds)

    def as_good(kept: Iterator[Bought[Kept]]) -> Bought[Kept] | None:
        return next(
            (each for each in kept if each.answer.epsilon >= epsilon and each.answer.delta >= delta), None
        )

    return Purchase(
        dataset=reading.wanted.dataset,
        loss=gate.loss,
        fingerprint=hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest(),
        memo=Memo(
            "fit",
            words,
            epsilon,
            delta,
            "gaussian",
            reading.wanted.table,
            unnamed=() if spare is None else ("delta",),
        ),
        answer=answer,
        write=Kept.to_bytes,
        read_back=Kept.from_bytes,
        choose=as_good,
        reads=tuple(read.fingerprint for read in (taken, reading.moments) if read is not None),
        check=taken.check,
        takes=lambda receipt: is_no_dearer(budget, receipt, gate.loss),
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

    def __str__(self) -> str:
        """Such as `LogisticRegression on people, from age and sex: epsilon 1, delta 1e-06`."""
        *first, last = self.columns or ("the target alone",)
        listed = f"{', '.join(first)} and {last}" if first else last
        where = f" on {self.table}, from {listed}" if self.table else ""
        told = f" ({self.delta_told})" if self.delta_told else ""
        price = f"epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}{told}"
        said = f"{self.model}{where}: {price} for the whole fit."
        return textwrap.fill(
            " ".join(part for part in (said, str(self.bounds or ""), self.note) if part), _WIDTH
        )

    def __repr__(self) -> str:
        return str(self)


def quoted(session: Session, wanted: Purchase[Kept], reading: Reading, model: str) -> FitQuote:
    """The quote of a fit.

    Raises:
        QueryRefused: if the rows cannot be read so.
    """
    assert wanted.memo.epsilon is not None
    assert wanted.memo.delta is not None
    wanted.check()
    note = ""
    try:
        if known(session.ledger, wanted) is not None:
            note = "It is on record: to fit it again is free."
        else:
            session.ledger.refuse_several(wanted.dataset, [(wanted.loss, True)])
    except BudgetExceeded:
        note = "This is more than what is left: it would be refused."
    except (AccessDenied, UnsupportedLoss):
        pass  # the fit says why
    return FitQuote(
        model=model,
        table=reading.wanted.table,
        columns=tuple(column.name for column in reading.design.columns),
        epsilon=wanted.memo.epsilon,
        delta=wanted.memo.delta,
        loss=wanted.loss,  # type: ignore[arg-type]
        delta_told=spared(session, reading).told if wanted.memo.unnamed else "",
        note=note,
        bounds=bounds_price(price(wanted.memo.epsilon, wanted.memo.delta).rho, reading.unbought),
    )


def quoted_alone(paid: GaussianLoss, model: str) -> FitQuote:
    """The quote of a fit on arrays, which no ledger pays for."""
    assert paid.point is not None
    epsilon, delta = paid.point
    note = "No ledger counts what is spent on arrays: each fit costs it again."
    return FitQuote(model, "", (), epsilon, delta, paid, note)
