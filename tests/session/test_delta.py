"""Snapshots of Delta tables as states: rows of the files that the log names, and of no other."""

import sys

import pyarrow as pa
import pytest

import sfumato as sf
from commands import invoke
from sfumato.cli import app
from sfumato.errors import MissingExtra, SourceUnusable

deltalake = pytest.importorskip("deltalake")
BUDGET = sf.Budget(epsilon=10**7)
TEXT = "SELECT COUNT(*) AS n FROM visits"


def month(number, many):
    return pa.table(
        {
            "user": [f"{number} {place}" for place in range(many)],
            "m": pa.array([number] * many, pa.int64()),
        }
    )


def table_of(folder, **numbers):
    states = {name: sf.State(snapshot=number) for name, number in numbers.items()}
    return sf.PrivateTable(
        "visits", source=folder, unit=sf.PrivacyUnit("user"), schema={"m": sf.Int(0, 12)}, states=states
    )


def counted(session, text=TEXT):
    release = session.sql(text).release(epsilon=1000)
    return round(release.table["n"][0].as_py()), release.free


@pytest.mark.parametrize("by", [None, ["m"]])
def test_a_snapshot_has_its_files_alone(tmp_path, by):
    folder = tmp_path / "visits"
    deltalake.write_deltalake(folder, month(1, 10), partition_by=by)
    deltalake.write_deltalake(folder, month(2, 20), mode="append")
    with sf.Session(table_of(folder, one=0, two=1), budget=BUDGET, ledger=tmp_path / "l") as session:
        assert [counted(session.at("one")), counted(session)] == [(10, False), (30, False)]
        assert counted(session.at("one"), f"{TEXT} WHERE m = 1")[0] == 10
    deltalake.DeltaTable(folder).delete("m = 1")  # the files of before stay where they are
    deltalake.write_deltalake(folder, month(3, 40), mode="append")
    later = table_of(folder, one=0, two=1, three=3)
    with sf.Session(later, budget=BUDGET, ledger=tmp_path / "l") as session:
        assert [counted(session), counted(session.at("two")), counted(session.at("one"))] == [
            (60, False),
            (30, True),
            (10, True),
        ]
        assert counted(session.growing())[0] == 60


def test_a_folder_with_a_log_is_read_by_it(tmp_path):
    deltalake.write_deltalake(tmp_path / "t", month(1, 10))
    deltalake.write_deltalake(tmp_path / "t", month(2, 20), mode="overwrite")
    table = sf.PrivateTable(
        "visits", source=tmp_path / "t", unit=sf.PrivacyUnit("user"), schema={"m": sf.Int(0, 12)}
    )
    with sf.Session(table, budget=BUDGET) as session:
        assert counted(session)[0] == 20


def test_what_is_not_as_its_files_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "t"
    features = {"delta.enableDeletionVectors": "true"}
    deltalake.write_deltalake(folder, month(1, 10))
    with pytest.raises(SourceUnusable, match="snapshot 7 cannot be opened"):
        sf.Session(table_of(folder, a=7), budget=BUDGET)
    try:
        deltalake.write_deltalake(tmp_path / "v", month(1, 10), configuration=features)
    except Exception:
        pytest.skip("this version cannot write such a table")
    with pytest.raises(SourceUnusable, match="deletion vectors"):
        sf.Session(table_of(tmp_path / "v", a=0), budget=BUDGET)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[delta\]"):
        sf.Session(table_of(folder, a=0), budget=BUDGET)


def test_a_vacuum_is_seen_by_the_steward(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    deltalake.write_deltalake(tmp_path / "visits", month(1, 10))
    (tmp_path / "sfumato.toml").write_text(
        '[datasets.visits]\nepsilon = 1\n[tables.visits]\nsource = "visits"\nunit = "user"\n'
        '[tables.visits.columns]\nm = { type = "int", lower = 0, upper = 12 }\n'
    )
    assert invoke(app, ["state", "add", "visits", "one"]).exit_code == 0
    deltalake.write_deltalake(tmp_path / "visits", month(2, 20), mode="overwrite")
    assert invoke(app, ["state", "add", "visits", "two"]).exit_code == 0
    assert "snapshot 1" in invoke(app, ["state", "list", "visits"]).stdout
    assert "cannot be opened" not in invoke(app, ["check"]).stdout
    found = deltalake.DeltaTable(tmp_path / "visits").vacuum(
        0, dry_run=False, enforce_retention_duration=False
    )
    assert found
    assert "visits at one cannot be opened" in " ".join(invoke(app, ["check"]).stdout.split())
