"""The table of scalar functions by engine in the guide, as the dialects declare it.

`PYTHONPATH=src:tests/support python tests/support/function_table.py` writes it anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from sfumato.cli.listing import spelling
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.engines.spark.dialect import SPARK
from sfumato.plan.expressions.functions import FUNCTIONS, Function

__all__ = ["DIALECTS", "GUIDE", "TABLE", "cell", "table"]

GUIDE = Path(__file__).parents[2] / "docs" / "sql.md"
DIALECTS = {"DuckDB": DUCKDB, "PostgreSQL": POSTGRES, "Spark": SPARK}
TABLE = re.compile(r"^\| in SQL \| in Python \|.*(?:\n\|.*)*", flags=re.M)


def cell(function: Function, dialect: Dialect) -> str:
    """What one engine makes of a function."""
    if dialect.form(function.name, function.sql) is None:
        return f"refused: {dialect.why_refused(function.name)}"
    how = dialect.how_different(function.name)
    return "same" if how is None else f"differs: {how}"


def table() -> str:
    """A line for each function, with a cell for each engine."""
    lines = [["in SQL", "in Python", "gives", *DIALECTS], ["---"] * (3 + len(DIALECTS))]
    for function in FUNCTIONS.values():
        cells = [cell(function, dialect) for dialect in DIALECTS.values()]
        sql = spelling(function).replace("|", "\\|")
        lines.append([f"`{sql}`", f"`{function.name}`", function.doc, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    GUIDE.write_text(TABLE.sub(lambda _: table(), GUIDE.read_text()))
