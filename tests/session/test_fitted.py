"""Fitted intervals from question to answer: what they assume is said, or they are refused."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded

ASKED = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY g"


def session_of(rows, *, ceiling=100_000, max_rows=20, unit=None, budget=None):
    ids = np.repeat(np.arange(len(rows)), rows)
    draw = np.random.default_rng(1)
    source = pa.table(
        {"visitor": ids, "g": draw.choice(["a", "b"], len(ids)), "x": draw.integers(0, 5, len(ids))}
    )
    table = sf.PrivateTable(
        "t",
        source=source,
        unit=unit or sf.PrivacyUnit("visitor", max_groups=2, max_rows=max_rows, ceiling=ceiling),
        schema={"g": sf.Enum("a", "b"), "x": sf.Int(0, 5, nullable=False)},
    )
    return sf.Session(table, budget=budget or sf.Budget(10**6))


ROWS = np.ceil(np.exp(np.random.default_rng(3).normal(0.5, 1.0, 8000))).astype(int)


@pytest.fixture(scope="module")
def released():
    """An answer, which is on record and is given again."""
    with session_of(ROWS) as session, seeded("tail"):
        session.profile("t", 2)
        first = session.sql(ASKED).release(epsilon=4)
        again = session.sql(ASKED).release(epsilon=4)
    assert again.free
    assert again.table == first.table
    return again


def test_they_are_narrower_and_hold_all_rows(released):
    fitted, covering = (released.interval(0.95, kind).to_pydict() for kind in ("fitted", "covering"))
    for group in range(2):
        for name in "nsm":
            ends = [
                (table[f"{name}_low"][group], table[f"{name}_high"][group]) for table in (fitted, covering)
            ]
            most = 1 if name == "m" else 0.5
            assert ends[0][1] - ends[0][0] < most * (ends[1][1] - ends[1][0])
    assert sum(fitted["n_low"]) <= ROWS.sum() <= sum(fitted["n_high"])
    assert fitted["n_low"] == covering["n_low"]


def test_what_they_assume_is_said_wherever_they_are_shown(released):
    said = released.assumes
    assert said.startswith(
        "Fitted intervals assume that each visitor is a draw of its own, that above 20 rows"
    )
    assert "as between 5 and 20, and that none has more than 100,000." in said
    assert released.interval(kind="fitted").schema.metadata[b"assumes"].decode() == said
    wide = released.to_arrow(errors=True, kind="fitted")
    assert wide.schema.metadata[b"assumes"].decode() == said
    assert wide["n_high"] == released.interval(kind="fitted")["n_high"]
    assert released.to_pandas(errors=True, kind="fitted").attrs["assumes"] == said
    assert released.to_polars(errors=True, kind="fitted")["n_high"].to_list() == wide["n_high"].to_pylist()
    for kind in ("covering", "noise"):
        assert released.interval(kind=kind).schema.metadata is None
        assert not released.to_pandas(errors=True, kind=kind).attrs


def test_without_a_profile_they_are_refused():
    with session_of([1, 2, 3]) as session:
        plain = session.sql(ASKED).release(epsilon=4)
        rolled = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP(g)").release(
            epsilon=1, profile=True
        )
    for release in (plain, rolled):
        with pytest.raises(InvalidParameter, match='take kind="covering", which assumes nothing'):
            release.interval(kind="fitted")
        with pytest.raises(InvalidParameter, match='"covering"'):
            release.to_pandas(errors=True, kind="fitted")


@pytest.mark.parametrize(("many", "enough"), [(5, False), (25, True)])
def test_a_tail_of_too_few_units_is_no_tail(many, enough):
    """Five units of 1/ε: a profile of 2 has a quarter of that for units, so 10 are enough."""
    with session_of([1] * 500 + [3] * 300 + [10] * many) as session, seeded("few"):
        session.profile("t", 2)
        release = session.sql(ASKED).release(epsilon=4)
    if enough:
        assert "above 5 rows" in release.assumes
        return
    with pytest.raises(InvalidParameter, match="needs a profile that shows its tail"):
        release.interval(kind="fitted")


def test_where_nothing_is_cut_nothing_is_assumed():
    with session_of([1, 1, 1], unit=sf.PrivacyUnit.row()) as session:
        release = session.sql(ASKED).release(epsilon=4)
    assert release.assumes == ""
    assert release.interval(kind="fitted") == release.interval()
