"""What benchmarks share: each call is a question of its own, paid for anew."""

import pyarrow as pa
from benchmarks.visits import asked

import sfumato as sf


def test_each_call_is_paid_for_anew():
    table = sf.PrivateTable(
        "visits",
        source=pa.table({"who": [1, 2, 3]}),
        unit=sf.PrivacyUnit("who"),
        schema={},
        dataset="people",
    )
    with sf.Session(table, budget=sf.Budget(10, "1e-4")) as session:
        call = asked(session, "SELECT COUNT(*) AS n FROM visits")
        assert [call().num_rows for _ in range(3)] == [1, 1, 1]
        assert session.balance().spent == 1
