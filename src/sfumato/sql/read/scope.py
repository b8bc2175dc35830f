"""What names mean in a query: columns of FROM, aliases of the result."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.trees import copied, nodes_of
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_of, resolve
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.plan.expressions.normal import normal
from sfumato.plan.expressions.tree import Column, Expression
from sfumato.plan.questions.relations import substituted
from sfumato.schema import PrivateTable
from sfumato.sql.read.expressions import parse_expression
from sfumato.sql.read.relation import Named, Relation
from sfumato.sql.refusals import refuse, shown
from sfumato.sql.text.statement import LARGEST

__all__ = ["Scope"]

_PARTS = {"day", "week", "month", "quarter", "year", "hour", "minute"}


@dataclass(slots=True)
class Scope:
    """The columns of a relation, and what SELECT has named so far.

    In a resolved tree each column has one name of its own, the key of `columns`.

    Attributes:
        relation: What is read.
        named: The expressions behind the names that SELECT gives, in lower case.
        columns: The columns by the names that they have in resolved trees.
        facts: What is known about those that have a value.
    """

    relation: Relation
    named: dict[str, exp.Expr] = field(default_factory=dict)
    columns: dict[str, Named] = field(init=False)
    facts: dict[str, Facts] = field(init=False)
    _definitions: dict[str, Expression] = field(init=False)
    _ids: dict[int, str] = field(init=False)
    _spelt: dict[str, list[Named]] = field(init=False)
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = {}
        taken: set[str] = set()
        for column in self.relation.columns:
            name, number = column.name, 2
            if name.lower() in taken:
                name = f"{column.table.strip()}.{column.name}"
            while name.lower() in taken:
                name, number = f"{column.name} {number}", number + 1
            taken.add(name.lower())
            self.columns[name] = column
        self._ids = {id(column): name for name, column in self.columns.items()}
        self._spelt = {}
        for column in self.relation.columns:
            self._spelt.setdefault(column.name.lower(), []).append(column)
        inner = self.relation.facts
        self._definitions = {
            name: column.meaning for name, column in self.columns.items() if column.meaning is not None
        }
        self.facts = {
            name: inner[expression.name] if isinstance(expression, Column) else facts_of(expression, inner)
            for name, expression in self._definitions.items()
        }
        self._definitions = {
            name: expression for name, expression in self._definitions.items() if expression != Column(name)
        }

    @property
    def table(self) -> PrivateTable:
        """The first private table that is read: its unit is that of all."""
        return self.relation.private

    def name(self, alias: str, expression: exp.Expr) -> None:
        """Remember what SELECT calls an expression; the first of a name counts."""
        if alias.lower() not in self.named:
            self.named[alias.lower()] = expression
            self._sizes[alias.lower()] = len(nodes_of(expression))

    def is_unit(self, node: exp.Expr) -> bool:
        """Whether this is, in a resolved tree, the column of the privacy unit."""
        column = self.column(node)
        return column is not None and column.is_unit

    def column(self, node: exp.Expr) -> Named | None:
        """The column that a node of a resolved tree is."""
        while isinstance(node, exp.Paren):
            node = node.this
        return self.columns.get(node.name) if isinstance(node, exp.Column) else None

    def node(self, column: Named) -> exp.Column:
        """A column as resolved trees have it."""
        return exp.Column(this=exp.Identifier(this=self._ids[id(column)], quoted=True))

    def resolved(self, tree: exp.Expr, *, alias_first: bool = False) -> exp.Expr:
        """A copy in which columns have their own names and aliases are written out.

        A column of the table hides an alias of the same name, in ORDER BY (`alias_first`) it is the other way
        round, as in DuckDB and PostgreSQL.

        Raises:
            QueryRefused: for names that mean nothing here, with the nearest that does.
        """
        columns = [node for node in nodes_of(tree) if isinstance(node, exp.Column)]
        size = sum(self._sizes.get(column.name.lower(), 1) for column in columns)
        if size > LARGEST:
            raise refuse(
                "The query uses its own aliases too often.", "Write the expression out where needed."
            )
        return copied(tree, {id(column): self._meaning(column, alias_first) for column in columns})

    def scalar(self, tree: exp.Expr, also: Mapping[str, Facts] | None = None) -> Expression:
        """The expression over the source's columns that a resolved tree means, in normal form.

        Args:
            tree: Resolved.
            also: Further columns of the source that the tree names as they are.

        Raises:
            QueryRefused: if it is not supported, or uses the privacy unit as a value.
        """
        for node in nodes_of(tree):
            column = self.columns.get(node.name) if isinstance(node, exp.Column) else None
            if column is not None and column.meaning is None:
                raise self._valueless(column)
        parsed = parse_expression(tree, self.facts if also is None else self.facts | dict(also))
        if not self._definitions:
            return normal(parsed)
        inner = self.relation.facts if also is None else dict(self.relation.facts) | dict(also)
        return normal(resolve(substituted(parsed, self._definitions), inner))

    def starred(self) -> QueryRefused:
        """The refusal of SELECT *, with an aggregate that works here."""
        numbers = [name for name, facts in self.facts.items() if facts.kind in ("integer", "float")]
        bounded = [name for name in numbers if None not in (self.facts[name].lower, self.facts[name].upper)]
        example = f" or AVG({in_sql(bounded[0])})" if bounded else ""
        return refuse("SELECT * would show the rows.", f"Name aggregates, such as COUNT(*){example}.")

    def _valueless(self, column: Named) -> Exception:
        if not column.is_unit:
            return refuse(
                f"{column.written} is missing where LEFT JOIN finds no partner, and has no value of its own.",
                "Use the unit of the other side; to see who has a partner, select 1 AS found in the joined "
                "subquery and test that.",
            )
        name = in_sql(column.name)
        return refuse(
            f"{column.name} serves only as the privacy unit of {self.table.name}: nobody is shown or picked.",
            f"COUNT(DISTINCT {name}) counts the units; a subquery may GROUP BY it.",
        )

    def _meaning(self, column: exp.Column, alias_first: bool) -> exp.Expr:
        if isinstance(column.this, exp.Star):
            raise self.starred()
        name, folded = column.name, column.name.lower()
        table = self._table(column)
        matches = self._spelt.get(folded, [])
        if table is not None:
            matches = [match for match in matches if match.table == table]
        else:
            matches = [match for match in matches if not match.hidden]
        alias = self.named.get(folded) if not column.table else None
        if alias is not None and (alias_first or not matches):
            return exp.Paren(this=copied(alias))
        if len(matches) > 1:
            written = [match.written for match in matches[:3]]
            raise refuse(f"{shown(name)} could be {' or '.join(written)}.", f"Write {written[0]}.")
        if matches:
            return self.node(matches[0])
        usable = [other for other in self.relation.columns if table in (None, other.table)]
        own = list(dict.fromkeys(in_sql(other.name) for other in usable if not other.is_unit))
        listed = [*own, *map(in_sql, self.named)]
        fix = _turned(column) or _bare(name) or self._near(name, table, own, listed)
        if not column.table and (column.this.args.get("quoted") or _is_compared(column)):
            text = "'" + name[:30].replace("'", "''") + "'"
            near = fix if difflib.get_close_matches(folded, [word.lower() for word in listed], 1, 0.8) else ""
            fix = f"Text is written in single quotes: {text}. {near}".strip()
        raise refuse(f"{self._shown(table)} column {shown(name)}.", fix).about("column")

    def _near(self, name: str, table: str | None, own: Sequence[str], listed: Sequence[str]) -> str:
        """The name that was meant, or those that there are and where others would come from."""
        part = next((known for known in own if _is_part(name, known)), "")
        if part.lower().startswith(f'"{name.lower()} '):
            return f"Did you mean {part}?"
        if part:
            return f"Write {part}, with its double quotes."
        fix = nearest(name, listed, "Columns", listed=own)
        is_list = fix.startswith("Columns: ") and self._shown(table).endswith("declared")
        return f"{fix} Others must first be declared, by the steward." if is_list else fix

    def _shown(self, table: str | None) -> str:
        tables = list(dict.fromkeys(column.table for column in self.relation.columns))
        named = [table] if table is not None else tables
        spelt = [self._declared(alias) for alias in named if alias.strip()]
        if len(named) > 1:
            return f"{', '.join(spelt[:6])} have no declared"
        if not spelt:
            return "The subquery in FROM has no"
        return f"{spelt[0]} has no declared" if spelt[0] in self.relation.known else f"{spelt[0]} has no"

    def _declared(self, alias: str) -> str:
        """The name of the table behind an alias, where it is one."""
        for name in self.relation.known:
            if self.relation.aliases.get(name.lower()) == alias:
                return name
        return alias

    def _table(self, column: exp.Column) -> str | None:
        """What FROM calls the table that a column is written with."""
        if column.args.get("db") or column.args.get("catalog"):
            raise refuse("A column is written as name or table.name.", "Leave the rest out.")
        if not column.table:
            return None
        alias = self.relation.aliases.get(column.table.lower())
        if alias is None:
            owners = [owner for owner in self.relation.columns if owner.name.lower() == column.name.lower()]
            written = [owner.written for owner in owners] or [
                f"{in_sql(other)}.{in_sql(column.name[:40])}"
                for other in dict.fromkeys(self.relation.aliases.values())
                if other.strip()
            ]
            raise refuse(
                f"There is no table {shown(column.table)} in FROM.",
                f"Write {written[0]}." if written else "Leave the table's name out.",
            ).about("table")
        return alias


def _is_part(name: str, known: str) -> bool:
    """Whether a word is one of those of a column that is written in double quotes."""
    return known.startswith('"') and name.lower() in re.findall(r"\w+", known.lower())


def _bare(name: str) -> str:
    """Advice for an aggregate without its parentheses, or for the name of a bound in an example."""
    word = name.upper()
    if name in ("LOW", "HIGH"):
        which = "least" if name == "LOW" else "greatest"
        return f"Put the {which} value that you expect in the place of {name}."
    if word not in ("AVG", "COUNT", "MAX", "MEDIAN", "MIN", "SUM"):
        return ""
    call = "COUNT(*)" if word == "COUNT" else f"{word}(x)"
    return f"Write {call}, with parentheses, or the name that it has after AS."


def _is_compared(column: exp.Column) -> bool:
    """Whether a name is where a text often is: after a comparison operator, or in a list."""
    above = column.parent
    if isinstance(above, exp.In):
        return above.this is not column
    return isinstance(above, exp.EQ | exp.NEQ | exp.Like | exp.ILike) and above.expression is column


def _turned(column: exp.Column) -> str:
    """Advice for the part of a date where a column is expected: BigQuery writes it last."""
    above, part = column.parent, column.name.lower()
    if part not in _PARTS or not isinstance(above, exp.DateTrunc | exp.TimestampTrunc):
        return ""
    day = in_sql(above.text("unit").lower() or "day")
    return f"The part comes first, in quotes: DATE_TRUNC('{part}', {day})."
