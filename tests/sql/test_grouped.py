"""The statement for a table that was prepared for its grouping: two filters, and nothing about units."""

from dataclasses import replace

import sfumato as sf
from sfumato.engines.dialect import DUCKDB
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions.bounding import boundings
from sfumato.sql.asking import ask
from sfumato.sql.write.lower import lower

SCHEMA = {"city": sf.Enum("Lyon", "Nice"), "note": sf.Text(), "day": sf.Date(), "n": sf.Int(0, 3)}


def lowered(text, *, max_rows=6, way="grouped"):
    unit = sf.PrivacyUnit("u", max_groups=2, max_rows=max_rows)
    table = sf.PrivateTable("t", source=None, unit=unit, schema=SCHEMA)
    report = ask(text, {"t": table}).report
    measured = recipe(replace(report, child=replace(report.child, bounding=boundings()[way])), table).measured
    return lower(measured, {"t": table}, DUCKDB, salt=5).sql("duckdb")


RANKS = '"sfumato group" <= 2 AND "sfumato place" <= 3'
MEMBER = """HAVING CASE WHEN COUNT(*) > 0 THEN "k0" IN ('Lyon', 'Nice') END"""


def test_rows_of_listed_keys_are_counted_behind_two_filters():
    assert lowered("SELECT city, COUNT(*) AS c FROM t GROUP BY city") == (
        f'SELECT "k0", COUNT(*) AS "m0" FROM (SELECT "city" AS "k0" FROM "t" WHERE {RANKS}) AS "r" '
        f'GROUP BY "k0" {MEMBER}'
    )


def test_units_are_rows_of_place_one():
    first = 'COUNT(CASE WHEN "i" = 1 THEN 1 END)'
    assert lowered("SELECT city, COUNT(DISTINCT u) AS c FROM t GROUP BY city") == (
        f'SELECT "k0", {first} AS "m0" FROM (SELECT "city" AS "k0", "sfumato place" AS "i" FROM "t" '
        f'WHERE {RANKS}) AS "r" GROUP BY "k0" {MEMBER}'
    )
    assert lowered("SELECT note, COUNT(*) AS c FROM t GROUP BY note") == (
        f'SELECT "k0", COUNT(*) AS "m0", {first} AS "s" FROM (SELECT "note" AS "k0", "sfumato place" AS "i" '
        f'FROM "t" WHERE {RANKS}) AS "r" GROUP BY "k0"'
    )


def test_where_one_row_counts_in_a_group_every_row_is_a_unit():
    text = lowered("SELECT note, COUNT(*) AS c FROM t GROUP BY note", max_rows=2)
    assert '"i"' not in text
    assert 'COUNT(*) AS "s"' in text
    assert '"sfumato place" <= 1' in text


def test_keys_that_are_not_listed_have_the_form_that_was_ranked():
    ends = "CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)"
    text = lowered("SELECT day, COUNT(*) AS c FROM t GROUP BY day")
    assert f'SELECT CASE WHEN "day" BETWEEN {ends} THEN "day" END AS "k0"' in text


def test_a_condition_is_one_more_filter():
    text = lowered("SELECT city, SUM(n) AS c FROM t WHERE n > 1 GROUP BY city")
    assert 'WHERE ("n" > 1 AND "sfumato group" <= 2) AND "sfumato place" <= 3' in text


def test_other_ways_have_the_statements_that_they_had():
    text = "SELECT city, COUNT(*) AS c FROM t GROUP BY city"
    assert lowered(text, way="prepared") == (
        'SELECT "k0", COUNT(*) AS "m0" FROM (SELECT "city" AS "k0" FROM "t" WHERE "sfumato rank" <= 6) '
        f'AS "r" GROUP BY "k0" {MEMBER}'
    )
    for way in ("reweight", "choose"):
        assert "sfumato group" not in lowered(text, way=way)
