"""What names mean in a query: columns of the table, aliases of the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.plan.expressions import Expression
from sfumato.plan.names import in_sql
from sfumato.plan.normal import normal
from sfumato.schema import PrivateTable
from sfumato.sql.expressions import parse_expression
from sfumato.sql.refusals import nearest, refuse, shown
from sfumato.sql.text import LARGEST

__all__ = ["Scope"]


@dataclass(slots=True)
class Scope:
    """One table under one name, and what SELECT has named so far.

    Attributes:
        table: The private table.
        alias: What the query calls it.
        named: The expressions behind the names that SELECT gives, in lower case.
    """

    table: PrivateTable
    alias: str
    named: dict[str, exp.Expr] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def name(self, alias: str, expression: exp.Expr) -> None:
        """Remember what SELECT calls an expression; the first of a name counts."""
        if alias.lower() not in self.named:
            self.named[alias.lower()] = expression
            self._sizes[alias.lower()] = sum(1 for _ in expression.walk())

    def is_unit(self, node: exp.Expr) -> bool:
        """Whether this is the column of the privacy unit."""
        while isinstance(node, exp.Paren):
            node = node.this
        unit = self.table.unit.column
        return unit is not None and isinstance(node, exp.Column) and node.name.lower() == unit.lower()

    def resolved(self, tree: exp.Expr, *, alias_first: bool = False) -> exp.Expr:
        """A copy in which columns have their declared spelling and aliases are written out.

        A column of the table hides an alias of the same name, in ORDER BY (`alias_first`) it is the other way
        round, as in DuckDB and PostgreSQL.

        Raises:
            QueryRefused: for names that mean nothing here, with the nearest that does.
        """
        columns = list(tree.find_all(exp.Column))
        size = sum(self._sizes.get(column.name.lower(), 1) for column in columns)
        if size > LARGEST:
            raise refuse(
                "The query uses its own aliases too often.", "Write the expression out where needed."
            )
        tree = tree.copy()
        for column in list(tree.find_all(exp.Column)):
            found = self._meaning(column, alias_first)
            if column is tree:
                tree = found
            else:
                column.replace(found)
        return tree

    def scalar(self, tree: exp.Expr) -> Expression:
        """The expression over the table's columns that a resolved tree stands for, in normal form.

        Raises:
            QueryRefused: if it is not supported, or uses the privacy unit as a value.
        """
        if (unit := self.table.unit.column) not in self.table.schema and any(
            self.is_unit(each) for each in tree.find_all(exp.Column)
        ):
            raise refuse(
                f"{unit} serves only as the privacy unit of {self.table.name}.",
                f"COUNT(DISTINCT {in_sql(str(unit))}) counts the units.",
            )
        return normal(parse_expression(tree, self.table.schema))

    def _meaning(self, column: exp.Column, alias_first: bool) -> exp.Expr:
        if isinstance(column.this, exp.Star):
            raise refuse("SELECT * would show the rows.", "Name aggregates, such as COUNT(*) or AVG(x).")
        name, folded = column.name, column.name.lower()
        self._check_table(column)
        alias = self.named.get(folded) if not column.table else None
        declared = {each.lower(): each for each in (*self.table.schema, self.table.unit.column) if each}
        if alias is not None and (alias_first or folded not in declared):
            return exp.Paren(this=alias.copy())
        if folded in declared:
            return exp.column(exp.to_identifier(declared[folded], quoted=True))
        fix = nearest(name, [*map(in_sql, self.table.schema), *map(in_sql, self.named)])
        if column.this.args.get("quoted") and not column.table:
            fix = f"Text is written in single quotes. {fix}"
        raise refuse(f"{self.table.name} has no declared column {shown(name)}.", fix)

    def _check_table(self, column: exp.Column) -> None:
        if column.args.get("db") or column.args.get("catalog"):
            raise refuse("A column is written as name or table.name.", "Leave the rest out.")
        known = {self.alias.lower(), self.table.name.lower()}
        if column.table and column.table.lower() not in known:
            raise refuse(
                f"There is no table {shown(column.table)} in FROM.",
                f"Write {in_sql(self.alias)}.{in_sql(column.name[:40])}.",
            )
