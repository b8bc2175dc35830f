"""An answer that is read again is computed once, and is given to nobody who may no longer ask."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import AccessDenied
from sfumato.numeric import columns
from sfumato.session import lately

TABLE = sf.PrivateTable(
    "t",
    source=pa.table({"g": [1, 2, 2], "x": [0.5, 1.5, 2.5]}),
    unit=sf.PrivacyUnit.row(),
    schema={"g": sf.Int(0, 3), "x": sf.Float(0, 4)},
)
DAY = datetime.date(2030, 1, 1)
TEXT = "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY g"


def opened(path):
    return sf.Session(TABLE, budget=sf.Budget(9), ledger=str(path / "t.ledger"))


def test_what_is_read_again_is_what_was_released(tmp_path):
    session = opened(tmp_path)
    first = session.sql(TEXT).release(epsilon=1)
    again = [session.sql(TEXT).release(epsilon=1) for _ in range(3)]
    assert [release.free for release in (first, *again)] == [False, True, True, True]
    for release in again:
        assert release.table.equals(first.table)
        assert release.error(0.9).equals(first.error(0.9))
        assert release.receipt == first.receipt
    fourth = session.sql(TEXT).release(epsilon=1)
    assert fourth.table is again[-1].table  # the very same
    assert opened(tmp_path).sql(TEXT).release(epsilon=1).table.equals(first.table)
    assert session.balance().spent == 1


def test_nobody_writes_to_what_others_are_given(tmp_path):
    session = opened(tmp_path)
    for text in (TEXT, "SELECT g > 1 AS k, CASE WHEN COUNT(*) > 1 THEN 'é' END AS n FROM t GROUP BY k"):
        tables = [session.sql(text).release(epsilon=1).table for _ in range(3)]
        assert tables[2] is tables[1]
        _refuse_writes(tables[2])


def _refuse_writes(table):
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        for buffer in filter(None, chunk.buffers()):
            with pytest.raises(ValueError, match="read-only"):
                np.frombuffer(buffer, np.uint8)[:] = 7


@pytest.mark.parametrize(
    "values", [["a", None, "é"], ["a", "b"], [1, None], [0.5], [True, None], [None], [DAY, None]]
)
def test_a_locked_column_is_the_same_and_is_not_written_to(values):
    column = columns.from_list(values, columns.kind_of(values[0] or "x"))
    for some in (column, column.slice(1), column.slice(0, 0)):
        assert columns.locked(some).equals(some)
        _refuse_writes(pa.table({"a": columns.locked(some)}))


def test_other_columns_and_prices_of_one_answer_are_their_own(tmp_path):
    session = opened(tmp_path)
    asked = (TEXT, TEXT.replace(" AS n", " AS k"), f"{TEXT} ORDER BY n DESC", f"{TEXT} LIMIT 1")
    whole = session.sql(TEXT).release(epsilon=1).table
    for _ in range(2):
        tables = [session.sql(text).release(epsilon=price).table for text in asked for price in (1, "0.5")]
        assert [table.column_names[1] for table in tables] == ["n", "n", "k", "k", "n", "n", "n", "n"]
        assert tables[0].equals(whole)
        assert tables[-1].equals(whole.slice(0, 1))
    assert session.balance().spent == 1


def test_a_better_answer_of_another_process_is_found(tmp_path):
    one, other = opened(tmp_path), opened(tmp_path)
    cheap = one.sql(TEXT).release(epsilon="0.1")
    assert one.sql(TEXT).release(epsilon="0.1").free
    better = other.sql(TEXT).release(epsilon=2)
    again = one.sql(TEXT).release(epsilon=2)
    assert again.free
    assert again.receipt == better.receipt != cheap.receipt
    assert again.table.equals(better.table)


@pytest.mark.parametrize("act", ["close", "revoke"])
def test_what_is_in_memory_is_not_given_to_who_may_no_longer_ask(tmp_path, act):
    steward, other = opened(tmp_path), opened(tmp_path)
    ada = other.as_analyst("ada")
    for _ in range(3):
        table = ada.sql(TEXT).release(epsilon=1).table
    assert table.num_rows == 4
    if act == "close":
        sf.Steward(steward.ledger).close_budget("t", reason="the data is deleted")
    else:
        sf.Steward(steward.ledger).revoke("t", "ada", reason="the project is over")
    with pytest.raises(AccessDenied):
        ada.sql(TEXT).release(epsilon=1)


def test_only_small_answers_and_few_of_them_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(lately, "_MOST", 2)
    session = opened(tmp_path)
    for price in ("0.3", "0.2", "0.1"):
        for _ in range(2):
            session.sql(TEXT).release(epsilon=price)
    assert len(session.lately._kept) == 2
    for limit in ("_NUMBERS", "_LETTERS"):
        with monkeypatch.context() as patch:
            patch.setattr(lately, limit, 3)
            one, other = (session.sql(TEXT).release(epsilon="0.1").table for _ in range(2))
            assert one is not other  # made before the other was asked for
            assert one.equals(other)


def test_a_kept_answer_cannot_be_written_to(tmp_path):
    session = opened(tmp_path)
    session.sql(TEXT).release(epsilon=1)
    release = session.sql(TEXT).release(epsilon=1)
    for array in release._answer.noisy:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
