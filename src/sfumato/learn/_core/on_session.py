"""A model on a session: what it reads, what it buys, and the model that was bought."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.fits.kept import Kept, plain
from sfumato.fits.paying import Released, spared
from sfumato.learn._core import paying
from sfumato.learn._core.buying import bounds_price
from sfumato.learn._core.declared import TARGET, Number, number
from sfumato.learn._core.design import Design
from sfumato.learn._core.reading import Reading, public_bounds
from sfumato.session import Session
from sfumato.session.rows_wanted import rows_wanted

if TYPE_CHECKING:
    from sfumato.fits.meter import Meter
    from sfumato.learn.base import PrivateEstimator
    from sfumato.ledger import Right
    from sfumato.purchase import Purchase

__all__ = [
    "bought_design",
    "facts_of",
    "fit_purchase",
    "found_bounds",
    "is_session",
    "name",
    "reading_of",
    "said_of",
]

_PRICES = ("epsilon", "delta")


def is_session(X: Any, *, units: Any, target: Any, parameters: Any) -> TypeGuard[Session]:
    """Whether rows come from a session; what belongs to the other kind of rows is refused.

    Raises:
        InvalidParameter: for units beside a session, and for a target or parameters beside arrays.
    """
    if not isinstance(X, Session):
        if target is not None or parameters is not None:
            raise InvalidParameter("target and parameters go with a session: fit(session, text, target=…).")
        return False
    if units is not None:
        raise InvalidParameter("A session knows whose its rows are: leave units out.")
    return True


def reading_of(
    model: PrivateEstimator, session: Session, rows: Any, target: Any, parameters: Any, *, plain: bool = False
) -> Reading:
    """What a fit on a session reads; all that can be refused without rows is refused here.

    Args:
        model: It is told what the table declares of the target.
        session: Whose rows are read.
        rows: As `fit` takes them after the session.
        target: The column that is to be learned.
        parameters: Values for the text's parameters.
        plain: Whether numbers are read as they are.
    """
    model._check_session()
    wanted = rows_wanted(session, rows, parameters)
    for column in wanted.columns:
        if column.type in ("timestamp", "time"):
            name = column.name[:60]
            what = "a timestamp" if column.type == "timestamp" else "a time of day"
            raise QueryRefused(
                f"{name} is {what}, and models learn from numbers, days and categories.",
                f"Take its parts in the query: HOUR({name}) AS hour, CAST({name} AS DATE) AS day.",
            )
    names = model._target_names(target)
    model._public = tuple(wanted.column(name) for name in names)
    model._check()
    learned = model._target_declared(names)
    others = [column.name for column in wanted.columns if column.name not in names]
    if not others and model.needs_columns:
        raise InvalidParameter("Nothing is left to learn from: name more columns than the target.")
    bounds = public_bounds(model._given_bounds(), wanted, others)
    return Reading(wanted, model._design_of(bounds, others), learned, plain)


def facts_of(model: PrivateEstimator, reading: Reading) -> list[Any]:
    """All that a fit depends on beside what it reads and its price, as plain data."""
    given = {key: value for key, value in model.get_params(deep=False).items() if key not in _PRICES}
    return [
        f"{type(model).__module__}.{type(model).__qualname__}",
        {key: plain(value, key) for key, value in given.items()},
        [column.name for column in reading.target],
    ]


def said_of(kind: str, rows: Any, reading: Reading) -> str:
    """What is learned, for people: such as `Ridge of pay: SELECT age, pay FROM people`."""
    names = [column.name for column in reading.target]
    said = rows if isinstance(rows, str) else reading.wanted.table
    return f"{kind}{' of ' if names else ''}{', '.join(names)}: {said}"


def fit_purchase(
    model: PrivateEstimator, session: Session, rows: Any, target: Any, parameters: Any
) -> tuple[Reading, Purchase[Kept]]:
    """What a fit on a session reads and buys."""
    reading = reading_of(model, session, rows, target, parameters)
    spare = spared(session, reading.wanted.table) if model.delta is None else None
    paid = model._price(None if spare is None else spare.delta)
    model._rehearse(reading.design, paid)

    def learn(right: Right, meter: Meter) -> Released:
        design, released = model._released(reading.rows(right, model._target_read), meter)
        return released, found_bounds(reading, design, model._bought_target)

    return reading, paying.purchase(
        session,
        reading,
        paid,
        facts=facts_of(model, reading),
        words=said_of(type(model).__name__, rows, reading),
        learn=learn,
        spare=spare,
    )


def found_bounds(
    reading: Reading, design: Design, target: Number | None = None
) -> Mapping[str, tuple[Fraction, Fraction]]:
    """The bounds that a fit has bought, by column."""
    found = {column.name: column for column in design.columns if isinstance(column, Number)}
    bounds = {name: found[name] for name in reading.unbought if name in found}
    if target is not None:
        bounds |= {column.name: target for column in reading.target}
    return {name: (column.lower, column.upper) for name, column in bounds.items()}


def bought_design(model: PrivateEstimator, reading: Reading, kept: Kept, rho: Fraction) -> Design:
    """The columns of a model that was bought, now or before; it is told which bounds are bought.

    Args:
        model: As it will be.
        reading: What it was learned from.
        kept: What is on record.
        rho: What its fit had of the price.
    """
    name(model, design := reading.design)
    model._bounds_paid = bounds_price(rho, reading.unbought)
    model._bought_target = None
    for column in reading.target:
        if column.name in kept.bounds:
            model._bought_target = number(TARGET, *kept.bounds[column.name])
    if not design.unbought:
        return design
    return design.with_columns(
        [
            number(column.name, *kept.bounds[column.name]) if column.name in kept.bounds else column
            for column in design.columns
        ]
    )


def name(model: PrivateEstimator, design: Design) -> None:
    """Says which columns were there, as scikit-learn does."""
    model.feature_names_in_ = np.array([column.name for column in design.columns], dtype=object)
    model.n_features_in_ = len(model.feature_names_in_)
