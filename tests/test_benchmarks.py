"""What benchmarks share: each call is a question of its own, paid for anew; fits that are timed do run."""

import json

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import learn_speed, synth, synth_marginals, synth_wide
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
