"""An anonymised table with what it cost."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity._shares import percent
from sfumato.anonymity.codes import Codes, classes_of
from sfumato.anonymity.given import Given
from sfumato.anonymity.loss import average_class, discernibility, ncp
from sfumato.render import text_table

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

__all__ = ["Anonymized", "Recoded", "anonymized"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Anonymized:
    """An anonymised table and the figures about it. Steward-only: the figures are exact.

    Privacy:
        Nothing is promised against an attacker who knows more than the quasi-identifiers, or who has a second
        such table: k-anonymity does not compose. What holds is that each row of `table` agrees with at least
        `k - 1` others in all quasi-identifiers.

    Attributes:
        table: The anonymised rows in their old order, all columns in theirs; suppressed rows are left out.
        quasi: The quasi-identifiers.
        method: How it was made, in words.
        asked: What was asked for, in words.
        wanted_k: The k that was asked for; `k` is what the table has.
        rows: How many rows there were.
        suppressed: How many of them were left out.
        before: The class sizes of the original, largest first.
        after: The class sizes of `table`, largest first.
        lost: What the cells of each quasi-identifier lost on average, 0 … 1, suppressed rows included.
        ncp: The mean of these: the normalised certainty penalty.
        discernibility: The sum of squared class sizes, a suppressed row counting as `rows`.
        average_class: The mean class size over the k that was asked for.
        levels: For each quasi-identifier what it was generalised to, in words, where that is one thing.
        naming: Columns of `table` that stayed as they were and whose names point at one person.
        overlooked: Columns of `table` that stayed as they were and that by their names others may know.
        emptied: The quasi-identifiers of which nothing is left but `*`.
    """

    table: pa.Table
    quasi: tuple[str, ...]
    method: str
    asked: str
    wanted_k: int
    rows: int
    suppressed: int
    before: Codes = field(repr=False)
    after: Codes = field(repr=False)
    lost: Mapping[str, float]
    ncp: float
    discernibility: int
    average_class: float
    levels: Mapping[str, str] = field(default_factory=dict)
    naming: tuple[str, ...] = ()
    overlooked: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """How many classes the table has."""
        return len(self.after)

    @property
    def k(self) -> int:
        """The size of its smallest class; 0 if every row was suppressed."""
        return int(self.after[-1]) if len(self.after) else 0

    @property
    def report(self) -> str:
        """The figures in words, at most 80 columns wide; no value of the data is in it."""
        warned = [textwrap.fill(warning, 80, break_on_hyphens=False) for warning in self.warnings]
        return "\n\n".join([*warned, self.figures, _STEWARD])

    @property
    def figures(self) -> str:
        """The part of the report that has the figures alone."""
        gone = self._suppressed()
        parts = [self._headline(), self._counts(), self._columns(), *([gone] if gone else [])]
        return "\n\n".join(parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to check before the table is given to anyone, one or two sentences each."""
        said = []
        if self.naming:
            said.append(
                f"Still in the table, though their names point at one person: {_listed(self.naming)}. Leave "
                "them out first, with deidentify()."
            )
        if self.overlooked:
            said.append(
                f"Left as they were, though by their names others may know them: {_listed(self.overlooked)}. "
                "Name them as quasi-identifiers too, or take them out."
            )
        if self.emptied and self.classes:
            said.append(
                f"Nothing is left of {_listed(self.emptied)} but *: ask for a smaller k or l or a larger t, "
                "or name fewer quasi-identifiers."
            )
        return tuple(said)

    def __str__(self) -> str:
        return self.report

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The class sizes before and after, and what each column lost; also written to a .png or .svg."""
        from sfumato.plots import before_after

        return before_after(
            self.before,
            self.after,
            k=self.wanted_k,
            lost=self.lost,
            title=f"{self.method}, {self.asked}",
            path=path,
        )

    def _headline(self) -> str:
        if not self.classes:
            return f"{self.method} ({self.asked}):\nevery row was suppressed."
        return f"{self.method} ({self.asked}):\nevery row is one of at least {self.k} that look the same."

    def _counts(self) -> str:
        alone = int((self.before == 1).sum())
        lines = {
            "rows": (self.rows, self.rows - self.suppressed),
            "classes": (len(self.before), self.classes),
            "smallest class": (int(self.before[-1]), self.k),
            "rows alone in their class": (alone, int((self.after == 1).sum())),
            "mean class size": (_mean(self.before), _mean(self.after)),
            "discernibility": (int((self.before.astype(object) ** 2).sum()), self.discernibility),
        }
        return text_table(
            {
                "": list(lines),
                "before": [before for before, _ in lines.values()],
                "after": [after for _, after in lines.values()],
            }
        )

    def _columns(self) -> str:
        shown: dict[str, list[object]] = {"quasi-identifier": [*self.quasi, "all"]}
        if self.levels:
            shown["told as"] = [*(self.levels[name] for name in self.quasi), ""]
        shown["information lost"] = [percent(share) for share in (*self.lost.values(), self.ncp)]
        return text_table(shown)

    def _suppressed(self) -> str:
        if not self.suppressed:
            return ""
        rows = "1 row" if self.suppressed == 1 else f"{self.suppressed:,} rows"
        share = percent(self.suppressed / self.rows)
        return f"Left out: {rows} ({share}). All that was in them counts as lost, in every column."


_STEWARD = "Exact figures about the data: for the steward, not for release."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:100] for name in names)


def _mean(sizes: Codes) -> float:
    return round(float(sizes.mean()), 2) if len(sizes) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Recoded:
    """A quasi-identifier told less exactly.

    Attributes:
        name: The column.
        codes: For each row which label it has.
        labels: The labels; None is a missing value. None are needed for a column that stays as it is.
        costs: For each row what it lost.
        untouched: Whether every label is the value itself, so that the column can stay as it is.
    """

    name: str
    codes: Codes
    labels: Sequence[str | None]
    costs: Floats
    untouched: bool


def anonymized(
    source: Given,
    recoded: Sequence[Recoded],
    kept: npt.NDArray[np.bool_],
    *,
    method: str,
    asked: str,
    k: int,
    levels: Mapping[str, str] | None = None,
) -> Anonymized:
    """The table with its quasi-identifiers recoded and only the rows to keep, and all figures about it."""
    import pyarrow as pa

    rows = len(kept)
    gone = rows - int(kept.sum())
    table = source.table
    for column in recoded:
        place = table.column_names.index(column.name)
        if not column.untouched:
            labels = pa.array(column.labels, pa.string()).take(pa.array(column.codes))
            table = table.set_column(place, column.name, labels)
    if gone:
        table = table.filter(pa.array(kept))
    sizes = _sizes([column.codes[kept] for column in recoded], rows - gone)
    costs = {column.name: column.costs[kept] for column in recoded}
    return Anonymized(
        table=table,
        quasi=tuple(costs),
        method=method,
        asked=asked,
        wanted_k=k,
        rows=rows,
        suppressed=gone,
        before=_sizes([column.codes for column in source.quasi], rows),
        after=sizes,
        lost={name: ncp([lost], rows=rows, suppressed=gone) for name, lost in costs.items()},
        ncp=ncp(list(costs.values()), rows=rows, suppressed=gone),
        discernibility=discernibility(sizes, rows=rows, suppressed=gone),
        average_class=average_class(sizes, k),
        levels=dict(levels or {}),
        naming=source.naming,
        overlooked=source.overlooked,
        emptied=tuple(name for name, lost in costs.items() if len(lost) and lost.min() >= 1),
    )


def _sizes(columns: Sequence[Codes], rows: int) -> Codes:
    classes, count = classes_of(columns, rows)
    return np.sort(np.bincount(classes, minlength=count))[::-1]
