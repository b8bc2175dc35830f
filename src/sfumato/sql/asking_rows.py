"""From a text that asks for rows to what is read of each: for fits, which are given rows and show none."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import refine
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.tree import Expression, columns_of
from sfumato.plan.questions.relations import Rows, rows_of
from sfumato.plan.questions.sources import Public
from sfumato.sql.read.clauses import has_aggregate
from sfumato.sql.read.relation import Relation
from sfumato.sql.read.settle import pruned, pushed
from sfumato.sql.read.subqueries import names_of, read_query
from sfumato.sql.refusals import refuse, refused, shown
from sfumato.sql.shape_refusals import SUBQUERIES
from sfumato.sql.text.dialects import Asked, understand
from sfumato.sql.text.parameters import Values
from sfumato.sql.text.quiet import quiet

__all__ = ["RowsAsked", "ask_rows", "check_names_a_table"]

_FORM = "Rows for a fit look like SELECT age, hours, income FROM people WHERE age >= 18."
_ALL = f"A fit reads all rows that satisfy WHERE, in no order. {_FORM}"


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """The rows that a text asks for.

    Attributes:
        rows: Where they come from, with what is known of them.
        predicate: What they satisfy, over the source's columns; None: nothing.
        columns: Name and meaning of each column that is wanted, over the source's columns. Those that say
            whose a row is are not among them.
    """

    rows: Rows
    predicate: Expression | None
    columns: tuple[tuple[str, Expression], ...]


def ask_rows(text: str, tables: Mapping[str, Any], parameters: Values = None) -> RowsAsked:
    """What a SELECT of rows reads: all that a subquery in FROM may be, so that a row belongs to one unit.

    Args:
        text: A SELECT of columns and expressions, or the name of a table: all of its declared columns.
        tables: The private and public tables by name.
        parameters: Values for `?`, `$1`, `$name`, `:name` and `@name`.

    Raises:
        QueryRefused: for groups of several units, LIMIT, ORDER BY and all that a subquery may not be, with
            the reason and what would work.
        InvalidParameter: if the values are not those that the text has parameters for.
    """
    if isinstance(text, str) and (named := _table(text, tables)) is not None:
        select = exp.Select().select(exp.Star()).from_(exp.Table(this=exp.to_identifier(named, quoted=True)))
        return _read(select, tables)
    check_names_a_table(text, tables)
    with quiet():
        asked = understand(text, parameters)
        _check(asked)
        try:
            return _read(asked.select, tables)
        except RecursionError:
            raise refuse("The query is nested too deeply to be checked.", "Split it in two.") from None


def check_names_a_table(text: str, tables: Collection[str]) -> None:
    """Refuse a text of one word that names none of the tables.

    Raises:
        QueryRefused: with the nearest table.
    """
    word = text.strip() if isinstance(text, str) else ""
    if word.isidentifier() and not difflib.get_close_matches(word.lower(), ["select"], cutoff=0.7):
        reason = f"There is no table {shown(word)}."
        raise refuse(reason, nearest(word, tables, "Tables")).about("table")


def _table(text: str, tables: Mapping[str, Any]) -> str | None:
    return next((name for name in tables if name.lower() == text.strip().lower()), None)


def _check(asked: Asked) -> None:
    if asked.google or asked.epsilon is not None or asked.explain:
        raise refuse("The text of a fit names rows, and no price.", _FORM)
    clauses = {name for name, value in asked.select.args.items() if value}
    for clause, word in (("limit", "LIMIT"), ("offset", "OFFSET"), ("order", "ORDER BY")):
        if clause in clauses:
            raise refuse(f"{word} is not for the rows of a fit.", _ALL)
    if "group" not in clauses and any(map(has_aggregate, asked.select.expressions)):
        raise refuse(
            "A fit reads single rows, and this text aggregates them.",
            f"Leave the aggregate out, or add GROUP BY the privacy unit for one row each. {_FORM}",
        )


def _read(select: exp.Select, tables: Mapping[str, Any]) -> RowsAsked:
    relation = read_query(select, names_of(tables))
    if isinstance(relation.source, Public):
        raise refused(SUBQUERIES["public"])
    with relation.in_words():
        return _asked(relation)


def _asked(relation: Relation) -> RowsAsked:
    columns = tuple(
        (column.name, column.meaning)
        for column in relation.columns
        if column.meaning is not None and not column.is_unit and not column.hidden
    )
    if not columns:
        raise QueryRefused("The text names no column to learn from but whose the rows are.", _FORM)
    assert not isinstance(relation.source, Public)
    if relation.predicate is not None:
        refine(relation.predicate, relation.facts)  # it must be a condition
    source, predicate = pushed(relation.source, relation.predicate)
    needed = [meaning for _, meaning in columns] + ([] if predicate is None else [predicate])
    source = pruned(source, [name for expression in needed for name in columns_of(expression)])
    return RowsAsked(rows_of(source, relation.known), predicate, columns)
