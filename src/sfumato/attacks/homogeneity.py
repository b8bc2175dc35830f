"""What k-anonymity leaves open: a class that agrees about its secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.anonymity import Hierarchy
from sfumato.anonymity.codes import Coded, Codes, encode, text_of
from sfumato.attacks._calls import Chance
from sfumato.attacks._certain import STRANGERS, Certain, judged, known_and_secret
from sfumato.attacks._power import (
    LEAK,
    beside_guess,
    certain_power,
    leak_given,
    one_in,
    planted,
    stated,
    tried,
)
from sfumato.attacks.control import check_apart
from sfumato.attacks.matching import Flags, beside, grouped, matched, read
from sfumato.attacks.outcome import Outcome
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.random import simulation

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
    values: Sequence[object] | None = None,
    leak: float = LEAK,
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many people's secret is certain, because all rows that could be theirs have the same value.

    ```python
    from sfumato.attacks.printed import SCORE_BANDS, table_2

    homogeneity(table_2(), quasi=["zip", "age"], sensitive="score", bands=SCORE_BANDS).rate      # 1.0
    ```

    Steward-only: the outcome counts real people.

    Baseline: nobody is certain of a secret who has not seen the table, however frequent it is. So one person
    whose secret is certain is a finding by itself, and `detail["certain of"]` says of which values: for each,
    how many are certain, and how many have it. Where some values are harmless ("none"), name
    the others in `values`.

    With `people` and `control`, the same attack on people of the same kind who are not in the data: right
    for synthetic and private tables (`.within` at epsilon = 1), since what a table teaches about strangers
    too is a fact about the population and harms nobody by being in it. There, where more than nine in ten
    have the same value, only people with a rarer value are counted: who they are is what there is to learn.
    So it is where people are so few that to be certain of all would be no better than a guess.

    Power: without a control every class is looked at, and a certain value cannot be missed. With one, rows of
    `leak` of the people are planted in the table, and have to be noticed.

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
        values: Which values are a harm to be known by: only people who have one of them are counted. All
            unless given; names of bands, if there are bands.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        seed: For the same planted rows again; by default others each time.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there or both known and secret, no rows, bands that overlap
            or leave a value out, values that nobody has, or a control without people or with rows of theirs.
        SourceUnusable: if a table cannot be read.
    """
    names, share = known_and_secret(quasi, sensitive), leak_given(leak)
    if people is None and control is not None:
        raise InvalidParameter("control needs people: the real people whom to compare it with.")
    if people is not None and control is not None:
        check_apart(people, control)
    columns = [*names, sensitive]
    rows, who, others = (
        None if some is None else _banded(read(some, columns), sensitive, bands)
        for some in (released, people, control)
    )
    assert rows is not None
    harms = _Harms(sensitive, values, [table for table in (rows, who, others) if table is not None])

    def readings(some: pa.Table, table: pa.Table) -> Certain:
        return _certain(some, table, names, sensitive, hierarchies, harms)

    own = _in_classes(rows, names, sensitive, harms) if who is None else readings(who, rows)
    apart = None if others is None else readings(others, rows)
    unjudged = Outcome(
        "homogeneity",
        _OF_CLASSES if who is None else _OF_PEOPLE[0],
        own.tally(),
        0.0 if apart is None else apart.tally(),
        _UNSEEN if apart is None else STRANGERS,
        target,
        confidence,
        _detail(rows, names, sensitive, own),
    )
    if who is None or apart is None:
        return stated(unjudged, lambda: certain_power("one certain value", "every class is looked at"))
    outcome = judged(unjudged, own, apart, rarer=_OF_PEOPLE[1])

    def twin(random: Chance) -> Outcome | None:
        table, _, leaked = planted(rows, who, columns, share, random)
        sure = readings(who.take(leaked), table)
        return beside_guess(outcome, sure.counted(rarer=outcome.success == _OF_PEOPLE[1]), random)

    cells = who.num_rows * share * unjudged.detail["classes"]
    words = f"the rows of {one_in(share)} as they are"
    return stated(outcome, lambda: tried(words, twin, simulation(seed), cells=cells), advice=_MORE)


_OF_CLASSES = "a person's class has one value alone"
_OF_PEOPLE = "a person's value is certain, and right", "a person's rarer value is certain, and right"


_UNSEEN = "nobody is certain who has not seen the table"
_MORE = "give more people, more columns to know them by, or a larger leak"
_SHOWN = 20  # values told with their numbers, the most frequent first


class _Harms:
    """Which people have a value that is a harm to be known by.

    Raises:
        InvalidParameter: if values are given that nobody has.
    """

    def __init__(self, sensitive: str, values: Sequence[object] | None, tables: Sequence[pa.Table]) -> None:
        if isinstance(values, str) or (values is not None and not len(values)):
            raise InvalidParameter("values must be a list of values of the sensitive column.")
        self.texts = None if values is None else {text_of(value) for value in values}
        if self.texts is not None:
            there = {text_of(value) for table in tables for value in encode(table, sensitive).values}
            if not self.texts <= there:
                raise InvalidParameter("values must be values that the sensitive column has.")

    def among(self, table: pa.Table, sensitive: str) -> Flags:
        """Who of a table has one of them."""
        coded = encode(table, sensitive)
        if self.texts is None:
            return np.ones(table.num_rows, dtype=bool)
        kept = np.array([text_of(value) in self.texts for value in coded.values])
        flags: Flags = kept[coded.codes]
        return flags


def _in_classes(rows: pa.Table, names: Sequence[str], sensitive: str, harms: _Harms) -> Certain:
    """The rows of the table as the people, each in its class."""
    coded = encode(rows, sensitive)
    classes = grouped([encode(rows, name).codes for name in names])
    low, high = classes.extremes(coded.codes)
    return _counted(coded, (low == high)[classes.of_row], coded.codes, harms.among(rows, sensitive))


def _certain(
    who: pa.Table,
    rows: pa.Table,
    names: Sequence[str],
    sensitive: str,
    hierarchies: Mapping[str, Hierarchy] | None,
    harms: _Harms,
) -> Certain:
    secret = beside(who, rows, sensitive)
    matches = matched(who, rows, names, secret=secret.second, labels=True, hierarchies=hierarchies)
    hits = matches.alone & (matches.low == secret.first)
    certain = _counted(secret.coded, hits, secret.first, harms.among(who, sensitive))
    counts = np.bincount(secret.second)
    return replace(
        certain,
        is_rarer=secret.first[harms.among(who, sensitive)] != counts.argmax(),
        frequent=float(counts.max()) / len(secret.second),
    )


def _counted(coded: Coded, hits: Flags, codes: Codes, is_counted: Flags) -> Certain:
    counts = np.bincount(codes, minlength=len(coded.values))
    sure = np.bincount(codes[hits & is_counted], minlength=len(coded.values))
    shown = [place for place in np.argsort(-sure, kind="stable").tolist() if sure[place]][:_SHOWN]
    by_value = {str(text_of(coded.values[at])): [int(sure[at]), int(counts[at])] for at in shown}
    is_rarer = codes[is_counted] != counts.argmax()
    return Certain(hits[is_counted], is_rarer, float(counts.max()) / len(codes), by_value)


def _detail(rows: pa.Table, names: Sequence[str], sensitive: str, own: Certain) -> dict[str, Any]:
    classes = grouped([encode(rows, name).codes for name in names])
    low, high = classes.extremes(encode(rows, sensitive).codes)
    return {
        "classes": len(classes.sizes),
        "classes with one value": int((low == high).sum()),
        "k": int(classes.sizes.min()),
        "people with a rarer value": int(own.is_rarer.sum()),
        "of them certain": int((own.hits & own.is_rarer).sum()),
        "certain of": dict(own.by_value),
    }


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
