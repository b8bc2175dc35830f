"""What k-anonymity leaves open: a class that agrees about its secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sfumato.anonymity import Hierarchy
from sfumato.anonymity._codes import encode
from sfumato.attacks._certain import MODE, STRANGERS, Certain, judged, known_and_secret
from sfumato.attacks._control import check_apart
from sfumato.attacks._matching import beside, grouped, matched, read
from sfumato.attacks.outcome import Outcome
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["homogeneity"]

Bands = Mapping[str, tuple[float, float]]


def homogeneity(
    released: Source,
    *,
    quasi: str | Sequence[str],
    sensitive: str,
    bands: Bands | None = None,
    people: Source | None = None,
    control: Source | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many people's secret is certain, because all rows that could be theirs have the same.

    ```python
    from sfumato.attacks.printed import SCORE_BANDS, table_2

    homogeneity(table_2(), quasi=["zip", "age"], sensitive="score", bands=SCORE_BANDS).rate      # 1.0
    ```

    Steward-only: the outcome counts real people.

    Baseline: the most frequent value of the column, which is the best guess about anybody without a class.
    With `people` and `control`, the same attack on people of the same kind who are not in the data: right
    for synthetic and private tables (`.within` at epsilon = 1), since what a table teaches about strangers
    too is a fact about the population and harms nobody by being in it.

    Rarer values: where more than nine in ten have the same value, what there is to learn is who the others
    are. Then only people with a rarer value are counted, and the guess, which is wrong about each of them,
    reaches none: one of them who is certain is one too many. So it is where people are so few that to be
    certain of all would be no better than a guess, if one of the others is. `detail` has their numbers in
    any case.

    Args:
        released: The table.
        quasi: What an outsider knows of a person.
        sensitive: What they want to learn.
        bands: Numbers told less exactly before they are compared: each name with its least and largest value,
            both included. To know that a score is "Fair" is to know enough.
        people: The real people with exact values of `quasi` and their true `sensitive`, kept by the
            steward. A hit is then a person whose every candidate, by the labels that cover them, has one
            value, the right one. Without them, the rows of the table are the people, and a hit is one in a
            class with one value.
        control: People like that who are not in the data.
        hierarchies: What the labels of columns come from, where they do not say it themselves.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there or both known and secret, no rows, bands that overlap
            or leave a value out, or a control without people or with rows of theirs.
        SourceUnusable: if a table cannot be read.
    """
    names = known_and_secret(quasi, sensitive)
    if people is None and control is not None:
        raise InvalidParameter("control needs people: the real people whom to compare it with.")
    if people is not None and control is not None:
        check_apart(people, control)
    rows = _banded(read(released, [*names, sensitive]), sensitive, bands)
    codes = encode(rows, sensitive).codes
    share = float(np.bincount(codes).max()) / len(codes)
    classes = grouped([encode(rows, name).codes for name in names])
    low, high = classes.extremes(codes)
    agree = low == high

    def readings(some: Source) -> Certain:
        who = _banded(read(some, [*names, sensitive]), sensitive, bands)
        return _certain(who, rows, names, sensitive, hierarchies)

    if people is None:
        own, words = Certain(agree[classes.of_row], codes != np.bincount(codes).argmax()), _OF_CLASSES
    else:
        own, words = readings(people), _OF_PEOPLE
    others = None if control is None else readings(control)
    found = Outcome(
        "homogeneity",
        words[0],
        own.tally(),
        share if others is None else others.tally(),
        MODE if others is None else STRANGERS,
        target,
        confidence,
        {
            "classes": len(agree),
            "classes with one value": int(agree.sum()),
            "k": int(classes.sizes.min()),
            "people with a rarer value": int(own.is_rarer.sum()),
            "of them certain": int((own.hits & own.is_rarer).sum()),
        },
    )
    return judged(found, own, others, share=share, rarer=words[1])


_OF_CLASSES = "a person's class has one value alone", "the class of a person with a rarer value has it alone"
_OF_PEOPLE = "a person's value is certain, and right", "a person's rarer value is certain, and right"


def _certain(
    who: pa.Table,
    rows: pa.Table,
    names: Sequence[str],
    sensitive: str,
    hierarchies: Mapping[str, Hierarchy] | None,
) -> Certain:
    secret = beside(who, rows, sensitive)
    found = matched(who, rows, names, secret=secret.second, labels=True, hierarchies=hierarchies)
    hits = found.alone & (found.low == secret.first)
    return Certain(hits, secret.first != np.bincount(secret.second).argmax())


def _banded(table: pa.Table, sensitive: str, bands: Bands | None) -> pa.Table:
    """The table with the names of bands in place of the numbers of a column."""
    import pyarrow as pa

    if bands is None:
        return table
    try:
        ends = sorted((float(low), float(high), str(name)) for name, (low, high) in bands.items())
    except (AttributeError, TypeError, ValueError):
        ends = []
    if not ends or any(not low <= high for low, high, _ in ends):
        raise InvalidParameter("Each band needs a least and a largest value, the least first.")
    if any(above[0] <= below[1] for below, above in pairwise(ends)):
        raise InvalidParameter("Bands must not overlap; both ends of a band belong to it.")
    coded = encode(table, sensitive)
    told = []
    for value in coded.values:
        is_number = coded.kind == "number" and value is not None
        fitting = [name for low, high, name in ends if is_number and low <= float(value) <= high]  # type: ignore[arg-type]
        if value is not None and not fitting:
            raise InvalidParameter(f'The bands leave out a value of "{sensitive[:100]}"; add a band for it.')
        told.append(fitting[0] if fitting else None)
    column = pa.array(told, pa.string()).take(pa.array(coded.codes))
    return table.set_column(table.column_names.index(sensitive), sensitive, column)
