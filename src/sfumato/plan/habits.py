"""Names that other libraries have for what a table of ours does, with what to write here."""

from __future__ import annotations

__all__ = ["ROWS", "TABLE_HABITS"]

ROWS = 'Single rows are never shown. Ask about groups: .group_by("x").agg(n=sf.count()).'
_AGGREGATED = "Write .agg({0}=sf.{0}(…)); without group_by it is of all rows."
TABLE_HABITS: dict[str, str] = {
    **dict.fromkeys(("collect", "select", "sample", "tail", "first", "last", "rows", "to_pandas"), ROWS),
    **dict.fromkeys(("to_polars", "fetch", "iloc", "loc", "iter_rows", "show", "take", "drop"), ROWS),
    **{name: _AGGREGATED.format(name) for name in ("mean", "sum", "median", "min", "max", "std", "var")},
    **{name: _AGGREGATED.format(name) for name in ("count", "quantile", "corr")},
    **dict.fromkeys(("where", "query"), 'Write .filter(sf.col("age") >= 18).'),
    **dict.fromkeys(("assign", "withColumn", "mutate"), 'Write .with_columns(old=sf.col("age") >= 65).'),
    **dict.fromkeys(("aggregate", "summarise", "summarize"), "Write .agg(n=sf.count())."),
    **dict.fromkeys(("merge", "join_asof"), 'Write .join("cities", on="city").'),
    **dict.fromkeys(("pivot", "pivot_table"), 'Write .crosstab("a", "b").'),
    **dict.fromkeys(("distinct", "drop_duplicates", "n_unique", "nunique"), 'Write .unique("x").'),
    **dict.fromkeys(("hist", "cut"), 'Write .histogram("age", bins=10).'),
    **dict.fromkeys(("release", "quote"), "Ask something first: .agg(n=sf.count()).release(epsilon=0.5)."),
    **dict.fromkeys(("sort_values", "order_by"), "Sort the released groups: .agg(…).sort(…)."),
    **dict.fromkeys(("columns", "schema"), "The declared columns are in .table.schema."),
}
