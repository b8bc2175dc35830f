"""The second door: what the engine's own parser sees must be one SELECT over attached tables, nothing else.

The plan layer generates every statement afresh, so nothing but such a SELECT should ever arrive. This check
does not rely on that, nor on sqlglot and DuckDB reading a text alike: it walks the tree that DuckDB itself
made of the text that it will run. Whatever is not listed here is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container
from typing import Any

__all__ = ["COMMON", "FUNCTIONS", "Functions", "is_plain_select"]

FUNCTIONS = """
    SELECT function_name FROM duckdb_functions()
    WHERE function_type IN ('scalar', 'aggregate', 'window')
    GROUP BY function_name HAVING bool_and(coalesce(stability = 'CONSISTENT', false))
"""
"""Lists the functions of their arguments alone: no clock, setting, sequence, randomness, log or file."""

COMMON = frozenset(
    {"+", "-", "*", "/", "//", "%", "abs", "count", "count_star", "floor", "greatest", "isnan", "least"}
    | {"max", "min", "round", "sum", "trunc"}
)
"""Those of most statements, which no version can make anything else of: to list all takes longer."""

_MACROS = {"nullif", "if", "fdiv", "fmod", "split_part", "date_add", "days_in_month"}
_ROWS, _SPLIT = "unnest", "str_split"
_CONSTANTS = {"CAST", "CONSTANT", "TYPE"}
_INNER = (dict, list)
_NODES = {"SELECT_NODE", "SET_OPERATION_NODE"}
_REFERENCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST"}
_ORDERS = {"ASCENDING", "DESCENDING", "ORDER_DEFAULT"}
_MODIFIERS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "DISTINCT_MODIFIER", *_ORDERS}
_PLAIN = _NODES | _REFERENCES | _MODIFIERS
_EXPRESSIONS = {
    "BETWEEN",
    "CASE",
    "CAST",
    "COLUMN_REF",
    "COMPARISON",
    "CONJUNCTION",
    "CONSTANT",
    "FUNCTION",
    "OPERATOR",
    "STAR",
    "SUBQUERY",
    "TYPE",
    "WINDOW",
}


class Functions:
    """The functions of their arguments alone: the engine lists them when one beyond `COMMON` is met."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], Collection[str]]) -> None:
        self._ask = ask

    def __contains__(self, name: object) -> bool:
        return name in COMMON or name in self._ask()


def is_plain_select(serialized: str, tables: Collection[str], functions: Container[str]) -> bool:
    """Whether a statement is one SELECT over `tables` with functions of their arguments alone.

    Args:
        serialized: What `json_serialize_sql` made of the statement.
        tables: The names of the attached tables, in lower case.
        functions: What the query `FUNCTIONS` lists, or `Functions` for the same.
    """
    tree = json.loads(serialized)
    statements = tree.get("statements", ())
    if tree.get("error") is not False or len(statements) != 1:
        return False
    # All objects of the tree that are not looked at yet, each with the names of tables that it can see.
    waiting: list[tuple[Any, frozenset[str]]] = [(statements[0], frozenset(map(str.lower, tables)))]
    while waiting:
        part, scope = waiting.pop()
        if isinstance(part, list):
            waiting += [(child, scope) for child in part if isinstance(child, _INNER)]
        elif isinstance(part, dict):
            for entry in part.get("cte_map", {}).get("map", ()):  # each sees those before it
                waiting.append((entry["value"], scope))
                scope |= {entry["key"].lower()}
            if not _part_is_plain(part, scope, functions):
                return False
            waiting += [
                (child, scope)
                for key, child in part.items()
                if isinstance(child, _INNER) and key != "cte_map"
            ]
    return True


def _part_is_plain(part: dict[str, Any], scope: frozenset[str], functions: Container[str]) -> bool:
    if part.get("sample") is not None or part.get("at_clause") is not None:
        return False
    if part.get("schema") or part.get("catalog") or part.get("schema_name") or part.get("catalog_name"):
        return False
    if "table_name" in part and part["table_name"].lower() not in scope:
        return False
    if "function_name" in part and part["function_name"].lower() not in functions:
        name = part["function_name"].lower()
        return name in _MACROS or (name == _ROWS and _is_list(part))
    if "class" in part:
        return part["class"] in _EXPRESSIONS
    return part.get("type", "EMPTY") in _PLAIN


def _is_list(rows: dict[str, Any]) -> bool:
    """Whether rows are made of constants alone: a long list that a value is looked for in."""
    waiting: list[Any] = list(rows.values())
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if part.get("class", "CONSTANT") not in _CONSTANTS and part.get("function_name") != _SPLIT:
                return False
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return True
