"""The dossier tells what is on record and nothing else; the checklist shows gaps where there are some."""

import json
import re
import shutil
import sqlite3
from dataclasses import replace

import pytest
import yaml

import sfumato as sf
from commands import invoke as run
from sfumato.catalog import Catalog
from sfumato.cli.app import app
from sfumato.cli.opening import open_session
from sfumato.demo import SQL, prepare
from sfumato.dossier import card, check, facts
from sfumato.dossier.unopened import Unopened
from sfumato.dossier.yaml import written
from sfumato.engines import DuckDB
from sfumato.engines.prepare import prepare as prepare_table
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.ledger import Ledger


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A hospital with one release by alice, and a raised budget."""
    folder = tmp_path_factory.mktemp("dossier")
    config = prepare(folder)
    catalog = Catalog.read(config, analyst="alice")
    with open_session(catalog, "visits") as session:
        session.sql(SQL).release(epsilon="0.8")
    with Ledger.open(catalog.ledger, state=catalog.state) as ledger:
        sf.Steward(ledger).raise_budget("visits", sf.Budget(3, "1e-6"), reason="a second study was approved")
    config.write_text(config.read_text().replace("epsilon = 2 ", "epsilon = 3 "))
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(made, tmp_path / "copy")


def _facts(folder, *, quotes=True):
    catalog = Catalog.read(folder / "sfumato.toml")
    with Ledger.open(catalog.ledger, create=False) as book:

        def session():
            return sf.Session(*catalog.tables, budget=catalog.budgets["visits"], ledger=book)

        return facts(catalog, book, "visits", session=session if quotes else None)


def test_facts_are_the_ledgers_and_the_stewards(made):
    known = _facts(made)
    (paid,) = known.paid
    assert (paid.analyst, paid.epsilon, paid.mechanism, paid.kept) == (
        "alice",
        sf.Budget("0.8").epsilon,
        "laplace",
        True,
    )
    assert paid.question == SQL
    assert paid.errors["visits"].startswith("± ")
    assert known.size == 5000
    assert [act.memo["reason"] for act in known.acts] == ["a second study was approved"]
    assert known.loss.epsilon(0.0) <= 0.8


def test_the_errors_are_those_of_the_released_bars(tmp_path):
    catalog = Catalog.read(prepare(tmp_path))
    asked = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE {} GROUP BY city"
    with open_session(catalog, "visits") as session:
        released = [
            session.sql(asked.format(where)).release(epsilon="0.2") for where in ("age > 60", "age < 20")
        ]
        paid = facts(catalog, session.ledger, "visits", session=lambda: session).paid
    for one, release in zip(paid, released, strict=True):
        shown = re.findall(r"(\d) ± +([\d,.]+) +(?:≥ \S+ +)?(\S+) ± +([\d,.]+)", str(release))
        assert len(shown) == 6
        for name, bars in (("n", [row[1] for row in shown]), ("c", [row[3] for row in shown])):
            bars.sort(key=lambda bar: float(bar.replace(",", "")))
            wanted = f"± {bars[0]}" if bars[0] == bars[-1] else f"± {bars[0]} to {bars[-1]}"
            assert one.errors[name] == wanted
    assert " to " in paid[0].errors["c"]


def test_a_series_says_in_how_many_steps_a_unit_counts(tmp_path):
    catalog = Catalog.read(prepare(tmp_path))
    text = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    with open_session(catalog, "visits") as session:
        for most in (None, 1, 5):
            series = session.stream(
                text, start="2024-01-01", horizon=9, epsilon="0.2", delta="1e-7", max_steps=most
            )
            series.advance("2024-01-02")
        dossier = card(facts(catalog, session.ledger, "visits"))
    assert [release.get("max_steps") for release in dossier.to_dict()["releases"]] == [None, 1, 5]
    plain, *_, five = (release.number for release in dossier.facts.paid)
    told = f"In series #{five} a unit counts in the first 5 steps in which it has rows, and in none after"
    for form in (str(dossier), dossier.methods):
        assert told in " ".join(form.split())
        assert f"In series #{plain}" not in form


def test_looking_changes_nothing(made):
    before = (made / "demo.ledger").read_bytes()
    entries = _facts(made).entries
    assert _facts(made).entries == entries
    assert (made / "demo.ledger").read_bytes() == before


def test_the_label_is_a_page_of_80_columns(made):
    label = str(card(_facts(made)))
    assert max(map(len, label.splitlines())) <= 80
    assert len(label.splitlines()) <= 66
    for told in (
        "patient_id",
        "epsilon 0.8",
        "epsilon 3",
        "alice",
        "0 to 2000",
        "legal claim",
        "at most 6 rows",
    ):
        assert told in label, told


def test_the_methods_paragraph_says_whose_and_how_much(made):
    text = " ".join(card(_facts(made)).methods.split())
    assert "protecting one patient_id with all its rows" in text
    assert "spent 0.8 of epsilon = 3" in text
    assert "The one release was made private by laplace noise" in text


def test_the_registry_entry_has_what_a_registry_asks(made):
    text = card(_facts(made)).yaml
    for told in (
        'budget:\n  epsilon: 3\n  delta: 1.0e-06\n  accountant: "basic"\n',
        "\n  verified: true\n",
        f"    question: {json.dumps(SQL)}\n",
        '\nunit: "one patient_id"\n',
    ):
        assert told in text, told


def test_yaml_quotes_what_would_be_read_otherwise():
    text = written({"no": "yes", "a: b": [], "n": {"x": 1e-6, "y": 2.0}, "l": [{"q": "a\n- b"}, "#"]})
    assert text == '"no": "yes"\n"a: b": []\n"n":\n  x: 1.0e-06\n  "y": 2\nl:\n  - q: "a\\n- b"\n  - "#"\n'


ODD = {  # what an analyst may call a column, or write into a question
    "a long name": "n" * 1_100,
    "a long name in quotes": "é " * 600,
    "beyond 16 bits": "\U0001f600 \U0010fffd",
    "what does not show": "\x00\x1b\x7f\x85\u2028\ufeff\u202e",
    "signs of YAML": "a: b\n- c # d\n? e\n--- &x *x !y %z 'q' \"w\" \\u0041 {[,]}\t",
    "nothing": "",
}


@pytest.mark.parametrize("reader", ["SafeLoader", "CSafeLoader"])
@pytest.mark.parametrize("odd", ODD)
def test_every_reader_reads_what_was_written(odd, reader):
    values = {odd: ODD[odd], ODD[odd]: [ODD[odd], {ODD[odd]: {ODD[odd]: 1, "x": []}}], "z": {ODD[odd]: [2]}}
    text = written(values)
    assert text.isascii()
    assert yaml.load(text, Loader=getattr(yaml, reader)) == values


STEPS = """
Data classification
Data preparation
Define privacy budget
Data analysis requirements
Implement differential privacy
Noise generation
Testing and verification
Performance evaluation
Documentation and compliance
Additional security measures
User education
Continuous monitoring and maintenance
"""


def test_the_twelve_steps_are_there_in_their_order_each_with_evidence(made):
    steps = check(_facts(made))
    assert [step.name for step in steps] == STEPS.strip().splitlines()
    assert all(step.evidence.endswith(".") for step in steps)
    told = {  # what each rests on, from the ledger and the file of this very hospital
        1: "5 columns that may be asked for have a role",
        2: "at most 6 rows of visits",
        3: "Epsilon 3, delta 1e-06, basic accountant. Delta is at most 1/500,000, far below 1/5,000",
        4: "One question has been answered",
        5: "The one release was debited before it was read",
        6: "so far laplace",
        7: "receipts verify",
        8: "Receipt #",
        9: "One act of the steward is on record, with a reason",
        10: "readable by their owner alone",
        11: "sfumato lab",
        12: "epsilon 2.2 of 3 is left; last release today",
    }
    for step in steps:
        assert told[step.number] in step.evidence, step


def test_twelve_steps_and_none_of_them_shows_a_gap(made):
    steps = check(_facts(made))
    assert [step.number for step in steps] == list(range(1, 13))
    assert not [step for step in steps if step.verdict == "open"]
    assert steps[0].verdict == "done"
    assert all(step.fix for step in steps if step.verdict != "done")


def test_a_limit_that_a_profile_chooses_is_not_told_as_a_number(made):
    known = _facts(made, quotes=False)
    table = replace(known.tables[0], unit=sf.PrivacyUnit("patient_id", max_rows="auto", max_groups=2))
    step = check(replace(known, tables=(table,)))[1]
    assert f"as many rows of {table.name} as a noisy profile chooses, in at most 2 groups" in step.evidence


@pytest.mark.parametrize(
    ("number", "spoil", "words"),
    [
        (1, (', role = "sensitive" }\nward', " }\nward"), "called plain"),
        (
            1,
            ('nullable = false, role = "sensitive"', 'nullable = false, role = "identifier"'),
            "is an identifier",
        ),
        (3, ("size = 5000", "size = 2000000"), "far below one"),
    ],
)
def test_a_gap_in_the_file_is_shown_with_its_fix(folder, number, spoil, words):
    toml = folder / "sfumato.toml"
    assert spoil[0] in toml.read_text()
    toml.write_text(toml.read_text().replace(*spoil))
    step = check(_facts(folder, quotes=False))[number - 1]
    assert step.verdict == "open"
    assert words in f"{step.evidence} {step.fix}"


def test_the_usual_rule_for_delta_is_not_called_far_below(folder):
    toml = folder / "sfumato.toml"
    toml.write_text(toml.read_text().replace("size = 5000", "size = 200000"))
    known = _facts(folder, quotes=False)
    step = check(known)[2]
    assert step.verdict == "by hand"  # n·delta is 0.2: below n^-1.1; 1 − (1 − delta)^n is .1813, rounded up
    assert "shows somebody's record in 19 of 100 cases. It meets the usual rule" in step.evidence
    assert "1/20,000,000" in step.fix
    assert "not far below 1/size" in " ".join(str(card(known)).split())


def test_a_ledger_that_others_can_read_is_a_gap(folder):
    (folder / "demo.ledger").chmod(0o644)  # a key that others can read does not even open
    step = check(_facts(folder))[9]
    assert step.verdict == "open"
    assert step.fix == "chmod 600 demo.ledger"


def test_a_broken_audit_is_a_gap(made):
    assert check(_facts(made), audited=lambda: (40, []))[6].verdict == "done"
    assert "Do not use laplace" in check(_facts(made), audited=lambda: (40, ["laplace"]))[6].fix


def test_no_dossier_rests_on_a_ledger_that_does_not_verify(folder):
    with sqlite3.connect(folder / "demo.ledger") as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = next(n for n in names if "entr" in n or "receipt" in n or "row" in n)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        text = next(c for c in columns if c in ("memo", "body", "data", "text"))
        database.execute(f"UPDATE {table} SET {text} = replace({text}, '4/5', '1/5')")
    for command in ("card", "check"):
        shown = run(app, [command, "--config", str(folder / "sfumato.toml")])
        assert shown.exit_code == 4, shown.output
        assert "verif" in shown.output or "broken" in shown.output or "chain" in shown.output


def test_no_dossier_rests_on_an_answer_that_was_changed(folder):
    with sqlite3.connect(folder / "demo.ledger") as database:
        database.execute("UPDATE sfumato_payloads SET payload = x'00'")
    shown = run(app, ["card", "--config", str(folder / "sfumato.toml")])
    assert shown.exit_code == 4
    text = " ".join(shown.output.split())
    assert "missing or was changed), and a dossier rests on it; run `sfumato ledger verify`" in text


def test_the_commands(folder, tmp_path):
    given = ["--config", str(folder / "sfumato.toml")]
    assert run(app, ["card", *given]).output.startswith("Privacy label: visits")
    plain = json.loads(run(app, ["card", "--json", *given]).output)
    assert plain["spent"]["epsilon"] == 0.8
    target = tmp_path / "visits.yaml"
    assert run(app, ["card", "--form", "yaml", "-o", str(target), *given]).exit_code == 0
    again = run(app, ["card", "--form", "yaml", "-o", str(target), *given])
    assert again.exit_code == 2
    assert "there already" in again.output
    steps = json.loads(run(app, ["check", "--json", *given]).output)["steps"]
    assert len(steps) == 12
    (folder / "demo.ledger").chmod(0o644)
    assert run(app, ["check", *given]).exit_code == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [(["--form", "poem"], "label, yaml, methods"), (["nobody"], "There is no dataset 'nobody'")],
)
def test_wrong_use_is_told_in_a_sentence(made, given, words):
    shown = run(app, ["card", *given, "--config", str(made / "sfumato.toml")])
    assert shown.exit_code == 2
    assert words in " ".join(shown.output.split())


def test_a_dataset_that_was_never_asked_is_told_and_not_registered(tmp_path):
    config = prepare(tmp_path)
    catalog = Catalog.read(config)
    with (
        Ledger.open(catalog.ledger) as book,
        pytest.raises(sf.errors.InvalidParameter, match="nothing about"),
    ):
        facts(catalog, book, "visits", session=lambda: pytest.fail("a session would register it"))


def _walked(*given):
    shown = run(app, ["check", "--json", *given])
    return shown.exit_code, {each["number"]: each for each in json.loads(shown.stdout).get("steps", ())}


def test_before_the_first_query_what_needs_no_ledger_is_walked(tmp_path):
    config = prepare(tmp_path)
    code, steps = _walked("--config", str(config))
    assert code == 4
    verdicts = {number: step["verdict"] for number, step in steps.items()}
    waiting = {number for number, verdict in verdicts.items() if verdict == "not yet"}
    assert waiting == {5, 7, 9, 10, 12}
    assert [verdicts[number] for number in (1, 2, 3, 6)] == ["done"] * 4
    assert all("first query" in steps[number]["evidence"] for number in waiting)
    text = run(app, ["check", "--config", str(config)]).output
    assert "5 of 12 steps wait for the first query" in text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sfumato.toml", "visits.parquet"]
    config.write_text(config.read_text().replace("size = 5000", "size = 2000000"))
    assert _walked("--config", str(config))[1][3]["verdict"] == "open"
    assert run(app, ["card", "--config", str(config)]).exit_code == 1  # there is nothing to tell of


def test_a_dataset_beside_one_that_was_asked_waits_too(folder):
    toml = folder / "sfumato.toml"
    text = toml.read_text()
    other = text[text.index("[tables.visits]") :].replace("tables.visits", "tables.again")
    toml.write_text(f"{text}\n[datasets.again]\nepsilon = 1\n\n{other}")
    code, steps = _walked("again", "--config", str(toml))
    assert code == 4
    assert {number for number, step in steps.items() if step["verdict"] == "not yet"} == {5, 9, 12}
    assert "receipts verify" in steps[7]["evidence"]
    assert _walked("visits", "--config", str(toml))[0] == 0


def test_a_ledger_that_is_gone_or_is_none_is_no_ledger_to_come(folder):
    ledger, given = folder / "demo.ledger", ["check", "--config", str(folder / "sfumato.toml")]
    ledger.write_bytes(b"this was never a ledger" * 100)
    assert run(app, given).exit_code == 1
    ledger.unlink()
    for left in folder.glob("demo.ledger-*"):
        left.unlink()
    gone = run(app, given)
    assert gone.exit_code == 4
    assert "gone, but its anchor is still there" in " ".join(gone.output.split())


def test_an_analyst_cannot_write_into_the_registrys_entry():
    text = written({"paid_by": {"# bob\nunit: everyone": 1}, "x": float("inf"), "line": "a\u2028b"})
    assert text == 'paid_by:\n  "# bob\\nunit: everyone": 1\nx: .inf\nline: "a\\u2028b"\n'


def test_a_file_that_promises_otherwise_than_the_ledger_gets_no_dossier(folder):
    toml = folder / "sfumato.toml"
    toml.write_text(toml.read_text().replace("upper = 2000", "upper = 20"))
    shown = run(app, ["card", "--config", str(toml)])
    assert shown.exit_code == 1
    assert "otherwise than the ledger" in " ".join(shown.output.split())


def test_a_new_version_is_told_without_being_put_on_record(folder):
    before = (folder / "demo.ledger").read_bytes()
    toml = folder / "sfumato.toml"
    toml.write_text(toml.read_text().replace('version = "1"', 'version = "2"'))
    assert run(app, ["card", "--config", str(toml)]).exit_code == 0
    assert (folder / "demo.ledger").read_bytes() == before


def test_another_accountant_tells_its_epsilon_at_the_budgets_delta(tmp_path):
    config = prepare(tmp_path)
    text = config.read_text().replace("delta = 1e-6", 'delta = 1e-6\naccountant = "zcdp"')
    config.write_text(text)
    catalog = Catalog.read(config)
    with open_session(catalog, "visits") as session:
        session.sql(SQL).release(epsilon="0.5")
        made = card(facts(catalog, session.ledger, "visits"))
        assert made.spent_delta == catalog.budgets["visits"].delta
        assert "delta 1e-06 in 1 release\n" in str(made)
        assert made.to_dict()["spent"]["delta"] == 1e-6


def test_a_closed_budget_is_no_gap(folder):
    with Ledger.open(folder / "demo.ledger", create=False) as book:
        sf.Steward(book).close_budget("visits", reason="the study is over")
    step = check(_facts(folder))[11]
    assert (step.verdict, "closed" in step.evidence) == ("done", True)


CSV = """
[datasets.shop]
epsilon = 2
delta = 1e-6

[tables.people]
source = "people.csv"
unit = "person_id"
dataset = "shop"
size = 400

[tables.people.columns]
person_id = { type = "int", lower = 0, upper = 999, nullable = false, role = "identifier" }
city = { type = "enum", values = ["Lyon", "Nice"], role = "quasi-identifier" }

[tables.orders]
source = "orders.csv"
unit = { via = "people", on = "person_id" }
dataset = "shop"
max_rows = 3

[tables.orders.columns]
person_id = { type = "int", lower = 0, upper = 999, nullable = false, role = "identifier" }
total = { type = "int", lower = 0, upper = 100, role = "sensitive" }
"""
JOINED = "SELECT city, SUM(total) AS spent FROM orders JOIN people USING (person_id) GROUP BY city"


@pytest.fixture
def shop(tmp_path):
    """Orders that belong to whom another table says, both in CSV files, and one release about them."""
    (tmp_path / "people.csv").write_text("person_id,city\n1,Lyon\n2,Nice\n")
    (tmp_path / "orders.csv").write_text("person_id,total\n1,10\n2,20\n2,30\n")
    (tmp_path / "sfumato.toml").write_text(CSV)
    with open_session(Catalog.read(tmp_path / "sfumato.toml"), "shop") as session:
        session.sql(JOINED).release(epsilon=1)
    return tmp_path


def test_tables_joined_by_via_are_one_dataset_with_their_links_allowed(shop):
    shown = run(app, ["check", "shop", "--json", "--config", str(shop / "sfumato.toml")])
    assert shown.exit_code == 0, shown.output
    steps = json.loads(shown.output)["steps"]
    # The ids that link the tables are identifiers, and are asked for by no question but the link itself.
    assert (steps[0]["verdict"], steps[1]["verdict"]) == ("done", "done")
    assert "3 rows of orders" in steps[1]["evidence"]
    label = run(app, ["card", "shop", "--config", str(shop / "sfumato.toml")]).output
    assert "one person_id with all its rows" in label
    assert "orders, each unit" in label


def test_an_identifier_that_links_nothing_is_a_gap_all_the_same(shop):
    toml = shop / "sfumato.toml"
    toml.write_text(toml.read_text().replace('role = "sensitive"', 'role = "identifier"'))
    shown = run(app, ["check", "shop", "--json", "--config", str(toml)])
    assert shown.exit_code == 4
    assert "orders.total" in json.loads(shown.output)["steps"][0]["fix"]


@pytest.mark.parametrize("command", ["card", "check"])
@pytest.mark.parametrize("spoil", ["gone", "another", "a folder"])
def test_no_private_file_is_opened(shop, command, spoil):
    given = [command, "shop", "--json", "--config", str(shop / "sfumato.toml")]
    before = run(app, given).output
    for name in ("people.csv", "orders.csv"):
        (shop / name).unlink()
        if spoil == "another":
            (shop / name).write_bytes(b"\xff\x00 no header of this")
        elif spoil == "a folder":
            (shop / name).mkdir()
    assert re.search(r"spent \\u00b1 \d|spent\": \"\\u00b1 \d", before)  # the error bars of the kept answer
    assert run(app, given).output == before


def test_a_session_that_only_quotes_answers_nothing(shop):
    catalog = Catalog.read(shop / "sfumato.toml")
    with DuckDB() as inner, Ledger.open(catalog.ledger, create=False) as book:
        engine = Unopened(inner, public=[])
        session = sf.Session(
            *catalog.members("shop"), budget=catalog.budgets["shop"], ledger=book, engine=engine
        )
        assert session.sql(JOINED).quote(epsilon=1).columns[1].half_width > 0
        with pytest.raises(EngineFailed, match="not opened"):
            session.sql("SELECT COUNT(*) AS n FROM people").release(epsilon="0.1")
        with pytest.raises(EngineFailed, match="not opened"):
            engine.values("people", "city", 10)
        with pytest.raises(SourceUnusable, match="not opened"):
            engine.schema(str(shop / "people.csv"))


def test_a_prepared_file_is_quoted_as_it_is_asked(folder):
    table = Catalog.read(folder / "sfumato.toml").tables[0]
    path = folder / "visits.duckdb"
    prepare_table(table, path, group_by="ward")
    prepared = replace(table, source=str(path))
    ask, errors = "SELECT ward, SUM(cost) AS spent FROM visits GROUP BY ward", []
    with DuckDB() as inner:
        for engine in (inner, Unopened(inner, public=[])):
            session = sf.Session(prepared, budget=sf.Budget(1), engine=engine)
            quote = session.sql(ask).quote(epsilon=1)
            errors.append((quote.measured.bounding.name, quote.columns[1].half_width))
            session.close()
        assert errors[0] == errors[1]
        assert errors[0][0] == "grouped"
        path.unlink()  # one that is gone is told, and not taken for one without ranks
        with pytest.raises(SourceUnusable):
            sf.Session(prepared, budget=sf.Budget(1), engine=Unopened(inner, public=[]))
