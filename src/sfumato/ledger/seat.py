"""`Seat`: one analyst at one dataset: their limit, what they spent, what of others they have read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.ledger.budget import Budget, Totals
from sfumato.ledger.receipt import fraction

__all__ = ["Seat", "settled", "together", "totals_of"]

# Exact sums of unlike fractions grow with every one; beyond this they are rounded up, to a grid far below the
# smallest delta that is accepted (1e-300).
_LONGEST = 4096
_GRID = 2**1200


def settled(total: Fraction) -> Fraction:
    """A sum as it is kept: exact while it is short, else rounded up by less than 2**-1200."""
    if total.denominator.bit_length() <= _LONGEST:
        return total
    return Fraction(-(-total.numerator * _GRID // total.denominator), _GRID)


@dataclass(slots=True)
class Seat:
    """One analyst at one dataset, under one spelling of the name or under all of them."""

    limit: Budget | None = None
    revoked: bool = False
    allotted: bool = False  # whether the limit is an allotment's, and what it leaves is kept for this analyst
    last: int = 0  # the receipt that the sums are of
    sums: Mapping[str, str] = field(default_factory=dict)  # what was spent, as that receipt has it
    debits: int = 0
    reads: set[int] = field(default_factory=set)  # debits of others whose answers count here, too
    since: int = 0  # the receipt that set the limit or revoked
    spellings: tuple[Seat, ...] = ()

    def totals(self, budget: Budget) -> Totals:
        """What this analyst has spent, others' answers included, in the units of the dataset's budget."""
        if not self.spellings:
            return totals_of(self.sums, budget)
        parts = [seat.totals(budget) for seat in self.spellings]
        return tuple(settled(sum(amounts, Fraction(0))) for amounts in zip(*parts, strict=True))


def together(seats: list[Seat]) -> Seat:
    """One analyst whom a ledger has under several spellings: all they spent, and what was last decided."""
    if len(seats) == 1:
        return seats[0]
    last = max(seats, key=lambda seat: seat.since)
    debits = sum(seat.debits for seat in seats)
    reads = set[int]().union(*(seat.reads for seat in seats))
    return Seat(
        last.limit,
        last.revoked,
        last.allotted,
        debits=debits,
        reads=reads,
        since=last.since,
        spellings=tuple(seats),
    )


def totals_of(sums: Mapping[str, str], budget: Budget) -> Totals:
    """Sums as a receipt has them, in the order of the budget's units; nothing before the first one."""
    if not sums:
        return (Fraction(0),) * len(budget.units)
    return tuple([fraction(sums[unit]) for unit in budget.units])
