"""From a text with all it says to a plan: the query, and the price, limits and intervals that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.plan.questions.nodes import Bar, Report
from sfumato.plan.questions.relations import Rows
from sfumato.schema import PrivacyUnit
from sfumato.sql.read.parse import parse_tree
from sfumato.sql.refusals import refuse
from sfumato.sql.text.dialects import Asked, understand
from sfumato.sql.text.intervals import interval_call
from sfumato.sql.text.parameters import Values
from sfumato.sql.text.quiet import quiet

__all__ = ["Asking", "ask"]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a text asks for.

    Attributes:
        plan: What is shown, and what is known about the rows that are read for it.
        epsilon: The price that the text itself names, if any.
        delta: Its other half.
        explain: Whether only the quote is wanted.
        notes: What the analyst should know about the way the text was read.
        lacking: The reason and the advice, in the query's own words, where numbers have no bounds: it can be
            priced only with bounds that are bought.
    """

    plan: Plan
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    explain: bool = False
    notes: tuple[str, ...] = ()
    lacking: tuple[str, str] | None = None

    @property
    def report(self) -> Report:
        """What is shown."""
        return self.plan.report


def ask(text: str, tables: Mapping[str, Any], parameters: Values = None) -> Asking:
    """The plan of one text over these tables, and what else it says.

    Args:
        text: SQL, also GoogleSQL's `SELECT WITH DIFFERENTIAL_PRIVACY`, or behind `EXPLAIN`.
        tables: The private and public tables by name.
        parameters: Values for `?`, `$1`, `$name`, `:name` and `@name`.

    Raises:
        QueryRefused: if it cannot be answered, with the reason and the nearest thing that would work.
        InvalidParameter: if the values are not those that the text has parameters for.
    """
    with quiet():
        return _asking(text, tables, parameters)


def _asking(text: str, tables: Mapping[str, Any], parameters: Values) -> Asking:
    asked = understand(text, parameters)
    places, select = _without_intervals(asked.select)
    plan = parse_tree(select, tables, strict=False)
    if places:
        bars = tuple(_bar(place, plan.report) for place in places)
        plan = replace(plan, report=replace(plan.report, bars=bars))
    if asked.google:
        plan = _as_google_means(plan, asked)
    lacking = _lacking(select, tables) if plan.unbounded else None
    return Asking(plan, asked.epsilon, asked.delta, asked.explain, asked.notes, lacking)


def _lacking(select: exp.Select, tables: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a query without bounds would be refused with."""
    try:
        parse_tree(select, tables)
    except QueryRefused as refusal:
        return refusal.reason, refusal.fix
    return None


def _without_intervals(select: exp.Select) -> tuple[list[tuple[int, str, str, str, Fraction]], exp.Select]:
    """The columns that are ends of intervals, and the query without them."""
    ends: list[tuple[int, str, str, str, Fraction]] = []
    kept: list[exp.Expr] = []
    for position, expression in enumerate(select.expressions):
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        wanted = interval_call(inner)
        if wanted is None:
            kept.append(expression)
            continue
        end, column, level = wanted
        name = expression.alias if isinstance(expression, exp.Alias) else f"dp_interval_{end}({column})"
        ends.append((position, name, end, column, level))
    if ends:
        select = select.copy()
        select.set("expressions", [expression.copy() for expression in kept])
    return ends, select


def _bar(place: tuple[int, str, str, str, Fraction], report: Report) -> Bar:
    position, name, end, column, level = place
    spelt = {output.name.lower(): output.name for output in report.columns}
    if column.lower() not in spelt:
        raise refuse(
            f"DP_INTERVAL_{end.upper()} takes the alias of a column, which {column[:40]!r} is not.",
            nearest(column, list(spelt.values()), "Columns") or "Give the aggregate an alias: COUNT(*) AS n.",
        )
    return Bar(position, name, spelt[column.lower()], end == "high", level)


def _as_google_means(plan: Plan, asked: Asked) -> Plan:
    """With GoogleSQL's clause a unit counts in a limited number of groups, which are chosen for it."""
    _check_unit(asked.unit_column, plan.rows)
    called = {table.alias_or_name.lower() for table in asked.select.find_all(exp.Table, exp.Subquery)}
    if asked.unit_table is not None and asked.unit_table.lower() not in called:
        raise refuse(
            f"privacy_unit_column names the table {asked.unit_table[:40]!r}, which is not in FROM.",
            "Leave the table's name out.",
        )
    if asked.min_units is not None:
        counted = "COUNT(*)" if plan.rows.owner is None else f"COUNT(DISTINCT {in_sql(plan.rows.owner)})"
        raise refuse(
            "min_privacy_units_per_group would judge groups by their exact numbers.",
            f"Write HAVING {counted} >= {asked.min_units}, which judges the noisy ones.",
        )
    if asked.group_selection_epsilon is not None:
        raise refuse(
            "group_selection_epsilon is not supported.", "Leave it out: the price is shared out by itself."
        )
    is_open = any(key.values is None for key in plan.report.child.keys)
    if asked.public_groups and is_open:
        raise refuse(
            "PUBLIC_GROUPS needs groups whose values are public.",
            "Join the public table that lists them, or leave group_selection_strategy out.",
        )
    _check_limits(asked, plan.rows.unit)
    chosen = plan.asking(bounding=Choose(), limits=(asked.max_groups, asked.max_rows))
    chosen.check(strict=False)
    return chosen


def _check_limits(asked: Asked, unit: PrivacyUnit) -> None:
    if unit.is_row:
        return
    if (asked.max_groups or 0) > unit.max_groups or (asked.max_rows or 0) > unit.max_rows:
        raise refuse(
            f"A query may only tighten the declared limits, max_groups {unit.max_groups} and max_rows "
            f"{unit.max_rows}.",
            "Ask for no more than that, or have the steward declare more.",
        )


def _check_unit(written: str | None, rows: Rows) -> None:
    owner, declared = rows.owner, rows.unit.column
    if written is None:
        return
    if owner is None:
        raise refuse(
            "Each row is a privacy unit here; there is no privacy_unit_column.",
            "Leave privacy_unit_column out.",
        )
    if written.lower() not in (owner.lower(), str(declared).lower()):
        raise refuse(
            f"privacy_unit_column must be the declared one, {in_sql(owner)}.",
            f"Write privacy_unit_column={in_sql(owner)}, or leave it out.",
        )
