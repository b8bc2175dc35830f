"""A profile as people read it: a table of how many units have how many rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sfumato.numeric.exact import Rational
from sfumato.render import html_table, text_table, with_bar

__all__ = ["Laddered"]


class Laddered:
    """Numbers of units on a ladder, which print as a table."""

    __slots__ = ()

    rungs: tuple[int, ...]
    units: Any
    rows: Any
    counted: str

    def errors(self, confidence: Rational = 0.95) -> tuple[Any, Any]:
        """How far off the units and rows of each cell are at most, each with this confidence."""
        raise NotImplementedError

    @property
    def columns(self) -> dict[str, list[str]]:
        """The cells of the ladder, the units in each of them and what these have, with their bars."""
        cells = [
            str(above) if above == below + 1 else f"{below + 1:,} to {above:,}"
            for below, above in pairwise((0, *self.rungs))
        ]
        figures = {"units": self.units, f"their {self.counted}": self.rows}
        bars = self.errors()
        return {self.counted: cells} | {
            head: [with_bar(round(float(one)), bar) for one, bar in zip(values, errors, strict=True)]
            for (head, values), errors in zip(figures.items(), bars, strict=True)
        }

    @property
    def holds(self) -> str:
        """What the numbers promise."""
        return f"± holds 95% of the time; units and their {self.counted} have noise of their own."

    def __str__(self) -> str:
        return f"{text_table(self.columns)}\n{self.holds}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(self.columns, caption=self.holds)
