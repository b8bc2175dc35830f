"""The engine outside the package: it runs by itself, and its README lists what it has not, exactly."""

from __future__ import annotations

import datetime
import decimal
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from datafusion_dialect import DATAFUSION
from datafusion_engine import DataFusion
from sfumato.engines import Engine, engine
from sfumato.engines.public import some_values
from sfumato.errors import EngineFailed, InvalidParameter, QueryRefused, SourceUnusable
from sfumato.testing import check_engine

FOLDER = Path(__file__).parents[2] / "examples" / "engine"
README = (FOLDER / "README.md").read_text()
NOON = datetime.datetime(2024, 2, 29, 12)


def listed(heading: str) -> dict[str, str]:
    """The lines of the table that begins with this heading."""
    table = README.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    _, *lines = re.findall(r"^\| (.+?) \| (.+) \|$", table, flags=re.M)  # the first one is below the heading
    return dict(lines)


def test_it_runs_by_itself():
    command = [sys.executable, "-W", "error", str(FOLDER / "datafusion_engine.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "check_engine: nothing to find fault with" in done.stdout
    assert len(re.findall(r"^(?:heart|bones|children) .* ± ", done.stdout, flags=re.M)) == 3


def test_the_readme_has_each_check_of_the_kit_and_each_member_of_an_engine():
    checks = re.findall(r"^    \* (\w+): ", check_engine.__doc__ or "", flags=re.M)
    assert list(listed("check")) == checks
    for name in vars(Engine):
        if not name.startswith("_") and name not in ("dialect", "schemes", "close"):
            assert f"`{name}`" in README, name


def test_the_functions_that_it_has_not_are_those_of_its_dialect():
    told = {reason: names.replace("`", "").split(", ") for names, reason in listed("function").items()}
    assert told == {reason: sorted(names) for reason, names in DATAFUSION.refused.items()}


def refused(values: pa.Array, kind: str | None = None) -> None:
    """A column that cannot have a kind, or be the unit."""
    rows = pa.table({"v": values})
    with closing(DataFusion()) as one, pytest.raises(SourceUnusable):
        one.attach("t", rows, {} if kind is None else {"v": kind}, unit=None if kind else "v")


def sources(folder: Path) -> None:
    rows = pa.table({"v": [1, 2]})
    for name in ("a", "b"):
        pq.write_table(rows, folder / f"{name}.parquet")
    (folder / "a.csv").write_text("v\n1\n")
    others = [
        folder / "a.csv",
        folder,
        str(folder / "*.parquet"),
        [folder / "a.parquet", folder / "b.parquet"],
    ]
    for source in (*others, rows.to_pandas()):
        with closing(DataFusion()) as one, pytest.raises(SourceUnusable):
            one.attach("t", source, {"v": "integer"})
    with closing(DataFusion()) as one:
        one.attach("t", folder / "a.parquet", {"v": "integer"})


def natives(folder: Path) -> None:
    refused(pa.array([decimal.Decimal("1.5")]), "float")
    refused(pa.array(["a"]).dictionary_encode(), "text")
    refused(pa.array([NOON]), "timestamp")
    refused(pa.array([NOON.time()]), "time")
    rows = pa.table({"i": [1], "x": [0.5], "p": [True], "t": ["a"], "d": [NOON.date()], "s": [7]})
    with closing(DataFusion()) as one:
        kinds = dict(zip(rows.column_names, ("integer", "float", "boolean", "text", "date"), strict=False))
        one.attach("t", rows, {**kinds, "s": "timestamp"})
        one.attach("u", rows, {"s": "time"})


def texts(folder: Path) -> None:
    for kind in ("integer", "float", "date", "boolean"):
        refused(pa.array(["1"]), kind)


def ids(folder: Path) -> None:
    for value in (decimal.Decimal(1), b"a", NOON, NOON.time()):
        refused(pa.array([value]))
    for value in (1, 0.5, "a", True, NOON.date()):
        with closing(DataFusion()) as one:
            one.attach("t", pa.table({"v": [value]}), {}, unit="v")


def bought(folder: Path) -> None:
    rows = pa.table({"v": [1.0] * 50})
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit.row(), schema={"v": sf.Float()})
    with sf.Session(table, budget=sf.Budget(9, "1e-6"), engine=DataFusion()) as session:
        with pytest.raises(QueryRefused, match="LOG2 has no proven form in datafusion: it has other last"):
            session.sql("SELECT SUM(v) AS s FROM t").release(epsilon=1, bounds="auto")
        assert session.balance().spent == 0


def prepared(folder: Path) -> None:
    with closing(DataFusion()) as one:
        one.attach("t", pa.table({"v": [1]}), {"v": "integer"}, unit="v")
        assert (one.is_prepared("t"), one.grouping("t")) == (False, ())
        with pytest.raises(EngineFailed):
            one.fetch(some_values("t", "v", 1), guard=some_values("t", "v", 1))


def unread(folder: Path) -> None:
    with closing(DataFusion()) as one:
        one.attach("t", pa.table({"v": pa.array([2**63], pa.uint64())}), {"v": "integer"})
        assert one.unread("t") == frozenset()


def limits(folder: Path) -> None:
    assert set(get_type_hints(DataFusion.__init__)) == {"threads", "return"}


GAPS = (sources, natives, texts, ids, bought, prepared, unread, limits)


@pytest.mark.parametrize("place", range(len(GAPS)), ids=lambda place: GAPS[place].__name__)
def test_what_else_it_has_not_is_refused(place, tmp_path):
    assert len(listed("what")) == len(GAPS)
    GAPS[place](tmp_path)


def test_a_class_or_half_an_engine_is_refused_in_a_sentence():
    class Half:
        dialect = DATAFUSION
        schemes = attach = schema = fetch = values = is_unique = check_whole = close = None

    rows = pa.table({"v": [1]})
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit.row(), schema={"v": sf.Int(0, 1)})
    for given, words in (
        (DataFusion, r"engine is the class DataFusion; write DataFusion\(\)\."),
        (Half(), r"not Half, which lacks is_prepared, grouping, unread\."),
        (object(), r"engine must be an Engine or its name, not object\."),
    ):
        with pytest.raises(InvalidParameter, match=words):
            sf.Session(table, budget=sf.Budget(1), engine=given)
    with pytest.raises(InvalidParameter, match=r"There is no engine 'datafusion'"):
        engine("datafusion")
