"""The figures of docs/scale.md, from results on disk: `python -m benchmarks.scale_page` writes them there.

What was not measured is not told: without `results/scale.json` the page says how to get it, and a cluster is
sized by the cost of a row in `results/query.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, seconds, times

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
_MARK = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", flags=re.S)

ROWS = 10**11
BYTES = 20  # of a row on disk, in the columns that are read: `scale_tables.visits`
WITHIN, BUSY = 600, 0.5  # seconds in which the answer is wanted; the part of them in which cores work on it
SHUFFLED = 40  # bytes of a line of a unit in a group: id, key, count, sum, and what a shuffle adds
GIGABYTES = 1.0  # that a machine reads or shuffles a second
CORES = 32  # of a machine


def results(subject: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The rows of a subject; none if it was not run."""
    path = folder / f"{subject}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    whole = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in whole)


def measured(rows: Sequence[dict[str, Any]]) -> str:
    """Each case and size: ours, and over the plain aggregate."""
    if not rows:
        return "Not measured yet on this version: `python -m benchmarks scale`.\n"
    plain = {row["case"]: row for row in rows if row["who"] != "sfumato"}
    lines = []
    for row in rows:
        if row["who"] == "sfumato":
            other = plain[row["case"]]
            over = (times(row[clock] / other[clock]) for clock in ("wall", "cpu"))
            own = seconds(row["wall"]), seconds(row["cpu"]), f"{row['mb']:,.0f} MB"
            lines.append([row["case"], *own, *over, f"{other['mb']:,.0f} MB"])
    head = ["case", "wall", "CPU", "peak", "wall over plain", "CPU over plain", "peak of plain"]
    return _table(head, lines)


def stages(rows: Sequence[dict[str, Any]]) -> str:
    """Where the time goes at the least and the greatest size of each case, and what leaves the engine."""
    if not rows:
        return "Not measured yet on this version.\n"
    lines = []
    ours = [row for row in rows if row["who"] == "sfumato"]
    for name in dict.fromkeys(row["case"].partition(":")[0] for row in ours):
        own = [row for row in ours if row["case"].partition(":")[0] == name]
        for row in dict.fromkeys((0, len(own) - 1)):
            found = own[row]
            total = sum(found["stages"].values())
            shares = [f"{100 * found['stages'][stage] / total:.0f} %" for stage in found["stages"]]
            lines.append([found["case"], *shares, f"{found['lines']:,}", f"{found['travelled']:,}"])
    return _table(["case", *ours[0]["stages"], "lines that travel", "bytes"], lines)


def cost(folder: Path = RESULTS) -> tuple[float, int, str]:
    """CPU seconds of a row with user units, of how many rows, and whose figure it is."""
    own = [row for row in results("scale", folder) if row["case"].startswith("rows, user units")]
    own = [row for row in own if row["who"] == "sfumato"]
    if own:
        last = max(own, key=lambda row: row["size"])
        return last["cpu"] / last["size"], last["size"], "benchmarks/results/scale.json"
    (only,) = [r for r in results("query", folder) if (r["case"], r["who"]) == ("sum and mean", "sfumato")]
    return only["cpu_seconds"] / 10**7, 10**7, "benchmarks/results/query.json"


def sizing(folder: Path = RESULTS) -> str:
    """The arithmetic of a cluster for 1e11 rows."""
    per_row, at, source = cost(folder)
    work = per_row * ROWS
    cores = work / (WITHIN * BUSY)
    read, moved = ROWS * BYTES / 1e9, ROWS * SHUFFLED / 1e9
    by_cores = cores / CORES
    by_bytes = (read + 2 * moved) / GIGABYTES / (WITHIN * BUSY)
    lines = [
        ("work", f"{per_row * 1e6:.2f} µs of a core for a row ({at:.0e} rows, `{source}`) × 1e11 rows",
         f"{work:,.0f} core-seconds = {work / 3600:.1f} core-hours"),
        ("cores", f"{work:,.0f} s / ({WITHIN} s × {BUSY})", f"{cores:,.0f} cores"),
        ("read", f"1e11 rows × {BYTES} bytes, columnar and compressed", f"{read / 1e3:.1f} TB"),
        ("shuffled", f"at most one line a row: 1e11 rows × {SHUFFLED} bytes", f"{moved / 1e3:.1f} TB"),
        ("machines by cores", f"{cores:,.0f} / {CORES} cores", f"{by_cores:,.1f}"),
        ("machines by bytes",
         f"({read / 1e3:.1f} + 2 × {moved / 1e3:.1f}) TB / ({GIGABYTES:g} GB/s × {WITHIN} s × {BUSY})",
         f"{by_bytes:,.1f}"),
        ("machines", f"the greater of both, and a fifth for stragglers: {max(by_cores, by_bytes):,.1f} × 1.2",
         f"**{max(by_cores, by_bytes) * 1.2:,.0f} machines of {CORES} cores**"),
        ("memory of a machine", "what is shuffled, twice, over all machines",
         f"{2 * moved / (max(by_cores, by_bytes) * 1.2):,.0f} GB, or that much disk"),
    ]  # fmt: skip
    return _table(["what", "how", "gives"], lines)


def written(text: str, folder: Path = RESULTS) -> str:
    """The page with its figures."""
    rows = results("scale", folder)
    parts = {"measured": measured(rows), "stages": stages(rows), "sizing": sizing(folder)}
    return _MARK.sub(lambda found: f"{found[1]}{parts[found[2]]}{found[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
