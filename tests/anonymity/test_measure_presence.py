"""Whether somebody is in the table: delta-presence and k-map against their definitions."""

from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from slow_anonymity import class_of

VALUES = ["a", "b", 'c"', None]


@given(
    people=st.lists(
        st.tuples(st.sampled_from(VALUES), st.sampled_from([0.0, -0.0, None])), min_size=1, max_size=12
    ),
    data=st.data(),
)
@settings(max_examples=20)
def test_presence_agrees_with_its_definition(people, data):
    taken = data.draw(st.lists(st.booleans(), min_size=len(people), max_size=len(people)).filter(any))
    everybody = [{"x": x, "y": y} for x, y in people]
    here = [row for row, is_in in zip(everybody, taken, strict=True) if is_in]
    schema = pa.schema({"x": pa.string(), "y": pa.float64()})
    found = sf.anonymity.measure(
        pa.Table.from_pylist(here, schema=schema),
        ["x", "y"],
        population=pa.Table.from_pylist(everybody, schema=schema),
    )
    shares = [
        Fraction(len(class_of(row, here, "xy")), len(class_of(row, everybody, "xy"))) for row in everybody
    ]
    assert found.delta_presence == (float(min(shares)), float(max(shares)))
    assert found.k_map == min(len(class_of(row, everybody, "xy")) for row in here)


def test_the_population_may_lie_in_a_file(tmp_path):
    path = tmp_path / "everybody.parquet"
    pq.write_table(pa.table({"other": [0] * 6, "Q": [1, 1, 1, 2, 2, 3]}), path)
    found = sf.anonymity.measure(pa.table({"q": [1, 2]}), "q", population=path)
    assert found.delta_presence == (0.0, 0.5)
    assert found.k_map == 2
    assert found.k == 1


def test_a_population_that_lacks_somebody_is_refused():
    rows = pa.table({"q": ["Zanzibar", "x"]})
    with pytest.raises(InvalidParameter, match="fewer people than the table in 1 class;") as caught:
        sf.anonymity.measure(rows, "q", population=pa.table({"q": ["x", "y"]}))
    assert "Zanzibar" not in str(caught.value)
    with pytest.raises(InvalidParameter, match="fewer people than the table in 2 classes"):
        sf.anonymity.measure(rows, "q", population=pa.table({"q": ["y"]}))
    with pytest.raises(InvalidParameter, match="no rows"):
        sf.anonymity.measure(rows, "q", population=pa.table({"q": pa.array([], pa.string())}))
    with pytest.raises(InvalidParameter, match="text values in the table and integer values"):
        sf.anonymity.measure(rows, "q", population=pa.table({"q": [1]}))
    with pytest.raises(InvalidParameter, match='no column "q"'):
        sf.anonymity.measure(rows, "q", population=pa.table({"r": ["x"]}))


def test_whole_numbers_and_floats_are_compared_while_floats_can_tell_them_apart():
    floats = pa.table({"q": [2.0, 2.0, -3.0, None]})
    assert sf.anonymity.measure(pa.table({"q": [2, -3, None]}), "q", population=floats).k_map == 1
    whole = pa.table({"q": pa.array([2, 2, -3, None], pa.int8())})
    assert sf.anonymity.measure(floats, "q", population=whole).delta_presence == (1, 1)
    for large in (2**53 + 1, -(2**63)):
        with pytest.raises(InvalidParameter, match="beyond 2\\^53 beside floats"):
            sf.anonymity.measure(
                pa.table({"q": [large]}), "q", population=pa.table({"q": [float(large)] * 2})
            )
    most = pa.table({"q": pa.array([2**64 - 1], pa.uint64())})
    with pytest.raises(InvalidParameter, match="beyond 2\\^53 beside floats"):
        sf.anonymity.measure(pa.table({"q": [2.0**64]}), "q", population=most)
