"""Words of a user that cannot be used are refused before anything is paid, and nothing else is printed."""

from __future__ import annotations

import contextlib
import logging
import random

import pyarrow as pa
import pytest

import sfumato as sf
from logs import logged
from sfumato.engines.prepare import prepare
from sfumato.errors import InvalidParameter, QueryRefused, SfumatoError

HALVES = ["\ud800", "a\udfffb", "\udc80"]
ROWS = pa.table({"id": [*range(50)], "x": [1] * 50, "c": ["a", "b"] * 25, "t": ["p"] * 50})
SCHEMA = {"x": sf.Int(0, 10), "c": sf.Enum("a", "b"), "t": sf.Text()}


def table_of(name="t", unit=None, schema=None, source=ROWS, **more):
    unit = sf.PrivacyUnit("id") if unit is None else unit
    schema = SCHEMA if schema is None else schema
    return sf.PrivateTable(name, source=source, unit=unit, schema=schema, **more)


@pytest.fixture(scope="module")
def session():
    with sf.Session(table_of(), budget=sf.Budget(10, "0.1")) as opened:
        yield opened


TEXTS = {
    "alias": 'SELECT COUNT(*) AS "{}" FROM t',
    "alias of a key": 'SELECT c AS "{}", COUNT(*) AS n FROM t GROUP BY c',
    "alias of an end": 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS "{}" FROM t',
    "literal": "SELECT COUNT(*) AS n FROM t WHERE c = '{}'",
    "list": "SELECT COUNT(*) AS n FROM t WHERE t IN ('{}', 'q')",
    "pattern": "SELECT COUNT(*) AS n FROM t WHERE t LIKE '{}%'",
    "comment": "SELECT COUNT(*) AS n /* {} */ FROM t",
    "line comment": "SELECT COUNT(*) AS n FROM t -- {}",
    "table": 'SELECT COUNT(*) AS n FROM t AS "{}"',
    "column": 'SELECT COUNT("{}") AS n FROM t',
    "column inside": 'SELECT COUNT(*) AS n FROM (SELECT x AS "{}" FROM t)',
    "subquery": 'WITH "{0}" AS (SELECT * FROM t) SELECT COUNT(*) AS n FROM "{0}"',
    "function": 'SELECT "{}"(x) FROM t',
    "option": 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, privacy_unit_column="{}") COUNT(*) FROM t',
    "explained": "EXPLAIN SELECT COUNT(*) AS n FROM t WHERE t = '{}'",
}
ASKED = {
    **{name: lambda s, b, text=text: s.sql(text.format(b)) for name, text in TEXTS.items()},
    "parameter": lambda s, b: s.sql("SELECT COUNT(*) AS n FROM t WHERE t = ?", [b]),
    "name of a parameter": lambda s, b: s.sql("SELECT COUNT(*) AS n FROM t WHERE t = $a", {b: "x"}),
    "builder's name": lambda s, b: s.table("t").agg(**{b: sf.count()}),
    "builder's literal": lambda s, b: s.table("t").filter(sf.col("t") == b).agg(n=sf.count()),
    "builder's column": lambda s, b: s.table("t").agg(n=sf.sum(b)),
    "builder's key": lambda s, b: s.table("t").group_by(b).agg(n=sf.count()),
    "builder's table": lambda s, b: s.table(b).agg(n=sf.count()),
    "wanted error": lambda s, b: s.sql("SELECT COUNT(*) AS n FROM t").release(error={b: 50}),
    "bounds": lambda s, b: s.sql("SELECT SUM(x) AS n FROM t").release(epsilon=1, bounds=b),
    "bounding": lambda s, b: s.sql("SELECT SUM(x) AS n FROM t").release(epsilon=1, bounding=b),
    "mechanism": lambda s, b: s.sql("SELECT SUM(x) AS n FROM t").release(epsilon=1, mechanism=b),
    "balance": lambda s, b: s.balance(b),
}


@pytest.mark.parametrize("half", HALVES, ids=ascii)
@pytest.mark.parametrize("place", ASKED)
def test_half_a_character_is_refused_before_anything_is_paid(session, place, half):
    with pytest.raises(SfumatoError) as refused:
        ASKED[place](session, half).release(epsilon=1, delta="0.01")
    str(refused.value).encode("ascii", "backslashreplace").decode()
    assert session.balance().spent == 0


DECLARED = {
    "table": lambda b: table_of(name=b),
    "dataset": lambda b: table_of(dataset=b),
    "version": lambda b: table_of(version=b),
    "unit": lambda b: table_of(unit=sf.PrivacyUnit(b)),
    "column": lambda b: table_of(schema={b: sf.Int(0, 1)}),
    "value": lambda b: table_of(schema={"c": sf.Enum("a", b)}),
    "source": lambda b: table_of(source=f"{b}.csv"),
}


@pytest.mark.parametrize("half", HALVES, ids=ascii)
@pytest.mark.parametrize("place", DECLARED)
def test_half_a_character_in_a_declaration_is_refused(place, half):
    with pytest.raises(SfumatoError), sf.Session(DECLARED[place](half), budget=sf.Budget(1)):
        pass


WRITTEN = {
    "reason": lambda ledger, b: sf.Steward(ledger).close_budget("t", reason=b),
    "analyst": lambda ledger, b: sf.Steward(ledger).limit("t", b, sf.Budget(1), reason="why"),
    "memo": lambda ledger, b: ledger.debit("t", sf.Laplace(1, 1).loss, fingerprint="q", memo={"a": [b]}),
    "memo's key": lambda ledger, b: ledger.debit("t", sf.Laplace(1, 1).loss, fingerprint="q", memo={b: 1}),
    "fingerprint": lambda ledger, b: ledger.debit("t", sf.Laplace(1, 1).loss, fingerprint=b),
}


@pytest.mark.parametrize("half", HALVES, ids=ascii)
@pytest.mark.parametrize("place", WRITTEN)
def test_half_a_character_is_not_written_into_a_ledger(session, place, half):
    with pytest.raises(SfumatoError):
        WRITTEN[place](session.ledger, half)
    assert session.balance().spent == 0
    assert session.balance().open


def test_paths_that_no_system_can_write_are_refused(tmp_path):
    for name in ("\ud800", "a\0b"):
        with pytest.raises(InvalidParameter, match="no path can hold"):
            sf.Ledger.open(tmp_path / f"{name}.ledger")
        with pytest.raises(SfumatoError):
            prepare(table_of(), tmp_path / f"{name}.duckdb")
        with pytest.raises(SfumatoError), sf.Session(table_of(source=f"{name}.csv"), budget=sf.Budget(1)):
            pass


def test_a_column_that_cannot_be_plotted_is_named_with_those_that_can(session):
    release = session.sql("SELECT c, COUNT(*) AS n FROM t GROUP BY c").release(epsilon=1)
    for column in ("zz", "c", "\ud800", 3):
        with pytest.raises(InvalidParameter, match=r"to plot\. Columns with error bars: n\."):
            release.plot(column=column)


# ── what the parser logs

_SEEDS = [
    "SELECT c, SUM(x) AS s FROM t WHERE x > 3 GROUP BY c HAVING s > 1 ORDER BY 1 LIMIT 3",
    "WITH a AS (SELECT * FROM t) SET AVG(x) FROM a",
    "WITH a AS (SELECT * FROM t) SHOW TABLES",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) c, COUNT(*) FROM t GROUP BY c",
    "EXPLAIN SELECT COUNT(*) FROM t",
    "CREATE FUNCTION f() RETURNS INT AS 'x'",
    "ALTER TABLE t ADD COLUMN y INT",
    "SELECT c->'$.a[' FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT EXTRACT(foo FROM x) FROM t /*+ hint */",
]


def test_nothing_of_the_parsers_log_gets_out(session, capfd, caplog):
    draw, words = random.Random(5), [word for text in _SEEDS for word in text.split()]
    for number in range(400):
        text = _SEEDS[number % len(_SEEDS)].split()
        for _ in range(draw.randint(0, 3) if number >= len(_SEEDS) else 0):
            text[draw.randrange(len(text))] = draw.choice(words)
        with contextlib.suppress(QueryRefused, InvalidParameter):
            session.sql(" ".join(text)).quote(epsilon=1, delta="0.01")
    assert logged(caplog) == []
    assert capfd.readouterr() == ("", "")
    logging.getLogger("sqlglot").warning("of a program's own use of the parser")
    assert [record.message for record in logged(caplog)] == ["of a program's own use of the parser"]


def test_the_parser_would_have_logged_what_is_refused(session, caplog, monkeypatch):
    monkeypatch.setattr("sfumato.sql.text.quiet._reading", _Never())
    with pytest.raises(QueryRefused):
        session.sql(_SEEDS[1])
    assert logged(caplog)


class _Never:
    def get(self):
        return False

    def set(self, value):
        return value

    def reset(self, token):
        pass
