"""Which columns together single people out."""

from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from slow_anonymity import classes_of

COLUMNS = ["zip", 'b"irth', "sex"]


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["1", "2", None]), st.sampled_from([0.0, float("nan"), None]), st.booleans()
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=20)
def test_every_set_agrees_with_its_definition(rows):
    people = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    schema = pa.schema(zip(COLUMNS, [pa.string(), pa.float64(), pa.bool_()], strict=True))
    found = sf.anonymity.uniqueness(pa.Table.from_pylist(people, schema=schema), COLUMNS)
    assert len(found.sets) == 7
    assert found.rows == len(rows)
    for size in (1, 2, 3):
        for columns in combinations(COLUMNS, size):
            parts = [len(part) for part in classes_of(people, columns)]
            one = found[columns]
            assert (one.classes, one.k) == (len(parts), min(parts))
            assert one.unique == sum(size == 1 for size in parts) / len(rows)
            assert one.crowd == pytest.approx(sum(size * size for size in parts) / len(rows))


def test_a_governor_is_found_step_by_step():
    # As Sweeney told it: six people had his birth date, three of them were men, one lived in his zip code.
    people = pa.table(
        {
            "birth": ["1945-07-31"] * 6 + ["1950-01-01"] * 4,
            "sex": ["m", "m", "m", "f", "f", "f", "m", "m", "f", "f"],
            "zip": ["02138", "02139", "02139", "02138", "02138", "02139"] + ["02138"] * 4,
        }
    )
    found = sf.anonymity.uniqueness(people, ["birth", "sex", "zip"])
    assert found["birth"].unique == found["birth", "sex"].unique == 0
    assert found["zip", "sex", "birth"].unique == 0.2
    assert [each.columns for each in found.telling(0.2)] == [("birth", "sex", "zip")]
    assert max(map(len, str(found).splitlines())) <= 80
    assert found.table.num_rows == 7


def test_sets_can_be_kept_small_and_never_run_over():
    rows = pa.table({f"c{i}": [i, 1] for i in range(14)})
    assert len(sf.anonymity.uniqueness(rows, rows.column_names, largest=2).sets) == 14 + 91
    with pytest.raises(InvalidParameter, match="more than 1,024 sets"):
        sf.anonymity.uniqueness(rows, rows.column_names)
    for wrong in (0, 1.5, True):
        with pytest.raises(InvalidParameter, match="largest must be"):
            sf.anonymity.uniqueness(rows, ["c0"], largest=wrong)
    with pytest.raises(InvalidParameter, match="at least one column"):
        sf.anonymity.uniqueness(rows, [])
    with pytest.raises(InvalidParameter, match="not asked about"):
        sf.anonymity.uniqueness(rows, ["c0"])["c1"]
    with pytest.raises(InvalidParameter, match="share must be"):
        sf.anonymity.uniqueness(rows, ["c0"]).telling(0)
