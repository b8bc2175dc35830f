"""The door: a statement must be one SELECT over attached tables, of functions that no clock or coin decides.

The plan layer generates every statement afresh, so nothing but such a SELECT should ever arrive. This check
does not rely on that: what is not listed is refused, and tables are named by the views of the engine alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sfumato.engines.trees import nodes_of

__all__ = ["behind_the_door"]

_CALLS = {"TRANSFORM", "ZIP_WITH", "WEEKDAY", "LAG", "LEAD", "RANK", "DENSE_RANK", "ROW_NUMBER", "CHR"}
_FUNCTIONS = (
    *(exp.Abs, exp.AddMonths, exp.And, exp.Array, exp.Case, exp.Cast, exp.Ceil, exp.Chr, exp.Coalesce),
    *(exp.Concat, exp.ConcatWs, exp.Contains, exp.Count, exp.DateDiff, exp.DateTrunc, exp.DayOfMonth),
    *(exp.DayOfWeek, exp.DayOfYear, exp.DenseRank, exp.EndsWith, exp.Exp, exp.Floor, exp.Greatest, exp.If),
    *(exp.IsNan, exp.Lag, exp.Lead, exp.Least, exp.Left, exp.Length, exp.Ln, exp.Log, exp.Lower, exp.MD5),
    *(
        exp.Max,
        exp.Min,
        exp.Month,
        exp.Nanvl,
        exp.Nullif,
        exp.Or,
        exp.Pad,
        exp.Pow,
        exp.Quarter,
        exp.Rank,
        exp.Replace,
    ),
    *(exp.RegexpLike, exp.Right, exp.Rint, exp.Round, exp.RowNumber, exp.Sign, exp.Sqrt, exp.StartsWith),
    *(exp.StrPosition, exp.Substring, exp.Sum, exp.Transform, exp.Trim, exp.TryCast, exp.TsOrDsAdd),
    *(exp.TsOrDsToDate, exp.Typeof, exp.Upper, exp.WeekOfYear, exp.Year, exp.Xor),
)
_STRANGE = (
    exp.TableSample,
    exp.Command,
    exp.Lateral,
    exp.Pivot,
    exp.Into,
    exp.Hint,
    exp.Parameter,
    exp.Unnest,
)


def behind_the_door(tree: exp.Expression, views: Mapping[str, str]) -> exp.Expression | None:
    """The statement over the views of the tables that it names, in any case; None: it is no plain SELECT.

    Args:
        tree: The statement.
        views: The views of attached tables, by their names in lower case.
    """
    nodes = list(nodes_of(tree))
    for node in nodes:
        if isinstance(node, exp.Var) and not re.fullmatch(r"\w+", node.name):
            return None
        if isinstance(node, _STRANGE) or (isinstance(node, exp.With) and node.args.get("recursive")):
            return None
        if isinstance(node, exp.Anonymous):
            if node.name.upper() not in _CALLS:
                return None
        elif isinstance(node, exp.Func) and not isinstance(node, _FUNCTIONS):
            return None
    common = {node.alias_or_name.lower() for node in nodes if isinstance(node, exp.CTE)}
    tree = tree.copy()
    for node in list(tree.find_all(exp.Table)):
        if not isinstance(node.this, exp.Identifier) or node.args.get("db") or node.args.get("catalog"):
            return None
        name = node.name.lower()
        if name in common:
            continue
        if name not in views:
            return None
        node.set("alias", node.args.get("alias") or exp.TableAlias(this=node.this.copy()))
        node.set("this", exp.to_identifier(views[name], quoted=True))
    return tree
