"""The figures that docs/engines.md quotes are those of the last benchmark."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = {"sum and mean, unprepared, over plain", "sum and mean, prepared, over plain"}


def test_the_table_of_costs_is_that_of_the_results():
    figures = {
        figure["what"]: figure["value"]
        for figure in json.loads((ROOT / "benchmarks/results/engines.json").read_text())["figures"]
    }
    text = (ROOT / "docs/engines.md").read_text().partition("## What it costs")[2]
    quoted = {}
    for line in re.findall(r"^\| (sum .*) \|$", text, re.M):
        what, *cells = map(str.strip, line.split("|"))
        for engine, cell in zip(("DuckDB", "PostgreSQL", "Spark"), cells, strict=True):
            quoted[f"{engine}: {what}"] = cell.removesuffix(" ×")
    plain = {
        re.sub(r", [\d,]+ rows$", "", what): f"{value:#.2g}".rstrip(".") for what, value in figures.items()
    }
    assert quoted == {what: value for what, value in plain.items() if what.partition(": ")[2] in ROWS}
    assert f"{figures['PostgreSQL: a small question over the plain one']:.1f} ms" in text
    assert f"{figures['Spark: a small question over the plain one, in plain ones']:.1f} plain ones" in text
