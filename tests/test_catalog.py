"""sfumato.toml: what it says is what is read, what it leaves open is said, and a first one reads no data."""

import datetime
import stat
import threading
import tomllib
from fractions import Fraction

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects import DuckDB

from sfumato.catalog import Catalog, DraftTable, draft, role_of, write_new
from sfumato.catalog.keys import ENVIRONMENT, KEYS
from sfumato.catalog.names import table_name
from sfumato.errors import AccessDenied, CatalogUnusable, InvalidParameter
from sfumato.schema import Bool, Date, Enum, Float, Int, PrivacyUnit, Text, Timestamp, _names
from sfumato.schema.classify import type_of, units_of, words_of

WHOLE = """
[ledger]
path = "state/visits.ledger"

[engine]
threads = 2
memory = "1GB"
timeout = 2.5

[datasets.hospital]
epsilon = 0.3
delta = 1e-6

[datasets.hospital.analysts]
alice = { epsilon = 0.1 }
bob = { epsilon = 0.2, delta = 1e-7 }

[datasets.open]
epsilon = 1
delta = 1e-6
accountant = "rdp"
order = 16

[tables.visits]
source = "data/*.parquet"
unit = "patient_id"
max_groups = 3
max_rows = 5
dataset = "hospital"
version = "2024-06"
size = 5000

[tables.visits.columns]
city = { type = "enum", values = ["Lyon", "Nice"], role = "quasi-identifier" }
age = { type = "int", lower = 0, upper = 120, nullable = false }
cost = { type = "float", lower = 0.1, upper = "?", role = "sensitive" }
weight = { type = "float", lower = 0.1, upper = 250 }
day = { type = "date", start = 2023-01-01, end = "2023-12-31" }
note = "text"
urgent = "bool"

[tables.rows]
source = "postgresql://somewhere/x"
unit = "row"
adjacency = "exchange"
rows = 12
dataset = "open"
columns.x = "text"
"""


def read(folder, text, **options):
    (folder / "sfumato.toml").write_text(text, encoding="utf-8")
    return Catalog.read(folder / "sfumato.toml", environ=options.pop("environ", {}), **options)


def test_an_exact_number_of_rows_needs_rows_that_are_exchanged(tmp_path):
    text = (
        WHOLE.replace('adjacency = "exchange"\n', "")
        .replace(', upper = "?"', "")
        .replace("lower = 0.1, r", "r")
    )
    with pytest.raises(CatalogUnusable, match="rows: when units are added or removed"):
        read(tmp_path, text)


def test_everything_that_is_written_is_read(tmp_path):
    text = WHOLE.replace(', upper = "?"', "").replace(
        'cost = { type = "float", lower = 0.1,', 'cost = { type = "float",'
    )
    catalog = read(tmp_path, text)
    visits, rows = catalog.tables
    assert visits.name == "visits"
    assert visits.source == str(tmp_path / "data/*.parquet")
    assert visits.unit == PrivacyUnit("patient_id", max_groups=3, max_rows=5)
    assert (visits.dataset, visits.version, visits.size) == ("hospital", "2024-06", 5000)
    assert visits.schema == {
        "city": Enum("Lyon", "Nice"),
        "age": Int(0, 120, nullable=False),
        "cost": Float(),
        "weight": Float("0.1", 250),
        "day": Date(datetime.date(2023, 1, 1), datetime.date(2023, 12, 31)),
        "note": Text(),
        "urgent": Bool(),
    }
    assert rows.unit == PrivacyUnit.row(adjacency="exchange")
    assert (rows.rows, visits.rows) == (12, None)
    assert rows.source == "postgresql://somewhere/x"
    assert catalog.budgets["hospital"].epsilon == Fraction(3, 10)
    assert catalog.budgets["hospital"].delta == Fraction(1, 10**6)
    assert catalog.budgets["open"].accountant == "rdp"
    assert catalog.budgets["open"].order == 16
    assert {who: limit.epsilon for who, limit in catalog.limits["hospital"].items()} == {
        "alice": Fraction(1, 10),
        "bob": Fraction(1, 5),
    }
    assert catalog.limits["open"] == {}
    assert catalog.ledger == str(tmp_path / "state/visits.ledger")
    assert (catalog.engine.threads, catalog.engine.memory, catalog.engine.timeout) == (2, "1GB", 2.5)
    assert catalog.roles["visits"]["city"] == "quasi-identifier"
    assert catalog.roles["visits"]["note"] == "plain"
    assert catalog.table("VISITS") is visits
    assert catalog.members("open") == (rows,)
    assert catalog.public == ()


def test_one_undecided_bound_is_refused_where_it_makes_no_sense(tmp_path):
    with pytest.raises(CatalogUnusable, match=r"tables\.visits\.columns\.cost: Float takes both bounds"):
        read(tmp_path, WHOLE)


SMALL = """
[datasets.d]
epsilon = 1
[tables.t]
source = "x.parquet"
unit = "row"
dataset = "d"
columns.a = "int"
"""


def test_numbers_are_read_to_their_last_digit(tmp_path):
    exact = "0.1000000000000000000000000001"
    assert read(tmp_path, SMALL.replace("epsilon = 1", f"epsilon = {exact}")).budgets[
        "d"
    ].epsilon == Fraction(exact)


def test_flags_over_environment_over_file(tmp_path):
    environ = {"SFUMATO_LEDGER": "env.ledger", "SFUMATO_ANALYST": "eve"}
    assert read(tmp_path, SMALL).ledger == str(tmp_path / "sfumato.ledger")
    inherited = read(tmp_path, SMALL, environ=environ)
    assert (inherited.ledger, inherited.analyst) == ("env.ledger", "eve")
    flagged = read(tmp_path, SMALL, environ=environ, ledger="flag.ledger", analyst="bob")
    assert (flagged.ledger, flagged.analyst) == ("flag.ledger", "bob")


def test_the_engine_has_a_name(tmp_path):
    catalog = read(tmp_path, SMALL)
    assert (catalog.engine.name, catalog.engine.url) == (None, None)
    with catalog.engine.open() as opened:
        assert opened.dialect.name == "duckdb"
    for settings, reason in (
        ("name = 'abacus'", "no engine 'abacus'; engines: duckdb"),
        ("name = 'os:system'", "no engine 'os:system'; engines: duckdb"),  # nothing is imported by it
        (
            "name = 'duckdb'\nurl = 'abacus://secret@host'",
            "The engine duckdb does not take url; leave it out",
        ),
    ):
        other = read(tmp_path, SMALL + f"[engine]\n{settings}\n")
        assert "secret" not in repr(other)
        with pytest.raises(InvalidParameter, match=reason):
            other.engine.open()
    for wrong in ("name = 3", "url = ''"):
        with pytest.raises(CatalogUnusable, match="must be text"):
            read(tmp_path, SMALL + f"[engine]\n{wrong}\n")


@pytest.mark.parametrize("limits", ["", "[engine]\nthreads = 1\nmemory = '1GB'\ntimeout = 300\n"])
@pytest.mark.parametrize("analyst", [None, "eve"])
def test_limits_of_a_read_are_those_of_the_file_whatever_the_environment_says(tmp_path, limits, analyst):
    names = [*ENVIRONMENT, "SFUMATO_THREADS", "SFUMATO_MEMORY", "SFUMATO_TIMEOUT", "SFUMATO_ENGINE_TIMEOUT"]
    plain = read(tmp_path, SMALL + limits, environ={}).engine
    for value in ("0.6", "1", "99", "9GB"):
        found = read(tmp_path, SMALL + limits, environ=dict.fromkeys(names, value), analyst=analyst)
        assert found.engine == plain


def test_key_and_anchor_of_a_server_are_kept_beside_the_file(tmp_path):
    kept = SMALL + "[ledger]\npath = 'a.ledger'\nstate = 'safe'\n"
    assert read(tmp_path, SMALL).state is None
    assert read(tmp_path, kept).state == tmp_path / "safe"
    assert read(tmp_path, kept, ledger="other.ledger").state is None
    assert read(tmp_path, SMALL, ledger="postgresql://host/db").state == tmp_path / ".sfumato"
    assert read(tmp_path, SMALL + "[ledger]\nurl = 'postgresql://host/db'\n").state == tmp_path / ".sfumato"


def test_it_is_found_upwards_or_by_the_environment(tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "sfumato.toml").write_text(SMALL)
    assert Catalog.find(inner, environ={}) == tmp_path / "sfumato.toml"
    monkeypatch.chdir(inner)
    assert Catalog.read(environ={}).path == tmp_path / "sfumato.toml"
    (inner / "other.toml").write_text(SMALL)
    assert Catalog.read(environ={"SFUMATO_CONFIG": "other.toml"}).ledger == str(inner / "sfumato.ledger")


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(CatalogUnusable, match="sfumato init FILE"):
        Catalog.find(tmp_path, environ={})
    with pytest.raises(CatalogUnusable, match="sfumato init FILE"):
        Catalog.read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[tables.t]", "[table.t]"), r"there is no setting 'table'\. Did you mean 'tables'"),
        (
            ("epsilon = 1", "epsilom = 1"),
            r"datasets\.d: there is no setting 'epsilom'\. Did you mean 'epsilon'",
        ),
        (('unit = "row"', 'unit = "row"\nmaxgroups = 1'), "Did you mean 'max_groups'"),
        (
            ('"int"', '{ type = "int", low = 0 }'),
            r"columns\.a: there is no setting 'low'\. Did you mean 'lower'",
        ),
        (('"int"', '{ type = "integer" }'), r"columns\.a: A column's type is one of int"),
        (('"int"', "3"), r"columns\.a is a type such as"),
        (('"int"', '{ type = "int", role = "secret" }'), "role is one of identifier"),
        (('"int"', '{ type = "int", lower = 5, upper = 1 }'), "is above the upper bound"),
        (('dataset = "d"', 'dataset = "e"'), "there is no dataset 'e'"),
        (("epsilon = 1", "epsilon = -1"), r"datasets\.d: epsilon must be"),
        (("epsilon = 1", 'epsilon = 1\naccountant = "magic"'), "accountant must be one of"),
        (('unit = "row"', 'unit = "row"\nmax_groups = 2'), 'with unit = "row" each unit is one row'),
        (('unit = "row"', "unit = 3"), "unit must be text"),
        (('unit = "row"', 'unit = "u"\nmax_groups = 0'), r"tables\.t: max_groups"),
        (("[tables.t]", "tables = 3\n[x]"), "."),
        (('"int"', '{ type = "enum", values = "abc" }'), "values is a list"),
        (('"int"', '{ type = "int", nullable = "false" }'), "nullable is true or false"),
        (("columns.a", "columns.Row"), "could mean the column of that name"),
        (('unit = "row"', 'unit = "u"\nmax_groups = 1.5'), r"tables\.t: max_groups"),
        (('columns.a = "int"', ""), "needs its columns"),
        (("[datasets.d]", "[engine]\ntimeout = 'soon'\n[datasets.d]"), r"engine\.timeout must be"),
        (("[datasets.d]", "[engine]\nthreads = 0\n[datasets.d]"), r"engine\.threads must be"),
        (("[datasets.d]", "[ledger]\npath = 'a'\nurl = 'b'\n[datasets.d]"), "not both"),
        (("[datasets.d]", "[datasets.d"), "is not valid TOML"),
        (("[datasets.d]", f"[engine]\nthreads = {'9' * 5000}\n[datasets.d]"), "too many digits"),
        (("[datasets.d]", f"a = {'[' * 3000}{']' * 3000}\n[datasets.d]"), "too deep in one another"),
    ],
)
def test_mistakes_are_named_with_the_nearest_fix(tmp_path, change, message):
    assert change[0] in SMALL
    with pytest.raises(CatalogUnusable, match=message):
        read(tmp_path, SMALL.replace(*change))


def test_analysts_are_a_closed_list_once_there_is_one(tmp_path):
    listed = SMALL + "[datasets.d.analysts]\nalice = { epsilon = 0.5 }\n"
    read(tmp_path, SMALL).admit("d")
    read(tmp_path, listed, analyst="alice").admit("d")
    with pytest.raises(AccessDenied, match="--analyst"):
        read(tmp_path, listed).admit("d")
    with pytest.raises(AccessDenied, match="'mallory' is not among"):
        read(tmp_path, listed, analyst="mallory").admit("d")


VISITS = {
    "visit_id": "integer",
    "patient_id": "integer",
    "name": "text",
    "age": "integer",
    "city": "text",
    "admitted": "timestamp",
    "cost": "float",
    "ward": "text",
    "urgent": "boolean",
    "scan": "other",
}


def test_a_fresh_one_lists_what_is_to_decide_and_works_once_that_is_decided(tmp_path):
    text = draft([DraftTable("visits", "visits.parquet", VISITS)])
    assert max(len(line) for line in text.splitlines()) <= 100
    with pytest.raises(CatalogUnusable) as caught:
        read(tmp_path, text)
    assert str(caught.value) == (
        "sfumato.toml leaves this to decide: epsilon of datasets.visits; unit of tables.visits. "
        "Write a value for each into its section."
    )
    assert "DECIDE" in text
    assert 'By name it could be "patient_id"' in text
    decided = text.replace('epsilon = "?"', "epsilon = 1").replace('unit = "?"', 'unit = "patient_id"')
    catalog = read(tmp_path, decided)
    (table,) = catalog.tables
    # Identifiers and unusable types are left out; numbers without bounds are there, not yet summable.
    assert table.schema == {
        "age": Int(),
        "city": Text(),
        "admitted": Timestamp(),
        "cost": Float(),
        "ward": Text(),
        "urgent": Bool(),
    }
    assert catalog.roles["visits"]["cost"] == "sensitive"


def test_what_is_decided_at_once_is_not_asked_again(tmp_path):
    text = draft([DraftTable("v", "v.parquet", VISITS)], unit="patient_id", epsilon="0.5", delta="1e-7")
    catalog = read(tmp_path, text)
    assert catalog.tables[0].unit.column == "patient_id"
    assert (catalog.budgets["v"].epsilon, catalog.budgets["v"].delta) == (Fraction(1, 2), Fraction(1, 10**7))
    assert (
        read(tmp_path, draft([DraftTable("v", "v", VISITS)], unit="row", epsilon="1")).tables[0].unit.column
        is None
    )
    with pytest.raises(CatalogUnusable, match="ambiguous"):
        draft([DraftTable("v", "v", {"row": "integer"})], unit="row")
    with pytest.raises(CatalogUnusable, match="no column 'patent_id'"):
        draft([DraftTable("v", "v", VISITS)], unit="patent_id")


@pytest.mark.parametrize("written", ["1", "0.5", "1e-1", "1/3", "00.5", ".5", "5.", " 1"])
def test_a_budget_is_read_as_it_was_given(tmp_path, written):
    text = draft([DraftTable("v", "v.parquet", VISITS)], unit="row", epsilon=written, delta="1/1000000")
    budget = read(tmp_path, text).budgets["v"]
    assert budget.epsilon == Fraction(written.strip().rstrip("."))
    assert budget.delta == Fraction(1, 10**6)


def test_a_file_without_types_gets_them_from_names_and_says_so():
    text = draft([DraftTable("v", "v.csv", dict.fromkeys(VISITS, "text"), untyped=True)])
    columns = tomllib.loads(text)["tables"]["v"]["columns"]
    assert columns["age"]["type"] == "int"
    assert columns["cost"]["type"] == "float"
    assert columns["city"]["type"] == "text"
    assert "type guessed from the name" in text


@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from(sorted(set(VISITS.values()))), max_size=5), st.text()
)
def test_any_column_name_makes_valid_toml(columns, source):
    data = tomllib.loads(draft([DraftTable("t", source, columns)]))
    assert data["tables"]["t"]["source"] == source
    asked = {
        name for name, kind in columns.items() if kind != "other" and role_of(name, kind) != "identifier"
    }
    assert set(data["tables"]["t"]["columns"]) == asked


@pytest.mark.parametrize("unit", ["patient_id", None])
def test_the_ceiling_of_a_fresh_file_can_be_declared(tmp_path, unit):
    text = draft([DraftTable("t", "t", VISITS)], unit=unit, epsilon="1")
    assert f"# no {unit or 'unit'} has more rows than this" in text
    declared = text.replace("# ceiling = ", "ceiling = ").replace('unit = "?"', 'unit = "patient_id"')
    assert read(tmp_path, declared).tables[0].unit.ceiling == 50
    assert "ceiling" not in draft([DraftTable("t", "t", VISITS)], unit="row")


@pytest.mark.parametrize("delimiter", [";", ","])
def test_the_formats_of_a_fresh_file_can_be_uncommented(tmp_path, delimiter):
    columns = dict.fromkeys(VISITS, "text")
    made = DraftTable("v", "v.csv", columns, untyped=True, delimiter=delimiter)
    text = draft([made], unit="patient_id", epsilon="1")
    assert ("\n[tables.v.csv]\n" in text) == (delimiter == ";")
    section = text.replace("# [tables.v.csv]", "[tables.v.csv]").replace("# decimal", "decimal")
    assert read(tmp_path, section).tables[0].source.decimal == ","


def test_every_setting_of_a_fresh_file_is_a_known_one():
    data = tomllib.loads(draft([DraftTable("t", "t", VISITS)]))
    assert set(data) <= set(KEYS[""])
    assert set(data["tables"]["t"]) <= set(KEYS["tables.NAME"])
    assert set(data["datasets"]["t"]) <= set(KEYS["datasets.NAME"])


@pytest.mark.parametrize(
    ("name", "kind", "role"),
    [
        ("patient_id", "integer", "identifier"),
        ("patient_id", "float", "identifier"),
        ("Kunden-Nr", "float", "identifier"),
        ("PatientID", "text", "identifier"),
        ("userid", "text", "identifier"),
        ("Straße", "text", "identifier"),
        ("prénom", "text", "identifier"),
        ("телефон", "text", "identifier"),
        ("电话", "text", "identifier"),
        ("phone_number", "text", "identifier"),
        ("credit_card_number", "text", "identifier"),
        ("age", "integer", "quasi-identifier"),
        ("zip_code", "text", "quasi-identifier"),
        ("Geburtsdatum", "date", "quasi-identifier"),
        ("customer_age", "integer", "quasi-identifier"),
        ("sexe", "text", "quasi-identifier"),
        ("年齢", "integer", "quasi-identifier"),
        ("seen", "timestamp", "quasi-identifier"),
        ("diagnosis", "text", "sensitive"),
        ("Gehalt", "float", "sensitive"),
        ("account_balance", "float", "sensitive"),
        ("给与", "float", "plain"),
        ("給与", "float", "sensitive"),
        ("ward", "text", "plain"),
        ("number_of_rooms", "integer", "plain"),
        ("employee_count", "integer", "plain"),
        ("name", "boolean", "plain"),
        ("loan_year", "integer", "quasi-identifier"),
        ("birth_year", "integer", "quasi-identifier"),
        ("cost_per_year", "float", "sensitive"),
        ("loan", "float", "sensitive"),
        ("borrower_id", "integer", "identifier"),
    ],
)
def test_columns_are_classified_by_name_and_type(name, kind, role):
    assert role_of(name, kind) == role


def test_the_unit_is_the_most_personal_number():
    columns = {"id": "integer", "email": "text", "customer": "text", "Kunden-Nr": "text"}
    assert units_of(columns) == ("Kunden-Nr", "customer", "email", "id")
    assert units_of({"ward": "text", "id": "integer"}) == ("id",)
    assert units_of({"ward": "text", "age": "integer"}) == ()


@pytest.mark.parametrize("name", ["user_id", "borrower_id", "patient_id", "zebra_id", "id", "ssn"])
def test_every_identifier_is_suggested_as_a_unit(name):
    text = draft([DraftTable("t", "t.parquet", {name: "integer", "title": "text"})])
    assert role_of(name, "integer") == "identifier"
    assert f'could be "{name}"' in " ".join(text.replace("# ", "").split())
    assert "No column looks like it" not in text
    none = draft([DraftTable("t", "t.parquet", {"title": "text"})])
    assert "No column looks like it" in none


def test_how_many_rows_count_is_a_decision():
    text = draft([DraftTable("t", "t", VISITS)], unit="patient_id", epsilon="1")
    assert "As how many rows may one unit count?" in text
    assert tomllib.loads(text)["tables"]["t"]["max_rows"] == "auto"


def test_names_are_split_into_words():
    assert words_of("patientID") == words_of("patient_id") == words_of("Patient-Id") == ("patient", "id")
    assert words_of("HTTPServerName") == ("http", "server", "name")
    assert type_of("is_member", "text", untyped=True) == "text"
    assert type_of("is_active", "text", untyped=True) == "bool"


GUESSED = {
    "date": "visit_date date dateOfBirth date_of_birth Geburtsdatum fecha fecha_ingreso dia dia_ingreso "
    "data_nascita data_di_nascita date_naissance created_at admitted_on birthday 日期",
    "bool": "is_active has_insurance was_seen active sent_flag ist_aktiv",
    "int": "age max_age age_at_admission birth_year year_of_birth num_visits visit_count stay_days "
    "number_of_visits",
    "float": "cost cost_2 total_cost avg_cost cost_per_year amount_eur total_visits montant_total prix",
    "text": "bp_dia dia2_eta data data_source datum_quelle date_format day_of_week dia_semana age_group "
    "price_category cost_center active_ingredient flag_color est_value hat is count_type",
}


@pytest.mark.parametrize("word", GUESSED)
def test_types_are_guessed_from_the_word_that_a_name_is_about(word):
    assert {name: type_of(name, "text", untyped=True) for name in GUESSED[word].split()} == dict.fromkeys(
        GUESSED[word].split(), word
    )


def test_no_word_gives_its_type_to_whatever_it_describes():
    listed = _names.DAYS | _names.TRUTHS | _names.COUNTED | _names.MEASURED
    leading = _names.LEADING | _names.BEGINNING | _names.ASKING
    for word in listed - leading:
        assert type_of(f"{word}_thing", "text", untyped=True) == "text", word
        assert type_of(f"pre{word}_x", "text", untyped=True) == "text", word
    for word in _names.BEGINNING | _names.ASKING | {"data", "est"}:
        assert type_of(f"thing_{word}", "text", untyped=True) == "text", word


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("data/visits-2024.csv.gz", "visits_2024"),
        ("visits/*.parquet", "visits"),
        ("visits/country=*/part-*.parquet", "visits"),
        ("shop.duckdb::orders", "orders"),
        ("shop.duckdb", "shop"),
        ("2024.csv", "t_2024"),
        ("*.csv", "data"),
        ("C:\\data\\Über uns.csv", "Uber_uns"),
        ("Données été.csv", "Donnees_ete"),
        ("Donne\u0301es.csv", "Donnees"),  # as macOS may write it: a letter, then its accent
        ("Straße Łódź Ørsted Œuvre.csv", "Strasse_Lodz_Orsted_Oeuvre"),
        ("名前.csv", "data"),
        ("values.csv", "t_values"),
        ("Select.csv", "t_Select"),
    ],
)
def test_a_table_is_named_after_its_file(source, name):
    assert table_name(source) == name


def test_every_name_can_stand_in_a_query_without_quotes():
    """Whatever word SQL has for itself: a name is made that the printed question can be asked with."""
    words = {word.lower() for word in DuckDB.Tokenizer.KEYWORDS if word.isidentifier()}
    assert len(words) > 200
    for word in words:
        read = sqlglot.parse_one(f"SELECT COUNT(*) AS n FROM {table_name(f'{word}.csv')}", read="duckdb")
        assert [table.name for table in read.find_all(sqlglot.exp.Table)] == [table_name(f"{word}.csv")]


def test_names_are_not_taken_twice():
    assert table_name("b/visits.csv", ["Visits", "visits_2"]) == "visits_3"


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    target = tmp_path / "sfumato.toml"
    write_new(target, "first")
    with pytest.raises(CatalogUnusable, match="--force"):
        write_new(target, "second")
    assert target.read_text() == "first"
    write_new(target, "third", force=True)
    assert target.read_text() == "third"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["sfumato.toml"]
    with pytest.raises(CatalogUnusable, match="cannot be written"):
        write_new(tmp_path / "no" / "sfumato.toml", "x")


def test_of_two_writers_at_once_one_wins_whole(tmp_path):
    target, lost = tmp_path / "sfumato.toml", []
    start = threading.Barrier(8)

    def write(letter):
        start.wait()
        try:
            write_new(target, letter * 100_000)
        except CatalogUnusable:
            lost.append(letter)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lost) == 7
    assert len(set(target.read_text())) == 1
    assert len(target.read_text()) == 100_000
