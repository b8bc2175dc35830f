"""Questions about public tables: which values a column has, and whether columns are a key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.errors import EngineFailed, InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ShowsPublic", "in_order", "repeated", "some_rows", "some_values"]


class ShowsPublic(ABC):
    """What engines tell of public tables, out of their reads."""

    @abstractmethod
    def fetch(self, statement: exp.Expression, *, guard: exp.Expression | None = None) -> pa.Table:
        """The result of one SELECT over attached tables."""

    @abstractmethod
    def _has_unit(self, name: str) -> bool:
        """Whether an attached table protects a unit."""

    def values(self, name: str, column: str, limit: int) -> list[Any] | None:
        """The values of a column of a public table, each once, in order, without NULL; None above `limit`.

        Privacy:
            For public tables only: the values are shown as they are. A table with a unit is refused.

        Raises:
            EngineFailed: if the table has a unit, or the read cannot be finished.
        """
        values = self._shown(name, some_values(name, column, limit)).column(0).to_pylist()
        return in_order(values) if len(values) <= limit else None

    def is_unique(self, name: str, columns: Sequence[str]) -> bool:
        """Whether no two rows of a public table have the same values in all these columns, NULLs aside.

        Privacy:
            For public tables only. A table with a unit is refused.

        Raises:
            EngineFailed: if the table has a unit, or the read cannot be finished.
        """
        return bool(self._shown(name, repeated(name, columns)).num_rows == 0)

    def _shown(self, name: str, statement: exp.Select) -> pa.Table:
        if self._has_unit(name):
            raise EngineFailed("The table protects a unit; only values of public tables are shown.")
        return self.fetch(statement)


def some_values(table: str, column: str, limit: int) -> exp.Select:
    """Distinct values of a column, up to `limit` of them and one more to tell that there are more."""
    return (
        exp.select(_quoted(column))
        .distinct()
        .from_(_table(table))
        .where(_known(column))
        .limit(_whole(limit) + 1)
    )


def some_rows(table: str, columns: Sequence[str], limit: int) -> exp.Select:
    """Distinct combinations of columns, NULL among them, up to `limit` and one more."""
    select = exp.select(*(_quoted(column) for column in columns)).distinct().from_(_table(table))
    return select.limit(_whole(limit) + 1)


def repeated(table: str, columns: Sequence[str]) -> exp.Select:
    """One row if a combination of the columns is in two rows of the table, else none.

    A row that lacks a part is passed over: no join finds it.
    """
    if isinstance(columns, str) or not columns:
        raise InvalidParameter("A key is a list of one or more columns.")
    return (
        exp.select("COUNT(*) AS n")
        .from_(_table(table))
        .where(*(_known(column) for column in columns))
        .group_by(*(_quoted(column) for column in columns))
        .having("COUNT(*) > 1")
        .limit(1)
    )


def in_order(values: list[Any]) -> list[Any]:
    """Values of one column from least to greatest, text by its code points, NaN last, zero without a sign."""
    plain = [value + 0.0 if isinstance(value, float) else value for value in values]  # -0.0 + 0.0 is 0.0
    return sorted(plain, key=lambda value: (value != value, value))


def _whole(limit: int) -> int:
    if type(limit) is not int or limit < 0:
        raise InvalidParameter("limit must be a whole number of at least 0.")
    return limit


def _known(column: str) -> exp.Expression:
    return exp.not_(exp.Is(this=_quoted(column), expression=exp.null()))


def _quoted(column: str) -> exp.Column:
    return exp.column(exp.to_identifier(column, quoted=True))


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))
