"""From exact integers to a private answer: the only place where a query's noise is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms import AdaptiveSelection
from sfumato.plan.intervals.rings import cuts_around, weights_between
from sfumato.plan.prices.extras import NESTED, PricedDistinct, PricedExtra, PricedQuantiles
from sfumato.plan.prices.touched import PricedTouched
from sfumato.plan.questions.found import Found
from sfumato.plan.questions.others import Pick, lines_of, searched_of
from sfumato.plan.questions.spread import Spread
from sfumato.samplers.wholes import Wholes
from sfumato.session.reading import Reading, on_lines

if TYPE_CHECKING:
    from sfumato.plan.prices.price import AnyNoise
    from sfumato.plan.prices.quoting import Quote
    from sfumato.plan.prices.selecting import Counting

__all__ = ["privatise", "privatise_extra", "select", "select_in_rounds", "select_on_levels"]


def privatise(exact: Sequence[NDArray[Any]], quote: Quote) -> tuple[NDArray[Any], ...]:
    """Each measurement of the main question with its noise, in natural units.

    Privacy:
        Claim: the arrays together carry the main question's part of `quote.loss`. Each is released by its own
        mechanism, built for its own sensitivity; scaling afterwards is post-processing.
    """
    return tuple(
        _noisy(values, mechanism, unit)
        for values, mechanism, unit in zip(exact, quote.mechanisms, quote.units, strict=True)
    )


def select(reading: Reading, selection: Counting) -> tuple[Reading, NDArray[np.int64]]:
    """The groups that survive the selection, with their exact integers, and their noisy numbers of units.

    Privacy:
        Claim: the list of groups and the noisy numbers carry the loss of `selection`. The groups that were
        found are in a canonical order before noise is drawn, and those dropped leave no trace.
    """
    assert reading.units is not None
    kept, noisy = selection.release(np.asarray(reading.units, dtype=np.int64))
    return _survivors(reading, kept), noisy[kept]


def select_in_rounds(read: Callable[[Spread], Reading], selection: AdaptiveSelection) -> Reading:
    """The groups that survive two rounds, with their exact integers.

    Args:
        read: What is read once units' weights are spread in this way.
        selection: The mechanism.

    Privacy:
        Claim: the list of groups carries the loss of `selection`. Both rounds give each unit the weights
        that `selection.steps` says for its groups (`sql.write.choice`), in the second for those that the
        first did not find; the second reading is told that list and nothing else of the first. Groups are in
        a canonical order before noise is drawn, and those dropped leave no trace.
    """
    reading = read(Spread(selection.steps))
    assert reading.weights is not None
    found, noisy = selection.first_round(reading.weights)
    without = tuple(_kept(reading.groups, found))
    again = read(Spread(selection.steps, without))
    assert again.weights is not None
    after = dict(zip(again.groups, again.weights.tolist(), strict=True))
    left = np.flatnonzero(~found)
    more, _ = selection.second_round(
        noisy[left], [after.get(reading.groups[place], 0) for place in left.tolist()]
    )
    found[left] = more
    return _survivors(reading, found)


def _survivors(reading: Reading, kept: NDArray[np.bool_]) -> Reading:
    """The groups that are kept, with their exact integers."""
    return Reading(_kept(reading.groups, kept), tuple(column[kept] for column in reading.columns))


def _kept(groups: Sequence[tuple[Any, ...]], kept: NDArray[np.bool_]) -> Sequence[tuple[Any, ...]]:
    rows = np.flatnonzero(kept)
    return groups.taken(rows) if isinstance(groups, Found) else tuple(groups[row] for row in rows.tolist())


def select_on_levels(
    reading: Reading, more: Sequence[Reading], quote: Quote
) -> tuple[Reading, NDArray[np.int64]]:
    """The same for several levels: the groups that survive are picks, the exact integers those of all lines.

    Args:
        reading: The groups of all keys together.
        more: Those of the levels on which groups are selected, but for a level of all keys.
        quote: What was asked.

    Privacy:
        Claim: the picks and their noisy numbers carry the loss of all `quote.selections` together. The groups
        of all levels of a rank are one list, in which a unit counts 1 in at most max_groups groups of each of
        those levels, and one mechanism is made for just so many (`plan.prices.bundle`). Nothing that survived
        enters the selection of another rank, and the lines follow from what survived alone.
    """
    counted, number = iter(more), 0
    picks: list[Pick] = []
    noisy: list[NDArray[np.int64]] = []
    for rank, selection in zip(searched_of(quote.measured), quote.selections, strict=True):
        groups: list[Pick] = []
        units: list[NDArray[Any]] = []
        for level in rank:
            own = reading if len(level) == len(quote.measured.keys) else next(counted)
            assert own.units is not None
            order = level if own is reading else range(len(level))  # a level's question has its keys alone
            groups += [(number, *(group[key] for key in order)) for group in own.groups]
            units.append(own.units)
            number += 1
        assert not isinstance(selection, AdaptiveSelection)  # on several levels units are counted
        survivors, some = select(Reading(tuple(groups), (), np.concatenate(units)), selection)
        picks += survivors.groups
        noisy.append(some)
    assert next(counted, None) is None
    lines = lines_of(quote.measured, picks)
    return Reading(tuple(picks), on_lines(reading, lines)), np.concatenate(noisy)


def privatise_extra(reading: Reading, priced: PricedExtra) -> tuple[NDArray[Any], ...]:
    """What is released for an extra question.

    Privacy:
        Claim: the arrays carry `priced.loss`.
    """
    if isinstance(priced, PricedTouched):
        return tuple(_noisy(column, priced.mechanism, Fraction(1)) for column in reading.columns)
    if isinstance(priced, PricedDistinct):
        return (_noisy(reading.columns[0], priced.mechanism, Fraction(1)),)
    assert isinstance(priced, PricedQuantiles)
    assert reading.cells is not None
    cells = priced.selection.select_many(reading.cells)
    cuts = cuts_around(cells, reading.cells.shape[1])
    weights = weights_between(reading.cells, cuts)
    noisy = _noisy(weights.reshape(-1), priced.bars, priced.unit)
    return cells, cuts, noisy.astype(np.float64).reshape(weights.shape), np.array([NESTED])


def _noisy(values: NDArray[Any], mechanism: AnyNoise, unit: Fraction) -> NDArray[Any]:
    """One call for all values, whatever their size: how noise is drawn must not depend on them."""
    noisy = mechanism.release_whole(Wholes.in_array(values))
    if noisy.dtype.kind == "i" and unit == 1:
        return noisy.astype(np.int64)
    return noisy.astype(np.float64) * float(unit)  # a power of two: exact
