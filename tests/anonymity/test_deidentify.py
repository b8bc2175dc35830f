"""Leaving out the columns that name people."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.anonymity import deidentify, roles
from sfumato.errors import InvalidParameter

ROWS = {
    "patient_id": [1, 2],
    "Name": ["Ann", "Bo"],
    "email": ["a@x", "b@x"],
    "zip": ["02139", "94110"],
    "age": [31, 62],
    "diagnosis": ["flu", None],
    "visits": [3, 4],
}


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_what_names_people_goes_and_the_rest_stays_in_order(make):
    done = deidentify(make(ROWS))
    assert done.dropped == ("patient_id", "Name", "email")
    assert done.table.to_pydict() == {name: ROWS[name] for name in ("zip", "age", "diagnosis", "visits")}
    assert done.quasi == ("zip", "age")
    assert done.roles["diagnosis"] == "sensitive"


def test_a_csv_file_is_judged_by_the_same_names(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("name,zip,score\nAnn,02139,1\nBo,94110,2\n", encoding="utf-8")
    assert roles(str(path)) == {"name": "identifier", "zip": "quasi-identifier", "score": "sensitive"}
    assert deidentify(str(path)).table.to_pydict() == {"zip": ["02139", "94110"], "score": [1, 2]}


def test_columns_can_be_named_or_kept():
    table = pa.table(ROWS)
    assert deidentify(table, identifiers="visits").dropped == ("visits",)
    assert deidentify(table, identifiers=["ZIP", "age"]).dropped == ("zip", "age")
    assert deidentify(table, keep="patient_id").dropped == ("Name", "email")
    assert deidentify(table, identifiers=[]).dropped == ()


def test_the_report_warns_that_it_is_not_enough():
    report = deidentify(pa.table(ROWS)).report
    assert report.startswith("3 of 7 columns left out.")
    assert "uniqueness()" in report
    assert "Ann" not in report
    assert max(map(len, report.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"identifiers": "weight"}, 'no column "weight"'),
        ({"keep": ["weight"]}, 'no column "weight"'),
        ({"identifiers": "age", "keep": "age"}, "left out and kept"),
        ({"identifiers": list(ROWS)}, "nothing would be left"),
        ({"identifiers": ["age", "age"]}, "twice"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, said):
    with pytest.raises(InvalidParameter, match=said):
        deidentify(pa.table(ROWS), **arguments)
