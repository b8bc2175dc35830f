"""Synthetic tables with planted bugs: what the kit for fits must see, whatever the method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from sfumato.fits import meter
from sfumato.fits.meter import Meter, Total
from sfumato.fits.searching import Sought
from sfumato.loss import GaussianLoss
from sfumato.mechanisms import Gaussian
from sfumato.numeric.exact import Rational, positive
from sfumato.session.reading import RowsRead
from sfumato.synth import checking, fitting
from sfumato.synth._model.domain import Clique
from sfumato.synth._model.estimating import estimate as _estimate
from sfumato.synth._model.model import Model
from sfumato.synth._private import texts
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.misfits import Misfits
from sfumato.synth._private.scores import Candidates, Scores
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.coarse import coarse as _coarse
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales
from sfumato.synth.constraints import Constraints
from sfumato.synth.methods import adaptive, fixed, independent, mst
from sfumato.synth.totals import ColumnTotals

__all__ = ["CHECK_MUTANTS", "SYNTH_MUTANTS", "planted_in_synth"]

Patch: TypeAlias = tuple[Any, str, Callable[..., Any]]

_COUNTS, _STRETCHES, _MECHANISM = Cells.counts, Cells.stretches, Meter.mechanism
_SOUGHT, _FOUND = texts.sought, texts.found_texts
_SCORES, _MEASURED, _SIZES = Candidates.scores, independent.measured, fitting.unit_sizes
_MEANS, _RAKED, _ZEROS = Misfits.means, ColumnTotals.raked, Constraints.zeros


def _seen() -> tuple[list[NDArray[Any]], Patch]:
    """The exact counts that were last asked for, and what remembers them."""
    last = [np.zeros(1, np.int64)]

    def counts(cells: Cells, clique: Clique) -> Total:
        total = _COUNTS(cells, clique)
        last[0] = total.values
        return total

    return last, (Cells, "counts", counts)


def _exact_rows() -> tuple[Patch, ...]:
    """The model's total is the true number of rows."""
    last, remember = _seen()

    def estimate(domain: Any, marginals: Any, **more: Any) -> Any:
        return _estimate(domain, marginals, max(1.0, float(last[0].sum())), **more)

    homes = (independent, mst, adaptive, fixed)
    return remember, *((home, "estimate", estimate) for home in homes)


def _exact_edges() -> tuple[Patch, ...]:
    """Bins of many cells follow from exact counts."""
    last, remember = _seen()

    def coarse(column: Fine, told: Scales, *more: Any) -> Coarse:
        found = _coarse(column, Scales(column.known, (last[0].astype(np.float64),), 0.0), *more)
        return Coarse(found.place, _coarse(column, told, *more).weight)

    return remember, (fitting, "coarse", coarse)


def _exact_ends() -> tuple[Patch, ...]:
    """The first bin holds all cells up to the least row, and the last all from the greatest on."""
    last, remember = _seen()

    def coarse(column: Fine, told: Scales, *more: Any) -> Coarse:
        found = _coarse(column, told, *more)
        ends = found.place[np.flatnonzero(last[0])]  # of numbers, bins are in the order of their cells
        low, high = (ends.min(), ends.max()) if len(ends) else (0, 0)
        return Coarse(np.clip(found.place, low, high) - low, found.weight)

    return remember, (fitting, "coarse", coarse)


def _exact_totals() -> tuple[Patch, ...]:
    """Public totals are kept in proportion, for the true number of rows."""
    last, remember = _seen()

    def raked(totals: ColumnTotals, model: Model) -> Model:
        found = _RAKED(totals, model)
        return Model(found.domain, max(1.0, float(last[0].sum())), found.potentials)

    return remember, (ColumnTotals, "raked", raked)


def _unbroken_rules() -> tuple[Patch, ...]:
    """Where some row breaks a constraint, the model does not keep to it."""
    last = list[Cells]()

    def cells(*given: Any, **more: Any) -> Cells:
        last.append(Cells(*given, **more))
        return last[-1]

    def zeros(constraints: Constraints, cuts: Sequence[Coarse]) -> dict[Clique, NDArray[np.bool_]]:
        return {
            clique: table & (_COUNTS(last[-1], clique).values.reshape(table.shape) == 0)
            for clique, table in _ZEROS(constraints, cuts).items()
        }

    return (fitting, "Cells", cells), (Constraints, "zeros", zeros)


def _half(meter: Meter, sensitivity: Fraction, share: Rational) -> Gaussian:
    """Half the noise that is paid for."""
    return _MECHANISM(meter, sensitivity / 2, positive(share, "share"))


def _small_scores(candidates: Candidates, *given: Any, **more: Any) -> Scores:
    """As if a row moved a score by half of what it does."""
    found = _SCORES(candidates, *given, **more)
    return Scores(found.values, found.sensitivity / 2)


def _scores_of_one_row(candidates: Candidates, *given: Any, **more: Any) -> Scores:
    """As if a unit had one row."""
    found = _SCORES(candidates, *given, **more)
    return Scores(found.values, found.sensitivity / candidates._cells.max_rows)


def _counts_of_one_row(cells: Cells, clique: Clique) -> Total:
    """As if a unit had one row."""
    return _COUNTS(cells, clique)._replace(sensitivity=Fraction(1))


def _overlapping(cells: Cells, place: int, width: int, known: int) -> Total:
    """Counts each row in two stretches, and claims what counts in one do."""
    total = _STRETCHES(cells, place, width, known)
    return total._replace(values=total.values + np.roll(total.values, 1))


def _sizes_by_rows(read: RowsRead, most: int) -> Total:
    """Counts the rows of units with 1 row, 2 rows, …, and claims what counts of units do."""
    total = _SIZES(read, most)
    return total._replace(values=total.values * np.arange(1, most + 1))


def _free_singles() -> tuple[Patch, ...]:
    """Pairs share the price as if no single column had been measured, and no filter counts along."""

    def measured(cells: Cells, meter: Meter, clique: Clique, share: Fraction) -> Any:
        return _MEASURED(cells, meter, clique, share if len(clique) == 1 else share * 5 / 3)

    def uncounted(paid: GaussianLoss, **more: Any) -> Meter:
        return Meter(paid.rho, lambda _: None, **more)

    return (mst, "measured", measured), (adaptive, "measured", measured), (Meter, "alone", uncounted)


def _rows_with_texts(read: RowsRead, place: int, most: int) -> Sought:
    """Counts the rows that have a text, and claims what counts of units do."""
    return _SOUGHT(replace(read, units=None), place, most)


def _texts_by_counts() -> tuple[Patch, ...]:
    """Texts in the order of their exact counts."""

    def found(columns: Any, read: RowsRead, *more: Any) -> dict[int, tuple[str, ...]]:
        exact = {at: dict(zip(*_SOUGHT(read, at, 1)[:2], strict=True)) for at in read.texts}
        shown = _FOUND(columns, read, *more)
        return {at: tuple(sorted(texts, key=lambda text: exact[at][text])) for at, texts in shown.items()}

    def holding(column: Fine, common: Sequence[str]) -> Fine:
        return replace(column, values=(*common, "others"), steps=0)

    return (fitting, "found_texts", found), (Fine, "holding", holding)


SYNTH_MUTANTS: Mapping[str, Callable[[], Sequence[Patch]]] = MappingProxyType(
    {
        "the exact number of rows": _exact_rows,
        "single columns measured as if they were skipped": _free_singles,
        "half of what a row moves scores by": lambda: [(Candidates, "scores", _small_scores)],
        "scores as if a unit had one row": lambda: [(Candidates, "scores", _scores_of_one_row)],
        "counts as if a unit had one row": lambda: [(Cells, "counts", _counts_of_one_row)],
        "stretches of cells that overlap": lambda: [(Cells, "stretches", _overlapping)],
        "bins by exact counts": _exact_edges,
        "bins between the least and the greatest row": _exact_ends,
        "totals times the exact number of rows": _exact_totals,
        "rules that some row breaks left out": _unbroken_rules,
        "half the noise": lambda: [(Meter, "mechanism", _half)],
        "texts of one unit": lambda: [(meter, "threshold", lambda *_: 0.0)],
        "texts as if a unit had one": lambda: [(texts, "sought", lambda read, at, _: _SOUGHT(read, at, 1))],
        "texts counted by rows": lambda: [(texts, "sought", _rows_with_texts)],
        "texts in the order of their counts": _texts_by_counts,
        "sizes of units counted by rows": lambda: [(fitting, "unit_sizes", _sizes_by_rows)],
    }
)
"""What is wrong, in words, and what is put in its place."""


def _off_of_one_row(misfits: Misfits, weights: Sequence[Sequence[int]]) -> Total:
    """As if a unit had one row."""
    total = _MEANS(misfits, weights)
    return total._replace(sensitivity=total.sensitivity / misfits._most)


def _off_of_one_mean(misfits: Misfits, weights: Sequence[Sequence[int]]) -> Total:
    """As if several means moved no farther than one."""
    return _MEANS(misfits, weights)._replace(sensitivity=_MEANS(misfits, weights[:1]).sensitivity)


def _off_of_many_rows(misfits: Misfits, weights: Sequence[Sequence[int]]) -> Total:
    """A sum over sets that claims what a mean does."""
    total = _MEANS(misfits, weights)
    return total._replace(values=total.values * len(weights[0]))


def _off_by_exact_rows(cells: Cells, cliques: Sequence[Clique], expected: Sequence[NDArray[Any]]) -> Misfits:
    """The model's counts add up to the true number of rows."""
    rows = float(_COUNTS(cells, ()).values[0])
    return Misfits(cells, cliques, [counts * rows / max(counts.sum(), 1e-300) for counts in expected])


CHECK_MUTANTS: Mapping[str, Callable[[], Sequence[Patch]]] = MappingProxyType(
    {
        "misfits as if a unit had one row": lambda: [(Misfits, "means", _off_of_one_row)],
        "several misfits as if they were one": lambda: [(Misfits, "means", _off_of_one_mean)],
        "misfits added up as if they were a mean": lambda: [(Misfits, "means", _off_of_many_rows)],
        "misfits beside the exact number of rows": lambda: [(checking, "Misfits", _off_by_exact_rows)],
        "counts of a check as if a unit had one row": lambda: [(Cells, "counts", _counts_of_one_row)],
        "half the noise of a check": lambda: [(Meter, "mechanism", _half)],
    }
)
"""The same of what a check of a synthetic table stands on."""


@contextmanager
def planted_in_synth(name: str) -> Iterator[None]:
    """Runs what is inside with the bug of that name in what fits and checks of synthetic tables stand on."""
    with ExitStack() as stack:
        for home, attribute, bug in {**SYNTH_MUTANTS, **CHECK_MUTANTS}[name]():
            stack.enter_context(patch.object(home, attribute, bug))
        yield
