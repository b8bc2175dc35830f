"""Which values of each native type are one id: searched for, and held to what `engines._ids` says."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass

import duckdb
import pytest
from sqlglot import parse_one

from sfumato.engines import UNIT_COLUMN
from sfumato.engines._ids import identifies
from sfumato.errors import SourceUnusable

pytestmark = pytest.mark.duckdb  # the native types of its files

# Values that could be taken for one another: other ways to write a number, units that make each other up,
# zones, case, accents, trailing spaces and zeros, signs of zero.
NUMBERS = ("0", "-0", "1", "01", "1.0", "100", "1e2", "-1")
TEXTS = ("a", "A", "á", "a ", " a", "", "ß", "ss", "ﬁ", "fi", "é", "e\u0301", "İ", "i", "a\x00", "07", "7")
VALUES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "BIGNUM"), NUMBERS),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), ("0", "1", "01", "100")),
    **dict.fromkeys(("DECIMAL(18,0)", "DECIMAL(9,2)", "DECIMAL(38,10)"), NUMBERS),
    "FLOAT": (*NUMBERS, "nan", "-nan", "inf", "0.1", "16777216", "16777217"),
    "DOUBLE": (*NUMBERS, "nan", "-nan", "inf", "0.1", "9007199254740992", "9007199254740993"),
    "BOOLEAN": ("true", "false", "1", "0"),
    "VARCHAR": TEXTS,
    "VARCHAR COLLATE NOCASE": TEXTS,
    "VARCHAR COLLATE NOACCENT": TEXTS,
    "VARCHAR COLLATE NOCASE.NOACCENT": TEXTS,
    "JSON": ("1", "1.0", "01", '{"a":1}', '{"a": 1}', '{"a":1,"b":2}', '{"b":2,"a":1}', "null", '"1"'),
    "ENUM('a', 'A', 'á', 'a ', '')": ("a", "A", "á", "a ", ""),
    "UUID": ("00000000-0000-0000-0000-000000000001", "00000000000000000000000000000001"),
    "BLOB": ("a", "A", "a\\x00", "a ", ""),
    "BIT": ("0", "00", "1", "01", "0000000000000000", "10000000"),
    "DATE": ("2020-01-01", "infinity", "-infinity", "0001-01-01 (BC)"),
    "TIME": ("00:00:00", "24:00:00", "12:00:00"),
    "TIME_NS": ("00:00:00", "24:00:00", "12:00:00"),
    "TIMETZ": ("12:00:00+00", "13:00:00+01", "11:00:00-01", "24:00:00+00", "00:00:00+00"),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        ("2020-01-01", "2020-01-01 00:00:00.000001", "infinity", "-infinity", "2020-01-02"),
    ),
    **dict.fromkeys(
        ("TIMESTAMPTZ", "TIMESTAMPTZ_NS"),
        ("2020-01-01 12:00+00", "2020-01-01 13:00+01", "2020-01-01", "infinity", "-infinity"),
    ),
    "INTERVAL": ("1 month", "30 days", "720 hours", "1 year", "12 months", "1 day", "24 hours", "0 days"),
    "STRUCT(a INTERVAL)": ("{'a': 1 month}", "{'a': 30 days}"),
    "INTERVAL[]": ("[1 month]", "[30 days]"),
    "DOUBLE[]": ("[0.0]", "[-0.0]"),
}
ONE = {("FLOAT", "0.0", "-0.0"), ("DOUBLE", "0.0", "-0.0"), ("BIGNUM", "0", "-0")}
"""Pairs that are one id though they print differently: they are one number."""


@dataclass(frozen=True)
class Searched:
    """What is in a file with a table of each native type.

    Attributes:
        pairs: Values of each type that the engine takes for one.
        texts: How its values print.
        ids: How many ids the view of an engine has; a type that is refused is not there.
    """

    pairs: dict[str, list[tuple[str, str]]]
    texts: dict[str, set[str]]
    ids: dict[str, int]


@pytest.fixture(scope="module")
def searched(make_shared, tmp_path_factory) -> Searched:
    file = str(tmp_path_factory.mktemp("ids") / "ids.duckdb")
    pairs, texts, one, taken = {}, {}, make_shared(), {}
    with duckdb.connect(file) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for native in VALUES:
            pairs[native] = _pairs(connection, f"t{len(pairs)}", native)
            printed = connection.execute(f"SELECT CAST(v AS VARCHAR) FROM t{len(texts)}").fetchall()
            texts[native] = {each for (each,) in printed if each is not None}
    for place, native in enumerate(VALUES):  # all of them before the first read, in one instance
        with contextlib.suppress(SourceUnusable):
            one.attach(f"t{place}", f"{file}::t{place}", {}, unit="v")
            taken[native] = f"t{place}"
    count = f'SELECT COUNT(DISTINCT "{UNIT_COLUMN}") AS n FROM '
    ids = {native: one.fetch(parse_one(count + name))["n"][0].as_py() for native, name in taken.items()}
    return Searched(pairs, texts, ids)


def _pairs(connection, name: str, native: str) -> list[tuple[str, str]]:
    """Values that the engine takes for one in an equality, a group, a join, a window or a hash.

    Values that print alike are one already: '1' and '01' are one whole number when they are written.
    """
    connection.execute(f"CREATE TABLE {name} (v {native})")
    for value in VALUES[native]:
        with contextlib.suppress(duckdb.ConversionException, duckdb.InvalidInputException):
            connection.execute(f"INSERT INTO {name} VALUES (?)", [value])  # not all write all types
    alike = connection.execute(
        f"WITH d AS (SELECT DISTINCT CAST(v AS VARCHAR) AS s, v FROM {name} WHERE v IS NOT NULL) "
        "SELECT a.s, b.s FROM d AS a JOIN d AS b ON a.v = b.v WHERE a.s <> b.s"
    ).fetchall()
    grouped = connection.execute(
        f"SELECT list(DISTINCT CAST(v AS VARCHAR)) FROM {name} WHERE v IS NOT NULL GROUP BY v"
    ).fetchall()
    parted = connection.execute(
        f"SELECT list(CAST(v AS VARCHAR)) OVER (PARTITION BY v) FROM {name} WHERE v IS NOT NULL"
    ).fetchall()
    lists = [set(each) for (each,) in grouped + parted]
    found = {tuple(sorted(pair)) for each in lists for pair in itertools.combinations(each, 2)}
    return sorted(found | {tuple(sorted(pair)) for pair in alike})


@pytest.mark.parametrize("native", VALUES)
def test_what_is_one_id_prints_alike(searched, native):
    """Over all native types: equal under =, GROUP BY and PARTITION BY but printed differently, or refused."""
    if native not in searched.ids:
        return
    found, texts, pairs = searched.ids[native], searched.texts[native], searched.pairs[native]
    if native in ("FLOAT", "DOUBLE"):
        texts = texts - {"nan", "-nan"}  # no ids
    base = native.partition(" ")[0]
    known = {frozenset(pair[1:]) for pair in ONE if pair[0] == base}
    merged = sum(all(each in texts for each in pair) for pair in known)
    assert found == len(texts) - merged, f"{native}: {found} ids of {sorted(texts)}; {pairs}"


def test_the_search_finds_the_pairs_that_are_known(searched):
    """The planted twin: types that are refused, or shown otherwise, do take different values for one."""
    found = searched.pairs
    assert ("1 month", "30 days") in found["INTERVAL"]
    assert ("A", "a") in found["VARCHAR COLLATE NOCASE"]
    assert found["VARCHAR"] == []
    with_pairs = {native for native, pairs in found.items() if pairs}
    assert {native for native in with_pairs if identifies(native.partition(" ")[0])} <= {
        *("FLOAT", "DOUBLE", "BIGNUM"),
        *(native for native in VALUES if "COLLATE" in native),
    }, f"{sum(map(len, found.values()))} pairs in {len(with_pairs)} of {len(VALUES)} types"


@pytest.mark.parametrize("native", ["INTERVAL", "TIME", "TIME_NS", "TIME WITH TIME ZONE", "INTEGER[]"])
def test_types_that_are_no_ids(native):
    assert not identifies(native)
