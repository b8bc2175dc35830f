"""Bounds that are bought: a noisy histogram of sizes, kept in the ledger for all later questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.ledger import Memo, Right
from sfumato.mechanisms import Laplace
from sfumato.plan.expressions.written import written
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.words import exact
from sfumato.plan.questions.aggregates import statistic
from sfumato.plan.questions.autobounds import choose_bounds, choose_groups, clamped_share, shows_nothing
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
from sfumato.purchase import Bought, Purchase, is_no_dearer, known, on_record, summed
from sfumato.session.payload import Answer

if TYPE_CHECKING:
    from sfumato.session.session import Session

__all__ = [
    "SHARE",
    "Bounds",
    "bounds_on_record",
    "buy_bounds",
    "known_bounds",
    "refuse_unpayable",
    "wanted_for_bounds",
]

Find: TypeAlias = "Callable[[Session, Purchase[Answer]], Bought[Answer] | None]"

_LARGEST_ROOT = 2**25
_MOST_ROWS = 2**20

_UNSEEN = (
    "{0}: at this price nothing could be seen of how large numbers are, so they are held {1}: this answer "
    "says little. Declare the bounds if you know them, or ask with a larger epsilon, which buys them anew."
)

SHARE = Fraction(1, 5)
"""The part of a price that goes into finding bounds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A plan with the bounds that were found for it.

    Attributes:
        plan: With bounds for each aggregate.
        spent: What was paid for them now; 0 where the ledger had them.
        notes: What was found, in words.
        counted: What of the reader's limit they count now, since somebody else has paid: unit → amount.
    """

    plan: Plan
    spent: Fraction
    notes: tuple[str, ...]
    counted: Mapping[str, Fraction]


def known_bounds(session: Session, plan: Plan, epsilon: Fraction) -> Bounds | None:
    """The plan with bounds that were bought before, if all of them were; free."""
    return _bounds(session, plan, epsilon, _known)


def bounds_on_record(session: Session, plan: Plan, epsilon: Fraction) -> Bounds | None:
    """The plan with bounds that are all on record, some of them paid for by others: to plan with alone."""
    return _bounds(session, plan, epsilon, _on_record)


def wanted_for_bounds(session: Session, plan: Plan, epsilon: Fraction) -> list[Purchase[Answer]]:
    """What is bought for the bounds of a plan, in its order, with a part of this price."""
    report, rows = plan.report, plan.rows
    counted = groups_of(report, rows)
    distinct = dict.fromkeys(call.argument for call in plan.unbounded if call.argument is not None)
    questions = [*([] if counted is None else [counted]), *(sizes_of(each, rows) for each in distinct)]
    return [_purchase(session, report, question, epsilon * SHARE / len(questions)) for question in questions]


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


def refuse_unpayable(session: Session, plan: Plan) -> None:
    """Refuse to find bounds where the budget's accountant cannot add up what that costs.

    Raises:
        QueryRefused: with the way round it.
    """
    needed = plan.unbounded or groups_of(plan.report, plan.rows) is not None
    if needed and session.dataset_of(plan.report).budget.accountant == "gaussian":
        raise QueryRefused(
            "A budget kept by gaussian cannot pay for bounds: they are found with Laplace noise.",
            "Declare the bounds, or have the budget opened as zcdp.",
        )


def _bounds(session: Session, plan: Plan, epsilon: Fraction, find: Find) -> Bounds | None:
    report, rows, calls = plan.report, plan.rows, plan.unbounded
    if find is not _bought and not session.balance(session.dataset_of(report).name).open:
        return None  # who may no longer ask sees nothing of what was bought before
    arguments = {call: call.argument for call in calls if call.argument is not None}
    distinct = list(dict.fromkeys(arguments.values()))
    wanted = wanted_for_bounds(session, plan, epsilon)
    spent, notes, counts = Fraction(0), list[str](), list[Mapping[str, Fraction]]()
    if len(wanted) > len(distinct):
        bought = find(session, wanted.pop(0))
        if bought is None:
            return None
        answer = bought.answer
        spent += Fraction(0) if bought.free else answer.epsilon
        notes += _counted(bought)
        counts.append(bought.counted)
        left = float(epsilon * (1 - SHARE)) / len(report.child.aggregates)
        many = choose_groups(np.asarray(answer.noisy[0]), answer.noises[0].scale, epsilon=left)
        many = min(many, _MOST_ROWS // rows_in_group(rows.unit))
        report = with_groups(report, many)
        notes.append(f"Each {rows.owner} counts in at most {many} groups, chosen from a noisy histogram.")
    chosen: dict[AggregateCall, tuple[Fraction, Fraction]] = {}
    for argument, purchase in zip(distinct, wanted, strict=True):
        bought = find(session, purchase)
        if bought is None:
            return None
        answer = bought.answer
        spent += Fraction(0) if bought.free else answer.epsilon
        notes += _counted(bought)
        counts.append(bought.counted)
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
            held = f"from {float(lower):.6g} to {float(upper):.6g}"
            if not best.found:
                notes.append(_UNSEEN.format(written(argument, 30), held))
                continue
            touched = clamped_share(histogram, scale, GRID, lower=lower, upper=upper)
            notes.append(
                f"{written(argument, 30)}: bounds {held}. About "
                f"{touched.share:.1%} of the rows lie outside ({touched.low:.1%} to {touched.high:.1%} at "
                "0.95 confidence) and are clamped."
            )
    plan = replace(plan, report=bounded(report, chosen))
    return Bounds(plan, spent, tuple(dict.fromkeys(notes)), summed(*counts))


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


def _least_noisy(kept: Iterator[Bought[Answer]], epsilon: Fraction) -> Bought[Answer] | None:
    """The best histogram on record; None if it shows nothing, and this price buys a better one."""
    best = min(kept, key=lambda bought: bought.answer.noises[0].scale, default=None)
    if best is None or best.answer.epsilon >= epsilon:
        return best
    histogram, scale = np.asarray(best.answer.noisy[0]), best.answer.noises[0].scale
    return None if len(histogram) == GRID.cells and shows_nothing(histogram, scale, GRID) else best


def _purchase(session: Session, report: Report, question: Measured, epsilon: Fraction) -> Purchase[Answer]:
    """A noisy histogram; of several on record the least noisy, if it shows anything.

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

    dataset, windows = session.dataset_of(report), session.windows_of(report)
    return Purchase(
        dataset=dataset.name,
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
        choose=lambda kept: _least_noisy(kept, epsilon),
        check=lambda: session.vault.check((question,), windows=windows),
        windows=windows,
        takes=lambda paid: is_no_dearer(dataset.budget, paid, mechanism.loss),
    )
