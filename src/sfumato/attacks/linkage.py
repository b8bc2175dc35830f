"""Linkage: names come back when a table without them is laid beside one that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.anonymity import Hierarchy
from sfumato.anonymity._codes import encode
from sfumato.attacks._certain import STRANGERS
from sfumato.attacks._control import check_apart
from sfumato.attacks._matching import (
    Matches,
    beside,
    blocks,
    check_hierarchies,
    grouped,
    matched,
    named,
    one_name,
    person_table,
    read,
    read_with_records,
)
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.attacks.sparse import sparse_linkage
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["linkage", "narrowing", "sparse_linkage"]

_UNDECIDED = (
    "a stranger may match one row alone, too; give truth, a column that says whose row it is, or control, "
    "people who are not in the table."
)


def linkage(
    known: Source,
    released: Source,
    *,
    on: str | Sequence[str],
    truth: str | None = None,
    control: Source | None = None,
    labels: bool = False,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many known people are found again: they match exactly one record of the released table.

    The attack of Sweeney (1997) on the governor: voter rolls with names on one side, hospital records without
    on the other, and zip code, date of birth and sex in both.

    ```python
    linkage(voters, records, on=["zip", "birth", "sex"], truth="id").works                 # a table of rows
    linkage(members, private, on=["zip", "birth", "sex"], control=others).within           # epsilon = 1
    ```

    Steward-only: the outcome counts rows of real people, and with `truth` it compares with the truth.

    Baseline, with `truth`: a random row of the table, 1 / n, which is a row named without looking. With
    `control`, the same attack on people of the same kind who are not in the data. That is the right one for
    synthetic and private tables: a row that looks like somebody is no harm if it looks like a stranger as
    often. With neither there is no verdict: a stranger, too, may match one record alone.

    Copies: rows alike in every released column are one record where most rows stand there as often, so that
    to write each row twice hides nobody. Where the table has no columns but `on`, rows that look alike may as
    well be different people, and count one by one, unless there is a `control` to tell.

    Args:
        known: The people, with the columns `on`; names and others are not looked at.
        released: The table to find them in.
        on: The columns that both have. Values are equal as in a measure of anonymity: a missing value is one
            too; numbers are compared as numbers, and values of different types as they are written.
        truth: A column of both that says which row is whose, kept by the steward: then a hit is a person
            whose every match is their own. Without it, a hit is a person who matches one record alone.
        control: People who are not in the data.
        labels: Whether the released values are labels that cover values, such as `19***` or `[30, 40)`.
        hierarchies: What labels come from, where they do not say it themselves: the names of a tree.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, a table without rows, or `truth` together with
            `control`, whose people have no row of their own, or a control with rows of the people known.
        SourceUnusable: if a table cannot be read.
    """
    names = named(on, "on")
    if truth is not None and control is not None:
        raise InvalidParameter("Give truth or control, not both: people of the control have no true row.")
    if truth is not None and truth in names:
        raise InvalidParameter("truth must not be among on: an attacker does not know whose row is whose.")
    own = [one_name(truth, "truth")] if truth is not None else []
    people = read(known, [*names, *own])
    rows, record, more = read_with_records(released, [*names, *own])
    ids = None if truth is None else beside(people, rows, truth)
    if ids is not None:
        record = ids.second
    elif control is None and not more:
        record = np.arange(rows.num_rows)

    def matches(some: pa.Table) -> Matches:
        return matched(some, rows, names, secret=record, labels=labels, hierarchies=hierarchies)

    found = matches(people)
    hits = found.alone if ids is None else found.alone & (found.low == ids.first)
    distinct = len(np.unique(record))
    guess: Tally | float | None = None if truth is None else 1 / distinct
    guessing = "not known" if truth is None else "a random row"
    if control is not None:
        check_apart(known, control)
        strangers = matches(read(control, names)).alone
        guess, guessing = Tally(int(strangers.sum()), len(strangers)), STRANGERS
    return Outcome(
        "linkage",
        "a person's only match is their own row" if truth is not None else "a person matches one row alone",
        Tally(int(hits.sum()), len(hits)),
        guess,
        guessing,
        target,
        confidence,
        {
            "rows": rows.num_rows,
            "different rows": distinct,
            "matched one": int(found.alone.sum()),
            "matched none": int((found.counts == 0).sum()),
            "matched several": int(((found.counts > 0) & ~found.alone).sum()),
        },
        _UNDECIDED if guess is None else "",
    )


def narrowing(
    released: Source,
    person: Mapping[str, Any],
    *,
    on: str | Sequence[str],
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> list[int]:
    """How many rows are left as one fact after the other is known of a person: the governor's 6, 3, 1.

    Steward-only where the data is real: these are exact counts.

    Args:
        released: The table to find the person in.
        person: What is known, by column.
        on: The columns in the order in which they become known.
        hierarchies: What the labels of generalised columns come from, where they do not say it themselves.

    Returns:
        A count for each column: of the rows that agree with the person in it and all before it.

    Raises:
        InvalidParameter: for a column that is not there or not known of the person, or no rows.
        SourceUnusable: if the table cannot be read.
    """
    names = named(on, "on")
    one = person_table(person, names)
    rows = read(released, names)
    left = np.ones(rows.num_rows, dtype=bool)
    counts = []
    check_hierarchies(hierarchies, names)
    for name in names:
        classes, alike = (grouped([encode(table, name).codes]) for table in (rows, one))
        own = {each: way for each, way in (hierarchies or {}).items() if each == name}
        ((_, may_be),) = blocks(one, rows, [name], alike, classes, own)
        left &= may_be[0][classes.of_row]
        counts.append(int(left.sum()))
    return counts
