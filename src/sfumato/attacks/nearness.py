"""Who is behind a synthetic table? Membership by distance: its rows lie nearer to those it was made from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sfumato.anonymity.codes import Codes
from sfumato.anonymity.given import whole
from sfumato.attacks._calls import Chance
from sfumato.attacks._mixed import Column, Floats, distances, mixed
from sfumato.attacks._power import copied, leak_given, stated, tried
from sfumato.attacks._shown import epsilon_shown
from sfumato.attacks.control import check_apart
from sfumato.attacks.matching import named, read
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NearestRecords", "nearest_records", "nearness"]

_LEAK = 0.5  # of the people: what a hundred of them can show beside a coin
_NOTHING = 0.05  # of a usual distance
_MEMBERS, _OTHERS, _SYNTHETIC, _KNOWN = range(4)


def nearness(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    columns: str | Sequence[str] | None = None,
    attacks: int = 1000,
    seed: int | None = None,
    leak: float = _LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often, of two people, the one whom the table was made from lies nearer to its rows.

    Somebody who is behind the table is paired with somebody who is not, and the one whose nearest synthetic
    row is nearer is named. Common people are near to any table, so it counts how many times nearer the
    synthetic row is than the nearest of other people, whom the attacker knows (a reference, as in van
    Breugel, Sun, Qian and van der Schaar 2023): those of the control who are in no pair, where there are as
    many.

    ```python
    nearness(people, copied, others).works
    nearness(people, private, others).detail["epsilon at least"]
    ```

    Steward-only: real people are attacked.

    Baseline: a coin, and exact. If the table tells nothing of its people, which one of a pair is behind it is
    as if tossed.

    Power: the rows of `leak` of the people are planted in the table as they are, and have to be noticed.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        columns: Those to measure distances by; by default all of the synthetic table.
        attacks: How many pairs there are at most.
        seed: For the same pairs again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Privacy:
        `epsilon at least` is a lower bound on the epsilon of what made the table, under exchange of one row
        for another, at 99 % confidence, if the people behind it were drawn uniformly from both tables: given
        the pairs, which one is in is a fair coin for each, and right names prove epsilon (Steinke, Nasr,
        Jagielski 2023). A delta takes at most 2·pairs·delta off the confidence.

    Raises:
        InvalidParameter: for a column that is not there, or of numbers in one table and text in another, no
            rows, or a control with rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    most, share = as_integer(attacks, "attacks"), leak_given(leak)
    names = whole(synthetic)[0].column_names if columns is None else named(columns, "columns")
    check_apart(original, control)
    people, rows, others = (read(table, names) for table in (original, synthetic, control))
    random = simulation(seed)
    pairs = min(most, people.num_rows, others.num_rows)
    apart = random.permutation(others.num_rows)
    # As many as are on trial, or nobody: a few would say little of who is common.
    known = apart[pairs:] if len(apart) >= 2 * pairs else apart[:0]
    held = mixed(
        [
            people.take(random.permutation(people.num_rows)[:pairs]),
            others.take(apart[:pairs]),
            rows,
            others.take(known),
        ],
        names,
    )
    usual = [_nearest(held, side, _KNOWN) if len(known) else np.ones(pairs) for side in (_MEMBERS, _OTHERS)]
    inside, outside = (_nearest(held, side, _SYNTHETIC) for side in (_MEMBERS, _OTHERS))
    # So that somebody whom both tables have is no nearer to either.
    least = _NOTHING * float(np.median(np.concatenate(usual))) or 1.0
    mine, theirs = ((inside + least) / (usual[0] + least), (outside + least) / (usual[1] + least))

    def won(nearer: Floats, farther: Floats, chance: Chance) -> int:
        ties = chance.random(len(nearer)) < 0.5
        return int(np.sum((nearer < farther) | ((nearer == farther) & ties)))

    def judged(hits: int) -> Outcome:
        return Outcome(
            "membership by distance",
            "the one of two people who is behind the table is named",
            Tally(hits, pairs),
            0.5,
            "a coin: one of the two is",
            target,
            confidence,
            {
                "advantage": 2 * hits / pairs - 1,
                "epsilon at least": epsilon_shown(hits, pairs, 0.5),
                "median distance": float(np.median(inside)),
                "median distance of others": float(np.median(outside)),
                "people known to the attacker": len(known),
            },
        )

    def twin(chance: Chance) -> Outcome:
        # Whoever is copied is at no distance; all others win as often as a coin, whatever the table tells.
        many = min(pairs, max(1, round(pairs * min(share, rows.num_rows / people.num_rows))))
        some = chance.permutation(pairs)[:many]
        leaked = won(least / (usual[0][some] + least), theirs[chance.permutation(pairs)[:many]], chance)
        return judged(leaked + int(chance.binomial(pairs - many, 0.5)))

    return stated(
        judged(won(mine, theirs, random)),
        lambda: tried(copied(share), twin, random, cells=pairs),
        advice="give more people, more columns, or a larger leak",
    )


class NearestRecords(NamedTuple):
    """The nearest row of another table, for each row.

    Attributes:
        places: Which row it is; of several that are as near, the first.
        distances: How far it is, as a share of the number of columns.
    """

    places: Codes
    distances: Floats


def nearest_records(
    of: pa.Table, *among: pa.Table, columns: str | Sequence[str] | None = None
) -> list[NearestRecords]:
    """The nearest row of other tables for each row, and how far it is; of each table by itself.

    The distance is Gower's (1971): of a number the difference over the extent of all other tables together,
    of anything else 0 or 1; the mean over all columns. So distances to several tables can be compared.

    Args:
        of: The rows.
        among: The other tables, one at least.
        columns: Those to measure by; by default all of the first table.

    Raises:
        InvalidParameter: for a column that is not there, or of numbers in one table and text in another, or
            if there are no rows.
    """
    names = of.column_names if columns is None else named(columns, "columns")
    tables = [read(table, names) for table in (of, *among)]
    held = [
        Column(column.name, column.ordered, (column.parts[0], np.concatenate(column.parts[1:])))
        for column in mixed(tables, names)
    ]
    ends = np.cumsum([0, *(table.num_rows for table in tables[1:])])
    sides = [slice(first, last) for first, last in itertools.pairwise(ends.tolist())]
    found = [NearestRecords(np.empty(of.num_rows, np.int64), np.empty(of.num_rows)) for _ in sides]
    for some, apart in distances(held, 0, 1):
        for side, nearest in zip(sides, found, strict=True):
            nearest.places[some] = apart[:, side].argmin(axis=1)
            nearest.distances[some] = apart[:, side].min(axis=1) / len(names)
    return found


def _nearest(held: Sequence[Column], of: int, among: int) -> Floats:
    found = np.empty(len(held[0].parts[of]))
    for some, apart in distances(held, of, among):
        found[some] = apart.min(axis=1)
    return found
