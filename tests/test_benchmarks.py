"""What benchmarks share: each call is a question of its own, paid for anew; fits that are timed do run."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import (
    engines,
    learn_speed,
    processes,
    scale,
    scale_page,
    scale_tables,
    server,
    server_page,
    synth,
    synth_marginals,
    synth_wide,
)
from benchmarks.harness import Report
from benchmarks.synth_adult import TARGET, Adult
from benchmarks.visits import asked

import sfumato as sf


def test_each_call_is_paid_for_anew():
    table = sf.PrivateTable(
        "visits",
        source=pa.table({"who": [1, 2, 3]}),
        unit=sf.PrivacyUnit("who"),
        schema={},
        dataset="people",
    )
    with sf.Session(table, budget=sf.Budget(10, "1e-4")) as session:
        call = asked(session, "SELECT COUNT(*) AS n FROM visits")
        assert [call().num_rows for _ in range(3)] == [1, 1, 1]
        assert session.balance().spent == 1


@pytest.mark.parametrize("family", learn_speed.TURNS)
def test_each_fit_that_is_timed_says_what_it_took(family, monkeypatch, capsys):
    monkeypatch.setattr(learn_speed, "ROWS", 200)
    monkeypatch.setattr("sys.argv", ["learn_speed", family, "sfumato"])
    learn_speed.main()
    wall, cpu, peak = map(float, capsys.readouterr().out.split())
    assert min(wall, cpu) >= 0
    assert peak > 1


def test_wide_tables_are_measured_beside_the_published_error(monkeypatch):
    monkeypatch.setattr(synth_marginals, "CLOSED", {"columns": 4, "cells": 3, "rows": 50})
    monkeypatch.setattr(synth_marginals, "COUNTED", {"columns": 3, "cells": 3, "rows": 50})
    report = Report("synth")
    for part in synth_marginals.PARTS:
        part(report)
    closed, _ = report.rows
    assert closed["claimed"] == pytest.approx(1, rel=1e-6)


def test_a_fit_of_a_wide_table_says_how_close_it_is_and_what_it_took(monkeypatch):
    monkeypatch.setattr(synth_wide, "COLUMNS", 4)
    found = synth_wide.fitted("wide", 300)
    assert found["above"] >= 0
    assert 0 < found["variation"] < 1


@pytest.fixture
def little(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 2, (200, 3))
    data = Adult(("sex", "race", TARGET), (2, 2, 2), rows[:150], rows[150:])
    monkeypatch.setattr(synth, "adult", lambda: data)
    return data


def test_a_fit_of_adult_says_how_good_it_is_and_what_it_took(little, capsys):
    synth.main("independent", "1")
    found = json.loads(capsys.readouterr().out)
    assert set(synth.FIGURES) <= set(found)
    assert 0 < found["variation"] < 0.5
    assert 0 < found["megabytes_before"] <= found["megabytes"]


def test_a_peer_that_is_missing_or_fails_is_a_row_and_no_crash(little, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(synth, "OURS", [])
    monkeypatch.setattr(synth, "THEIRS", [("mbi", "mst", 1.0), ("mbi", "aim", 1.0)])
    monkeypatch.setenv("SEEDS", "1")
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PEERS_SYNTH", str(tmp_path))
    kept = {"cpu": 1.0, "megabytes": 2.0, "variation": 0.1, "auc": 0.5}
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mbi-aim-1.0-0.json").write_text(json.dumps(kept))
    broken = "#!/bin/sh\necho no JAX here >&2; exit 3\n"
    for script, said in ((None, "not installed"), (broken, "no JAX here")):
        if script:
            (tmp_path / "bin").mkdir()
            (tmp_path / "bin" / "python").write_text(script)
            (tmp_path / "bin" / "python").chmod(0o755)
        report = Report("synth")
        synth.quality(report)
        failed, again, real = report.rows
        assert said in failed["failed"][0]
        assert again["runs"] == [kept]  # what was done before a run was cut off
        assert real["who"] == "no privacy"
        assert not report.figures
    capsys.readouterr()


@pytest.mark.parametrize(
    "name",
    [
        name if place == 0 else pytest.param(name, marks=pytest.mark.stats)
        for place, name in enumerate(scale.CASES)
    ],
)
def test_growth_is_measured_beside_the_plain_query_and_by_stages(name, monkeypatch, tmp_path):
    monkeypatch.setattr(scale_tables, "MOST", 20_000)
    monkeypatch.setattr(scale_tables, "KEPT", str(tmp_path))
    size = 20_000 if name.startswith("rows") else 3  # so many that each key keeps rows in what is prepared
    ours, plain = (scale.measure(name, size, who) for who in ("sfumato", "plain DuckDB"))
    lines = {"files": 30, "rows": 30, "listed groups": 3, "unlisted groups": 3, "means of columns": 10}
    assert ours["lines"] == lines[name.partition(",")[0]]
    assert ours["travelled"] < 100 * ours["lines"]
    assert list(ours["stages"]) == list(scale.STAGES)
    assert min(ours["stages"].values()) > 0
    assert min(ours["mb"], plain["mb"]) > 1
    assert "stages" not in plain
    assert scale.Stages().seconds.keys() == ours["stages"].keys()
    assert all(call.__module__.startswith("sfumato") for call in (sf.Ledger.debit, sf.engines.DuckDB.fetch))


def test_the_page_on_scale_has_the_figures_of_the_results():
    assert scale_page.written(scale_page.PAGE.read_text()) == scale_page.PAGE.read_text()


def test_a_run_becomes_the_figures_of_the_page(monkeypatch, tmp_path):
    for module in (scale, scale_tables):
        monkeypatch.setattr(module, "MOST", 20_000)
    monkeypatch.setattr(scale_tables, "KEPT", str(tmp_path))
    monkeypatch.setitem(scale.CASES, "files", dataclasses.replace(scale.CASES["files"], sizes=(1, 2)))
    report = Report("scale")
    scale.folders(report)
    other = {"case": "rows, user units: 2,000", "size": 2_000, "cpu": 1e-3}
    report.rows += [row | other for row in report.rows[-2:]]
    report.write(tmp_path)
    page = scale_page.written(scale_page.PAGE.read_text(), tmp_path)
    for name in ("files: 1", "files: 2"):
        assert page.count(f"\n| {name} | ") == 2
    assert " | 30 | " in page
    # 1e-3 s for 2,000 rows are 0.5 µs a row, and 50,000 core-seconds for 1e11.
    assert "50,000 core-seconds = 13.9 core-hours" in page


BUSY = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_processes_that_ended_and_those_that_run_are_counted():
    before = processes.cpu_seconds()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    ended = processes.cpu_seconds()
    assert ended >= before + 0.25
    waiting = f"import sys\n{BUSY}\nprint(1, flush=True)\nsys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", waiting], stdin=pipe, stdout=pipe) as child:
        child.stdout.readline()
        assert processes.cpu_seconds() >= ended + 0.25
        assert processes.cpu_seconds(child.pid) >= 0.25
        assert child.pid in processes.family()
        assert processes.peak(child.pid) > 1
    assert child.pid not in processes.family()
    assert processes.peak(child.pid) == 0


@pytest.fixture
def few(monkeypatch):
    for name, value in {"MOST": 2_000, "REPEATS": 2, "SMALL": 2}.items():
        monkeypatch.setattr(engines, name, value)
    return Report("engines")


def test_engines_are_measured_beside_their_plain_queries(few):
    engines.duckdb_overhead(few)
    engines.postgres_overhead(few)
    engines.small_postgres(few)
    rows = {(row["case"], row["who"]) for row in few.rows}
    for engine in ("DuckDB", "PostgreSQL"):
        assert {(f"on {engine}", who) for who in ("plain", "sfumato", "prepared")} <= rows
    unprepared = [figure for figure in few.figures if "unprepared" in figure["what"]]
    assert len(unprepared) == 2
    assert all(figure["value"] > 0 for figure in few.figures if "over plain" in figure["what"])


def test_without_tumult_its_figure_is_cited(few, monkeypatch, tmp_path):
    timing = {"wall": 0.5, "cpu": 1.0, "calls": 1, "walls": [0.5], "cpus": [1.0], "first": 2.0}
    found = {"sfumato": timing, "peaks": {"together": 900.0}, "versions": {"Spark": "4"}}
    monkeypatch.setattr(engines, "_on_spark", lambda *words: found)
    monkeypatch.setenv("PEERS_TUMULT", str(tmp_path))
    engines.beside_tumult(few)
    (figure,) = few.figures
    assert (figure["value"], figure["peer"], figure["reached"]) == (17, "cited", True)
    assert ("Tumult", False) in {(row["who"], row.get("installed")) for row in few.rows}


def test_the_page_on_the_server_has_the_figures_of_the_results():
    assert server_page.written(server_page.PAGE.read_text()) == server_page.PAGE.read_text()


@pytest.mark.stats
def test_a_server_under_load_is_measured(monkeypatch, tmp_path):
    for name, few in {"CLIENTS": 4, "RELEASES": 30, "BEYOND": 10, "REREADS": 200, "TURNS": 3}.items():
        monkeypatch.setattr(server, name, few)
    report = Report("server")
    for part in server.PARTS:
        part(report)
    figures = {figure["what"]: figure["value"] for figure in report.figures}
    assert figures["releases answered"] == 30
    assert figures["questions refused for lack of budget"] == 10
    assert figures["charges without answers, or answers without"] == 0
    assert figures["free re-reads by the same text that were not"] == 0
    assert figures["free re-reads by receipt that were not"] == 0
    report.write(tmp_path)
    page = server_page.written(server_page.PAGE.read_text(), tmp_path)
    for line in ("| new answers, two processes", "| free answers by receipt, one process", "| free answer |"):
        assert line in page
