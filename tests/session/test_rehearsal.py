"""Rehearsals: sessions over made-up rows that follow from the declarations alone."""

import datetime

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.session.rehearsal import REMARK, made_up, rehearsal

KINDS = {
    "whole": sf.Int(-3, 7),
    "any_whole": sf.Int(nullable=False),
    "part": sf.Float("0.25", 2),
    "any_part": sf.Float(),
    "city": sf.Enum("Lyon", "Nice", nullable=False),
    "code": sf.Enum(3, 5, 8),
    "word": sf.Text(),
    "truth": sf.Bool(),
    "day": sf.Date("2023-05-01", "2023-05-31"),
    "any_day": sf.Date(nullable=False),
}
NOWHERE = "/nowhere/at/all/*.parquet"


def table(name="t", *, unit=None, schema=KINDS, source=NOWHERE, **more):
    return sf.PrivateTable(
        name, source=source, unit=unit or sf.PrivacyUnit("u", max_groups=3), schema=schema, **more
    )


UNITS = {
    "person": sf.PrivacyUnit("u", max_groups=3),
    "auto": sf.PrivacyUnit("u", max_rows="auto", adjacency="exchange"),
    "row": sf.PrivacyUnit.row(),
    "declared": sf.PrivacyUnit("whole"),
    "text": sf.PrivacyUnit("word"),
    "list": sf.PrivacyUnit("city"),
}


@pytest.mark.parametrize("unit", UNITS)
def test_every_kind_of_column_keeps_its_declaration(unit):
    rows = made_up([table(unit=UNITS[unit], size=40)])["t"]
    named = [] if UNITS[unit].column in (None, *KINDS) else ["u"]
    assert sorted(rows.column_names) == sorted([*named, *KINDS])
    assert rows.num_rows >= 40
    for name, kind in KINDS.items():
        values = set(rows[name].to_pylist())
        assert None not in values or kind.nullable
        values -= {None}
        if isinstance(kind, sf.Enum):
            assert values <= set(kind.values)
        elif isinstance(kind, sf.Int | sf.Float) and kind.lower is not None:
            assert kind.lower <= min(values) <= max(values) <= kind.upper
        elif isinstance(kind, sf.Date) and kind.start is not None:
            assert kind.start <= min(values) <= max(values) <= kind.end
        assert {type(value) for value in values} <= {int, float, str, bool, datetime.date}


def test_no_row_is_read_and_the_same_seed_makes_the_same_rows():
    # The source does not exist: whoever opened it would fail.
    budgets = {"t": sf.Budget(2, "1e-6")}
    with rehearsal([table()], budgets) as first, rehearsal([table()], budgets) as again:
        text = "SELECT city, COUNT(*) AS n, AVG(part) AS m FROM t WHERE whole > 0 GROUP BY city"
        released = first.sql(text).release(epsilon=1)
        assert REMARK in " ".join(str(released).split())
        assert released.table.num_rows == 2
        assert REMARK in " ".join(str(first.sql(text).quote(epsilon=1)).split())
        assert again.balance().spent == 0
    assert made_up([table()])["t"] == made_up([table()])["t"]
    assert made_up([table()], seed=1)["t"] != made_up([table()])["t"]


def test_a_session_is_rehearsed_without_spending_and_refuses_what_it_would():
    source = pa.table({"u": [1, 2], "x": [3, 4]})
    real = table(source=source, schema={"x": sf.Int(0, 9)})
    with sf.Session(real, budget=sf.Budget(1)) as session:
        with session.rehearse() as tried:
            tried.sql("SELECT COUNT(*) AS n FROM t").release(epsilon="0.8")
            with pytest.raises(BudgetExceeded):
                tried.sql("SELECT SUM(x) AS s FROM t").release(epsilon="0.8")
            assert tried.balance().spent == sf.Budget("0.8").epsilon
        assert session.balance().spent == 0
        assert session.releases() == []
        with session.as_analyst("ada") as ada, ada.rehearse() as tried:
            tried.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)
        assert REMARK not in str(session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1))


def test_rows_point_to_made_up_owners_and_public_tables_are_themselves():
    orders = table("orders", schema={"id": sf.Int(0, 10**6, nullable=False)}, size=20)
    lines = table(
        "lines", unit=sf.PrivacyUnit.via("orders", on={"order": "id"}), schema={"order": sf.Int(0, 10**6)}
    )
    shops = sf.PublicTable("shops", source=pa.table({"id": [1]}), schema={"id": sf.Int()}, key="id")
    made = made_up([lines, orders])
    assert set(made["lines"]["order"].to_pylist()) <= set(made["orders"]["id"].to_pylist())
    with rehearsal([lines, orders, shops], {"orders": sf.Budget(10)}) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM lines").release(epsilon=1).table.num_rows == 1
        assert session.tables["shops"].name == "shops"
