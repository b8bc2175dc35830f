"""What Start writes is what `sfumato init` writes; a file that is there is added to, and never changed."""

import tomllib
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import invoke
from sfumato.catalog.adding import replace_text, with_table
from sfumato.catalog.looking import drafted, naming_of
from sfumato.cli import app
from sfumato.engines import engine as open_engine
from sfumato.errors import CatalogUnusable, InvalidParameter, LedgerMismatch, SourceUnusable
from sfumato.ledger import Ledger
from sfumato.server.grounds import Grounds, Wanted
from sfumato.server.house import House
from sfumato.server.page.forms import fields
from sfumato.server.page.start.drafting import Drafts

CSV = "patient_id,visit_date,ward,age,cost\n1,2024-01-02,a,50,3.5\n2,2024-01-03,b,60,4.5\n"


@pytest.fixture
def house():
    with Ledger.open(None) as ledger, open_engine("duckdb") as engine:
        yield House.empty(ledger, engine)


@pytest.fixture
def grounds(house, tmp_path):
    (tmp_path / "visits.csv").write_text(CSV)
    (tmp_path / "rows.csv").write_text("Anna;70\nBert;30\n")
    columns = {
        "user_id": [1, 2],
        "height": [1.8, 1.7],
        "birth_date": pa.array([1, 2], pa.date32()),
        "n": ["a", "b"],
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    return Grounds(house, tmp_path / "sfumato.toml")


def screens(grounds, file, unit, epsilon="1", delta="1e-6", *, changed=None):
    """What the forms send where nothing is changed and nothing is known."""
    made = Drafts().begin("sofia", grounds.located(file), grounds, uploaded=False)
    if made.naming.doubt:
        made.naming, made.table = grounds.looked(made.file, False)
    columns, table = list(made.table.columns), made.table
    made.take_unit({"unit": "row" if unit == "row" else str(columns.index(unit))})
    said = {f"what{place}": table.role(name) for place, name in enumerate(columns)}
    said |= {f"type{place}": str(table.type(name)) for place, name in enumerate(columns)}
    made.take_columns({"name": table.name, **said, **(changed or {})}, grounds.taken())
    made.take_bounds(changed or {})
    made.take_budget({"choice": "other", "epsilon": epsilon, "delta": delta}, [])
    return made


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_has_as_many_columns_as_a_form_has_fields_for(grounds, kind):
    """One more is refused in a sentence before anybody decides on them: their form would not be taken."""

    def wide(columns):
        file = grounds.folder / f"wide.{kind}"
        if kind == "csv":
            file.write_text(
                ",".join(f"c{place}" for place in range(columns)) + "\n" + "1," * (columns - 1) + "1\n"
            )
        else:
            pq.write_table(pa.table({f"c{place}": [1] for place in range(columns)}), file)
        return grounds.looked(file, True)[1]

    table = wide(900)
    names = ["form", "name", *(f"{word}{place}" for place in range(900) for word in ("what", "type"))]
    assert len(table.columns) == 900
    assert fields(urlencode(dict.fromkeys(names, "x")).encode()).keys() == set(names)
    with pytest.raises(InvalidParameter, match=r"The file has 901 columns, and at most 900 .* sfumato init"):
        wide(901)


@pytest.mark.parametrize(
    ("file", "unit"),
    [("visits.csv", "patient_id"), ("visits.csv", "row"), ("people.parquet", "user_id"), ("rows.csv", "row")],
)
def test_the_same_decisions_make_the_same_file_as_init(grounds, tmp_path, monkeypatch, file, unit):
    monkeypatch.chdir(tmp_path)
    arguments = ["init", file, "--unit", unit, "--epsilon", "1", "--delta", "1e-6", "-o", "by_init.toml"]
    if file == "rows.csv":
        arguments.append("--no-header")  # what nobody can tell by its words is said, here and there
    assert invoke(app, arguments).exit_code == 0
    assert grounds.text(screens(grounds, file, unit).wanted) == (tmp_path / "by_init.toml").read_text()


def test_what_is_decided_is_in_the_file(grounds, house):
    changed = {"what2": "sensitive", "what4": "out", "type3": "float", "low3": "-5", "high3": "1e2"}
    changed |= {"values2": "a, b", "low1": "2024-01-01", "high1": "2024-12-31"}
    draft = screens(grounds, "visits.csv", "patient_id", "1/3", changed=changed)
    text = grounds.text(draft.wanted)
    columns = tomllib.loads(text)["tables"]["visits"]["columns"]
    assert columns["ward"] == {"type": "enum", "values": ["a", "b"], "role": "sensitive"}
    assert columns["age"] == {"type": "float", "role": "quasi-identifier", "lower": -5, "upper": 100}
    assert str(columns["visit_date"]["end"]) == "2024-12-31"
    assert not {"cost", "patient_id"} & set(columns)
    grounds.register(draft.wanted, text)
    assert (grounds.path).read_text() == text
    assert house.catalog is not None
    assert [*house.tables["visits"].schema] == ["visit_date", "age", "ward"]


def begun(grounds):
    wanted = screens(grounds, "visits.csv", "patient_id").wanted
    grounds.register(wanted, grounds.text(wanted))
    return grounds.path.read_text()


def test_a_second_table_is_added_and_all_else_stays(grounds, house):
    before = begun(grounds)
    grounds.path.chmod(0o600)
    wanted = screens(grounds, "people.parquet", "user_id").wanted
    grounds.register(wanted, grounds.text(wanted))
    after = grounds.path.read_text()
    assert after.startswith(before.rstrip())
    assert grounds.path.stat().st_mode & 0o777 == 0o600
    assert house.datasets == ["people", "visits"]


def test_a_file_that_is_there_is_never_written_over(grounds, house):
    wanted = screens(grounds, "visits.csv", "patient_id").wanted
    seen = grounds.text(wanted)
    grounds.path.write_text("# mine\n")
    with pytest.raises(CatalogUnusable):
        grounds.register(wanted, seen)
    assert grounds.path.read_text() == "# mine\n"
    assert house.datasets == []


def test_a_file_that_changes_while_it_is_registered_is_left(grounds, house, monkeypatch):
    begun(grounds)
    wanted = screens(grounds, "people.parquet", "user_id").wanted
    seen, widen = grounds.text(wanted), House.widen

    def edited(self, *tables, **more):
        with grounds.path.open("a") as file:
            file.write("# mine\n")
        return widen(self, *tables, **more)

    monkeypatch.setattr(House, "widen", edited)
    with pytest.raises(CatalogUnusable, match="changed meanwhile"):
        grounds.register(wanted, seen)
    assert grounds.path.read_text().endswith("# mine\n")
    assert house.datasets == ["visits"]
    assert not list(grounds.folder.glob(".sfumato.toml*"))


def test_a_file_that_somebody_else_writes_meanwhile_is_left(grounds, house, monkeypatch):
    wanted = screens(grounds, "visits.csv", "patient_id").wanted
    seen, widen = grounds.text(wanted), House.widen

    def edited(self, *tables, **more):
        grounds.path.write_text("# mine\n")
        return widen(self, *tables, **more)

    monkeypatch.setattr(House, "widen", edited)
    with pytest.raises(CatalogUnusable, match="exists and was left as it is"):
        grounds.register(wanted, seen)
    assert grounds.path.read_text() == "# mine\n"
    assert house.datasets == []


def test_what_the_ledger_has_on_record_is_told_and_nothing_is_written(grounds, house):
    before = begun(grounds)
    house.session("ada").sql("SELECT COUNT(*) AS n FROM visits").release(epsilon="0.5")
    shared = screens(grounds, "visits.csv", "patient_id")
    shared.table = drafted(
        str(grounds.folder / "visits.csv"),
        naming_of(str(grounds.folder / "visits.csv"), None),
        source="visits.csv",
        taken=["visits"],
    )
    wanted = Wanted(shared.table, "patient_id", dataset="visits")
    with pytest.raises(LedgerMismatch):
        grounds.register(wanted, grounds.text(wanted))
    assert grounds.path.read_text() == before
    other = Wanted(screens(grounds, "people.parquet", "user_id").table, "user_id", dataset="visits")
    with pytest.raises(SourceUnusable, match="ids of visits, people"):
        grounds.register(other, grounds.text(other))
    assert [*house.tables] == ["visits"]


@pytest.mark.parametrize(
    "text",
    [
        'tables = { a = { source = "a.csv" } }\n[datasets.a]\nepsilon = 1\n',
        "[datasets.people]\nepsilon = 1\n",
        '[tables.people]\nsource = "x"\n',
        "[tables\n",
        "[[tables]]\n",
        "[tables.people.states.march]\nfiles = []\n",
    ],
)
def test_a_file_of_another_kind_is_left_to_its_steward(grounds, text):
    table = screens(grounds, "people.parquet", "user_id").table
    with pytest.raises(CatalogUnusable, match=r"sfumato\.toml"):
        with_table(text, table, unit="user_id", epsilon="1", delta="0")


def test_a_text_is_replaced_by_who_knows_it(tmp_path):
    path = tmp_path / "sfumato.toml"
    path.write_text("a")
    with pytest.raises(CatalogUnusable, match="changed meanwhile"):
        replace_text(path, "b", "c")
    replace_text(path, "a", "c")
    assert path.read_text() == "c"
    assert [each.name for each in tmp_path.iterdir()] == ["sfumato.toml"]


def test_a_source_that_is_gone_is_told_without_where_it_was(grounds):
    with pytest.raises(SourceUnusable) as refused:
        grounds.looked(grounds.folder / "gone.csv", None)
    assert str(grounds.folder) not in str(refused.value)


def test_files_that_were_sent_go_with_their_drafts_unless_they_are_registered(grounds):
    drafts = Drafts()
    for name in ("one", "two", "three"):
        (grounds.folder / f"{name}.csv").write_text(CSV)
        drafts.begin(name, grounds.folder / f"{name}.csv", grounds, uploaded=True)
    drafts.of("two").registered = True
    drafts.forget("three")
    assert not (grounds.folder / "three.csv").exists()
    drafts.clear()
    assert [each.name for each in sorted(grounds.folder.glob("*.csv"))] == [
        "rows.csv",
        "two.csv",
        "visits.csv",
    ]
    assert drafts.of("one") is None
    (grounds.folder / "wide.csv").write_bytes("a,ü".encode("utf-16"))
    with pytest.raises(SourceUnusable):
        drafts.begin("one", grounds.folder / "wide.csv", grounds, uploaded=True)
    assert not (grounds.folder / "wide.csv").exists()
