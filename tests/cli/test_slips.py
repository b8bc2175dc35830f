"""What people type that is nearly right: the refusal has what to type instead, and that works."""

import re

import pytest

import sfumato as sf
from sfumato.ledger.budget import Budget
from sfumato.ledger.gates import exceeded
from sfumato.ledger.rules import _differing
from sfumato.plan.expressions.names import nearest

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def people(tmp_path, cli):
    rows = [f"{'abc'[row % 3]},{'xy'[row % 2]},{row}" for row in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["city,job,age", *rows]) + "\n")
    done = cli("init", "people.csv", "--header", "--unit", "row", "--epsilon", "500", "--delta", "1e-3")
    assert done.code == 0, done.err
    return tmp_path


SLIPS = [
    ("--epsilon", "10%"),
    ("--epsilon", "0.5 %"),
    ("--error", "n=5%"),
    ("--error", "5%"),
    ("--confidence", "95", "--epsilon", "1"),
    ("--confidence", "95%", "--epsilon", "1"),
    ("--confidence", "99.9", "--epsilon", "1"),
]


@pytest.mark.parametrize("slip", SLIPS, ids=" ".join)
def test_a_slip_is_told_with_what_to_write_and_that_works(cli, people, slip):
    refused = cli("query", COUNT, *slip)
    assert refused.code == 2
    option, number = re.search(r"write (--\w+) (\S+)\.$", " ".join(refused.err.split())).groups()
    assert option == slip[0]
    assert cli("query", COUNT, option, number, *slip[2:]).code == 0


def test_an_epsilon_below_zero_is_no_option(cli):
    for number in ("-1", "-0.5", "-.5"):
        refused = cli("explain", number)
        assert refused.code == 2
        assert "epsilon is above 0" in refused.err
    assert cli("explain", "1").code == 0


def test_a_column_may_be_written_with_its_table(cli, people):
    for first, second in (("people.city", "people.job"), ("PEOPLE.city", "job"), ("city", "job")):
        done = cli("crosstab", first, second, "--epsilon", "50")
        assert done.code == 0, done.err
    assert "name one table" in cli("histogram", "people.city", "--table", "visits", "--epsilon", "1").err


def test_a_word_that_is_near_is_a_slip_and_no_other_word():
    columns = ["income", "age", "city", "user_id"]
    for typed, meant in (
        ("aeg", "age"),
        ("ages", "age"),
        ("citty", "city"),
        ("icnome", "income"),
        ("ege", "age"),
        ("t.city", "city"),
    ):
        assert nearest(typed, columns, "Columns") == f"Did you mean {meant}?"
    for typed in ("name", "type", "gender", "day"):
        assert nearest(typed, columns, "Columns").startswith("Columns: ")


def declaration(**columns):
    return {"tables": {"people": {"columns": columns}}}


def test_a_declaration_that_differs_says_what_came_and_what_is_gone():
    kind = {"type": "int", "lower": None, "upper": None}
    said = _differing(declaration(age=kind, city=kind), declaration(aeg=kind, city=kind))
    assert said.endswith("aeg is new; tables.people.age is missing: was it renamed?"), said
    assert _differing(declaration(age=kind), declaration(age=kind, b=kind)).endswith("people.b is new")
    assert _differing(declaration(age=kind, b=kind), declaration(age=kind)).endswith("people.b is missing")
    longer = _differing(declaration(a=kind, b=kind, c=kind), declaration(d=kind, e=kind, c=kind))
    assert "{" not in longer
    assert "lower none on record, 5 now" in _differing(
        declaration(a=kind), declaration(a=kind | {"lower": 5})
    )


def test_who_has_no_delta_is_told_how_to_get_some():
    none, one = Budget(1), (0, 0)
    said = str(exceeded("the limit of 'ben' on 'visits'", none, (none.limits[0] / 10, none.limits[0]), one))
    assert "ben has no delta. The steward can give some, as in ben = { epsilon = 1, delta = 1e-7 }" in said
    assert "listed groups, which need none" in said
    assert "this budget has no delta" in str(exceeded("the budget of 'visits'", none, (0, 1), one))
    some = Budget(1, 1e-6)
    assert "less delta" in str(exceeded("the limit of 'ben' on 'visits'", some, (0, 1), one))


def test_a_limit_of_groups_that_cuts_is_named_with_its_setting():
    import pyarrow as pa

    rows = pa.table({"u": [i % 50 for i in range(1000)], "g": ["abc"[i % 3] for i in range(1000)]})
    for most in (1, 2):
        unit = sf.PrivacyUnit("u", max_groups=most, max_rows=6)
        table = sf.PrivateTable("t", source=rows, unit=unit, schema={"g": sf.Enum(*"abc")})
        with sf.Session(table, budget=sf.Budget(100)) as session:
            by_group = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g")
            chosen = str(by_group.release(epsilon=1, bounding="choose"))
            weighed = str(by_group.release(epsilon=1, bounding="reweight"))
        many = f"Each u counts in at most {most} group{'s' * (most > 1)}: groups lack those"
        assert many in " ".join(chosen.split())
        assert "steward sets max_groups in sfumato.toml" in " ".join(chosen.split())
        assert "max_groups" not in weighed
