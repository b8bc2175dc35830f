"""The builder over HTTP: each call is made here, on what is declared, and noted for the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Literal

from sfumato._dataclasses import dataclass
from sfumato.plan.builder import Agg, Col, Selection
from sfumato.plan.questions.nodes import Report
from sfumato.schema import Keys
from sfumato.session.carried.calls import Recorded
from sfumato.session.query import Query

__all__ = ["RemoteSelection"]


@dataclass(frozen=True, slots=True, repr=False)
class RemoteSelection(Selection[Query]):
    """Rows of a table on a server, on their way to an aggregate.

    Attributes:
        calls: What was called so far.
        asks: What turns a finished plan, and the calls that made it, into a query.
    """

    calls: tuple[Recorded, ...] = ()
    asks: Callable[[Report, tuple[Recorded, ...]], Query] | None = None

    def _then(self, method: str, *given: Any, **named: Any) -> Any:
        """What the builder makes of a call here, with the call noted."""
        assert self.asks is not None
        held = {one.name: getattr(self, one.name) for one in fields(Selection)}
        calls = (*self.calls, (method, given, named))
        done: Any = getattr(Selection(**(held | {"make": lambda report: report})), method)(*given, **named)
        if isinstance(done, Report):
            return self.asks(done, calls)
        held = {one.name: getattr(done, one.name) for one in fields(Selection)}
        return RemoteSelection(**held, calls=calls, asks=self.asks)

    def filter(self, *predicates: Col) -> RemoteSelection:
        """Only the rows for which all of these hold."""
        return self._then("filter", *predicates)  # type: ignore[no-any-return]

    def with_columns(self, *columns: Col, **named: Col) -> RemoteSelection:
        """The same rows with further columns, or others in their place."""
        return self._then("with_columns", *columns, **named)  # type: ignore[no-any-return]

    def join(
        self,
        other: str,
        on: str | Sequence[str] | None = None,
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        how: Literal["inner", "left"] = "inner",
    ) -> RemoteSelection:
        """The rows with those of another table that have the same values in these columns."""
        return self._then("join", other, on, left_on=left_on, right_on=right_on, how=how)  # type: ignore[no-any-return]

    def group_by(self, *columns: str | Keys | Col, **expressions: Col) -> RemoteSelection:
        """One result row for each public key: columns, `Keys` with their values, or expressions."""
        return self._then("group_by", *columns, **expressions)  # type: ignore[no-any-return]

    def agg(self, *aliased: Agg, **aggregates: Agg) -> Query:
        """The question: one named aggregate for each column of the result."""
        return self._then("agg", *aliased, **aggregates)  # type: ignore[no-any-return]

    def value_counts(self, *columns: str | Col, sort: bool = True, name: str = "count") -> Query:
        """How many rows have each value, the most first unless `sort` says otherwise."""
        return self._then("value_counts", *columns, sort=sort, name=name)  # type: ignore[no-any-return]

    def crosstab(self, first: str | Col, second: str | Col, *, name: str = "count") -> Query:
        """How many rows have each pair of values, one row of the result for each."""
        return self._then("crosstab", first, second, name=name)  # type: ignore[no-any-return]

    def histogram(self, column: str | Col, bins: int | Sequence[float] = 10, *, name: str = "count") -> Query:
        """How many rows are in each bin of a number, between its declared bounds or these edges."""
        return self._then("histogram", column, bins, name=name)  # type: ignore[no-any-return]

    def unique(self, *columns: str | Col) -> Query:
        """The values that enough units have, found in the data for a price."""
        return self._then("unique", *columns)  # type: ignore[no-any-return]

    def describe(self, *columns: str) -> Query:
        """For each of these numbers how many there are, mean, spread, least, median and greatest."""
        return self._then("describe", *columns)  # type: ignore[no-any-return]
