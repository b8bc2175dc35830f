"""Bounds that are bought: a noisy histogram of sizes, kept in the ledger for all later questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.ledger import Memo, Right
from sfumato.mechanisms import Laplace
from sfumato.plan.expressions.written import written
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.words import exact
from sfumato.plan.questions.aggregates import statistic
from sfumato.plan.questions.autobounds import choose_bounds, choose_groups, clamped_share
from sfumato.plan.questions.nodes import AggregateCall, Measured, Report
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.plan.questions.unbounded import (
    FALLBACK,
    GRID,
    bounded,
    groups_of,
    sizes_of,
    with_groups,
)
from sfumato.purchase import Bought, Purchase, known, on_record
from sfumato.session.payload import Answer

if TYPE_CHECKING:
    from sfumato.session.session import Session

__all__ = ["SHARE", "Bounds", "buy_bounds", "known_bounds", "others_know_bounds"]

Find: TypeAlias = "Callable[[Session, Purchase[Answer]], Bought[Answer] | None]"

_LARGEST_ROOT = 2**25
_MOST_ROWS = 2**20

SHARE = Fraction(1, 5)
"""The part of a price that goes into finding bounds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A plan with the bounds that were found for it.

    Attributes:
        plan: With bounds for each aggregate.
        spent: What was paid for them now; 0 where the ledger had them.
        notes: What was found, in words.
    """

    plan: Plan
    spent: Fraction
    notes: tuple[str, ...]


def known_bounds(session: Session, plan: Plan, epsilon: Fraction) -> Bounds | None:
    """The plan with bounds that were bought before, if all of them were; free."""
    return _bounds(session, plan, epsilon, _known)


def others_know_bounds(session: Session, plan: Plan, epsilon: Fraction) -> bool:
    """Whether all bounds that are needed are on record, some of them paid for by others; tells none."""
    return _bounds(session, plan, epsilon, _on_record) is not None


def buy_bounds(session: Session, plan: Plan, epsilon: Fraction) -> Bounds:
    """The plan with bounds for all that has none, bought with a part of this price unless they are known.

    Args:
        session: Whose ledger pays.
        plan: The question.
        epsilon: The whole price; `SHARE` of it is for the bounds.
    """
    bounds = _bounds(session, plan, epsilon, _bought)
    assert bounds is not None
    return bounds


def _bounds(session: Session, plan: Plan, epsilon: Fraction, find: Find) -> Bounds | None:
    report, rows, calls = plan.report, plan.rows, plan.unbounded
    if find is not _bought and not session.balance(session.dataset_of(report).name).open:
        return None  # who may no longer ask sees nothing of what was bought before
    arguments = {call: call.argument for call in calls if call.argument is not None}
    distinct = list(dict.fromkeys(arguments.values()))
    counted = groups_of(report, rows)
    parts = len(distinct) + (counted is not None)
    spent, notes = Fraction(0), []
    if counted is not None:
        bought = find(session, _purchase(session, report, counted, epsilon * SHARE / parts))
        if bought is None:
            return None
        answer, part = bought.answer, Fraction(0) if bought.free else epsilon * SHARE / parts
        spent += part
        notes += _counted(bought)
        left = float(epsilon * (1 - SHARE)) / len(report.child.aggregates)
        many = choose_groups(np.asarray(answer.noisy[0]), answer.noises[0].scale, epsilon=left)
        many = min(many, _MOST_ROWS // rows_in_group(rows.unit))
        report = with_groups(report, many)
        notes.append(f"Each {rows.owner} counts in at most {many} groups, chosen from a noisy histogram.")
    chosen: dict[AggregateCall, tuple[Fraction, Fraction]] = {}
    for argument in distinct:
        bought = find(session, _purchase(session, report, sizes_of(argument, rows), epsilon * SHARE / parts))
        if bought is None:
            return None
        answer, part = bought.answer, Fraction(0) if bought.free else epsilon * SHARE / parts
        spent += part
        notes += _counted(bought)
        histogram, scale = np.asarray(answer.noisy[0]), answer.noises[0].scale
        for aggregate in (call for call in calls if arguments[call] == argument):
            weight = float(rows.unit.max_rows) if rows.unit.column is not None else 1.0
            best = choose_bounds(
                histogram,
                scale,
                GRID,
                epsilon=float(epsilon * (1 - SHARE)) / len(report.child.aggregates),
                weight=weight,
                fallback=FALLBACK,
                goal="sum" if aggregate.function == "sum" else "mean",
            )
            lower, upper = _measurable(aggregate, best.lower, best.upper, rows)
            chosen[aggregate] = (lower, upper)
            touched = clamped_share(histogram, scale, GRID, lower=lower, upper=upper)
            seen = "bounds" if best.found else "nothing could be seen, so bounds"
            notes.append(
                f"{written(argument, 30)}: {seen} from {float(lower):.6g} to {float(upper):.6g}. About "
                f"{touched.share:.1%} of the rows lie outside ({touched.low:.1%} to {touched.high:.1%} at "
                "0.95 confidence) and are clamped."
            )
    return Bounds(replace(plan, report=bounded(report, chosen)), spent, tuple(dict.fromkeys(notes)))


def _measurable(
    call: AggregateCall, lower: Fraction, upper: Fraction, rows: Rows
) -> tuple[Fraction, Fraction]:
    """Bounds cut to what can be measured: squares below 2**53, and sums that 128 bits are sure to hold."""
    weight = 1 if rows.unit.column is None else rows.unit.max_rows
    most = Fraction(_LARGEST_ROOT if statistic(call.function).squares else min(2**52, 2**58 // weight))
    low, high = max(lower, -most), min(upper, most)
    return (low, high) if low < high else (-most, most)


def _known(session: Session, wanted: Purchase[Answer]) -> Bought[Answer] | None:
    return known(session.ledger, wanted)


def _on_record(session: Session, wanted: Purchase[Answer]) -> Bought[Answer] | None:
    return on_record(session.ledger, wanted)


def _bought(session: Session, wanted: Purchase[Answer]) -> Bought[Answer] | None:
    return session.buy(wanted)


def _counted(bought: Bought[Answer]) -> list[str]:
    """What to say of bounds that somebody else has bought, the first time."""
    if not bought.counted:
        return []
    figures = ", ".join(f"{unit} {exact(part)}" for unit, part in bought.counted.items())
    return [f"Bounds were on record, bought by somebody else: {figures} counts toward your limit."]


def _purchase(session: Session, report: Report, question: Measured, epsilon: Fraction) -> Purchase[Answer]:
    """A noisy histogram; of several on record the least noisy.

    Privacy:
        Claim: carries the loss of its Laplace noise: a unit's rows weigh at most max_rows over all cells.
        What is chosen from it is post-processing.
    """
    tool = instrument(question.measurements[0], question)
    mechanism = Laplace(epsilon, tool.sensitivity.l1)

    def answer(right: Right) -> Answer:
        cells = session.vault.read((question,), right).cells
        assert cells is not None
        noisy = np.asarray(mechanism.release(cells[0])) * float(tool.unit)
        del cells
        noise = replace(Noise.of(mechanism, tool.unit), rounding=0.0)
        return Answer((noisy,), (noise,), epsilon, Fraction(0), "laplace")

    return Purchase(
        dataset=session.dataset_of(report).name,
        loss=mechanism.loss,
        fingerprint=question.fingerprint,
        memo=Memo(
            "bounds",
            f"numbers or groups of {question.table}",
            epsilon,
            Fraction(0),
            "laplace",
            question.table,
        ),
        answer=answer,
        write=Answer.to_bytes,
        read_back=Answer.from_bytes,
        choose=lambda kept: min(kept, key=lambda bought: bought.answer.noises[0].scale, default=None),
        check=lambda: session.vault.check((question,)),
    )
