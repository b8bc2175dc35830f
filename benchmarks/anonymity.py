"""Anonymity on the Adult census table: measuring k and t, and Mondrian, beside pycanon and anjana.

The table is not part of this repository: it is looked for in `$ADULT`, then in `shared/data/adult` beside the
checkout; without it nothing is measured. The peers run in an environment of their own (`remote.py`), on the
same rows and with the pandas they ask for. One that is not installed is replaced by the seconds it was
measured to take on this table before, labelled as cited.
"""

from __future__ import annotations

import csv
import math
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks import remote
from benchmarks.harness import Report, Timing, race, seconds, times
from benchmarks.levels import levels

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
    "income",
)  # fmt: skip
NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
SEVEN = ["age", "education", "marital-status", "race", "sex", "workclass", "native-country"]
SIX = ["age", "education", "marital-status", "race", "sex", "native-country"]
THREE = ["age", "sex", "race"]
SENSITIVE = "occupation"
PART = 5_000  # rows that a peer gets with seven quasi-identifiers: it looks at each class by itself
SUPPRESSED = (0, 5)
"""Per cent of rows that anjana may suppress: none, as in Mondrian, and its best of 0, 1, 2, 5, 10 and 50."""
SLOW = 40  # rows that the textbook's check gets; its time for all is in proportion

CITED = {"pycanon k": 0.29, "pycanon t": 3.3, "anjana": 2.6, "anjana discernibility": 1.5e8}
"""CPU seconds of pycanon and anjana on this table, and the discernibility of anjana's result for k = 10."""


def _folder() -> Path | None:
    named = os.environ.get("ADULT")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult"
    found = [Path(each) for each in ([named] if named else []) + [str(beside)]]
    return next((each for each in found if (each / "raw_adult.data").is_file()), None)


@cache
def adult() -> pa.Table | None:
    """The 48,842 rows of the table, or None where it is not at hand."""
    folder = _folder()
    if folder is None:
        return None
    rows: list[list[str]] = []
    for name in ("raw_adult.data", "raw_adult.test"):
        with open(folder / name, newline="") as file:
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(COLUMNS)]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    columns["income"] = [value.rstrip(".") for value in columns["income"]]
    return pa.table(
        {name: pa.array(list(map(int, v)) if name in NUMBERS else v) for name, v in columns.items()}
    )


def k_check(report: Report) -> None:
    """The smallest class of seven quasi-identifiers: ours from memory and file, pandas, peer, textbook."""
    table = adult()
    report.heading("k of Adult, 7 quasi-identifiers", "wall", "CPU", "over ours")
    if table is None:
        report.row("Adult is not here", "", "skipped", skipped=True)
        return
    frame, file = table.to_pandas(), _file(table)
    contenders: dict[str, Callable[[], object]] = {
        "sfumato": lambda: sf.anonymity.measure(table, SEVEN).k,
        "sfumato, pandas": lambda: sf.anonymity.measure(frame, SEVEN).k,
        "sfumato, Parquet": lambda: sf.anonymity.measure(file, SEVEN).k,
        "pandas groupby": lambda: frame.groupby(SEVEN, dropna=False).size().min(),
    }
    work = remote.prepare("pycanon", "k", path=_text(table), quasi=SEVEN)
    answers = {who: int(call()) for who, call in contenders.items()}  # type: ignore[call-overload]
    timing = remote.race(contenders, {"pycanon": work} if work else {}, repeats=15)
    if work is not None:
        answers["pycanon"] = work.answer
    if len(set(answers.values())) != 1:
        raise RuntimeError(f"the contenders do not agree: {answers}")
    _rows(report, "k check", timing)
    _figure(report, "k check, 7 quasi-identifiers: × pycanon", "pycanon k", timing, work, 25)
    textbook = race({"textbook": lambda: _textbook(frame, SLOW)}, repeats=3)["textbook"]
    whole = textbook.wall / SLOW * table.num_rows
    over = whole / timing["sfumato"].wall
    cells = f"{seconds(whole)}*", "", times(over)
    report.row("k check, row by row", "textbook", *cells, timing=textbook, rows=SLOW, over_ours=over)
    report.figure("k check, 7 quasi-identifiers: × row by row", over, ">=", 1_000, unit=" ×", rows_timed=SLOW)


def t_check(report: Report) -> None:
    """The t of occupations: three quasi-identifiers and all rows, seven and a part of the rows."""
    table = adult()
    report.heading("t of occupations", "wall", "CPU", "over ours")
    if table is None:
        report.row("Adult is not here", "", "skipped", skipped=True)
        return
    for case, quasi, rows in (
        ("3 quasi-identifiers, all rows", THREE, table),
        (f"7 quasi-identifiers, {PART:,} rows", SEVEN, table.slice(0, PART)),
    ):
        frame = rows.to_pandas()
        contenders: dict[str, Callable[[], object]] = {
            "sfumato": lambda rows=rows, quasi=quasi: sf.anonymity.measure(rows, quasi, SENSITIVE).t,
            "sfumato, pandas": lambda frame=frame, quasi=quasi: (
                sf.anonymity.measure(frame, quasi, SENSITIVE).t
            ),
        }
        given = {"path": _text(table), "quasi": quasi, "sensitive": SENSITIVE, "rows": rows.num_rows}
        work = remote.prepare("pycanon", "t", **given)
        timing = remote.race(contenders, {"pycanon": work} if work else {}, repeats=9, budget=10)
        if work is not None:
            found, theirs = sf.anonymity.measure(rows, quasi, SENSITIVE).t, work.answer
            if not math.isclose(found, theirs, abs_tol=1e-9):
                raise RuntimeError(f"t is {found}, and {theirs} by pycanon")
        _rows(report, case, timing)
        what = f"t, {case.partition(',')[0]}: × pycanon"
        # What is cited was for three columns and all rows.
        _figure(report, what, "pycanon t" if quasi is THREE else None, timing, work, 200)


def mondrian(report: Report) -> None:
    """Mondrian with k = 10 on six quasi-identifiers: time, discernibility and information lost."""
    table = adult()
    report.heading("Mondrian, k = 10, 6 quasi-identifiers", "wall", "CPU", "discernibility", "NCP")
    if table is None:
        report.row("Adult is not here", "", "skipped", skipped=True)
        return
    slim = table.select(SIX)
    made = sf.anonymity.mondrian(slim, SIX, 10)
    checked = sf.anonymity.measure(made.table, SIX)
    if checked.k < 10 or checked.rows != table.num_rows:
        raise RuntimeError("the table is not 10-anonymous, or lacks rows")
    given = {"path": _text(table), "quasi": SIX, "k": 10, "hierarchies": levels(table, SIX)}
    theirs = {
        share: remote.prepare("anjana", "k-anonymity", suppressed=share, **given) for share in SUPPRESSED
    }
    works = {f"anjana, {share} %": work for share, work in theirs.items() if work is not None}
    timing = remote.race(
        {"sfumato": lambda: sf.anonymity.mondrian(slim, SIX, 10)}, works, repeats=5, budget=10
    )
    ours = timing["sfumato"]
    cost = made.discernibility
    report.row(
        "Mondrian",
        "sfumato",
        seconds(ours.wall),
        seconds(ours.cpu),
        f"{cost:.3g}",
        f"{made.ncp:.3f}",
        timing=ours,
        discernibility=cost,
        ncp=made.ncp,
        classes=made.classes,
    )
    beside = _anjana(report, timing, works, table.num_rows)
    report.figure(
        "Mondrian k=10 on Adult, seconds", ours.wall, "<=", 0.5, unit=" s", cpu=ours.cpu, anjana=beside
    )
    report.figure("Mondrian k=10 on Adult, discernibility", float(cost), "<=", 3e6, anjana=beside)


def _anjana(
    report: Report, timing: dict[str, Timing], works: dict[str, remote.Work], rows: int
) -> dict[str, Any]:
    """Rows of anjana, which generalises whole columns and has no Mondrian, for the same k and columns."""
    if not works:
        report.missing("whole columns", "anjana")
        taken, cost = CITED["anjana"], CITED["anjana discernibility"]
        cells = seconds(taken), seconds(taken), f"{cost:.3g}"
        report.row("whole columns", "anjana (cited)", *cells, cited=True)
        return {"peer": "cited", "seconds": taken, "discernibility": cost}
    kept: dict[str, Any] = {}
    for who, work in works.items():
        one, found = timing[who], work.answer
        if found["k"] < 10:
            raise RuntimeError(f"{who} gave a table with k = {found['k']}")
        cells = seconds(one.wall), seconds(one.cpu), f"{found['discernibility']:.3g}"
        found["suppressed"] = rows - found.pop("rows")
        report.row("whole columns", who, *cells, timing=one, **found, **work.facts)
        kept[who] = {"wall": one.wall, "cpu": one.cpu, **found, **work.facts}
    return kept


def _rows(report: Report, case: str, timing: dict[str, Timing]) -> None:
    ours = timing["sfumato"]
    for who, one in timing.items():
        over = one.wall / ours.wall
        report.row(case, who, seconds(one.wall), seconds(one.cpu), times(over), timing=one, over_ours=over)


def _figure(
    report: Report,
    what: str,
    cited: str | None,
    timing: dict[str, Timing],
    work: remote.Work | None,
    target: float,
) -> None:
    """Ours against pycanon in this run, or against the seconds that are cited for it, if any."""
    ours = timing["sfumato"]
    if work is not None:
        theirs = timing["pycanon"]
        ratio, cpu = theirs.wall / ours.wall, theirs.cpu / ours.cpu
        report.figure(what, ratio, ">=", target, unit=" ×", cpu=cpu, **work.facts)
        return
    report.missing("on this table", "pycanon")
    if cited is None:
        return
    # What is cited was measured on one core of a machine with nothing else to do: there CPU and wall agree.
    report.row("on this table", "pycanon (cited)", "", seconds(CITED[cited]), cited=True)
    ratio, cpu = CITED[cited] / ours.wall, CITED[cited] / ours.cpu
    report.figure(f"{what} (cited)", ratio, ">=", target, unit=" ×", cpu=cpu, peer="cited")


def _textbook(frame: Any, rows: int) -> int:
    """The check of the textbooks, for the first rows: each is compared with the whole table."""
    least = len(frame)
    for _, row in frame[SEVEN].head(rows).iterrows():
        alike = frame[SEVEN[0]] == row[SEVEN[0]]
        for name in SEVEN[1:]:
            alike &= frame[name] == row[name]
        least = min(least, int(alike.sum()))
    return least


@cache
def _holder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="adult-")


def _file(table: pa.Table) -> Path:
    path = Path(_holder().name) / "adult.parquet"
    pq.write_table(table, path)
    return path


def _text(table: pa.Table) -> str:
    """The table as a file that the peers' pandas reads by itself."""
    path = Path(_holder().name) / "adult.csv"
    pa.csv.write_csv(table, path)
    return str(path)


PARTS = (remote.note, k_check, t_check, mondrian)
