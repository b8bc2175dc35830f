"""The figures of docs/server.md, from results on disk: `python -m benchmarks.server_page` writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, seconds

PAGE = Path(__file__).parents[1] / "docs" / "server.md"
_MARK = re.compile(r"(<!-- load -->\n).*?(<!-- end -->)", flags=re.S)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _loads(rows: list[dict[str, Any]]) -> str:
    """How many answers a second, and how long one takes."""
    lines = [_line("64 clients", "a second", "p50", "p99"), _line(*["---"] * 4)]
    words = {"new answers": "new answers, two processes over one PostgreSQL"}
    for row in rows:
        if "rate" in row:
            what = words.get(row["case"], f"free answers {row['case']}, one process")
            lines.append(_line(what, f"{row['rate']:,.0f}", seconds(row["p50"]), seconds(row["p99"])))
    return "".join(lines)


def _overheads(rows: list[dict[str, Any]]) -> str:
    """What a front adds to a call."""
    own = {row["case"]: row["median"] for row in rows if row["who"] == "in process"}
    lines = [
        _line("one small question", "in process", "over HTTP", "PostgreSQL's protocol"),
        _line(*["---"] * 4),
    ]
    for case, median in own.items():
        others = {row["who"]: row["median"] for row in rows if row["case"] == case}
        added = (f"+{(others[who] - median) * 1e3:.1f} ms" for who in ("HTTP", "PostgreSQL's protocol"))
        lines.append(_line(f"{case} answer", seconds(median), *added))
    return "".join(lines)


def written(text: str, folder: Path = RESULTS) -> str:
    """The page with its figures."""
    path = folder / "server.json"
    if not path.exists():
        tables = "Not measured yet on this version: `python -m benchmarks server`.\n"
    else:
        rows = json.loads(path.read_text())["rows"]
        tables = f"{_loads(rows)}\n{_overheads(rows)}"
    return _MARK.sub(lambda found: f"{found[1]}{tables}{found[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
