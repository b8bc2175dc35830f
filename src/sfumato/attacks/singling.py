"""Singling out: whom a synthetic table describes, beside people it was not made from.

One of the three risks by which European data protection judges anonymisation (Giomi, Boenisch, Wehmeyer and
Tasnádi 2023): an attacker who sees the synthetic table alone, and a control of people from the same
population whom it was not made from. `inference` and `linkability` are the other two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sfumato.anonymity.codes import Codes
from sfumato.anonymity.given import whole
from sfumato.attacks._calls import Chance
from sfumato.attacks._described import by_one_column, by_several_columns, matrix
from sfumato.attacks._likeness import Likeness, telling
from sfumato.attacks._mixed import mixed
from sfumato.attacks._power import LEAK, copied, exchanged, leak_given, replaced, stated, tried
from sfumato.attacks.control import check_apart
from sfumato.attacks.matching import Flags, named, read, read_with_records
from sfumato.attacks.nearby import inference, linkability
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inference", "linkability", "singling_out"]

_PEOPLE, _SYNTHETIC = 0, 1
_MOST = 100_000  # descriptions
_TRIES = 20  # rows looked at for each description wanted
_OFTEN = 4  # how often each description that there is comes up, on average, where they are few
_STRANGERS = "the same attack on people whom the table was not made from"
_MORE = "give more people, more columns, more attacks, or a larger leak"

_Attack: TypeAlias = Callable[[Codes, Codes], tuple[Flags, Mapping[str, Any]]]
"""From the synthetic rows that count and the people whose rows are beside them: who is singled out."""


def singling_out(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    columns: str | Sequence[str] | None = None,
    width: int | None = None,
    attacks: int = 500,
    seed: int | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many people a synthetic table singles out: what it says fits them and hardly anybody else.

    Each synthetic row is a description: of the people who have the same values, or, where nobody has, of
    those whom it is at least eight times as near to as to anybody else. They are singled out if they are
    few: at most four of everybody, or fewer where that shows copies more clearly.

    With a `width`, descriptions are about so many columns, drawn at random, of a row that they single out in
    the synthetic table: a category is equal, a number at least as large if it lies above the median and at
    most as large otherwise. With a width of 1, it is a value that occurs once, or beyond the least or largest
    number. Each must fit exactly one of everybody. Copies of a synthetic row, alike in every column where
    most rows are there as often, are one row.

    ```python
    singling_out(people, copied, others).works            # one row in ten that is copied is enough
    singling_out(people, private, others).within          # epsilon = 1
    ```

    Steward-only: descriptions are counted on real people.

    Baseline: the people of the control whom the same descriptions single out. Those behind the table and the
    control are looked at together, so that no description knows who is which. If the table was not made from
    them, that is as if dealt out, and Fisher's exact test is wrong with probability (1 − confidence)/2 at
    most.

    Power: the rows of `leak` of the people are planted in the table as they are, and have to be noticed.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        columns: Which ones descriptions are about; by default all of the synthetic table.
        width: How many columns a description has, at most all; by default rows are compared as a whole.
        attacks: How many descriptions to try at most. Where rows are compared as a whole, those that are
            exactly like somebody are all found, and so many others are looked at.
        seed: For the same descriptions again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, no rows, more than 100,000 attacks, or if no
            description of that width singles out a synthetic row, or the control has rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    wide = None if width is None else as_integer(width, "width")
    most, share = as_integer(attacks, "attacks"), leak_given(leak)
    if most > _MOST:
        raise InvalidParameter(f"attacks must be at most {_MOST:,}; a thousand show it as well.")
    names = whole(synthetic)[0].column_names if columns is None else named(columns, "columns")
    rows, record, _ = read_with_records(synthetic, names)
    check_apart(original, control)
    people, others = read(original, names), read(control, names)
    random = simulation(seed)
    members, every = people.num_rows, people.num_rows + others.num_rows
    everybody = exchanged(people, others, names, np.arange(members), np.arange(others.num_rows))
    if wide is None:
        attack = _by_rows(everybody, rows, names, most, random)
        success = "a row describes a person and hardly anybody else"
    else:
        attack = _by_columns(everybody, rows, record, names, wide, most, random)
        success = "a description fits a person and nobody else"

    def judged(inside: Codes, kept: Codes, own: Codes) -> Outcome:
        is_inside = np.zeros(every, dtype=bool)
        is_inside[inside] = True
        flags, detail = attack(kept, own)
        reached, guess = (Tally(int(flags[side].sum()), int(side.sum())) for side in (is_inside, ~is_inside))
        shown = {**detail, "synthetic rows": rows.num_rows, "different rows": len(np.unique(record))}
        return Outcome(
            "singling out", success, reached, guess, _STRANGERS, target, confidence, shown, dealt=True
        )

    def twin(chance: Chance) -> Outcome | None:
        # Whoever the table was made from: people are dealt out again, and only the planted rows tell.
        inside = chance.permutation(every)[:members]
        kept, own = replaced(rows.num_rows, members, share, chance)
        try:
            return judged(inside, kept, inside[own])
        except InvalidParameter:  # no description singles out a row of the twin
            return None

    outcome = judged(np.arange(members), np.arange(rows.num_rows), np.zeros(0, dtype=np.int64))
    # Whole rows were compared already, and a twin only counts.
    cells = every if wide is None else most * every + _TRIES * most * rows.num_rows / 10
    advice = _MORE if wide is None else f"leave out width, or {_MORE}"
    return stated(outcome, lambda: tried(copied(share), twin, random, cells=cells), advice=advice)


def _by_rows(
    everybody: pa.Table, synthetic: pa.Table, names: Sequence[str], most: int, random: Chance
) -> _Attack:
    """Descriptions by whole rows."""
    held = mixed([everybody, synthetic], names)
    looked_at = random.permutation(synthetic.num_rows)[:most]
    likeness = Likeness.of(held, people=_PEOPLE, table=_SYNTHETIC, looked_at=looked_at)

    def attack(kept: Codes, own: Codes) -> tuple[Flags, Mapping[str, Any]]:
        described = likeness.described(kept, own)
        few = telling(described, likeness.alike)
        return described <= few, {"width": len(held), "people described together at most": few}

    return attack


def _by_columns(
    everybody: pa.Table,
    synthetic: pa.Table,
    record: Codes,
    names: Sequence[str],
    wide: int,
    most: int,
    random: Chance,
) -> _Attack:
    """Descriptions by some columns of a row."""

    def attack(kept: Codes, own: Codes) -> tuple[Flags, Mapping[str, Any]]:
        table = exchanged(synthetic, everybody, names, kept, own)
        records = np.concatenate([record[kept], synthetic.num_rows + np.arange(len(own))])
        # A table with each row twice hides nobody: copies are looked at once.
        once = np.unique(records, return_index=True)[1]
        held = [column.take([None, once]) for column in mixed([everybody, table], names)]
        if wide == 1:
            descriptions = by_one_column(held, _SYNTHETIC)
            descriptions = descriptions.take(random.permutation(len(descriptions.columns))[:most])
        else:
            # No more than find nearly all that there are.
            tries = min(_TRIES * most, _OFTEN * len(once) * math.comb(len(held), min(wide, len(held))))
            chosen = random.random((tries, len(held))).argsort(axis=1)[:, :wide]
            rows = random.integers(len(once), size=tries)
            descriptions = by_several_columns(held, _SYNTHETIC, rows, chosen, most)
        if not len(descriptions.columns):
            raise InvalidParameter(
                "No description singles out a synthetic row; give more columns or a larger width."
            )
        whom = descriptions.alone(matrix(held, _PEOPLE))
        flags = np.zeros(everybody.num_rows, dtype=bool)
        flags[whom[whom >= 0]] = True
        return flags, {"width": min(wide, len(held)), "descriptions": len(descriptions.columns)}

    return attack
