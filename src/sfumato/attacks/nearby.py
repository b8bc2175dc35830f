"""Attacks by the nearest synthetic row: a person's secret, and the two halves of a person's record.

Two of the three risks by which European data protection judges anonymisation, measured as Giomi, Boenisch,
Wehmeyer and Tasnádi (2023) do: an attacker who sees the synthetic table alone, and a control of people from
the same population whom it was not made from. The third is `singling_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.attacks._calls import Chance
from sfumato.attacks._mixed import Column, Floats, mixed, nearest
from sfumato.attacks._power import LEAK, beside_guess, copied, leak_given, planted, stated, tried
from sfumato.attacks.control import check_apart
from sfumato.attacks.matching import Flags, named, one_name, read
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inference", "linkability"]

_ORIGINAL, _SYNTHETIC, _CONTROL = 0, 1, 2
_STRANGERS = "the same attack on people whom the table was not made from"
_MORE = "give more people, more columns, more attacks, or a larger leak"


def inference(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    known: str | Sequence[str],
    secret: str,
    tolerance: float = 0.05,
    attacks: int = 500,
    seed: int | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often the nearest synthetic row tells a person's secret.

    ```python
    inference(people, copied, others, known=["zip", "age"], secret="income").works
    inference(people, private, others, known=["zip", "age"], secret="income").within      # epsilon = 1
    ```

    Steward-only: guesses are compared with the truth.

    Baseline: the same guesses about people whom the table was not made from. What holds for them too, as that
    smokers fall ill, is what a table is for; only the difference is a harm of having been in it.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        known: What the attacker knows of a person.
        secret: What they want to learn.
        tolerance: How far off a number may be, as a share of the extent of the synthetic column. A category
            has to be right.
        attacks: How many people to attack at most, of either kind.
        seed: For the same people again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, both known and secret, or of numbers in one table
            and text in another, no rows, no tolerance, or a control with rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    names = named(known, "known")
    if one_name(secret, "secret") in names:
        raise InvalidParameter("secret must not be among the known columns: what is known is not a secret.")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 1:
        raise InvalidParameter("tolerance is a share of the extent of the column; give a number from 0 to 1.")
    share = leak_given(leak)

    def tally(held: Sequence[Column], part: int) -> Tally:
        own = held[-1]
        told = own.parts[_SYNTHETIC][nearest(held[:-1], part, _SYNTHETIC)[:, 0]]
        hits = _near(own.parts[part], told, tolerance * own.extent(_SYNTHETIC) if own.ordered else 0.0)
        return Tally(int(hits.sum()), len(hits))

    sides = _Sides.of(original, synthetic, control, [*names, secret], attacks, seed)
    held = sides.columns
    outcome = Outcome(
        "inference",
        "the nearest row tells a person's secret",
        tally(held, _ORIGINAL),
        tally(held, _CONTROL),
        _STRANGERS,
        target,
        confidence,
        {"known columns": len(names), "synthetic rows": len(held[-1].parts[_SYNTHETIC])},
    )
    return sides.with_power(outcome, tally, share)


def linkability(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    left: str | Sequence[str],
    right: str | Sequence[str],
    neighbours: int = 1,
    attacks: int = 500,
    seed: int | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often two halves of a person's record lead to the same synthetic row.

    Somebody has one half under a name and the other half without; if the nearest synthetic rows of both are
    the same, the table has joined what two sources kept apart.

    ```python
    linkability(people, copied, others, left=["zip", "age"], right=["job", "income"]).works
    linkability(people, private, others, left=["zip", "age"], right=["job", "income"]).within   # epsilon = 1
    ```

    Steward-only: real people are attacked.

    Baseline: the same attack on people whom the table was not made from, whose halves may meet by chance, or
    because both say the same about anybody.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        left: The columns of one half.
        right: The columns of the other half.
        neighbours: How many nearest rows of each half are looked at.
        attacks: How many people to attack at most, of either kind.
        seed: For the same people again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, in both halves, or of numbers in one table and text
            in another, no rows, or a control with rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    one, other = named(left, "left"), named(right, "right")
    if set(one) & set(other):
        raise InvalidParameter("left and right must have no column in common: it would join them by itself.")
    count = as_integer(neighbours, "neighbours")
    share = leak_given(leak)

    def tally(held: Sequence[Column], part: int) -> Tally:
        mine = nearest(held[: len(one)], part, _SYNTHETIC, count)
        theirs = nearest(held[len(one) :], part, _SYNTHETIC, count)
        hits = (mine[:, :, None] == theirs[:, None, :]).any(axis=(1, 2))
        return Tally(int(hits.sum()), len(hits))

    sides = _Sides.of(original, synthetic, control, [*one, *other], attacks, seed)
    held = sides.columns
    outcome = Outcome(
        "linkability",
        "both halves of a record lead to one row",
        tally(held, _ORIGINAL),
        tally(held, _CONTROL),
        _STRANGERS,
        target,
        confidence,
        {"neighbours": count, "synthetic rows": len(held[0].parts[_SYNTHETIC])},
    )
    return sides.with_power(outcome, tally, share)


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """A random choice of people and of strangers, and all rows of the synthetic table."""

    people: pa.Table
    synthetic: pa.Table
    others: pa.Table
    names: Sequence[str]
    random: Chance

    @classmethod
    def of(
        cls,
        original: Source,
        synthetic: Source,
        control: Source,
        names: Sequence[str],
        attacks: int,
        seed: int | None,
    ) -> _Sides:
        most, random = as_integer(attacks, "attacks"), simulation(seed)
        check_apart(original, control)
        people, rows, others = (read(table, names) for table in (original, synthetic, control))
        chosen, apart = (random.permutation(table.num_rows)[:most] for table in (people, others))
        return cls(people.take(chosen), rows, others.take(apart), names, random)

    @property
    def columns(self) -> list[Column]:
        return mixed([self.people, self.synthetic, self.others], self.names)

    def with_power(
        self, outcome: Outcome, tally: Callable[[Sequence[Column], int], Tally], share: float
    ) -> Outcome:
        """The outcome, and what it would have noticed: rows of some of the people planted in the table."""

        def twin(chance: Chance) -> Outcome | None:
            table, _, own = planted(self.synthetic, self.people, self.names, share, chance)
            held = mixed([self.people.take(own), table, self.others], self.names)
            return beside_guess(outcome, tally(held, _ORIGINAL), chance)

        cells = self.people.num_rows * share * self.synthetic.num_rows * len(self.names)
        return stated(outcome, lambda: tried(copied(share), twin, self.random, cells=cells), advice=_MORE)


def _near(true: Floats, told: Floats, within: float) -> Flags:
    hits: Flags = (np.abs(true - told) <= within) | (np.isnan(true) & np.isnan(told))
    return hits
