"""Public tables: what may be read of them without a receipt, and that private ones keep that door shut."""

import datetime
import math

import pytest

from sfumato.engines import Engine
from sfumato.errors import EngineFailed, InvalidParameter

pa = pytest.importorskip("pyarrow")

REGIONS = pa.table(
    {
        "id": [3, 1, 2, 2, None],
        "name": ["Île", "ile", "Zug", "Zug", "b"],
        "since": [datetime.date(2021, 1, 1), datetime.date(2020, 1, 1), None, None, None],
        "coastal": [True, False, True, True, None],
        "area": [2.5, math.nan, -0.0, 0.0, -1.5],
        "year": [1, 1, 1, 2, 1],
    }
)
KINDS = {
    "id": "integer",
    "name": "text",
    "since": "date",
    "coastal": "boolean",
    "area": "float",
    "year": "integer",
}


@pytest.fixture
def regions(one: Engine) -> Engine:
    one.attach("Regions", REGIONS, KINDS)
    return one


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", [1, 2, 3]),
        ("name", ["Zug", "b", "ile", "Île"]),
        ("since", [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
        ("coastal", [False, True]),
    ],
)
def test_values_are_listed_once_in_order_without_null(regions, column, values):
    assert regions.values("regions", column, 10) == values
    assert regions.values("Regions", column, len(values)) == values
    assert regions.values("regions", column, len(values) - 1) is None


def test_a_float_is_listed_once_whatever_its_sign_of_zero(regions):
    values = regions.values("regions", "area", 10)
    assert repr(values[:3]) == "[-1.5, 0.0, 2.5]"
    assert len(values) == 4
    assert math.isnan(values[3])


def test_no_value_at_all(one):
    one.attach("empty", REGIONS.slice(0, 0), KINDS)
    assert one.values("empty", "id", 0) == []
    assert one.is_unique("empty", ["id"])


@pytest.mark.duckdb  # a CSV file
def test_a_value_that_does_not_fit_its_kind_is_none(one, tmp_path):
    (tmp_path / "r.csv").write_text("id,name\n1,a\nx,b\ny,c\n")
    one.attach("r", str(tmp_path / "r.csv"), {"id": "integer", "name": "text"})
    assert one.values("r", "id", 10) == [1]
    assert one.is_unique("r", ["id"])


def test_a_key_is_in_no_two_rows(regions):
    assert not regions.is_unique("regions", ["id"])
    assert not regions.is_unique("regions", ("name",))
    assert regions.is_unique("regions", ["id", "year"])
    assert regions.is_unique("regions", ["since"])  # nothing is joined by a NULL


def test_a_table_with_a_unit_keeps_the_door_shut(one):
    one.attach("visits", REGIONS, {"name": "text"}, unit="id")
    for read in (lambda: one.values("Visits", "name", 10), lambda: one.is_unique("visits", ["name"])):
        with pytest.raises(EngineFailed, match="protects a unit"):
            read()
    with pytest.raises(EngineFailed):
        one.values("visits", "sfumato unit", 10)


def test_what_is_not_there_fails_without_a_word_of_the_data(regions):
    for read in (
        lambda: regions.values("nowhere", "id", 10),
        lambda: regions.values("regions", "nothing", 10),
        lambda: regions.is_unique("regions", ["id", "nothing"]),
        lambda: regions.values("regions", 'id" FROM (SELECT 1) --', 10),
    ):
        with pytest.raises(EngineFailed) as caught:
            read()
        assert caught.value.__cause__ is None
        assert "Zug" not in str(caught.value)


def test_unusable_arguments_are_named(regions):
    for limit in (-1, 1.5, True, None):
        with pytest.raises(InvalidParameter, match="limit"):
            regions.values("regions", "id", limit)
    for columns in ([], "id"):
        with pytest.raises(InvalidParameter, match="list of one or more columns"):
            regions.is_unique("regions", columns)


def test_the_protocol_asks_for_both(one):
    assert isinstance(one, Engine)
