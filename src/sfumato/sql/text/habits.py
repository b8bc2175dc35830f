"""Calls of other dialects that mean what a plainer form means: the same tree with that form instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sfumato.sql.refusals import refuse
from sfumato.sql.text.patterns import matched
from sfumato.sql.text.unnest import listed_groups, listed_values

__all__ = ["is_foreign", "native"]

_WORDS = re.compile(
    r"ZEROIFNULL|NULLIFZERO|\bIFF\b|PERCENTILE|QUANTILES|REGEXP_|UNNEST|STRFTIME|TO_CHAR|DATE_FORMAT"
    r"|FORMAT_DATE|~",
    re.IGNORECASE,
)
_PLACES = {"offset": 0, "safe_offset": 0, "ordinal": 1, "safe_ordinal": 1}
_FORMS = {
    "%Y": "YEAR({day})",
    "%m": "MONTH({day})",
    "%d": "DAY({day})",
    "%j": "DAYOFYEAR({day})",
    "%u": "ISODOW({day})",
    "%w": "DAYOFWEEK({day})",
    "%V": "WEEK({day})",
    "%Y-%m": "DATE_TRUNC('month', {day})",
    "%Y%m": "DATE_TRUNC('month', {day})",
    "%Y-%m-01": "DATE_TRUNC('month', {day})",
    "%m/%Y": "DATE_TRUNC('month', {day})",
    "%G-%V": "DATE_TRUNC('week', {day})",
    "%Y-%W": "DATE_TRUNC('week', {day})",
    "%Y-%m-%d": "{day}",
    "YYYY": "YEAR({day})",
    "MM": "MONTH({day})",
    "DD": "DAY({day})",
    "YYYY-MM": "DATE_TRUNC('month', {day})",
    "YYYYMM": "DATE_TRUNC('month', {day})",
    "YYYY-MM-DD": "{day}",
}
_SHAPES = {"strftime", "to_char", "date_format", "format_date"}


def is_foreign(text: str) -> bool:
    """Whether a text may hold calls that DuckDB spells otherwise."""
    return _WORDS.search(text) is not None


def native(tree: exp.Select) -> exp.Select:
    """The tree with calls that DuckDB spells otherwise as it spells them.

    Raises:
        QueryRefused: if a call has no form here, with the nearest that has.
    """
    for select in list(tree.find_all(exp.Select)):
        listed_groups(select)
    found = tree.find_all(exp.Anonymous, exp.Bracket, exp.In, exp.RegexpLike, exp.TimeToStr, exp.ToChar)
    for node in reversed(list(found)):  # inner calls first: what is around them takes them along
        plain = _plain(node)
        if plain is not None:
            node.replace(plain)
    return tree


def _plain(node: exp.Expr) -> exp.Expr | None:
    """What to put in a node's place; None: it stays."""
    if isinstance(node, exp.In):
        return listed_values(node)
    if isinstance(node, exp.Bracket):
        return _one_of_quantiles(node)
    if isinstance(node, exp.RegexpLike):
        return matched(node, str(node.meta.get("typed", "~")))
    if isinstance(node, exp.TimeToStr | exp.ToChar):
        return _shaped(node, node.this, node.args.get("format"))
    name, arguments = str(node.this).lower(), list(node.expressions)
    if name == "regexp_contains" and len(arguments) == 2:
        return matched(exp.RegexpLike(this=arguments[0], expression=arguments[1]), "REGEXP_CONTAINS")
    if name in _SHAPES and len(arguments) == 2:
        turned = arguments if name != "format_date" else arguments[::-1]
        return _shaped(node, *turned)
    make = _CALLS.get((name, len(arguments)))
    return None if make is None else make(*(argument.copy() for argument in arguments))


_CALLS: dict[tuple[str, int], Callable[..., exp.Expr]] = {
    ("zeroifnull", 1): lambda value: exp.Coalesce(this=value, expressions=[exp.Literal.number(0)]),
    ("nullifzero", 1): lambda value: exp.Nullif(this=value, expression=exp.Literal.number(0)),
    ("iff", 3): lambda test, yes, no: exp.If(this=test, true=yes, false=no),
    ("approx_percentile", 2): lambda value, level: exp.Quantile(this=value, quantile=level),
    ("percentile_approx", 2): lambda value, level: exp.Quantile(this=value, quantile=level),
}


def _one_of_quantiles(node: exp.Bracket) -> exp.Expr | None:
    """`APPROX_QUANTILES(x, 100)[OFFSET(90)]` as the quantile that it is."""
    if not isinstance(node.this, exp.ApproxQuantiles):
        return None
    parts, index = node.this.args.get("expression"), node.expressions[0] if node.expressions else None
    named = str(index.this).lower() if isinstance(index, exp.Anonymous) else ""
    place = index.expressions[0] if isinstance(index, exp.Anonymous) and index.expressions else None
    if named not in _PLACES or not all(
        isinstance(one, exp.Literal) and not one.is_string and one.this.isdigit() for one in (parts, place)
    ):
        raise refuse(
            "Of APPROX_QUANTILES one place can be asked for.",
            "Write APPROX_QUANTILES(x, 100)[OFFSET(90)], or QUANTILE_CONT(x, 0.9).",
        )
    assert isinstance(parts, exp.Literal)
    assert isinstance(place, exp.Literal)
    level = exp.Div(
        this=exp.Literal.number(int(place.this) - _PLACES[named]),
        expression=exp.Literal.number(int(parts.this)),
    )
    return exp.Quantile(this=node.this.this.copy(), quantile=level)


def _shaped(node: exp.Expr, day: exp.Expr, form: exp.Expr | None) -> exp.Expr:
    """Refuse a date as text, with the form of its parts that says the same."""
    name = str(node.meta.get("typed") or (node.this if isinstance(node, exp.Anonymous) else "STRFTIME"))
    asked = form.this if isinstance(form, exp.Literal) and form.is_string else ""
    nearest = _FORMS.get(asked, "DATE_TRUNC('month', {day}), or EXTRACT(year FROM {day})")
    column = day.sql("duckdb", comments=False)
    shown = column if len(column) <= 60 else "day"
    raise refuse(
        f"{name[:20]} is not supported: it makes texts of dates, whose values would not be public.",
        f"Write {nearest.format(day=shown)}.",
    )
