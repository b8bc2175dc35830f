"""What an analyst can learn besides the answers: nothing from errors, shapes, order or failures."""

import datetime
import math
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato import errors
from sfumato.engines.dialect import DUCKDB
from sfumato.errors import AccessDenied, Cancelled, EngineFailed, QueryRefused, SfumatoError
from sfumato.plan.prices.recipe import measured_of
from sfumato.session.vault import Vault
from tables import SCHEMA, make, rows

CANARY = 'zYx-canary-"42"'
QUERIES = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT country, sex, COUNT(amount) AS n, SUM(amount) AS s FROM visits GROUP BY country, sex",
    "SELECT AVG(age) AS a, VAR_POP(amount) AS v, STDDEV(age) AS d FROM visits WHERE amount / age > 1",
    "SELECT COUNT(DISTINCT user_id) AS u, SUM(100 % age) AS s FROM visits WHERE city LIKE '%a%'",
    "SELECT EXTRACT(month FROM day) AS m, COUNT(*) AS n FROM visits GROUP BY m",
    "SELECT new, SUM(LEAST(GREATEST(CAST(city AS INTEGER) + age, 0), 9)) AS s FROM visits "
    "WHERE SQRT(amount - 100) < 3 GROUP BY new",
    "SELECT SUM(LEAST(GREATEST(age * age * age * age * age * age, 0), 10)) AS s FROM visits",
)


def column(kind, values):
    types = {"text": pa.string(), "integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_()}
    return pa.array(values, types.get(kind, pa.date32()))


def hostile(which: str) -> pa.Table:
    """Tables that break every promise in one way, with the declared types."""
    full = rows(40)
    size = full.num_rows
    nasty = {
        "empty": lambda kind: [],
        "null": lambda kind: [None] * size,
        "extreme": lambda kind: {
            "float": [math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, None] * (size // 8),
            "integer": [2**63 - 1, -(2**63), 0, None] * (size // 4),
            "text": ["", "\0", "'; DROP TABLE visits; --", "é\u0301", None] * (size // 5),
            "boolean": [True, None] * (size // 2),
            "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)] * (size // 2),
        }[kind],
    }[which]
    columns = {"user_id": column("integer", nasty("integer"))}
    columns |= {name: column(kind.kind, nasty(kind.kind)) for name, kind in SCHEMA.items()}
    return pa.table(columns)


@pytest.mark.parametrize("unit", ["row", "user"])
@pytest.mark.parametrize("which", ["empty", "null", "extreme"])
def test_no_row_can_change_the_outcome_or_its_shape(which, unit):
    how = sf.PrivacyUnit.row() if unit == "row" else sf.PrivacyUnit("user_id", max_groups=2)
    budget = sf.Budget(1000, 1e-6)
    with (
        sf.Session(make(rows(40), unit=how), budget=budget) as usual,
        sf.Session(make(hostile(which), unit=how), budget=budget) as strange,
    ):
        for text in QUERIES:
            if unit == "row" and "DISTINCT" in text:
                continue
            one, other = (each.sql(text).release(epsilon=1) for each in (usual, strange))
            assert one.table.schema == other.table.schema, text
            assert one.table.num_rows == other.table.num_rows, text
            assert one.interval(0.9).schema == other.interval(0.9).schema, text
            for name in other.table.column_names:
                assert other.table[name].null_count == one.table[name].null_count == 0, (text, name)
            spent = usual.balance().spent
            assert spent == strange.balance().spent


class Broken:
    """An engine that fails with the data in its mouth."""

    dialect, schemes = DUCKDB, frozenset()

    def __init__(self, error):
        self.error = error

    def attach(self, name, source, columns, *, unit=None, pointers=()):
        pass

    def check_whole(self, source):
        pass

    def unread(self, name):
        return frozenset()

    def is_prepared(self, name):
        return False

    def grouping(self, name):
        return ()

    def schema(self, source):
        return {}

    def values(self, name, column, limit):
        raise self.error

    def is_unique(self, name, columns):
        raise self.error

    def fetch(self, statement):
        raise self.error

    def close(self):
        pass


def chain(error):
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (RuntimeError(f"Conversion Error: could not cast {CANARY}"), EngineFailed),
        (MemoryError(CANARY), EngineFailed),
        (KeyboardInterrupt(CANARY), Cancelled),
        (EngineFailed("The engine could not finish the read; the price stays paid."), EngineFailed),
    ],
)
def test_a_failed_read_is_charged_and_says_nothing_of_the_data(raised, expected):
    with sf.Session(make(rows(5)), budget=sf.Budget(10), engine=Broken(raised)) as one:
        with pytest.raises(expected) as caught:
            one.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
        assert one.balance().spent == 1
        for each in chain(caught.value):
            assert CANARY not in repr(each)
            assert CANARY not in str(each)


def test_a_real_engine_failure_holds_no_value(tmp_path):
    # A Parquet file that vanishes between opening and reading.
    import pyarrow.parquet as pq

    path = tmp_path / "visits.parquet"
    pq.write_table(rows(10), path)
    with sf.Session(make(path), budget=sf.Budget(10)) as one:
        path.unlink()
        with pytest.raises(EngineFailed) as caught:
            one.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 3").release(epsilon=1)
        assert one.balance().spent == 1
        assert all(str(tmp_path) not in repr(each) for each in chain(caught.value))


def test_the_debit_is_on_disk_before_the_read(tmp_path):
    ledger = tmp_path / "v.ledger"
    seen = []

    class Watching(Broken):
        def fetch(self, statement):
            code = f"""
                from sfumato.ledger import Ledger
                with Ledger.open({str(ledger)!r}) as other:
                    print(other.balance("visits").spent)
            """
            run = [sys.executable, "-c", textwrap.dedent(code)]
            seen.append(subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip())
            return pa.table({"m0": [3]})

    with sf.Session(make(rows(5)), budget=sf.Budget(10), ledger=ledger, engine=Watching(None)) as one:
        one.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
    assert seen == ["1"]


def test_a_receipt_opens_the_vault_once_and_for_its_own_question(session):
    one, other = (
        session.sql("SELECT COUNT(*) AS n FROM visits"),
        session.sql("SELECT SUM(age) AS n FROM visits"),
    )
    table = session.tables["visits"]
    mine, theirs = (measured_of(each.report, table) for each in (one, other))
    right = session.ledger.debit("visits", one.quote(epsilon=1).loss, fingerprint=mine.fingerprint)
    with pytest.raises(AccessDenied):
        session.vault.read((theirs,), right)
    session.vault.read((mine,), right)
    with pytest.raises(AccessDenied):
        session.vault.read((mine,), right)
    with pytest.raises(AccessDenied):
        Vault(session._engine, session.tables).read((mine,), right)


def test_no_receipt_opens_the_vault_of_any_session(session):
    """Not one that was used, not one that was not, not in a second session on the same ledger."""
    query = session.sql("SELECT COUNT(*) AS n FROM visits")
    mine = measured_of(query.report, session.tables["visits"])
    used = query.release(epsilon=1).receipt
    unused = session.ledger.debit("visits", used.loss, fingerprint=mine.fingerprint).receipt
    opening = next(iter(session.ledger.entries("visits")))
    with sf.Session(*session.tables.values(), ledger=session.ledger) as second:
        assert used in second.releases()
        for receipt in (used, unused, opening, *second.releases()):
            for vault in (session.vault, second.vault):
                with pytest.raises(AccessDenied, match="opens nothing"):
                    vault.read((mine,), receipt)


def test_the_analysts_text_never_reaches_the_engine():
    seen = []

    class Listening(Broken):
        def fetch(self, statement):
            assert isinstance(statement, exp.Expression)
            seen.append(statement.sql(dialect="duckdb"))
            return pa.table({"m0": [3]})

    text = "select /* canary-comment */ count(*) as canary_alias from visits as canary_name where age > 3"
    with sf.Session(make(rows(5)), budget=sf.Budget(10), engine=Listening(None)) as one:
        one.sql(text).release(epsilon=1)
    assert "canary" not in seen[0]


def test_error_codes_are_a_closed_set():
    classes = [getattr(errors, name) for name in errors.__all__]
    codes = [each.code for each in classes]
    assert len(set(codes)) == len(codes)
    assert set(codes) == {
        "access_denied", "budget_exceeded", "cancelled", "catalog_unusable", "engine_failed", "error",
        "invalid_parameter", "invalid_value", "ledger_mismatch", "ledger_tampered", "ledger_unusable",
        "login_failed", "missing_extra", "not_certified", "query_refused", "server_unreachable",
        "source_unusable", "spent", "timed_out", "too_many_tries", "unknown_name", "unsupported_loss",
    }  # fmt: skip
    assert all(issubclass(each, SfumatoError) for each in classes)


def test_exact_answers_are_for_tests_alone(tmp_path):
    code = """
        import pyarrow as pa, sfumato as sf
        from sfumato.testing import exact
        rows, unit = pa.table({"x": [1]}), sf.PrivacyUnit.row()
        t = sf.PrivateTable("t", source=rows, unit=unit, schema={"x": sf.Int(0, 1)})
        s = sf.Session(t, budget=sf.Budget(1))
        exact(s.sql("SELECT COUNT(*) AS n FROM t"))
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env={"PATH": ""}, check=False)
    assert done.returncode != 0
    assert "SfumatoError" in done.stderr


def test_refusals_come_before_any_spending(session):
    for text in (
        "SELECT * FROM visits",
        "SELECT MODE(age) FROM visits",
        "SELECT COUNT(*) OVER () FROM visits",
        "DROP TABLE visits",
        "SELECT amount FROM visits",
    ):
        with pytest.raises(QueryRefused):
            session.sql(text).release(epsilon=1)
    assert session.balance().spent == 0
