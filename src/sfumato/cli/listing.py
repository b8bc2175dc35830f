"""`sfumato functions`: which functions a question may use."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import emit_json, paragraph, say, table, width

if TYPE_CHECKING:
    from sfumato.plan.expressions.functions import Function

__all__ = ["functions", "spelling"]

# How SQL writes what is not simply NAME(a, b).
_SPELT = {
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a * b",
    "divide": "a / b",
    "int_divide": "a // b",
    "modulo": "a % b",
    "negate": "-a",
    "equal": "a = b",
    "not_equal": "a <> b",
    "less": "a < b",
    "less_equal": "a <= b",
    "greater": "a > b",
    "greater_equal": "a >= b",
    "is_distinct": "a IS DISTINCT FROM b",
    "is_not_distinct": "a IS NOT DISTINCT FROM b",
    "in": "a IN ('x', 'y')",
    "and": "p AND q",
    "or": "p OR q",
    "not": "NOT p",
    "is_null": "a IS NULL",
    "case": "CASE WHEN p THEN a ELSE b END",
    "append": "a || b",
    "like": "a LIKE 'x%'",
    "ilike": "a ILIKE 'x%'",
    "year": "EXTRACT(year FROM d)",
    "quarter": "EXTRACT(quarter FROM d)",
    "month": "EXTRACT(month FROM d)",
    "day": "EXTRACT(day FROM d)",
    "dayofweek": "EXTRACT(dow FROM d)",
    "isodow": "EXTRACT(isodow FROM d)",
    "dayofyear": "EXTRACT(doy FROM d)",
    "week": "EXTRACT(week FROM d)",
    "trunc_year": "DATE_TRUNC('year', d)",
    "trunc_quarter": "DATE_TRUNC('quarter', d)",
    "trunc_month": "DATE_TRUNC('month', d)",
    "trunc_week": "DATE_TRUNC('week', d)",
    "add_days": "d + 7",
    "subtract_days": "d - 7",
    "add_months": "d + INTERVAL 3 MONTH",
    "days_between": "d - e",
    "hour": "EXTRACT(hour FROM t)",
    "minute": "EXTRACT(minute FROM t)",
    "second": "EXTRACT(second FROM t)",
    "epoch": "EXTRACT(epoch FROM t)",
    "trunc_day": "DATE_TRUNC('day', t)",
    "trunc_hour": "DATE_TRUNC('hour', t)",
    "trunc_minute": "DATE_TRUNC('minute', t)",
    "add_seconds": "t + INTERVAL 3 HOUR",
    "seconds_between": "DATE_DIFF('second', s, t)",
    "minutes_between": "DATE_DIFF('minute', s, t)",
    "hours_between": "DATE_DIFF('hour', s, t)",
    "timestamp_to_date": "CAST(t AS DATE)",
    "timestamp_to_time": "CAST(t AS TIME)",
    "date_to_timestamp": "CAST(d AS TIMESTAMP)",
    "to_timestamp": "CAST(a AS TIMESTAMP)",
    "to_time": "CAST(a AS TIME)",
    "to_integer": "CAST(a AS INTEGER)",
    "to_float": "CAST(a AS DOUBLE)",
    "to_text": "CAST(a AS TEXT)",
    "float_to_text": "CAST(x AS TEXT)",
    "integer_to_text": "CAST(n AS TEXT)",
    "to_date": "CAST(a AS DATE)",
    "to_boolean": "CAST(a AS BOOLEAN)",
}


def spelling(function: Function) -> str:
    """How SQL writes a function, by an example."""
    least, _ = function.arity
    return _SPELT.get(function.name) or f"{function.name.upper()}({', '.join('abcdefgh'[:least])})"


@reported
def functions(
    word: Annotated[
        str | None, typer.Argument(metavar="WORD", help="Only those whose name or description has it.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Which SQL functions a question may use."""
    from sfumato.plan.expressions.functions import FUNCTIONS
    from sfumato.plan.questions.aggregates import statistics

    wanted = (word or "").lower()
    listed = [
        (spelling(function), function)
        for function in FUNCTIONS.values()
        if wanted in " ".join((spelling(function), function.name, *function.names, function.doc)).lower()
    ]
    names = sorted({"COUNT_IF"}.union(*(statistic.spelled for statistic in statistics().values())))
    aggregates = [name for name in names if wanted in name.lower()]
    if json_:
        emit_json(
            {
                "functions": [
                    {"sql": sql, "name": function.name, "also": list(function.names), "gives": function.doc}
                    for sql, function in listed
                ],
                "aggregates": aggregates,
            }
        )
        return
    if not listed and not aggregates:
        paragraph(f"No function has {wanted[:40]!r} in its name or description.")
        return
    if listed:
        room = max(24, width() - 3 - max(len(sql) for sql, _ in listed))
        rows = []
        for sql, function in listed:
            first, *more = textwrap.wrap(function.doc, room)
            rows += [(sql, first), *(("", line) for line in more)]
        table({"in SQL": [sql for sql, _ in rows], "gives": [line for _, line in rows]})
    if aggregates:
        say()
        paragraph(f"Aggregates: {', '.join(aggregates)}; with FILTER too. All about SQL: docs/sql.md")
