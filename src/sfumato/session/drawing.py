"""Noise for groups that stay where they are: drawn part by part, once, beside the data."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.mechanisms import AdaptiveSelection
from sfumato.session.answering import answered
from sfumato.session.reading import reading
from sfumato.session.release import Release
from sfumato.sql.write.lower import UNITS

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.plan.prices.quoting import Quote
    from sfumato.schema import Kind

__all__ = ["Drawing", "refuse_unfit"]

_HELD: dict[Kind | None, pa.DataType] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.int64(),  # seconds, as engines have them
    "time": pa.int64(),
}
_RELEASE = "Write .release(epsilon=0.5), which has the whole table here."
_FREE = "Write without it, and take what you want from what is written: that is free."


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """What is done with the groups of one part, wherever it is: selection, noise, and the columns shown.

    Attributes:
        quote: What was asked and paid.
        kinds: What its keys hold.
        seed: 32 unguessable bytes, for this answer alone; gone once it is written.
        errors: Whether half-widths and intervals are written as well, at the quote's confidence.

    Privacy:
        Claim: what is written for all parts together carries `quote.loss`. A group is in one part, with all
        of its units; the selection and the noise of `answered` are drawn for each group by itself, so that
        drawing for the groups of one part, then for those of another, is drawing for all. The noise of a part
        comes from a key that HMAC-SHA-256 makes of the seed and its number (a pseudorandom function, as for
        any keystream here), and its lines are sorted first: a task that is tried again on the same rows
        draws the same, and of two that run at once one is taken. Nothing of the seed is kept.
    """

    quote: Quote
    kinds: tuple[Kind | None, ...]
    seed: bytes
    errors: bool

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows that are shown, for some of the lines of a part at a time."""
        stream = random.Keyed(hmac.digest(self.seed, f"part {part}".encode(), "sha256"))
        for batch in batches:
            with random.drawing_from(stream):
                made = self._drawn(pa.Table.from_batches([batch]))
            yield made

    @property
    def schema(self) -> pa.Schema:
        """Of what is written."""
        columns = {f"k{place}": _HELD.get(kind, pa.string()) for place, kind in enumerate(self.kinds)}
        counts = [*(f"m{place}" for place in range(len(self.quote.measured.measurements))), UNITS]
        empty = pa.schema(columns | dict.fromkeys(counts, pa.int64())).empty_table()
        return self._drawn(empty).schema

    def _drawn(self, lines: pa.Table) -> pa.Table:
        quote = self.quote
        answer = answered(quote, lambda *_: reading(lines, quote.measured, self.kinds))
        release = Release(quote, answer, cast("Receipt", None), free=False)  # no column shows a receipt
        table = release.to_arrow(errors=self.errors, confidence=quote.confidence)
        return table.replace_schema_metadata(None)


def refuse_unfit(quote: Quote) -> None:
    """Refuse what cannot be drawn for each group by itself.

    Raises:
        QueryRefused: for such a question.
    """
    report, measured = quote.report, quote.measured
    if not measured.is_open:
        raise QueryRefused("The groups of this question are public, and need not be found.", _RELEASE)
    if quote.extras:
        raise QueryRefused("Quantiles, extremes and distinct values need all groups in one place.", _RELEASE)
    if measured.levels or len(quote.recipe.questions) > 1:
        raise QueryRefused("Totals over groups need all groups in one place.", _RELEASE)
    if report.windows:
        raise QueryRefused("OVER needs all groups in one place.", _FREE)
    if report.having is not None or report.limit is not None or report.offset or report.order:
        raise QueryRefused("HAVING, ORDER BY and LIMIT need all groups in one place.", _FREE)
    assert not isinstance(quote.selection, AdaptiveSelection)  # its terms ask for one round
