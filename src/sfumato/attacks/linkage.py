"""Linkage: names come back when a table without them is laid beside one that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.anonymity import Hierarchy
from sfumato.anonymity.codes import Codes, encode
from sfumato.attacks._calls import Chance
from sfumato.attacks._certain import STRANGERS
from sfumato.attacks._power import LEAK, beside_guess, leak_given, one_in, planted, stated, tried
from sfumato.attacks.control import check_apart
from sfumato.attacks.matching import (
    Flags,
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
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["linkage", "narrowing", "sparse_linkage"]

_UNDECIDED = (
    "a stranger may match one row alone, too; give truth (--truth), a column that says whose row it is, or "
    "control (--control), people who are not in the table."
)
_MORE = "give more people, more columns to know them by, or a larger leak"


def linkage(
    known: Source,
    released: Source,
    *,
    on: str | Sequence[str],
    truth: str | None = None,
    control: Source | None = None,
    labels: bool = False,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    leak: float = LEAK,
    seed: int | None = None,
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
    synthetic and private tables: a row that looks like somebody does no harm if it looks like a stranger as
    often. With neither there is no verdict: a stranger, too, may match one record alone.

    Power: the rows of `leak` of the people are planted in the table as they are, and have to be noticed.
    Where what is known fits several rows anyway, they are not, and there is no all-clear.

    Copies: rows alike in every released column are one record where most rows are there as often, so that
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
        leak: The share of people whose rows are planted to see whether the attack would notice.
        seed: For the same planted rows again; by default others each time.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, a table without rows, or `truth` together with
            `control`, whose people have no row of their own, or a control with rows of the people known.
        SourceUnusable: if a table cannot be read.
    """
    names, share = named(on, "on"), leak_given(leak)
    if truth is not None and control is not None:
        raise InvalidParameter("Give truth or control, not both: people of the control have no true row.")
    if truth is not None and truth in names:
        raise InvalidParameter("truth must not be among on: an attacker does not know whose row is whose.")
    columns = [*names, *([one_name(truth, "truth")] if truth is not None else [])]
    people = read(known, columns)
    rows, record, more = read_with_records(released, columns)
    if truth is None and control is None and not more:
        record = np.arange(rows.num_rows)
    strangers = None
    if control is not None:
        check_apart(known, control)
        strangers = read(control, names)

    def matches(some: pa.Table, table: pa.Table, records: Codes) -> tuple[Matches, Flags]:
        """Which rows may be whose, and who is found."""
        ids = None if truth is None or some is strangers else beside(some, table, truth)
        own = records if ids is None else ids.second
        matching = matched(some, table, names, secret=own, labels=labels, hierarchies=hierarchies)
        return matching, matching.alone if ids is None else matching.alone & (matching.low == ids.first)

    def attack() -> Outcome:
        matching, hits = matches(people, rows, record)
        distinct = len(np.unique(record if truth is None else encode(rows, truth).codes))
        guess: Tally | float | None = None if truth is None else 1 / distinct
        if strangers is not None:
            apart = matches(strangers, rows, record)[1]
            guess = Tally(int(apart.sum()), len(apart))
        return Outcome(
            "linkage",
            "a person's only match is their own row"
            if truth is not None
            else "a person matches one row alone",
            Tally(int(hits.sum()), len(hits)),
            guess,
            "a random row" if truth is not None else "not known" if strangers is None else STRANGERS,
            target,
            confidence,
            {
                "rows": rows.num_rows,
                "different rows": distinct,
                "matched one": int(matching.alone.sum()),
                "matched none": int((matching.counts == 0).sum()),
                "matched several": int(((matching.counts > 0) & ~matching.alone).sum()),
            },
            _UNDECIDED if guess is None else "",
        )

    outcome = attack()

    def twin(random: Chance) -> Outcome | None:
        table, kept, own = planted(rows, people, columns, share, random)
        # Nobody else's rows: each planted one is a record of its own.
        records = np.concatenate([record[kept], rows.num_rows + np.arange(len(own))])
        hits = matches(people.take(own), table, records)[1]
        return beside_guess(outcome, Tally(int(hits.sum()), len(hits)), random)

    words = f"the rows of {one_in(share)} as they are"
    cells = rows.num_rows * (people.num_rows * share if labels or hierarchies else 100)
    return stated(outcome, lambda: tried(words, twin, simulation(seed), cells=cells), advice=_MORE)


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
        own = {column: way for column, way in (hierarchies or {}).items() if column == name}
        ((_, may_be),) = blocks(one, rows, [name], alike, classes, own)
        left &= may_be[0][classes.of_row]
        counts.append(int(left.sum()))
    return counts
