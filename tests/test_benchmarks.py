"""What benchmarks share: each call is a question of its own, paid for anew; fits that are timed do run."""

import pyarrow as pa
import pytest
from benchmarks import learn_speed, synth_marginals
from benchmarks.harness import Report
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
