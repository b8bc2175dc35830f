"""A release as people read it: heads that say what is estimated, bars, and what is known of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.numeric.exact import Rational
from sfumato.plan.answers.estimate import Estimates
from sfumato.render import between, key, shown, with_bar

__all__ = ["Shown"]


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The columns of a release as text, at a confidence.

    Attributes:
        table: The released values.
        estimates: With their intervals.
        estimands: What each column estimates.
        confidence: That of bars and bounds.
        within: For which tables bounds hold that rest on a profile.
    """

    table: pa.Table
    estimates: Estimates
    estimands: Mapping[str, str]
    confidence: Rational
    within: str = ""

    @property
    def columns(self) -> dict[str, list[str]]:
        """By their heads: keys, numbers with bars, and beside those that limits cut, what holds over all."""
        columns: dict[str, list[str]] = {}
        for name in self.table.column_names:
            values = self.table[name].to_pylist()
            if name not in self.estimates.intervals:
                columns[name] = [key(value) for value in values]
                continue
            halves = self.estimates.half_width(name, self.confidence).tolist()
            bars = zip(values, halves, strict=True)
            columns[self.head(name)] = [with_bar(*pair) for pair in bars]
            if self.bounded(name):
                low, high = (end.tolist() for end in self.estimates.covering(name, self.confidence))
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
        return {name: phrase + self._beyond(name) for name, phrase in self.estimands.items()}

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
        often = f"{float(self.confidence) * 100:.6g}% of the time"
        numbers: Any = self.estimates.intervals
        if not any(self.estimates.cut(name) for name in numbers):
            return f"± holds {often}"
        if not any(self.bounded(name) for name in numbers):
            return f"± noise holds {often}"
        return f"± noise holds {often}, and so does each bound over all rows{self.within}"
