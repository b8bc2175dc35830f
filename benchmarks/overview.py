"""docs/benchmarks.md, from the results on disk: `python -m benchmarks.overview` writes it.

One section a subject, in the order in which they run: what was measured, when, on what, figures beside their
targets, and the rows of everybody who took part. A figure that missed its target is named twice: in its
section and in the list at the top.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.__main__ import SUBJECTS as ORDER
from benchmarks.harness import COMPARISONS, RESULTS
from benchmarks.overview_subjects import SUBJECTS, Subject
from benchmarks.overview_tables import cells, number, split

README = Path(__file__).parent / "README.md"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
Result = dict[str, Any]
SIGNS = {"<": "<", "<=": "≤", ">=": "≥"}
FAILED = "did not run"


def results(folder: Path = RESULTS) -> list[Result]:
    """All results on disk, in the order in which the subjects run.

    Raises:
        ValueError: if a subject is new, and so far without a word in `overview_subjects`.
    """
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    unknown = sorted(found.keys() - SUBJECTS.keys() | found.keys() - set(ORDER))
    if unknown:
        raise ValueError(f"Say in benchmarks/overview_subjects.py how to show {', '.join(unknown)}.")
    return [found[subject] for subject in ORDER if subject in found]


def compared() -> dict[str, str]:
    """What each subject compares, in the words of benchmarks/README.md, without how to run it."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", README.read_text(), flags=re.M)
    return {
        subject: "; ".join(part for part in words.split("; ") if not part.startswith(("`", "needs ")))
        for subject, words in rows
    }


def measured(figure: Result) -> str:
    """The value of a figure, with as many digits as it takes to see on which side of its target it is."""
    if figure["value"] is None:
        return FAILED
    value, (sense, target) = float(figure["value"]), figure["target"].split()
    for digits in (3, 4, 5, 6):
        text = number(value) if digits == 3 else f"{value:.{digits}g}"
        if COMPARISONS[sense](float(text.replace(",", "")), float(target)) == bool(figure["reached"]):
            break
    return text + _unit(figure)


def aim(figure: Result) -> str:
    """The target of a figure."""
    if figure["value"] is None:
        return ""
    sense, target = figure["target"].split()
    return f"{SIGNS[sense]} {number(float(target))}{_unit(figure)}"


def _unit(figure: Result) -> str:
    return figure["unit"].replace(" x", " ×")


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    whole = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in line] for line in lines)]
    return "".join(f"| {' | '.join(line)} |\n" for line in whole)


def missed(result: Result) -> list[Result]:
    """The figures that did not reach their targets, and those that could not be measured."""
    return [figure for figure in result["figures"] if not figure["reached"]]


def _day(moment: str) -> str:
    day = datetime.fromisoformat(moment)
    return f"{day.day} {day:%B %Y}"


def _machine(result: Result) -> str:
    here = result["machine"]
    devices = sorted({row["device"] for row in result["rows"] if "device" in row})
    system = here["system"].partition("-")[0]
    words = [here["processor"], f"{here['cores']} cores", *devices, here["architecture"], system]
    return ", ".join(words)


def _versions(result: Result) -> str:
    own = [f"{name} {version}" for name, version in result["versions"].items() if version != "not installed"]
    others = {
        f"{row['who']} {row['version']}"
        for row in result["rows"]
        if "version" in row and row["who"] not in result["versions"]
    }
    return ", ".join([*own, *sorted(others)])


def _rows(result: Result, subject: Subject) -> str:
    """The tables of rows, folded up: peers are all in there, whoever was best."""
    parts = []
    for table, rows in zip(
        subject.tables, split(result["subject"], result["rows"], subject.tables), strict=True
    ):
        lines = [line for row in rows if table.columns and (line := cells(row, table))]
        if lines:
            head = ["case", "who", *(column.head for column in table.columns)]
            parts.append(f"**{table.title}**\n\n{_table(head, lines)}")
    if not parts:
        return ""
    body = "\n".join(parts)
    return f"\n<details>\n<summary>All rows, everybody who took part</summary>\n\n{body}\n</details>\n"


def _count(result: Result) -> str:
    figures, lost = len(result["figures"]), len(missed(result))
    words = "1 figure" if figures == 1 else f"{figures} figures"
    return f"{words}, {f'**{lost} missed**' if lost else 'all reached'}"


def section(result: Result, what: str) -> str:
    """One subject."""
    subject = SUBJECTS[result["subject"]]
    lines = [
        [
            figure["what"],
            measured(figure) if figure["reached"] else f"**missed:** {measured(figure)}",
            aim(figure),
        ]
        for figure in result["figures"]
    ]
    load = result["load_average"]["start"][0]
    facts = (
        f"- Measured on {_day(result['started'])}: {_count(result)}\n"
        f"- Again: `python -m benchmarks {result['subject']}`\n"
        f"- Machine: {_machine(result)}; load average at the start {load:.2f}\n"
        f"- Versions: {_versions(result)}\n"
        f"- Raw results: [{result['subject']}.json](../benchmarks/results/{result['subject']}.json)\n"
    )
    note = f"\n{subject.note}\n" if subject.note else ""
    figures = _table(["figure", "measured", "target"], lines)
    compares = f"Compared: {what}.\n"
    return f"## {subject.title}\n\n{compares}{note}\n{facts}\n{figures}{_rows(result, subject)}"


def _anchor(title: str) -> str:
    return "#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def page(folder: Path = RESULTS) -> str:
    """The whole page."""
    found, words = results(folder), compared()
    figures = sum(len(result["figures"]) for result in found)
    lost = [(result, figure) for result in found for figure in missed(result)]
    names = {result["subject"]: SUBJECTS[result["subject"]].title for result in found}
    links = {subject: f"[{title}]({_anchor(title)})" for subject, title in names.items()}
    overview = _table(
        ["subject", "measured on", "figures"],
        ([links[result["subject"]], _day(result["started"]), _count(result)] for result in found),
    )
    misses = _table(
        ["subject", "figure", "measured", "target"],
        (
            [links[result["subject"]], figure["what"], measured(figure), aim(figure)]
            for result, figure in lost
        ),
    )
    total = f"{figures} figures in {len(found)} subjects"
    sections = "\n".join(section(result, words[result["subject"]]) for result in found)
    return f"""# Benchmarks

This page is written by `python -m benchmarks.overview` from the files in `benchmarks/results`.
Nobody edits it by hand.

**{total}: {figures - len(lost)} reached their targets, {len(lost)} missed them.**

A figure is measured beside a peer or a limit, in the same run, on the same data. The name of a ratio says
what is divided by what: "over ours" is their time over ours, so more is better for us; "over plain" is ours
over no privacy, so less is better. Subjects were measured on different days: compare within a subject only.
Times are wall times, unless they say CPU. How to run them: [benchmarks/README.md](../benchmarks/README.md).

{overview}
## What missed its target

{misses}
{sections}"""


if __name__ == "__main__":
    PAGE.write_text(page())
