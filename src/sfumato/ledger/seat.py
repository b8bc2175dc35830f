"""`Seat`: one analyst at one dataset: their limit, what they spent, what of others they have read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.ledger.budget import Budget, Totals
from sfumato.ledger.spans import Piece, Spans
from sfumato.ledger.sums import settled, totals_of
from sfumato.schema import Windows

__all__ = ["Seat", "together", "totals_in"]


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
    spans: Spans = field(default_factory=Spans)  # what was spent in each window, where budgets are for each

    def totals(self, budget: Budget) -> Totals:
        """What this analyst has spent, others' answers included, in the units of the dataset's budget."""
        if not self.spellings:
            return totals_in(self.sums, self.spans, budget)
        parts = [seat.totals(budget) for seat in self.spellings]
        return tuple(settled(sum(amounts, Fraction(0))) for amounts in zip(*parts, strict=True))

    def spent(self, budget: Budget, windows: Windows | None) -> list[Piece]:
        """The same where most is spent, of these windows if the dataset's budget is for each."""
        if budget.each is None:
            return [Piece(None, self.totals(budget), self.debits, len(self.reads))]
        return self.spans.fullest(windows)


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
        spans=Spans.together([seat.spans for seat in seats]),
    )


def totals_in(sums: Mapping[str, str], spans: Spans, budget: Budget) -> Totals:
    """Sums of all that was spent; where the budget is for each window, in one that nobody has named yet."""
    return totals_of(sums, budget) if budget.each is None else spans.elsewhere or totals_of({}, budget)
