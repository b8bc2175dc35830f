"""A plan: a report with what is known about the rows that it reads, worked out once and carried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.plan.prices.recipe import Recipe, recipe
from sfumato.plan.questions.nodes import AggregateCall, Report
from sfumato.plan.questions.relations import Rows, rows_of
from sfumato.plan.questions.unbounded import unbounded

__all__ = ["Plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """A report over rows of which everything that declarations say is known.

    Attributes:
        report: What is shown.
        rows: What is read.
    """

    report: Report
    rows: Rows

    @classmethod
    def of(cls, report: Report, tables: Mapping[str, Any]) -> Plan:
        """The plan of a report over these tables."""
        return cls(report, rows_of(report.child.source, tables))

    @cached_property
    def unbounded(self) -> tuple[AggregateCall, ...]:
        """The aggregates that need bounds and have none."""
        return unbounded(self.report, self.rows)

    @cached_property
    def recipe(self) -> Recipe:
        """What is measured for it, and how its columns follow.

        Raises:
            QueryRefused: if an aggregate's argument has no range, or there are too many groups.
        """
        return recipe(self.report, self.rows)

    def check(self, *, strict: bool = True) -> None:
        """Refuse what cannot be measured; unless `strict`, numbers may have no bounds yet.

        Raises:
            QueryRefused: with the reason and the nearest thing that would work.
        """
        if strict or not self.unbounded:
            _ = self.recipe

    def asking(self, **changes: Any) -> Plan:
        """Another question about the same rows, with these fields of its aggregate; or itself."""
        node = self.report.child
        if all(getattr(node, name) == value for name, value in changes.items()):
            return self
        return replace(self, report=replace(self.report, child=replace(node, **changes)))
