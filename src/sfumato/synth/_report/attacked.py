"""What a synthetic table gives away: nearest records, and the attacks on it, beside people not in it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.attacks import (
    NearestRecords,
    Outcome,
    Tally,
    inference,
    linkability,
    nearest_records,
    nearness,
    singling_out,
)
from sfumato.fits.meter import price
from sfumato.numeric.estimates import Estimate, share
from sfumato.random import Simulation, simulation

__all__ = ["MOST_ATTACKED", "Attack", "Nearest", "attacks_on", "nearest_of"]

Floats: TypeAlias = NDArray[np.float64]

_LOOKED_AT = 1_000  # synthetic rows whose nearest records are found
_KNOWN = 20_000  # records they are looked for among, of either kind
_ENOUGH = Fraction(700)  # an epsilon that allows anything

MOST_ATTACKED = 50_000
"""Rows of each table that attacks look at."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """How far the nearest real record is from synthetic rows; of those behind the table, and of others.

    Both are looked for among equally many records, so that rows of nobody lie as near to the one as to the
    other.

    Attributes:
        inside: From each of the rows that were looked at, to the nearest record behind the table.
        outside: To the nearest of people whom it was not made from.
        nearer: The share of rows that lie nearer to a record behind the table; ties count for half. A half
            is what a table that gives nobody away has.
        copies: The share of rows that are a record behind the table.
        copies_outside: The share of rows that are the record of somebody else, by chance.
    """

    inside: Floats
    outside: Floats
    nearer: Estimate
    copies: Estimate
    copies_outside: Estimate

    @property
    def is_near(self) -> bool:
        """Whether rows lie nearer to the records behind the table than luck would have it."""
        return self.nearer.low > 0.5

    def to_dict(self) -> dict[str, Any]:
        """Plain values; of the distances some quantiles."""
        return {
            "rows": len(self.inside),
            "nearer": self.nearer.to_dict(),
            "copies": self.copies.to_dict(),
            "copies_outside": self.copies_outside.to_dict(),
            "quantiles": {
                f"{at:.0%}": {
                    "inside": float(np.quantile(self.inside, at)),
                    "outside": float(np.quantile(self.outside, at)),
                }
                for at in (0.05, 0.25, 0.5, 0.75, 0.95)
            },
        }


def nearest_of(
    real: pa.Table, synthetic: pa.Table, holdout: pa.Table, rng: Simulation, confidence: float = 0.99
) -> Nearest:
    """The nearest records of some synthetic rows; intervals at the confidence of attacks."""

    def some(table: pa.Table, most: int) -> pa.Table:
        return table.take(pa.array(rng.permutation(table.num_rows)[:most]))

    rows = some(synthetic, _LOOKED_AT)
    many = min(_KNOWN, real.num_rows, holdout.num_rows)
    names = synthetic.column_names
    own, other = nearest_records(rows, some(real, many), some(holdout, many), columns=names)
    inside, outside = own.distances, other.distances
    looked_at = len(inside)
    return Nearest(
        inside,
        outside,
        _nearer(own, other, many, confidence),
        share(int((inside == 0).sum()), looked_at, confidence),
        share(int((outside == 0).sum()), looked_at, confidence),
    )


def _nearer(own: NearestRecords, other: NearestRecords, many: int, confidence: float) -> Estimate:
    """The share of rows whose nearest record is behind the table, with what dealing records out does to it.

    A record may be the nearest of many rows, so that rows are no independent trials. If a table tells nothing
    of its people, who of both is behind it is as if dealt out: w rows at each of 2·m records, of which m are
    dealt, are half of all on average, with a variance of Σ(w − mean w)²·2m/(2m − 1)/4.
    """
    from scipy.stats import norm

    won = np.where(own.distances < other.distances, 1.0, np.where(own.distances == other.distances, 0.5, 0.0))
    weights = np.concatenate([np.bincount(own.places, won, many), np.bincount(other.places, 1 - won, many)])
    spread = float(((weights - weights.mean()) ** 2).sum()) * 2 * many / max(2 * many - 1, 1) / 4
    half = float(norm.ppf((1 + confidence) / 2)) * spread**0.5 / len(won)
    value = float(won.mean())
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack reached, and what the price allows.

    Attributes:
        outcome: With intervals, beside what a guess reaches.
        allowed: The most that the price lets the attack reach; None: there is no price.
    """

    outcome: Outcome
    allowed: float | None

    @property
    def keeps(self) -> bool | None:
        """Whether the rate may be one that the price allows; what is not is more than luck."""
        return None if self.allowed is None else self.outcome.interval[0] <= self.allowed

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.outcome.to_dict(), "allowed": self.allowed, "keeps": self.keeps}


def attacks_on(
    real: pa.Table,
    synthetic: pa.Table,
    holdout: pa.Table,
    *,
    targets: Sequence[str],
    paid: tuple[Fraction, Fraction] | None,
    seed: int,
) -> list[Attack]:
    """The attacks of `sf.attacks` on a synthetic table, on at most so many rows of each: a random choice.

    Args:
        real: The rows that it was made from.
        synthetic: The table; only its columns count.
        holdout: Rows of other people of the same kind.
        targets: Secrets that are inferred from all other columns.
        paid: Epsilon and delta of the table; None: it has no price.
        seed: Of the attackers' choices.
    """
    names, rng = synthetic.column_names, simulation(seed)
    tables = [
        table.select(names).take(pa.array(rng.permutation(table.num_rows)[:MOST_ATTACKED]))
        for table in (real, synthetic, holdout)
    ]
    given: dict[str, Any] = {"seed": seed, "target": "the synthetic table"}
    outcomes = [singling_out(*tables, **given)]
    if len(names) > 1:
        outcomes.append(linkability(*tables, left=names[::2], right=names[1::2], **given))
    for target in targets if len(names) > 1 else ():
        known = [name for name in names if name != target]
        outcomes.append(inference(*tables, known=known, secret=target, **given | {"target": target}))
    outcomes.append(nearness(*tables, **given))
    return [Attack(outcome, _allowed(outcome, paid)) for outcome in outcomes]


def _allowed(outcome: Outcome, paid: tuple[Fraction, Fraction] | None) -> float | None:
    """The most that a price lets an attack reach: beside strangers, or beside a coin."""
    if paid is None:
        return None
    if not isinstance(outcome.guess, Tally):
        return (1 + advantage_allowed(*paid)) / 2
    return outcome.allowed(float(min(paid[0], _ENOUGH)), delta=float(paid[1]))


def advantage_allowed(epsilon: Fraction, delta: Fraction) -> float:
    """The most by which a table of this price lets anybody tell those behind it from others.

    Privacy:
        Claim: of two people, one of whom is behind the table, the right one is named with probability at most
        (1 + δ(0)) / 2, where δ is that of the loss under exchange of one row. Proof: the two are as likely
        the other way round, and the two tables differ by an exchange, which is a removal and an addition;
        the difference between the chances of naming the first is at most the total variation distance
        between what is drawn from both, which is δ(0).
    """
    return float(price(epsilon, delta).group(2).delta(0))
