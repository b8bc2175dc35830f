"""Texts that nobody listed: which of them are common is found out with noise; and rows that are complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato.fits.meter import Meter
from sfumato.fits.searching import Sought, threshold
from sfumato.session.reading import RowsRead
from sfumato.session.rows_wanted import LONGEST, Plain, Texts
from sfumato.synth.columns.fine import MOST_FOUND, Fine

__all__ = ["complete", "found_texts", "least_units", "sought"]


def sought(read: RowsRead, place: int, most: int) -> Sought:
    """How many units have each text of a column.

    Args:
        read: The private rows.
        place: Which column.
        most: How many rows a unit has at most.

    Privacy:
        Claim: adding or removing a unit changes the counts of at most `most` texts, each by 1. Proof: it has
        at most so many rows, each of them one text at most, and counts once for each. Texts beyond `LONGEST`
        characters are not counted, whoever has them: they are read in part, and are never shown.
    """
    texts, present = read.texts.get(place, ()), ~read.missing[place]
    codes = read.columns[place][present].astype(np.int64)
    if read.units is not None:
        pairs = np.unique(read.units[present] * max(len(texts), 1) + codes)
        codes = pairs % max(len(texts), 1)
    counts = np.bincount(codes, minlength=len(texts))
    short = [at for at, text in enumerate(texts) if len(text) <= LONGEST and counts[at]]
    return Sought(tuple(texts[at] for at in short), counts[np.array(short, np.int64)], most)


def found_texts(
    columns: Sequence[Fine], read: RowsRead, meter: Meter, most: int, share: Fraction
) -> dict[int, tuple[str, ...]]:
    """The common texts of each column whose values nobody listed, sorted, by the place of the column.

    Args:
        columns: All columns.
        read: Their private rows.
        meter: Shows what is above a threshold.
        most: How many rows a unit has at most.
        share: Which part of the price all searches take together.

    Privacy:
        Claim: that of the meter. Each column has an equal part of the share and of the risk; of what is shown
        the most common are kept, and their order is that of the texts.
    """
    places = [place for place, column in enumerate(columns) if column.is_open]
    found = dict[int, tuple[str, ...]]()
    for place in places:
        shown = meter.shown(sought(read, place, most), share / len(places), meter.risk / len(places))
        common = sorted(shown, key=lambda text: (-shown[text], text))[: MOST_FOUND - 1]
        found[place] = tuple(sorted(common))
    return found


def least_units(columns: Sequence[Fine], meter: Meter, most: int, share: Fraction) -> float | None:
    """How many units a text needs to be shown half of the time: public. None: no texts are searched for."""
    many = sum(column.is_open for column in columns)
    if not many:
        return None
    mechanism = meter.mechanism(Sought((), np.zeros(0), most).sensitivity, share / many)
    return threshold(mechanism, most, meter.risk / many)


def complete(columns: Sequence[Fine], read: RowsRead) -> RowsRead:
    """The rows that have a listed value in each column that is declared to have one.

    An engine leaves out what it compares with the list itself; of a long list this does, row by row.
    """
    keep = np.ones(read.size, bool)
    for place, column in enumerate(columns):
        if not (column.nullable or column.folds) and isinstance(column.way, Texts | Plain):
            keep &= column.places_of(read.columns[place], read.texts.get(place)) >= 0
    if keep.all():
        return read
    return replace(
        read,
        columns=tuple(column[keep] for column in read.columns),
        missing=tuple(missing[keep] for missing in read.missing),
        units=None if read.units is None else read.units[keep],
    )
