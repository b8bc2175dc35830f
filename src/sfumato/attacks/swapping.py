"""Data swapping, as in censuses before 2020: most values stay where they are, and everybody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.anonymity import Hierarchy
from sfumato.anonymity.codes import Codes, encode
from sfumato.anonymity.given import whole
from sfumato.anonymity.tables import checked, columns_of
from sfumato.attacks._calls import Chance
from sfumato.attacks._power import LEAK, beside_guess, leak_given, one_in, planted, stated, tried
from sfumato.attacks.matching import beside, matched, named, one_name, read, read_with_records
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["swap", "swapping"]


def swap(table: Source, *, sensitive: str | Sequence[str], share: float, seed: int | None = None) -> pa.Table:
    """The table after the sensitive values of some rows changed places; all counts of a column stay.

    A random share of the rows is laid in a ring, and each takes the values of its neighbour. Several
    columns of a row move together.

    Args:
        table: The rows.
        sensitive: The columns whose values move.
        share: The share of rows that give theirs away, 0 … 1.
        seed: For the same rows again; by default others each time.

    Privacy:
        None is claimed: a historic method, here to be attacked by `swapping`. It is made with a plain
        generator.

    Raises:
        InvalidParameter: for a column that is not there, no rows, or no share.
        SourceUnusable: if the table cannot be read.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidParameter("share is a share of the rows; give a number from 0 to 1.")
    import pyarrow as pa

    rows, shown, _ = whole(table)
    count = checked(rows.num_rows, shown)
    places = columns_of(rows.column_names, named(sensitive, "sensitive"), shown)
    ring = simulation(seed).permutation(count)[: round(share * count)]
    source = np.arange(count)
    source[ring] = np.roll(ring, 1)
    for place in places:
        name = rows.column_names[place]
        rows = rows.set_column(place, name, rows.column(place).take(pa.array(source)))
    return rows


def swapping(
    people: Source,
    released: Source,
    *,
    on: str | Sequence[str],
    sensitive: str,
    control: Source | None = None,
    labels: bool = False,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    leak: float = LEAK,
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often what a swapped table says of a person is true: about 1 less the share that was swapped.

    The attacker knows `on`, takes the people who match exactly one row, or copies of one (see `linkage`), and
    believes what it says. Swapping makes it deniable, hardly doubtful: with one row in ten swapped, nine of
    ten readings are right.

    ```python
    swapped = swap(people, sensitive="income", share=0.1)
    swapping(people, swapped, on=["zip", "birth"], sensitive="income").rate           # about 0.9
    ```

    Steward-only: readings are compared with the truth.

    Baseline: the most frequent value of the released column, the best guess about anybody whose row is not
    known. With `control`, the same readings for people of the same kind who are not in the data: right for
    synthetic and private tables (`.within` at epsilon = 1), where a row that fits somebody is nobody's, and
    where what people of one place have in common is not a secret of any of them.

    Power: the rows of `leak` of the people are planted in the table as they are, and have to be noticed.

    Args:
        people: The real people, with `on` and their true `sensitive`.
        released: The table, swapped, synthetic or as it is.
        on: What is known of a person.
        sensitive: What is read off their row.
        control: People like that who are not in the data.
        labels: Whether the released values are labels that cover values, such as `19***`.
        hierarchies: What labels come from, where they do not say it themselves: the names of a tree.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        seed: For the same planted rows again; by default others each time.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, no rows, or if nobody matches exactly one row.
        SourceUnusable: if a table cannot be read.
    """
    names, share = named(on, "on"), leak_given(leak)
    if one_name(sensitive, "sensitive") in names:
        raise InvalidParameter("sensitive must not be among on: what is known need not be read.")
    columns = [*names, sensitive]
    rows, record, _ = read_with_records(released, columns)
    who, others = (None if some is None else read(some, columns) for some in (people, control))
    assert who is not None

    def readings(some: pa.Table, table: pa.Table, records: Codes) -> Tally:
        alone = matched(some, table, names, secret=records, labels=labels, hierarchies=hierarchies).alone
        if not alone.any():
            raise InvalidParameter(
                "Nobody matches exactly one row, so nothing can be read; name more columns in on."
            )
        secret = beside(some, table, sensitive)
        matches = matched(some, table, names, secret=secret.second, labels=labels, hierarchies=hierarchies)
        right = matches.low[alone] == secret.first[alone]
        return Tally(int(right.sum()), int(alone.sum()))

    reached, codes = readings(who, rows, record), encode(rows, sensitive).codes
    outcome = Outcome(
        "swapping",
        "what their row says of a person is true",
        reached,
        float(np.bincount(codes).max()) / len(codes) if others is None else readings(others, rows, record),
        "the most frequent value of the column"
        if others is None
        else "the same readings for people who are not in the data",
        target,
        confidence,
        {"rows": rows.num_rows, "people who match one row": reached.trials},
    )

    def twin(random: Chance) -> Outcome | None:
        table, kept, own = planted(rows, who, columns, share, random)
        try:
            leaked = readings(
                who.take(own), table, np.concatenate([record[kept], rows.num_rows + np.arange(len(own))])
            )
        except InvalidParameter:  # nobody of them matches one row of the twin
            return None
        return beside_guess(outcome, leaked, random)

    words = f"the rows of {one_in(share)} as they are"
    cells = rows.num_rows * (who.num_rows * share if labels or hierarchies else 100)
    return stated(outcome, lambda: tried(words, twin, simulation(seed), cells=cells))
