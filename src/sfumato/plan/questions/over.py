"""Window functions over released groups: ranks and totals of numbers that are public already. Free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.tree import Expression

__all__ = ["Over", "Ranking"]

Ranking: TypeAlias = Literal["rank", "dense_rank", "row_number", "ntile"]


@dataclass(frozen=True, slots=True)
class Over:
    """One window function; its expressions are over keys (`k0`, …) and aggregates (`a0`, …).

    Attributes:
        function: What it gives: a rank, or the sum of the argument.
        value: What is summed, or what groups are ranked by.
        partition: Within which groups; empty: all that HAVING leaves.
        descending: Whether the greatest is the first.
        parts: Of NTILE, how many.
    """

    function: Ranking | Literal["sum"]
    value: Expression
    partition: tuple[Expression, ...] = ()
    descending: bool = False
    parts: int = 1

    @property
    def expressions(self) -> Iterator[Expression]:
        """All that it looks at."""
        yield self.value
        yield from self.partition
