"""A private answer as a value: numbers, error bars, receipt. Reading it again costs nothing."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import MissingExtra
from sfumato.numeric.exact import Rational
from sfumato.plan.estimate import Estimates, estimate
from sfumato.render import html_table, shown, text_table

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger import Receipt
    from sfumato.plan.quote import Quote
    from sfumato.session.payload import Answer

__all__ = ["Release"]

_CONFIDENCE = 0.95


class Release:
    """What was released. Everything here is post-processing of the private answer.

    Attributes:
        quote: What was asked and at which price it would be answered.
        receipt: What paid for it.
        free: Whether it was answered again from the ledger, at no cost.
    """

    def __init__(self, quote: Quote, answer: Answer, receipt: Receipt, *, free: bool) -> None:
        self.quote, self.receipt, self.free = quote, receipt, free
        self._answer = answer

    @cached_property
    def _estimates(self) -> Estimates:
        return estimate(self.quote.recipe, self.quote.report, self._answer.noises, self._answer.noisy)

    @cached_property
    def table(self) -> pa.Table:
        """Keys and released values."""
        return self._estimates.table()

    def error(self, confidence: Rational = _CONFIDENCE) -> pa.Table:
        """The same rows with half-widths instead of values: each value is this close with this confidence.

        The interval is for the noise: it says how far the released number is from what the same query would
        give without noise (clamped and weighted as the quote says).
        """
        return self._estimates.errors(confidence)

    def interval(self, confidence: Rational = _CONFIDENCE) -> pa.Table:
        """The same rows with the two ends of each value's interval, `name_low` and `name_high`."""
        return self._estimates.intervals(confidence)

    @property
    def epsilon(self) -> Any:
        """What the answer cost when it was paid for, exactly."""
        return self._answer.epsilon

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        try:
            import pandas  # noqa: F401, ICN001
        except ImportError:
            raise MissingExtra("pandas is not installed: pip install pandas, or use .table (Arrow).") from None
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The table as a Polars data frame."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("Polars is not installed: pip install polars, or use .table (Arrow).") from None
        return polars.from_arrow(self.table)

    def plot(self, path: str | Path | None = None, *, column: str | None = None, confidence: float = 0.95) -> Any:
        """A picture of one released column with its error bars; written to `path` if one is given."""
        from sfumato.plots import noise_bands

        values = self._estimates.measures
        name = column if column is not None else values[0]
        bounds = self.interval(confidence)
        keys = [each for each in self.table.column_names if each not in values]
        labels = [
            ", ".join(shown(self.table[key][row].as_py()) for key in keys) or name
            for row in range(self.table.num_rows)
        ]
        return noise_bands(
            labels,
            self.table[name].to_pylist(),
            bounds[f"{name}_low"].to_pylist(),
            bounds[f"{name}_high"].to_pylist(),
            title=f"{name}, with {confidence:.0%} error bars",
            ylabel=name,
            path=path,
        )

    def _shown(self) -> dict[str, list[str]]:
        errors, values = self.error(), set(self._estimates.measures)
        columns: dict[str, list[str]] = {}
        for name in self.table.column_names:
            if name in values:
                pairs = zip(self.table[name].to_pylist(), errors[name].to_pylist(), strict=True)
                columns[name] = [_with_bar(value, half) for value, half in pairs]
            else:
                columns[name] = [shown(value) for value in self.table[name].to_pylist()]
        return columns

    def _footer(self) -> str:
        price = f"epsilon {shown(float(self._answer.epsilon))}"
        if self._answer.delta:
            price += f", delta {shown(float(self._answer.delta))}"
        paid = "answered again from the ledger, free" if self.free else f"paid {price}"
        return f"± holds {_CONFIDENCE:.0%} of the time; {paid} (receipt {self.receipt.number})."

    def __str__(self) -> str:
        return f"{text_table(self._shown())}\n{self._footer()}"

    def _repr_html_(self) -> str:
        return html_table(self._shown(), caption=self._footer())


def _with_bar(value: Any, half: Any) -> str:
    return shown(value) if half is None else f"{shown(value, half)} ± {shown(half, half)}"
