"""Answers as plain data: what programs get, on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational, as_fraction

if TYPE_CHECKING:
    from sfumato.ledger import Balance
    from sfumato.session.release import Release

__all__ = ["Cells", "cells_of", "document_of"]

_ENDS = ("low", "high")


@dataclass(frozen=True, slots=True)
class Cells:
    """An answer column by column.

    Attributes:
        values: Of every column.
        errors: Half-widths of the noise, of the columns that have any.
        covering: Of the same columns, the ends of intervals that also cover what limits cut.
    """

    values: Mapping[str, list[Any]]
    errors: Mapping[str, list[Any]]
    covering: Mapping[str, list[list[Any]]]


def cells_of(release: Release, confidence: Rational) -> Cells:
    """The columns of an answer with their error bars."""
    values = {name: release.table[name].to_pylist() for name in release.table.column_names}
    public = {column.name for column in release.quote.columns if column.half_width == 0}
    bars, ends = release.error(confidence), release.interval(confidence)
    errors = {
        name: bars[name].to_pylist() for name in values if name not in public and name in bars.column_names
    }
    covering = {
        name: [list(pair) for pair in zip(*(ends[f"{name}_{end}"].to_pylist() for end in _ENDS), strict=True)]
        for name in errors
    }
    return Cells(values, errors, covering)


def document_of(release: Release, balance: Balance, confidence: Rational) -> dict[str, Any]:
    """Everything about an answer. The keys are a contract."""
    cells, rows = cells_of(release, confidence), range(release.table.num_rows)
    return {
        "columns": list(cells.values),
        "estimands": release.estimands,
        "rows": [{name: values[row] for name, values in cells.values.items()} for row in rows],
        "errors": [{name: values[row] for name, values in cells.errors.items()} for row in rows],
        "covering": [{name: ends[row] for name, ends in cells.covering.items()} for row in rows],
        "confidence": float(as_fraction(confidence, "confidence")),
        "paid": _paid(release),
        "free": release.free,
        "counted": dict(release.counted),
        "receipt": release.receipt.number,
        "touched": _share(release),
        "bounds": list(release.bounds),
        "left": balance.left(),
        "quote": release.quote.to_dict(),
    }


def _share(release: Release) -> dict[str, float] | None:
    share = release.touched()
    return None if share is None else {"share": share.share, "low": share.low, "high": share.high}


def _paid(release: Release) -> dict[str, Any]:
    """All that was paid now, and of its epsilon the parts: for what is bought first, and for the answer."""
    answer = Fraction(0) if release.free else release.quote.epsilon
    parts = {what: part for what, part in {**release.first, "the answer": answer}.items() if part}
    return {
        "epsilon": sum(parts.values(), Fraction(0)),
        "delta": 0 if release.free else release.quote.delta,
        "parts": parts,
    }
