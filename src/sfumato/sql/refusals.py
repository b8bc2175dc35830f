"""What is refused, why, and the nearest thing that works: the sentences, in one place.

A refusal speaks of the text of the query and of what is declared, never of data.
"""

from __future__ import annotations

import difflib

from sqlglot import exp

from sfumato.errors import QueryRefused

__all__ = [
    "AGGREGATES",
    "ANY_UNIT",
    "CLAUSES",
    "FORM",
    "FUNCTIONS",
    "NODES",
    "TABLE_PARTS",
    "refuse",
    "refused",
    "shown",
    "statement",
]


class _Example(str):
    """A word that fills a slot until a better one is known."""


ANY_UNIT = _Example("user_id")
"""What examples call the privacy unit where nothing says what the query calls it."""

FORM = "A query looks like SELECT country, COUNT(*) FROM visits WHERE age >= 18 GROUP BY country."

_ROLLUP = "Use it in the outer query, or ask each grouping as a query of its own."
_OPEN = ("A parameter has no value.", "Give parameters with the query, or write the value into it.")

CLAUSES: dict[str, tuple[str, str]] = {
    "laterals": ("LATERAL is not supported.", "Join a subquery on the privacy unit."),
    "pivots": ("PIVOT is not supported.", "Use GROUP BY, or COUNT(*) FILTER (WHERE …) for each column."),
    "windows": ("WINDOW is not supported.", "Write OVER (PARTITION BY {unit} …) out, in a subquery."),
    "qualify": ("QUALIFY is allowed only in subqueries.", "Use HAVING, which filters the released groups."),
    "sample": ("SAMPLE is not supported: the noise is for the whole table.", "Leave it out."),
    "into": ("SELECT INTO is not supported: nothing is written.", "Leave INTO out."),
    "locks": ("FOR UPDATE is not supported: nothing is written.", "Leave it out."),
}
"""The clauses of a SELECT that are refused, by sqlglot's name."""

TABLE_PARTS: dict[str, tuple[str, str]] = {
    **CLAUSES,
    "db": ("Tables have no schema or catalog name here.", "Write the table's own name."),
    "catalog": ("Tables have no schema or catalog name here.", "Write the table's own name."),
}
"""What a table's name may not have."""

NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: (
        "Window functions (OVER) are allowed only in a subquery, where each looks at the rows of one unit.",
        "Use GROUP BY, or FROM (SELECT *, RANK() OVER (PARTITION BY {unit} ORDER BY day) AS n FROM t).",
    ),
    exp.ArrayOverlaps: ("&& is not supported.", "Write AND."),
    exp.Placeholder: _OPEN,
    exp.Parameter: _OPEN,
    exp.SessionParameter: _OPEN,
    exp.UDTF: ("Functions that give several rows are not supported.", "Use GROUP BY over public keys."),
    exp.Explode: ("Functions that give several rows are not supported.", "Use GROUP BY over public keys."),
    exp.Lambda: ("Lambdas are not supported.", "Use CASE or a plain expression."),
    exp.Columns: ("COLUMNS is not supported.", "Name each column."),
    exp.Rollup: ("ROLLUP is not supported in a subquery.", _ROLLUP),
    exp.Cube: ("CUBE is not supported in a subquery.", _ROLLUP),
    exp.GroupingSets: ("GROUPING SETS are not supported in a subquery.", _ROLLUP),
}
"""The parts of expressions that are refused wherever they are."""

_DISTINCT = "Write COUNT(DISTINCT {x})."
_ONE_VALUE = "It would show a single row's value."
_ONE_LEVEL = "QUANTILE_CONT({x}, 0.5) works; ask for one column a level."

AGGREGATES: dict[str, tuple[str, str]] = {
    "reservoir_quantile": ("RESERVOIR_QUANTILE is not supported.", _ONE_LEVEL),
    "approxquantiles": ("APPROX_QUANTILES gives a list, and a result is one number.", _ONE_LEVEL),
    "mode": ("MODE is not supported.", "Use COUNT(*) with GROUP BY, ORDER BY 2 DESC and LIMIT 1."),
    "first": (f"FIRST is not supported. {_ONE_VALUE}", "Use COUNT, SUM or AVG."),
    "last": (f"LAST is not supported. {_ONE_VALUE}", "Use COUNT, SUM or AVG."),
    "anyvalue": (f"ANY_VALUE is not supported. {_ONE_VALUE}", "Put the column into GROUP BY."),
    "arrayagg": ("Lists of values would show the rows.", "Use COUNT, SUM or AVG."),
    "groupconcat": ("Lists of values would show the rows.", "Use COUNT, SUM or AVG."),
    "histogram": ("HISTOGRAM is not supported as a function.", "Use COUNT(*) with GROUP BY."),
    "logicaland": ("BOOL_AND is not supported.", "Compare COUNT_IF(condition) with COUNT(*)."),
    "logicalor": ("BOOL_OR is not supported.", "Use COUNT_IF(condition)."),
    "std": ("STD means different things in different dialects.", "Write STDDEV_SAMP or STDDEV_POP."),
    "var": ("VAR means different things in different dialects.", "Write VAR_SAMP or VAR_POP."),
    "covariance_pop": ("SQL has no function COVARIANCE_POP.", "Write COVAR_POP({y}, {x})."),
    "covariance_samp": ("SQL has no function COVARIANCE_SAMP.", "Write COVAR_SAMP({y}, {x})."),
    "average": ("SQL has no function AVERAGE.", "Write AVG({x})."),
    "count_distinct": ("SQL has no function COUNT_DISTINCT.", _DISTINCT),
    "countdistinct": ("SQL has no function COUNTDISTINCT.", _DISTINCT),
    "nunique": ("SQL has no function NUNIQUE.", _DISTINCT),
    "percentile": ("SQL has no function PERCENTILE.", "Write QUANTILE_CONT({x}, {level})."),
    "percentile_approx": ("PERCENTILE_APPROX is not supported.", "Write QUANTILE_CONT({x}, {level})."),
    "stdevp": ("SQL has no function STDEVP.", "Write STDDEV_POP({x})."),
    "total": ("TOTAL is not supported.", "Write SUM({x})."),
    "regrslope": ("REGR_SLOPE is not supported.", "Write COVAR_POP({y}, {x}) / VAR_POP({x})."),
    "regrintercept": (
        "REGR_INTERCEPT is not supported.",
        "Write AVG({y}) - COVAR_POP({y}, {x}) / VAR_POP({x}) * AVG({x}).",
    ),
    "regrcount": ("REGR_COUNT is not supported.", "Write COUNT(CASE WHEN {y} IS NOT NULL THEN {x} END)."),
    "regrr2": ("REGR_R2 is not supported.", "Write POWER(CORR({y}, {x}), 2)."),
}
"""Aggregates that are refused with advice of their own, by sqlglot's class or the name in lower case."""

_TODAY = "Write the day itself, DATE '2024-01-31': the same question then has the same answer."
_SHAPED = "Use DATE_TRUNC('month', day), or EXTRACT(year FROM day)."
_PATTERN = "Use LIKE, as in city LIKE 'Ly%', or CONTAINS(city, 'yo')."
_BY_CHANCE = "Leave it out: chance comes in with the noise alone."

FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(
        ("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURDATE", "GETDATE", "NOW", "SYSDATE", "TODAY"), _TODAY
    ),
    **dict.fromkeys(("DATE_FORMAT", "FORMAT_DATE", "STRFTIME", "TO_CHAR"), _SHAPED),
    **dict.fromkeys(("RAND", "RANDOM", "UUID"), _BY_CHANCE),
    **dict.fromkeys(
        ("REGEXP", "REGEXP_CONTAINS", "REGEXP_EXTRACT", "REGEXP_LIKE", "REGEXP_MATCHES", "RLIKE"), _PATTERN
    ),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "ADD_MONTHS"), "Write day + INTERVAL 3 DAY, or 1 MONTH."),
    **dict.fromkeys(("DATESUB", "DATE_SUB", "SUBDATE"), "Write day - INTERVAL 7 DAY, or 1 MONTH."),
    **dict.fromkeys(("DIV0", "SAFE_DIVIDE"), "Write a / NULLIF(b, 0)."),
    "AGE": "Write DATE_DIFF('year', birthday, DATE '2024-01-31').",
    "DECODE": "Use CASE WHEN x = 1 THEN 'a' ELSE 'b' END.",
    "ISNULL": "Write x IS NULL, or COALESCE(x, 0).",
}
"""Functions that people bring from elsewhere, and what says the same here."""

_WRITES = {"insert", "update", "delete", "merge", "truncate", "replace", "copy", "create", "drop", "alter"}

_LISTS = {"show", "describe", "desc", "pragma", "summarize"}


def refuse(reason: str, fix: str = "") -> QueryRefused:
    """The refusal with its reason and what would work."""
    return QueryRefused(reason, fix)


def refused(sentences: tuple[str, str], unit: str = ANY_UNIT) -> QueryRefused:
    """The refusal with one of these pairs of sentences, whose examples call the privacy unit so."""
    return QueryRefused(*sentences, unit=unit)


def statement(word: str) -> QueryRefused:
    """The refusal of a statement that begins with this word."""
    if word.lower() in _WRITES:
        return refuse(f"{word.upper()} is not supported: nothing is written here.", FORM)
    if word.lower() in _LISTS:
        return refuse(
            f"{word.upper()} is not supported.",
            "`sfumato schema` lists the tables and columns; in Python, session.tables has them.",
        )
    close = difflib.get_close_matches(word.lower(), ["select"], cutoff=0.7)
    reason = f"Only SELECT is supported, and this text begins with {shown(word)}."
    return refuse(reason, "Write SELECT." if close else FORM).about("text")


def shown(name: str) -> str:
    """A short piece of the analyst's own text, quoted."""
    return repr(name if len(name) <= 40 else name[:39] + "…")
