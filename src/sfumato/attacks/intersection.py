"""What k-anonymity leaves open: two tables that together allow a person one value, as neither does alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity import Hierarchy
from sfumato.anonymity.codes import Codes, encode
from sfumato.attacks._calls import Chance
from sfumato.attacks._certain import known_and_secret
from sfumato.attacks._power import LEAK, beside_guess, leak_given, one_in, planted, stated, tried
from sfumato.attacks.control import check_apart
from sfumato.attacks.matching import (
    Flags,
    Grouped,
    blocks,
    grouped,
    one_name,
    person_table,
    read,
    together_coded,
)
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Intersection", "intersection"]

_MOST = 50_000_000  # cells of people by sensitive values
_PAIRS = 3_000_000_000  # of a kind of people and a class of rows: about a minute for each known column


@dataclass(frozen=True, slots=True, eq=False)
class Intersection:
    """What is still open about each person's secret when all tables are combined.

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
    leak: float = LEAK,
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Intersection:
    """What several tables tell together of people who are in all of them: anonymity does not compose.

    ```python
    from sfumato.attacks.printed import company_z, table_2

    both = intersection([table_2(), company_z()], people={"age": 31}, quasi="age", sensitive="score")
    both.candidates                                                                 # ((613,),)
    ```

    Steward-only: the outcome counts real people, and the candidates are values of rows.

    Baseline, with `truth`: the same answers, dealt out to the people at random, which is what they are worth
    if tables have nothing to do with whom they are about. With `control`, too, the same attack on people
    who are in none of the tables: right for private and synthetic ones (`.within` at epsilon = 1 for each
    table). Without `truth` there is no verdict: what remains alone may be wrong, and does remain by chance
    where tables have nothing to do with people.

    Power: the rows of `leak` of the people, with their true values, are planted in every table, and have to
    be noticed.

    `detail` has what "one table alone" reaches, the most telling one of each person, if its most frequent
    candidate is named: a table that betrays people by itself is no better for one that confuses them.

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
        leak: The share of people whose rows are planted to see whether the attack would notice.
        seed: For the same planted rows again; by default others each time.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for fewer than two tables, a column that is not there, no rows, more people and
            classes than can be laid beside each other, or a control without truth or with people's rows.
        SourceUnusable: if a table cannot be read.
    """
    names, share = known_and_secret(quasi, sensitive), leak_given(leak)
    if not isinstance(releases, list | tuple) or len(releases) < 2:
        raise InvalidParameter(
            "releases must be a list of at least two tables: one alone has nothing to meet."
        )
    if control is not None and truth is None:
        raise InvalidParameter("control needs truth: the column that says whether the value found is right.")
    if control is not None and not isinstance(people, Mapping):
        check_apart(people, control)
    tables = [read(release, [*names, sensitive]) for release in releases]
    columns = [*names, *([one_name(truth, "truth")] if truth is not None else [])]
    if isinstance(people, Mapping):
        who = person_table(people, columns)
    else:
        who = read(people, columns)
    strangers = None if control is None else read(control, columns)

    remaining = _left(who, tables, names, sensitive, truth, hierarchies)
    others = None
    if strangers is not None:
        others = _left(strangers, tables, names, sensitive, truth, hierarchies)
    reached = Outcome(
        "intersection",
        "one value remains" if truth is None else "one value remains, the right one",
        remaining.tally,
        None if truth is None else remaining.dealt if others is None else others.tally,
        "not known" if truth is None else _DEALT if others is None else _STRANGERS,
        target,
        confidence,
        {
            "tables": len(tables),
            "one remains": int((remaining.allowed.sum(axis=1) == 1).sum()),
            "none remains": int((~remaining.allowed.any(axis=1)).sum()),
            "values left on average": float(remaining.allowed.sum(axis=1).mean()),
            "one table alone": remaining.best_alone,
        },
        _UNDECIDED if truth is None else "",
    )

    def twin(random: Chance) -> Outcome | None:
        # The same people in each table: who is in one of them only is not what this attack is about.
        some = who.take(random.permutation(who.num_rows)[: max(1, round(share * who.num_rows))])
        own = some.rename_columns([*names, sensitive])
        leaky = [planted(table, own, own.column_names, 1.0, random)[0] for table in tables]
        return beside_guess(reached, _left(some, leaky, names, sensitive, truth, hierarchies).tally, random)

    cells = who.num_rows * share * sum(table.num_rows for table in tables)
    words = f"the rows of {one_in(share)} as they are, in every table"
    outcome = stated(reached, lambda: tried(words, twin, simulation(seed), cells=cells))
    candidates = tuple(
        tuple(remaining.values[i] for i in np.flatnonzero(flags).tolist()) for flags in remaining.allowed
    )
    return Intersection(outcome, candidates, tuple(map(tuple, remaining.alone.tolist())))


_STRANGERS = "the same attack on people who are in none of the tables"
_DEALT = "the same answers, dealt out to the people at random"
_UNDECIDED = (
    "the one value that remains may be the wrong one; give truth (--truth), a column with the right ones."
)


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """Which values all tables allow each person, how many each alone does, and what guesses would reach.

    Attributes:
        values: Each value once.
        allowed: For each person and value whether all tables allow it.
        alone: For each person and table how many values it allows.
        tally: Of how many one value remains, the right one if that is known.
        dealt: How often one remains that is right, if what remains is dealt out at random.
        best_alone: How often the best candidate of the most telling table is right; if that is not known,
            which share of the candidates it is.
    """

    values: Sequence[object]
    allowed: Flags
    alone: Codes
    tally: Tally
    dealt: float
    best_alone: float


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
    people = np.arange(who.num_rows)
    true = None if truth is None else hidden[-1]
    allowed = np.ones((len(alike.sizes), len(values)), dtype=bool)
    alone, sure = [], np.full(who.num_rows, -1.0)
    right = np.zeros(who.num_rows)
    for table, own in zip(tables, hidden, strict=False):
        counts = _values_of(who, table, names, own, len(values), alike, hierarchies)
        allowed &= counts > 0
        alone.append((counts > 0).sum(axis=1)[alike.of_row])
        most = counts.max(axis=1, keepdims=True)
        confidence = (most[:, 0] / np.maximum(counts.sum(axis=1), 1))[alike.of_row]
        # Of values that are as frequent one is named at random.
        named = (counts == most) & (most > 0)
        chance = named / np.maximum(named.sum(axis=1, keepdims=True), 1)
        hit = confidence if true is None else chance[alike.of_row, true]
        right = np.where(confidence > sure, hit, right)
        sure = np.maximum(sure, confidence)
    left = allowed[alike.of_row]
    hits = left.sum(axis=1) == 1
    dealt = 0.0
    if true is not None:
        answered = np.bincount(left[hits].argmax(axis=1), minlength=len(values)) / len(hits)
        dealt = float(answered @ np.bincount(true, minlength=len(values)) / len(hits))
        hits &= left[people, true]
    tally = Tally(int(hits.sum()), len(hits))
    return _Left(values, left, np.stack(alone, axis=1), tally, min(1.0, dealt), float(right.mean()))


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
    from scipy.sparse import coo_array

    classes = grouped([encode(table, name).codes for name in names])
    if len(alike.sizes) * len(classes.sizes) > _PAIRS:
        raise InvalidParameter(
            "There are too many people and classes of rows to lay beside each other; give fewer people."
        )
    # Most classes have few of the values.
    ones = np.ones(len(secret))
    held = coo_array((ones, (secret, classes.of_row)), shape=(count, len(classes.sizes))).tocsr()
    counts = np.zeros((len(alike.sizes), count))
    for some, may_be in blocks(who, table, names, alike, classes, hierarchies):
        counts[some] = (held @ may_be.T.astype(np.float64)).T
    return counts
