"""The newer forms of a question on the command line: parameters, bought bounds, shares, public tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

PUBLIC = """
[tables.cities]
source = "cities.parquet"
public = true
key = "city"

[tables.cities.columns]
city = { type = "enum", values = ["Lyon", "Nice"] }
coast = "text"
"""
BY_COAST = "SELECT coast, COUNT(*) AS n FROM visits JOIN cities USING (city) GROUP BY ROLLUP (coast)"


def with_cities(folder):
    rows = pa.table({"city": ["Lyon", "Nice"], "coast": ["inland", "coast"]})
    pq.write_table(rows, folder / "cities.parquet")
    toml = folder / "sfumato.toml"
    toml.write_text(toml.read_text() + PUBLIC)


def test_values_of_public_tables_are_known_when_they_are_needed(cli, hospital):
    with_cities(hospital)
    assert "3 by coast" in cli("quote", BY_COAST, "--epsilon", "0.1").out
    assert "Public" in cli("schema").out
    answer = cli("query", BY_COAST, "--epsilon", "0.1", "--json").json
    assert [row["coast"] for row in answer["rows"]] == ["coast", "inland", None]


def test_parameters_come_by_place_or_by_name(cli, hospital):
    by_place = cli(
        "quote", "SELECT COUNT(*) AS n FROM visits WHERE age < ?", "--param", "40", "--epsilon", "0.1"
    )
    by_name = cli(
        "quote", "SELECT COUNT(*) AS n FROM visits WHERE age < $age", "--param", "age=40", "--epsilon", "0.1"
    )
    assert by_place.code == by_name.code == 0
    assert by_place.out == by_name.out
    mixed = cli("quote", BY_COAST, "--param", "a=1", "--param", "2", "--epsilon", "0.1")
    assert mixed.code == 2
    assert "--param" in mixed.err


def test_bought_bounds_are_told_and_paid(cli, hospital):
    text = "SELECT SUM(cost) AS cost FROM visits"
    refused = cli("query", text, "--epsilon", "0.5")
    assert refused.code == 2
    assert "--bounds auto" in " ".join(refused.err.split())
    quoted = cli("quote", text, "--epsilon", "0.5", "--bounds", "auto").out
    assert "epsilon 0.5 (pure, delta 0): 0.1 for bounds, once, and 0.4 for the answer" in " ".join(
        quoted.split()
    )
    told = cli("query", text, "--epsilon", "0.5", "--bounds", "auto")
    assert "for bounds, " in " ".join(told.out.split())
    again = cli("query", text, "--epsilon", "0.5", "--bounds", "auto", "--json").json
    assert again["free"]
    assert again["bounds"]
    assert "bounds: " in cli("ledger", "show").out


def test_the_share_touched_is_in_text_and_json(cli, hospital):
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    assert "were clamped or cut" in " ".join(cli("query", text, "--epsilon", "0.2", "--touched").out.split())
    share = cli("query", text, "--epsilon", "0.2", "--touched", "--json").json["touched"]
    assert 0 <= share["low"] <= share["share"] <= share["high"] <= 1


def test_explain_and_the_clause_of_another_dialect(cli, hospital):
    explained = cli("query", "EXPLAIN SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1")
    assert "A quote is free" in explained.out
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.1, privacy_unit_column = patient_id)"
    answer = cli("query", f"{clause} city, COUNT(*) AS n FROM visits GROUP BY city", "--json").json
    assert answer["paid"]["epsilon"] == 0.1


def test_rows_of_other_keys_are_told_apart_in_every_format(cli, hospital):
    text = (
        "SELECT city, CAST(cost AS INTEGER) AS paid, COUNT(*) AS n FROM visits "
        "GROUP BY ROLLUP (city, CAST(cost AS INTEGER))"
    )
    assert "rows of other keys" in " ".join(cli("quote", text, "--epsilon", "0.5").out.split())
    answer = cli("query", text, "--epsilon", "0.5", "--json").json
    assert answer["columns"] == ["city", "paid", "n", "level"]
    told = [(row["city"], row["level"]) for row in answer["rows"]]
    assert ("Nice", "city, other paid") in told
    assert told[-3:] == [("Lyon", "city"), ("Nice", "city"), (None, "all rows")]
    assert all(set(each) == {"n"} for each in answer["errors"])
    again = cli("query", text, "--epsilon", "0.5", "--format", "csv")
    assert again.out.splitlines()[0] == "city,paid,n,n_error,level"
    shown = cli("query", text, "--epsilon", "0.5").out
    assert "city, other paid" in shown
    assert "all rows" in shown


def test_an_empty_answer_says_why(cli, hospital):
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 1e6"
    told = cli("query", text, "--epsilon", "0.1")
    assert told.code == 0
    assert "HAVING removed them all" in " ".join(told.out.split())


def test_advice_speaks_of_what_was_typed(cli, hospital):
    refused = cli("query", "SELECT PERCENTILE(age, 90) FROM visits", "--epsilon", "0.1")
    assert refused.code == 2
    assert "Write QUANTILE_CONT(age, 0.9)." in refused.err
    counted = "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)"
    assert "AVG(LEAST(GREATEST(n, LOW), HIGH))" in cli("query", counted, "--epsilon", "0.1").err
    assert 'sfumato query "SELECT' in cli("query", " ", "--epsilon", "0.1").err
