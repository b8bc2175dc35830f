"""Anonymity on the Adult census table: measuring k and t, and Mondrian, beside pycanon and anjana.

The table is not part of this repository: it is looked for in `$ADULT`, then in `shared/data/adult` beside the
checkout; without it nothing is measured. A peer that is not installed is replaced by the seconds it was
measured to take on this table before, labelled as cited.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.harness import Report, Timing, peer, race, seconds, times

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
    pycanon = peer("pycanon.anonymity")
    if pycanon is not None:
        contenders["pycanon"] = lambda: pycanon.k_anonymity(frame, SEVEN)
    answers = {who: int(call()) for who, call in contenders.items()}  # type: ignore[call-overload]
    if len(set(answers.values())) != 1:
        raise RuntimeError(f"the contenders do not agree: {answers}")
    timing = race(contenders, repeats=15, warm=1)
    _rows(report, "k check", timing)
    _figure(report, "k check, 7 quasi-identifiers: × pycanon", "pycanon k", timing, "pycanon", 25)
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
        contenders = _t_contenders(rows, rows.to_pandas(), quasi)
        timing = race(contenders, repeats=9, warm=1, budget=20)
        _rows(report, case, timing)
        _figure(report, f"t, {case.partition(',')[0]}: × pycanon", "pycanon t", timing, "pycanon", 200)


def _t_contenders(rows: pa.Table, frame: Any, quasi: list[str]) -> dict[str, Callable[[], object]]:
    contenders: dict[str, Callable[[], object]] = {
        "sfumato": lambda: sf.anonymity.measure(rows, quasi, SENSITIVE).t,
        "sfumato, pandas": lambda: sf.anonymity.measure(frame, quasi, SENSITIVE).t,
    }
    pycanon = peer("pycanon.anonymity")
    if pycanon is not None:
        contenders["pycanon"] = lambda: pycanon.t_closeness(frame, quasi, [SENSITIVE])
    return contenders


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
    ours = race({"sfumato": lambda: sf.anonymity.mondrian(slim, SIX, 10)}, repeats=5)["sfumato"]
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
    # anjana generalises whole columns and has no Mondrian; its figure is for the same k and columns.
    report.row(
        "whole columns",
        "anjana (cited)",
        seconds(CITED["anjana"]),
        seconds(CITED["anjana"]),
        f"{CITED['anjana discernibility']:.3g}",
        "",
        cited=True,
    )
    report.figure("Mondrian k=10 on Adult, seconds", ours.wall, "<=", 0.5, unit=" s", cpu=ours.cpu)
    report.figure("Mondrian k=10 on Adult, discernibility", float(cost), "<=", 3e6)


def _rows(report: Report, case: str, timing: dict[str, Timing]) -> None:
    ours = timing["sfumato"]
    for who, one in timing.items():
        over = one.wall / ours.wall
        report.row(case, who, seconds(one.wall), seconds(one.cpu), times(over), timing=one, over_ours=over)


def _figure(
    report: Report, what: str, cited: str, timing: dict[str, Timing], who: str, target: float
) -> None:
    """Ours against a peer of this run, or against the seconds that are cited for it."""
    ours, theirs = timing["sfumato"], timing.get(who)
    if theirs is not None:
        ratio, cpu = theirs.wall / ours.wall, theirs.cpu / ours.cpu
        report.figure(what, ratio, ">=", target, unit=" ×", cpu=cpu, peer="same run")
        return
    # What is cited was measured on one core of a machine with nothing else to do: there CPU and wall agree.
    report.row(f"{who} on this table", f"{who} (cited)", "", seconds(CITED[cited]), cited=True)
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


PARTS = (k_check, t_check, mondrian)
