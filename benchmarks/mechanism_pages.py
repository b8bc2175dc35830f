"""Measured times in docs/mechanisms/*.md, from results on disk: `python -m benchmarks.mechanism_pages`.

A page has a line `<!-- measured: slug -->` and a line `<!-- end -->`; what is between them is written here.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, seconds, times
from benchmarks.mechanism_cases import ORDERS
from benchmarks.mechanisms import FITTED

PAGES = Path(__file__).parents[1] / "docs" / "mechanisms"
Row = dict[str, Any]
_MARK = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end -->)", flags=re.S)
_SHARED = {"NumericSparseVector": "sparse-vector"}


def slug(name: str) -> str:
    """The page of a mechanism."""
    return _SHARED.get(name, re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower())


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _tables(rows: list[Row], figures: list[Row], name: str, *, named: bool) -> str:
    """A table for each size that grew, and what it says of the order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["mechanism"] == name and "size" in row:
            found.setdefault(f"{row['unit'][1]} {row['how']}", []).append(row)
    parts = []
    for grown in found.values():
        first, last = grown[0], grown[-1]
        title = ", ".join([f"`{name}`"] * named + [first["how"]] * bool(first["how"]))
        linear = first["law"] == "linear"
        head = [first["unit"][1], "CPU time"] + [f"of one {first['unit'][0]}"] * linear
        table = _line(*head) + _line(*["---"] * len(head))
        for row in grown:
            each = [seconds(row["each"])] if linear else []
            table += _line(f"{row['size']:,}", seconds(row["median"]), *each)
        verdict = _verdict(first, last, figures)
        parts.append((f"{title[0].upper() + title[1:]}:\n\n" if title else "") + f"{table}\n{verdict}")
    return "\n".join(parts)


def _verdict(first: Row, last: Row, figures: list[Row]) -> str:
    """Whether the times are of the stated order, in a sentence."""
    wanted = {"mechanism": last["mechanism"], "how": last["how"], "grown": last["unit"][1]}
    judged = [figure for figure in figures if wanted.items() <= figure.items()]
    if not judged:
        longer = times(last["median"] / first["median"])
        return f"From {first['size']:,} to {last['size']:,} it takes {longer} as long.\n"
    (figure,) = judged
    order = ORDERS[last["mechanism"]]
    if last["law"] == "linear":
        said = f"Over the {FITTED} largest the time grows with the power {figure['exponent']:.2f}"
        aim = "1"
    else:
        said = f"From {first['size']:,} to {last['size']:,} it takes {times(figure['value'])} as long"
        aim = f"at most {float(figure['target'].split()[1]):.3g} ×"
    agrees = f"as {order} says" if last["over"] else "about linear"
    missed = f"**not** as {order} says, which would be {aim}" if last["over"] else "**not** linear"
    if figure.get("exponent", 1) < 1:
        missed += "; what does not grow still matters at these sizes"
    return f"{said}: {agrees if figure['reached'] else missed}.\n"


def _others(document: Row, name: str, *, named: bool) -> str:
    """The private value, the scale of the noise, and making it, in sentences."""
    rows = [row for row in document["rows"] if row["mechanism"] == name and "size" not in row]
    said = []
    pairs = [row for row in rows if "over_first" in row]
    for one, other in zip(pairs[::2], pairs[1::2], strict=True):
        ratio = times(other["over_first"])
        said.append(f"For {other['case']} it takes {ratio} the time of {one['case']}.")
    wide = [row for row in rows if "scale" in row and "median" in row]
    if wide:
        ends = ", ".join(f"{seconds(row['median'])} at {row['case']}" for row in wide)
        said.append(f"By the noise: {ends}, for 100,000 of them.")
    (made,) = (row for row in rows if row["case"] == "made and first used")
    said.append(f"To make one takes {seconds(made['median'])}, its first small answer included.")
    return (f"`{name}`: " if named else "") + " ".join(said) + "\n"


def block(page: str, document: Row) -> str:
    """What the page of a mechanism, or of two, says of its times."""
    names = [name for name in ORDERS if slug(name) == page]
    named = len(names) > 1
    day = datetime.fromisoformat(document["started"])
    parts = [_tables(document["rows"], document["figures"], name, named=named) for name in names]
    parts += [_others(document, name, named=named) for name in names]
    parts.append(
        f"Medians, on one core of a {document['machine']['processor']}, {day.day} {day:%B %Y}; "
        "[all figures](../benchmarks.md#mechanisms).\n"
    )
    return "\n".join(parts)


def written(text: str, folder: Path = RESULTS) -> str:
    """A page with its figures.

    Raises:
        ValueError: if a mark names no page of a mechanism.
    """
    path = folder / "mechanisms.json"
    document = json.loads(path.read_text()) if path.exists() else None

    def filled(mark: re.Match[str]) -> str:
        if mark[2] not in map(slug, ORDERS):
            raise ValueError(f"No mechanism has the page {mark[2]}: write its name as in the address.")
        measured = "Not measured yet: `python -m benchmarks mechanisms`.\n"
        return f"{mark[1]}{measured if document is None else block(mark[2], document)}{mark[3]}"

    return _MARK.sub(filled, text)


def main() -> None:
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    main()
