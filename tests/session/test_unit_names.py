"""One id has one name in each state of a table, whatever type it has then; and no two ids share one."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from first_steps import DAYS, FORMS, counted
from sfumato.session import vault
from sfumato.session.unit_names import naming


@pytest.mark.parametrize("window", [None, "week"])
@pytest.mark.parametrize("later", FORMS)
def test_who_has_counted_is_known_in_every_type(later, window):
    assert counted([FORMS["int64"], FORMS[later], FORMS["float64"]], window) == [4, 0, 0]


@pytest.mark.parametrize("later", DAYS)
def test_days_are_known_as_timestamps(later):
    assert counted([DAYS["date"], DAYS[later]]) == [1, 0]


def test_ids_as_types_write_them_are_strangers_in_other_types(monkeypatch):
    monkeypatch.setattr(vault, "naming", lambda name, in_windows: str)
    assert counted([FORMS["int64"], FORMS["float64"]]) == [4, 4]


def test_text_that_differs_is_of_two_people():
    assert counted([pa.array(["7", "7.0", "07"]), pa.array(["7", "7.00"])]) == [3, 1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BIGINT", "7"),
        ("HUGEINT", "7"),
        ("UTINYINT", "7"),
        ("DOUBLE", "7.0"),
        ("FLOAT", "7.0"),
        ("DECIMAL(10,2)", "7.00"),
        ("double precision", "7.0"),
        ("numeric", "7.000"),
        ("smallint", "7"),
        ("integer", "7"),
        ("decimal(10,2)", "7.00"),
        ("bigint", "7"),
        ("Int64", "7"),
        ("Float64", "7.0"),
        ("Decimal128(10, 2)", "7.00"),
        ("VARCHAR", "7"),
    ],
)
def test_types_of_every_engine_are_understood(name, text):
    assert naming(name, in_windows=False)(text) == "7"
    assert naming(name, in_windows=True)(f"2026-01-05:{text}") == "2026-01-05:7"


@given(st.sets(st.floats(), max_size=20))
def test_no_two_floats_have_one_name(values):
    texts = {"0.0" if value == 0 else repr(value) for value in values}
    assert len({naming("DOUBLE", in_windows=False)(text) for text in texts}) == len(texts)


@given(st.sets(st.integers(-(10**38), 10**38), max_size=20), st.integers(0, 10))
def test_no_two_decimals_have_one_name(values, scale):
    texts = {format(Decimal(value).scaleb(-scale), "f") for value in values}
    assert len({naming(f"DECIMAL(38,{scale})", in_windows=False)(text) for text in texts}) == len(texts)


@given(st.sets(st.text(), max_size=20))
def test_text_stays_as_it_is(texts):
    for name in ("VARCHAR", "text", "string", "BLOB", "UUID"):
        assert {naming(name, in_windows=False)(text) for text in texts} == texts
