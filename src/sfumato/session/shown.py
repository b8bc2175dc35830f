"""A release as people read it: heads that say what is estimated, bars, and what is known of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational, as_fraction
from sfumato.plan.answers.estimate import Estimates
from sfumato.plan.builder import FIGURES
from sfumato.render import between, key, shown, with_bar

__all__ = ["Shown"]

_COLUMN = "column"


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The columns of a release as text, at a confidence.

    Attributes:
        table: The released values.
        estimates: With their intervals.
        estimands: What each column estimates.
        confidence: That of bars and bounds.
        within: For which tables bounds hold that rest on a profile.
        limits: Whether units are held within limits; else what is measured inside of its extremes is cut.
        most: How many rows are told, from the first; None: all.
    """

    table: pa.Table
    estimates: Estimates
    estimands: Mapping[str, str]
    confidence: Rational
    within: str = ""
    limits: bool = True
    most: int | None = None

    @property
    def columns(self) -> dict[str, list[str]]:
        """By their heads: keys, numbers with bars, and beside those that limits cut, what holds over all."""
        return self._columns(self.table.column_names)

    @property
    def keys(self) -> tuple[str, ...]:
        """The heads of the columns that tell a line from the others: keys, and the names of columns."""
        return (*(name for name in self.table.column_names if name not in self.estimates.intervals), _COLUMN)

    @property
    def tables(self) -> list[dict[str, list[str]]]:
        """The same as the tables that are printed: figures of several columns are one line for each column.

        So are those that `describe` gives in one line, age_mean, age_std, cost_mean and so on.
        """
        described = self.described
        if not described:
            return [self.columns]
        used = {f"{column}_{word}" for column in described for word in FIGURES}
        rest = self._columns([name for name in self.table.column_names if name not in used])
        lines: dict[str, list[str]] = {_COLUMN: list(described)}
        for word in FIGURES:
            parts = [list(self._columns([f"{column}_{word}"]).items()) for column in described]
            noise = any(self.estimates.cut(f"{column}_{word}") for column in described)
            lines[f"{word} ± noise" if noise else word] = [cells[0] for (_, cells), *_ in parts]
            if all(len(part) > 1 for part in parts):
                over = self.estimates.whole(f"{described[0]}_{word}")
                lines[f"{word}, {over}"] = [part[1][1][0] for part in parts]
        return [rest, lines] if rest else [lines]

    @property
    def described(self) -> tuple[str, ...]:
        """The columns of which a single line has all figures that `describe` gives, if there are several."""
        names = self.table.column_names
        if self.table.num_rows != 1:
            return ()
        first = next(iter(FIGURES))
        columns = [name.removesuffix(f"_{first}") for name in names if name.endswith(f"_{first}")]
        whole = [
            column
            for column in columns
            if all(f"{column}_{word}" in self.estimates.intervals for word in FIGURES)
        ]
        return tuple(whole) if len(whole) > 1 else ()

    def _columns(self, names: Sequence[str]) -> dict[str, list[str]]:
        columns: dict[str, list[str]] = {}
        for name in names:
            values = self.table[name][: self.most].to_pylist()
            if name not in self.estimates.intervals:
                columns[name] = [_key(value) for value in values]
                continue
            halves = self.estimates.half_width(name, self.confidence)[: self.most].tolist()
            bars = zip(values, halves, strict=True)
            columns[self.head(name)] = [with_bar(*pair) for pair in bars]
            if self.bounded(name):
                ends = self.estimates.covering(name, self.confidence)
                low, high = (end[: self.most].tolist() for end in ends)
                cells = zip(low, high, values, halves, strict=True)
                columns[f"{name}, {self.estimates.whole(name)}"] = [between(*cell) for cell in cells]
        return columns

    def head(self, name: str) -> str:
        """What a column is called above its bars: they are for the noise alone where limits may cut."""
        noise = name in self.estimates.intervals and self.estimates.cut(name)
        return f"{name} ± noise" if noise else name

    def bounded(self, name: str) -> bool:
        """Whether something is known of a column over all rows that is not known beforehand."""
        return self.estimates.cut(name) and self.estimates.tells(name)

    @property
    def definitions(self) -> dict[str, str]:
        """What each column estimates, and what is sure of it over all rows where that says it all."""
        phrases = {name: phrase + self._beyond(name) for name, phrase in self.estimands.items()}
        for column in self.described[1:]:  # the first one stands for all
            for word in FIGURES:
                phrases.pop(f"{column}_{word}", None)
        return phrases | ({"other columns": "the same, within their own bounds"} if self.described else {})

    def _beyond(self, name: str) -> str:
        if name not in self.estimates.intervals or not self.estimates.cut(name) or self.bounded(name):
            return ""
        low, high = self.estimates.certain(name)
        ends = [float(np.min(low, initial=np.inf)), float(np.max(high, initial=-np.inf))]
        over = self.estimates.whole(name)
        if not np.isfinite(ends).all():
            return f"; over {over} anything is possible"
        return f"; over {over} somewhere in {shown(ends[0])}..{shown(ends[1])}"

    @property
    def holds(self) -> str:
        """What the bars and bounds promise."""
        often = f"{float(as_fraction(self.confidence, 'confidence')) * 100:.6g}% of the time"
        fewer = ", less often for groups that HAVING or LIMIT chose by their noisy figures"
        fewer = fewer if self.estimates.chosen else ""
        numbers: Any = self.estimates.intervals
        if not any(self.estimates.cut(name) for name in numbers):
            return f"± holds {often}{fewer}"
        noise = f"± noise holds {often}{fewer}"
        if self.limits:
            noise += f"{',' if fewer else ''} and leaves out what limits cut"
        if not any(self.bounded(name) for name in numbers):
            return noise
        if fewer:
            return f"{noise}; the bounds over all rows of all groups hold together {often}{self.within}"
        return f"{noise}; each bound over all rows holds as often{self.within}"


def _key(value: object) -> str:
    """A key as people tell it apart: no value is NULL, and text that is empty or says so is in quotes."""
    if value is None:
        return "NULL"
    return f"'{value}'" if value in ("", "NULL") else key(value)
