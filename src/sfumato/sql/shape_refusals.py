"""What is refused of joins, subqueries, windows and unions: the sentences, in one place."""

from __future__ import annotations

__all__ = ["JOINS", "PER_UNIT", "SUBQUERIES", "UNIONS", "WINDOWS"]

_ON = "Write FROM a JOIN b ON a.{unit} = b.{unit}, or for a public table ON a.region = r.region_id."
_SEMI = "Join a subquery: JOIN (SELECT DISTINCT {unit} FROM b WHERE …) AS b ON a.{unit} = b.{unit}."
_ANTI = (
    "Write LEFT JOIN (SELECT DISTINCT {unit}, 1 AS found FROM b) AS b ON a.{unit} = b.{unit}, and WHERE "
    "b.found IS NULL."
)

JOINS: dict[str, tuple[str, str]] = {
    "cross": (
        "Tables side by side without a condition would bring the rows of different people together.",
        _ON,
    ),
    "nothing": ("The join has no condition.", _ON),
    "natural": ("NATURAL JOIN depends on which columns tables happen to share.", "Write USING (column)."),
    "asof": ("ASOF JOIN is not supported.", _ON),
    "positional": ("POSITIONAL JOIN pairs rows by their place, which means nothing here.", _ON),
    "semi": ("SEMI JOIN is not supported.", _SEMI),
    "anti": ("ANTI JOIN is not supported.", _ANTI),
    "full": ("FULL JOIN is not supported.", "Use LEFT JOIN, or UNION ALL of two subqueries."),
    "form": ("This form of JOIN is not supported.", _ON),
    "parentheses": ("Joins in parentheses are not supported.", "Write one JOIN after the other."),
    "public": (
        "These public tables cannot be joined in this order.",
        "Begin FROM with the private table, and join the public ones one after the other.",
    ),
}
"""Forms of JOIN."""

SUBQUERIES: dict[str, tuple[str, str]] = {
    "in": ("IN with a subquery is not supported.", _SEMI),
    "not in": ("NOT IN with a subquery is not supported.", _ANTI),
    "exists": ("EXISTS is not supported.", _SEMI),
    "not exists": ("NOT EXISTS is not supported.", _ANTI),
    "scalar": (
        "A subquery inside an expression is not supported.",
        "A figure about everyone is a query of its own: ask it first, and write the number here. Figures of "
        "each person are joined: JOIN (SELECT {unit}, AVG(x) AS m FROM b GROUP BY {unit}) AS b ON …",
    ),
    "recursive": ("WITH RECURSIVE is not supported.", "Write each step as a subquery of its own."),
    "columns": ("WITH does not rename columns here.", "Use AS in its SELECT."),
    "twice": ("WITH defines the same name twice.", "Give each query a name of its own."),
    "limit": (
        "LIMIT in a subquery would choose among the rows of everyone.",
        "Leave it out; QUALIFY ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY day) <= 3 keeps 3 rows each.",
    ),
    "kind": ("A subquery in FROM is a SELECT, or UNION ALL of several.", "Write (SELECT … FROM …)."),
    "public": (
        "This reads public tables alone, which need no protection and no budget.",
        "Read them directly, or join them with a private table.",
    ),
    "qualify": (
        "QUALIFY without a window function is not supported.",
        "Put the condition into WHERE or HAVING.",
    ),
    "windows": ("Window functions and GROUP BY do not go together here.", "Put one into a subquery."),
    "persons": (
        "Each of these groups would be about one person, and such groups are never shown.",
        "Group by what many people share, or ask about the figures of each: SELECT AVG(LEAST(n, 20)) FROM "
        "(SELECT {unit}, COUNT(*) AS n FROM … GROUP BY {unit}).",
    ),
    "having": ("HAVING needs GROUP BY.", "Put the condition into WHERE."),
    "distinct": (
        "SELECT DISTINCT in a subquery would depend on which people share a value.",
        "Select the privacy unit, too: SELECT DISTINCT {unit}, x FROM …",
    ),
    "on": ("DISTINCT ON is not supported.", "QUALIFY ROW_NUMBER() OVER (PARTITION BY {unit} …) = 1 works."),
}
"""Subqueries in places where none may be, or with parts that they may not have."""

PER_UNIT: dict[str, tuple[str, str]] = {
    "public": (
        "A public table is not aggregated in a subquery.",
        "Have the result declared as a public table, or join the table on its key.",
    ),
    "rows": (
        "Each row is a privacy unit of its own here, so a subquery has nothing to aggregate.",
        "Aggregate in the query itself.",
    ),
    "distinct": ("COUNT(DISTINCT …) takes one expression.", "Write COUNT(DISTINCT x)."),
    "one": ("Grouped by the privacy unit, each group has one of them.", "Write 1, or COUNT(*) for its rows."),
    "aggregate": (
        "This aggregate is not supported for the rows of one unit.",
        "COUNT, COUNT(DISTINCT x), SUM, AVG, MIN and MAX work in a subquery, with FILTER too.",
    ),
}
"""Aggregation per unit."""

UNIONS: dict[str, tuple[str, str]] = {
    "union": (
        "UNION without ALL would compare rows of different people to drop equal ones.",
        "Write UNION ALL, and around it SELECT DISTINCT {unit}, … to drop equal rows of each one.",
    ),
    "intersect": ("INTERSECT is not supported: rows of different people would be compared.", _SEMI),
    "except": ("EXCEPT is not supported: rows of different people would be compared.", _ANTI),
    "name": ("UNION ALL BY NAME is not supported.", "Select the columns in the same order."),
    "width": ("The parts of UNION ALL have different numbers of columns.", "Select as many in each."),
    "public": (
        "A public table cannot be put together with private rows.",
        "Join it, or have its rows added to the private table by the steward.",
    ),
    "unit": (
        "The privacy unit is in the place of another column in a part of UNION ALL.",
        "Select it in the same place in each part.",
    ),
    "clause": ("UNION ALL takes no LIMIT or ORDER BY.", "Leave it out."),
}
"""UNION ALL and its relatives."""

WINDOWS: dict[str, tuple[str, str]] = {
    "public": ("Window functions are for private rows.", "Have the column added to the public table."),
    "rows": (
        "Each row is a privacy unit of its own here, and a window looks at others.",
        "Have the column that names people declared as the privacy unit.",
    ),
    "results": (
        "Over groups, RANK, DENSE_RANK, ROW_NUMBER, NTILE and SUM are supported, without a frame.",
        "Ask for the groups alone: everything else follows from the released numbers, at no cost.",
    ),
    "named": ("Named windows are not supported.", "Write OVER (PARTITION BY {unit} …) out each time."),
    "nested": ("A window function is inside another.", "Put the inner one into a subquery."),
    "order": ("Ranks, LAG and LEAD need an order.", "Write OVER (PARTITION BY {unit} ORDER BY day)."),
    "frame": (
        "Frames (ROWS, RANGE) are not supported: a window is all rows of its partition.",
        "Leave the frame out.",
    ),
    "running": (
        "Running totals (an aggregate OVER with ORDER BY) are not supported.",
        "Leave ORDER BY out for the total of the partition; LAG and LEAD look at neighbouring rows.",
    ),
    "first": (
        "FIRST_VALUE, LAST_VALUE and NTH_VALUE are not supported.",
        "Keep one row with QUALIFY ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY day) = 1.",
    ),
    "form": (
        "This window function is not supported.",
        "ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, COUNT, SUM, AVG, MIN and MAX work.",
    ),
    "nulls": ("Windows put NULL last, in either direction.", "Write ORDER BY day DESC, or COALESCE."),
    "default": ("LAG and LEAD take no default here.", "Write COALESCE(LAG(x) OVER (…), 0)."),
    "offset": ("LAG and LEAD look a constant number of rows away.", "Write LAG(x, 2), at most 1000."),
}
"""Window functions."""
