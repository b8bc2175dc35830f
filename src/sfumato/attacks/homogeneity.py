"""What k-anonymity leaves open: a class that agrees about its secret, and two tables that share one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.anonymity import Hierarchy
from sfumato.anonymity._codes import Codes, encode
from sfumato.attacks._matching import (
    Flags,
    Grouped,
    beside,
    blocks,
    grouped,
    matched,
    named,
    one_name,
    person_table,
    read,
    together_coded,
)
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Intersection", "homogeneity", "intersection"]

Bands = Mapping[str, tuple[float, float]]
_MOST = 50_000_000  # cells of people by sensitive values
_NEARLY = 0.9  # have the most frequent value: who the others are is what there is to learn


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
            or leave a value out, or a control without people.
        SourceUnusable: if a table cannot be read.
    """
    names = _known(quasi, sensitive)
    if people is None and control is not None:
        raise InvalidParameter("control needs people: the real people whom to compare it with.")
    rows = _banded(read(released, [*names, sensitive]), sensitive, bands)
    codes = encode(rows, sensitive).codes
    share = float(np.bincount(codes).max()) / len(codes)
    classes = grouped([encode(rows, name).codes for name in names])
    low, high = classes.extremes(codes)
    agree = low == high

    def readings(some: Source) -> _Certain:
        who = _banded(read(some, [*names, sensitive]), sensitive, bands)
        return _certain(who, rows, names, sensitive, hierarchies)

    if people is None:
        own, words = _Certain(agree[classes.of_row], codes != np.bincount(codes).argmax()), _OF_CLASSES
    else:
        own, words = readings(people), _OF_PEOPLE
    others = None if control is None else readings(control)
    found = Outcome(
        "homogeneity",
        words[0],
        own.tally(),
        share if others is None else others.tally(),
        _MODE if others is None else _STRANGERS,
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
    are_there = all(each is None or each.is_rarer.any() for each in (own, others))
    may_be_luck = found.baseline_interval[1] >= 1 and own.tally(rarer=are_there).hits > 0
    if not are_there or (share <= _NEARLY and not may_be_luck):
        return found
    return replace(
        found,
        success=words[1],
        reached=own.tally(rarer=True),
        guess=0.0 if others is None else others.tally(rarer=True),
        guessing=f"{_MODE}, which they do not have" if others is None else _STRANGERS,
    )


_MODE = "the most frequent value of the column"
_STRANGERS = "the same attack on people who are not in the data"
_OF_CLASSES = "a person's class has one value alone", "the class of a person with a rarer value has it alone"
_OF_PEOPLE = "a person's value is certain, and right", "a person's rarer value is certain, and right"


@dataclass(frozen=True, slots=True, eq=False)
class _Certain:
    """Whose secret is certain, and who has another than the most frequent one."""

    hits: Flags
    is_rarer: Flags

    def tally(self, *, rarer: bool = False) -> Tally:
        """How many of all people, or of those with a rarer value."""
        counted = self.hits[self.is_rarer] if rarer else self.hits
        return Tally(int(counted.sum()), len(counted))


def _certain(
    who: pa.Table,
    rows: pa.Table,
    names: Sequence[str],
    sensitive: str,
    hierarchies: Mapping[str, Hierarchy] | None,
) -> _Certain:
    secret = beside(who, rows, sensitive)
    found = matched(who, rows, names, secret=secret.second, labels=True, hierarchies=hierarchies)
    hits = found.alone & (found.low == secret.first)
    return _Certain(hits, secret.first != np.bincount(secret.second).argmax())


@dataclass(frozen=True, slots=True, eq=False)
class Intersection:
    """What remains of each person's secret after all tables were laid side by side.

    Steward-only where the data is real: the candidates are values of rows, which is the point of the attack.

    Attributes:
        outcome: How often one value remained.
        candidates: For each person, in their order, the values that all tables allow.
        alone: For each person, how many values each table alone allows.
    """

    outcome: Outcome
    candidates: tuple[tuple[object, ...], ...] = field(repr=False)
    alone: tuple[tuple[int, ...], ...] = field(repr=False)

    def __str__(self) -> str:
        return str(self.outcome)


def intersection(
    releases: Sequence[Source],
    *,
    people: Source | Mapping[str, Any],
    quasi: str | Sequence[str],
    sensitive: str,
    truth: str | None = None,
    control: Source | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Intersection:
    """What several tables tell together of people who are in all of them: anonymity does not compose.

    ```python
    from sfumato.attacks.printed import company_z, table_2

    found = intersection([table_2(), company_z()], people={"age": 31}, quasi="age", sensitive="score")
    found.candidates                                                                # ((613,),)
    ```

    Steward-only: the outcome counts real people, and the candidates are values of rows.

    Baseline: somebody who has one of the tables, the most telling one, and names the value that is most
    frequent among the person's candidates there. With `control` and `truth`, the same attack on people who
    are in none of the tables: right for private and synthetic ones (`.within` at epsilon = 1 for each
    table).

    Args:
        releases: The tables, at least two.
        people: Whom to look for: exact values of `quasi`, as a table or, of one person, as a mapping.
        quasi: The columns that all tables and people have; labels of tables cover values of people.
        sensitive: The column of the tables to learn. Values are compared as they are.
        truth: The column of `people`, and of `control`, with the true value, kept by the steward: a hit is
            then a person of whom the right value alone remains. Without it, a person of whom one value
            remains.
        control: People who are in none of the tables.
        hierarchies: What the labels of columns come from, where they do not say it themselves.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for fewer than two tables, a column that is not there, no rows, or a control without
            truth.
        SourceUnusable: if a table cannot be read.
    """
    names = _known(quasi, sensitive)
    if not isinstance(releases, list | tuple) or len(releases) < 2:
        raise InvalidParameter(
            "releases must be a list of at least two tables: one alone has nothing to meet."
        )
    if control is not None and truth is None:
        raise InvalidParameter("control needs truth: the column that says whether the value found is right.")
    tables = [read(each, [*names, sensitive]) for each in releases]
    columns = [*names, *([one_name(truth, "truth")] if truth is not None else [])]
    if isinstance(people, Mapping):
        who = person_table(people, columns)
    else:
        who = read(people, columns)
    found = _left(who, tables, names, sensitive, truth, hierarchies)
    guess: Tally | float = found.guess
    guessing = "the most frequent candidate of the most telling table alone"
    if control is not None:
        others = _left(read(control, columns), tables, names, sensitive, truth, hierarchies)
        guess, guessing = others.tally, "the same attack on people who are in none of the tables"
    outcome = Outcome(
        "intersection",
        "one value remains" if truth is None else "one value remains, the right one",
        found.tally,
        guess,
        guessing,
        target,
        confidence,
        {
            "tables": len(tables),
            "one remains": int((found.allowed.sum(axis=1) == 1).sum()),
            "none remains": int((~found.allowed.any(axis=1)).sum()),
            "values left on average": float(found.allowed.sum(axis=1).mean()),
        },
    )
    candidates = tuple(
        tuple(found.values[i] for i in np.flatnonzero(each).tolist()) for each in found.allowed
    )
    return Intersection(outcome, candidates, tuple(map(tuple, found.alone.tolist())))


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """Which values all tables allow each person, how many each alone does, and what a guess would reach."""

    values: Sequence[object]
    allowed: Flags
    alone: Codes
    guess: float
    tally: Tally


def _left(
    who: pa.Table,
    tables: Sequence[pa.Table],
    names: Sequence[str],
    sensitive: str,
    truth: str | None,
    hierarchies: Mapping[str, Hierarchy] | None,
) -> _Left:
    columns = [table.column(sensitive) for table in tables]
    coded, hidden = together_coded(columns if truth is None else [*columns, who.column(truth)], sensitive)
    values = coded.values
    if who.num_rows * len(values) > _MOST:
        raise InvalidParameter(
            "There are too many people and sensitive values to hold them all; give fewer people."
        )
    alike = grouped([encode(who, name).codes for name in names])
    allowed = np.ones((len(alike.sizes), len(values)), dtype=bool)
    alone, sure = [], []
    for table, own in zip(tables, hidden, strict=False):
        counts = _values_of(who, table, names, own, len(values), alike, hierarchies)
        allowed &= counts > 0
        alone.append((counts > 0).sum(axis=1)[alike.of_row])
        sure.append((counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1))[alike.of_row])
    left = allowed[alike.of_row]
    hits = left.sum(axis=1) == 1
    if truth is not None:
        hits &= left[np.arange(len(left)), hidden[-1]]
    guess = float(np.max(sure, axis=0).mean())
    return _Left(values, left, np.stack(alone, axis=1), min(1.0, guess), Tally(int(hits.sum()), len(hits)))


def _values_of(
    who: pa.Table,
    table: pa.Table,
    names: Sequence[str],
    secret: Codes,
    count: int,
    alike: Grouped,
    hierarchies: Mapping[str, Hierarchy] | None,
) -> npt.NDArray[np.float64]:
    """How many rows of each value may be of each kind of people."""
    classes = grouped([encode(table, name).codes for name in names])
    held = np.zeros((len(classes.sizes), count))
    np.add.at(held, (classes.of_row, secret), 1.0)
    found = np.zeros((len(alike.sizes), count))
    for some, may_be in blocks(who, table, names, alike, classes, hierarchies):
        found[some] = may_be.astype(np.float64) @ held
    return found


def _known(quasi: str | Sequence[str], sensitive: str) -> list[str]:
    names = named(quasi, "quasi")
    if one_name(sensitive, "sensitive").casefold() in {name.casefold() for name in names}:
        raise InvalidParameter(
            f'The column "{sensitive[:100]}" is both quasi and sensitive: what is known cannot be hidden.'
        )
    return names


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
