"""CSV files that are not written in the usual way: each cell is read by itself, as it is declared."""

from __future__ import annotations

import datetime
import pickle

import pytest

import sfumato as sf
from sfumato.engines import UNIT_COLUMN, Csv
from sfumato.errors import InvalidParameter, SourceUnusable

pytestmark = pytest.mark.duckdb

DAY = datetime.date(2024, 12, 31)
KINDS = {"id": "text", "n": "integer", "x": "float", "d": "date"}
# settings, a line of the file, what is read
READ = {
    "as usual": ({}, "a,7,3.5,2024-12-31", ("a", 7, 3.5, DAY)),
    "decimal commas": ({"decimal": ",", "delimiter": ";"}, "a;7;3,5;2024-12-31", ("a", 7, 3.5, DAY)),
    "a point among commas": ({"decimal": ",", "delimiter": ";"}, "a;7;3.5;2024-12-31", ("a", 7, None, DAY)),
    "thousands": ({"decimal": ",", "delimiter": ";"}, "a;7;1.000,5;2024-12-31", ("a", 7, None, DAY)),
    "German days": ({"dates": ["%d.%m.%Y"]}, "a,7,3.5,31.12.2024", ("a", 7, 3.5, DAY)),
    "days in another form": ({"dates": ["%d.%m.%Y"]}, "a,7,3.5,2024-12-31", ("a", 7, 3.5, None)),
    "days of two forms": ({"dates": ["%d.%m.%Y", "%m/%d/%y"]}, "a,7,3.5,12/31/24", ("a", 7, 3.5, DAY)),
    "a short year": ({"dates": ["%d.%m.%Y"]}, "a,7,3.5,31.12.24", ("a", 7, 3.5, None)),
    "a word for a day": ({"dates": ["%d.%m.%Y"]}, "a,7,3.5,epoch", ("a", 7, 3.5, None)),
    "infinity": ({"dates": ["%d.%m.%Y"]}, "a,7,3.5,-infinity", ("a", 7, 3.5, None)),
    "blanks kept": ({}, " a ,7, 3.5,2024-12-31", (" a ", 7, 3.5, DAY)),
    "blanks trimmed": ({"trim": True}, " a ,7, 3.5,2024-12-31", ("a", 7, 3.5, DAY)),
    "tabs": ({"delimiter": "\t"}, "a\t7\t3.5\t2024-12-31", ("a", 7, 3.5, DAY)),
}


@pytest.mark.parametrize("header", [True, False])
def test_what_is_declared_is_read(make_shared, rows, tmp_path, header):
    engine = make_shared()
    for place, (settings, line, _) in enumerate(READ.values()):
        path = tmp_path / f"{place}.csv"
        top = (settings.get("delimiter") or ",").join("wxyz") + "\n" if header else ""
        path.write_text(top + line + "\n")
        engine.attach(f"t{place}", Csv(path, header=header, names=[*KINDS], **settings), KINDS, unit="id")
    for place, (name, (_, line, wanted)) in enumerate(READ.items()):
        assert rows(engine, f"SELECT id, n, x, d FROM t{place}") == [wanted], name
        ids = rows(engine, f'SELECT "{UNIT_COLUMN}" FROM t{place}')
        assert ids == [(line[: line.index("a") + (2 if "a " in line else 1)],)], name  # never trimmed


def test_without_a_header_no_row_decides(one, rows, tmp_path):
    """The first row may be anything: not even the number of its fields is looked at."""
    for place, first in enumerate(["1,x", "1", "1,2,3,4", '"1', "\xff,\xff", "", ";;;;"]):
        path = tmp_path / f"{place}.csv"
        path.write_bytes(f"{first}\n8,y\n".encode("latin-1"))
        one.attach(f"t{place}", Csv(path, header=False, names=["a", "b"]), {"a": "integer"})
    for place in range(7):
        assert len(rows(one, f"SELECT a FROM t{place}")) <= 2


def test_settings_that_mean_nothing_are_refused(tmp_path):
    for settings in (
        {"header": False},
        {"names": ["a", "A"]},
        {"names": [" "]},
        {"names": "ab"},
        {"delimiter": "x"},
        {"decimal": ";"},
        {"dates": "%d.%m"},
        {"dates": ["%d.%m.%Y %Q"]},
        {"dates": ["31.12.2024"]},
        {"header": "yes"},
    ):
        with pytest.raises(InvalidParameter, match="csv: "):
            Csv("t.csv", **settings)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    unit = sf.PrivacyUnit.row()
    for source in (Csv(tmp_path / "t.csv", names=["a"]), Csv(tmp_path / "t.parquet"), Csv("http://x/t.csv")):
        with pytest.raises(SourceUnusable):
            sf.Session(
                sf.PrivateTable("t", source=source, unit=unit, schema={"a": sf.Text()}), budget=sf.Budget(1)
            )


def test_the_source_can_be_copied_and_asked(tmp_path):
    (tmp_path / "t.csv").write_text("".join(f"p{i};3,5\n" for i in range(50)))
    source = pickle.loads(
        pickle.dumps(Csv(tmp_path / "t.csv", header=False, names=["p", "x"], delimiter=";", decimal=","))
    )
    table = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit("p"), schema={"x": sf.Float(0, 5)})
    with sf.Session(table, budget=sf.Budget(100)) as session:
        released = session.sql("SELECT SUM(x) AS total FROM t").release(epsilon=50)
    assert abs(released.table["total"][0].as_py() - 175) < 10
