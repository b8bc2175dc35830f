"""Full-domain generalisation: every value of a column is told at one level, and the best levels are found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity._automatic import automatic
from sfumato.anonymity._guard import Guard, guard_of
from sfumato.anonymity._lattice import Levels, cheapest
from sfumato.anonymity.anonymized import Anonymized, Recoded, anonymized
from sfumato.anonymity.codes import Coded, Codes, classes_of
from sfumato.anonymity.given import given
from sfumato.anonymity.hierarchy import Hierarchy, Tree
from sfumato.anonymity.mondrian import asked_for
from sfumato.anonymity.tables import names_given
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, show

__all__ = ["generalize", "suggest"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def generalize(
    table: Source,
    hierarchies: Mapping[str, Hierarchy | Tree | None] | Sequence[str],
    k: int,
    *,
    l: int | None = None,  # noqa: E741
    t: Rational | None = None,
    sensitive: str | Sequence[str] | None = None,
    suppress: Rational = 0.05,
) -> Anonymized:
    """The table at the levels that lose least among all that leave classes of at least k rows.

    Rows of smaller classes are suppressed, which means left out, as long as they are at most a share of
    `suppress`. The loss that is least is `ncp`, in which a suppressed row lost everything. All values of a
    column are told at the same level, so that columns stay easy to work with; `mondrian` loses less.

    Args:
        table: a path (CSV, Parquet, …), or an Arrow, pandas or Polars frame.
        hierarchies: the quasi-identifiers with a `Hierarchy` each, or a tree of labels, or None for one that
            is made from the column (see `suggest`); a list of names is None for all.
        k: the least number of rows in a class.
        l: also the least number of different values of each sensitive column in a class.
        t: also the most that the mixture of a sensitive column in a class may differ from that of the table
            that is left. Rows are suppressed for k and l, never for t.
        sensitive: the columns that nobody should learn.
        suppress: the largest share of the rows that may be left out, 0 for none.

    Privacy:
        Steward-only, see `Anonymized`.

    Raises:
        InvalidParameter: for a column that does not exist, a hierarchy that does not cover its values, or a
            k, l or t that these rows cannot reach.
        SourceUnusable: if the table cannot be read.
    """
    ways = (
        dict(hierarchies)
        if isinstance(hierarchies, Mapping)
        else dict.fromkeys(names_given(hierarchies, "hierarchies"))
    )
    most = as_fraction(suppress, "suppress")
    if not 0 <= most <= 1:
        raise InvalidParameter("suppress is a share of the rows; give a number from 0 to 1.")
    source = given(table, list(ways), sensitive)
    rows = source.table.num_rows
    guard = guard_of(k, l, t, source.sensitive, rows=rows)
    stairs = [_stair(column, way) for column, way in zip(source.quasi, ways.values(), strict=True)]
    problem = _Problem(stairs, guard, rows, math.floor(most * rows))
    best = cheapest(problem.floors, problem.look)
    if best is None:
        raise InvalidParameter(
            f"No combination of levels gives {asked_for(guard)} with {show(most)} of the rows suppressed; "
            "ask for less, or allow more to be suppressed."
        )
    kept = problem.kept(best.node.levels)
    chosen = list(zip(stairs, best.node.levels, strict=True))
    return anonymized(
        source,
        [stair.recoded(level) for stair, level in chosen],
        kept,
        method="Full-domain generalisation",
        asked=f"{asked_for(guard)}, at most {show(100 * most)} % suppressed",
        k=guard.k,
        levels={stair.column.name: stair.hierarchy.levels[level] for stair, level in chosen},
    )


def suggest(table: Source, quasi: str | Sequence[str]) -> dict[str, Hierarchy]:
    """The hierarchies that `generalize` makes itself: a start to change.

    Numbers get intervals that double from a sixteenth of their extent, days months to decades, zip codes (by
    name, or digits that are always as many) stars from the right, and categories nothing but `*`.
    """
    return {column.name: automatic(column) for column in given(table, quasi, None).quasi}


@dataclass(frozen=True, slots=True, eq=False)
class _Stair:
    """A column with its hierarchy.

    Attributes:
        column: The column.
        hierarchy: Its hierarchy.
        codes: For each level the label of each of the column's values.
        labels: For each level but the first the labels.
        costs: For each level what each of the values loses.
    """

    column: Coded
    hierarchy: Hierarchy
    codes: tuple[Codes, ...]
    labels: tuple[tuple[str | None, ...], ...]
    costs: tuple[Floats, ...]

    def recoded(self, level: int) -> Recoded:
        own = self.column.codes
        return Recoded(
            self.column.name, self.codes[level][own], self.labels[level], self.costs[level][own], level == 0
        )


def _stair(column: Coded, way: Hierarchy | Tree | None) -> _Stair:
    hierarchy = automatic(column) if way is None else way
    if isinstance(hierarchy, Mapping):
        hierarchy = Hierarchy.tree(hierarchy)
    if not isinstance(hierarchy, Hierarchy):
        raise InvalidParameter(
            f'Column "{column.name[:100]}" needs a Hierarchy, a tree of labels, or None for an automatic one.'
        )
    codes, costs = [np.arange(len(column.values))], []
    labels: list[tuple[str | None, ...]] = [()]
    try:
        for level in range(len(hierarchy.levels)):
            if level:
                texts = hierarchy.labels(column.values, level)
                number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
                codes.append(np.array([number[text] for text in texts], dtype=np.int64))
                labels.append(tuple(number))
            costs.append(np.array(hierarchy.costs(column.values, level), dtype=np.float64))
        _check_nested(codes)
    except InvalidParameter as refused:
        raise InvalidParameter(f'Column "{column.name[:100]}": {refused}') from None
    # A level that lost less than the one below it would mislead the search.
    steep = np.maximum.accumulate(np.stack(costs), axis=0)
    return _Stair(column, hierarchy, tuple(codes), tuple(labels), tuple(steep))


def _check_nested(codes: Sequence[Codes]) -> None:
    """Refuse a hierarchy in which two values share a label and part again further up."""
    for level, (fine, coarse) in enumerate(pairwise(codes)):
        above = np.empty(int(fine.max(initial=-1)) + 1, dtype=np.int64)
        above[fine] = coarse
        if not np.array_equal(above[fine], coarse):
            raise InvalidParameter(
                f"Values that share a label at level {level} of the hierarchy have different ones at level "
                f"{level + 1}; each label may have one label above it."
            )


class _Problem:
    """What the search asks about: each combination of levels on the distinct rows, counted once."""

    def __init__(self, stairs: Sequence[_Stair], guard: Guard, rows: int, limit: int) -> None:
        self.stairs, self.guard, self.rows, self.limit = stairs, guard, rows, limit
        classes, count = classes_of([stair.column.codes for stair in stairs], rows)
        self.of_row = classes
        self.weights = np.bincount(classes, minlength=count)
        first = np.empty(count, dtype=np.int64)
        first[classes[::-1]] = np.arange(rows)[::-1]
        self.distinct = [stair.column.codes[first] for stair in stairs]
        cells = rows * len(stairs)
        self.floors = [
            [float((costs[codes] * self.weights).sum()) / cells for costs in stair.costs]
            for stair, codes in zip(stairs, self.distinct, strict=True)
        ]

    def look(self, levels: Levels) -> tuple[float, int] | None:
        """What the combination loses and how many rows, as `cheapest` asks.

        Joining classes keeps sizes and different values admissible, and closeness while no row is left out
        (Li, Li and Venkatasubramanian 2007, generalisation property). With rows left out, the mixture of the
        whole moves too, so that a refusal for closeness says nothing about the levels below.
        """
        classes, good = self._classes(levels)
        kept = good[classes]
        gone = self.rows - int(self.weights[kept].sum())
        if gone > self.limit:
            return None
        if not self._is_close(classes, kept):
            return None if self.limit == 0 else (math.inf, gone)
        lost = gone * len(self.stairs) + math.fsum(
            float((stair.costs[level][codes] * self.weights)[kept].sum())
            for stair, codes, level in zip(self.stairs, self.distinct, levels, strict=True)
        )
        return lost / (self.rows * len(self.stairs)), gone

    def kept(self, levels: Levels) -> Flags:
        """Which rows are not suppressed."""
        classes, good = self._classes(levels)
        return good[classes][self.of_row]

    def _classes(self, levels: Levels) -> tuple[Codes, Flags]:
        """The class of each distinct row, and which classes are large and diverse enough."""
        coarse = [
            stair.codes[level][codes]
            for stair, codes, level in zip(self.stairs, self.distinct, levels, strict=True)
        ]
        classes, count = classes_of(coarse, len(self.weights))
        good = np.bincount(classes, weights=self.weights, minlength=count) >= self.guard.k
        if self.guard.l is not None:
            good &= self.guard.diverse(np.arange(self.rows), classes[self.of_row], count)
        return classes, good

    def _is_close(self, classes: Codes, kept: Flags) -> bool:
        if self.guard.t is None:
            return True
        rows = np.flatnonzero(kept[self.of_row])
        if not len(rows):
            return True
        names, own = np.unique(classes[self.of_row[rows]], return_inverse=True)
        return bool(self.guard.close(rows, own, len(names), whole=rows).all())
