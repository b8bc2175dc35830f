"""`validate`: exact counts of what fits, on every source, for the steward alone, with nothing written."""

from __future__ import annotations

import collections
import contextlib
import datetime
import random
import tomllib

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import AccessDenied, InvalidParameter, SourceUnusable
from sfumato.validation.words import _share

SECRET = "Zanzibar4711"
ROWS = 400
# Cells of each kind of column: (as text, what it is)
CELLS = {
    "whole": [
        ("7", "fits"),
        ("-3", "outside"),
        ("x" + SECRET, "unread"),
        ("", "empty"),
        ("12,5", "unread"),
        ("NA", "unread"),
        ("NaN", "unread"),
    ],
    "number": [
        ("3.5", "fits"),
        ("900", "outside"),
        ("1 000", "unread"),
        ("", "empty"),
        ("NaN", "empty"),
        ("nan", "empty"),
        ("inf", "outside"),
        ("5 kg", "unread"),
    ],
    "day": [
        ("2024-02-03", "fits"),
        ("1999-01-01", "outside"),
        ("03.02.2024", "unread"),
        ("", "empty"),
        ("soon", "unread"),
    ],
    "sex": [("Male", "fits"), (" Male", "outside"), ("male", "outside"), ("", "empty"), (SECRET, "outside")],
    "truth": [("true", "fits"), ("no", "fits"), ("ja", "unread"), ("", "empty")],
    "free": [("a", "fits"), (SECRET, "fits"), ("b c", "fits"), ("", "empty")],
}
SCHEMA = {
    "whole": sf.Int(0, 9),
    "number": sf.Float(0, 100),
    "day": sf.Date("2020-01-01", "2030-12-31"),
    "sex": sf.Enum("Male", "Female"),
    "truth": sf.Bool(),
    "free": sf.Text(),
}


def drawn(seed):
    """Columns of cells, and how many of each are what."""
    draw = random.Random(seed)
    columns, wanted = {}, {}
    for name, cells in CELLS.items():
        chosen = draw.choices(cells, weights=[5] + [1] * (len(cells) - 1), k=ROWS)
        columns[name] = [text for text, _ in chosen]
        wanted[name] = collections.Counter(what for _, what in chosen)
    columns["id"] = [f"p{int(draw.paretovariate(1)) % 60}" for _ in range(ROWS)]
    return columns, wanted


def csv(columns, folder):
    cells = [[f'"{cell}"' if "," in cell else cell for cell in column] for column in columns.values()]
    lines = [",".join(columns), *map(",".join, zip(*cells, strict=True))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder / "t.csv"


def nulls(columns):
    return pa.table({name: [cell or None for cell in cells] for name, cells in columns.items()})


def parquet(columns, folder):
    pq.write_table(nulls(columns), folder / "t.parquet")
    return folder / "t.parquet"


def database(columns, folder):
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", nulls(columns))
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return str(folder / "t.duckdb::t")


def frame(columns, folder):
    return pd.DataFrame(
        {n: pd.Series([c or None for c in cells], dtype=object) for n, cells in columns.items()}
    )


SOURCES = {"csv": csv, "parquet": parquet, "duckdb": database, "frame": frame}


def table(source, schema=None, **limits):
    unit = sf.PrivacyUnit("id", **(limits or {"max_groups": 2, "max_rows": 5}))
    return sf.PrivateTable("t", source=source, unit=unit, schema=SCHEMA if schema is None else schema)


@pytest.fixture(scope="module", params=SOURCES)
def validated(request, tmp_path_factory):
    """A report of each sort of source, what was in it, and the folder."""
    folder = tmp_path_factory.mktemp(request.param)
    columns, wanted = drawn(request.param)
    report = sf.validate(table(SOURCES[request.param](columns, folder)))
    return request.param, columns, wanted, report, folder


def test_counts_are_exact_on_every_source(validated):
    _, _, wanted, report, _ = validated
    for column in report.tables[0].columns:
        found = {
            "fits": column.fitting,
            "empty": column.empty,
            "unread": column.unread,
            "outside": column.outside,
        }
        assert collections.Counter(found) == wanted[column.name], column.name


def test_what_limits_cut_is_what_they_cut(validated):
    _, columns, _, report, _ = validated
    units = report.tables[0].units
    rows = collections.Counter(columns["id"])
    assert units.count == len(rows)
    for limit in range(1, 12):
        above = [n for n in rows.values() if n > limit]
        assert units.cut(limit) == (len(above), sum(n - limit for n in above))
    for name in ("sex", "free"):
        pairs = {(who, cell) for who, cell in zip(columns["id"], columns[name], strict=True) if cell}
        groups = collections.Counter(who for who, _ in pairs)
        above = [n for n in groups.values() if n > 2]
        assert units.groups_cut(name, 2) == (len(above), sum(n - 2 for n in above))


def test_a_ceiling_that_units_exceed_is_told():
    rows = [1] * 9 + [40, 70, 200]
    source = pa.table({"id": [who for who, n in enumerate(rows) for _ in range(n)]})
    for ceiling in (1, 39, 40, 70, 199, 200, 1_000):
        found = " ".join(sf.validate(table(source, {}, ceiling=ceiling)).tables[0].findings)
        above = sum(n > ceiling for n in rows)
        assert ("Declare a larger ceiling" in found) == (above > 0)
        told = f"{above} unit{'s have' if above > 1 else ' has'} more than {ceiling:,} rows"
        assert told in found or not above
    profiled = sf.PrivateTable(
        "t", source=source, unit=sf.PrivacyUnit("id"), schema={}, profile={1: 9, 100: 3}
    )
    assert "1 unit has more than 100 rows" in sf.validate(profiled).tables[0].findings[0]


def test_no_cell_is_shown_and_every_line_fits(validated):
    _, _, _, report, _ = validated
    text = str(report)
    assert SECRET not in text + repr(report.to_dict())
    assert max(map(len, text.split("\n"))) <= 80
    assert text.startswith("For the steward alone.")
    assert "◂ max_rows" in text


def test_nothing_is_written(validated):
    form, _, _, _, folder = validated
    names = {"csv": {"t.csv"}, "parquet": {"t.parquet"}, "duckdb": {"t.duckdb"}, "frame": set()}
    assert {path.name for path in folder.iterdir()} == names[form]


def test_changes_are_types_formats_and_columns_alone(validated):
    """No bound, no value, no limit that is read off the data."""
    form, _, _, report, _ = validated
    changes = report.tables[0].changes
    lines = [line for change in changes for line in (change.old, change.new) if line]
    limits = {"lower = 0, upper = 9", "lower = 0, upper = 100", "start = 2020-01-01, end = 2030-12-31"}
    for line in lines:
        assert line.startswith(("decimal = ", "dates = ", "trim = ")) or " = { type = " in line
        for declared in limits:
            line = line.replace(declared, "")
        assert not set(line) & set("0123456789")
    if form == "csv":
        assert "trim = true" in lines
        assert 'dates = ["%Y-%m-%d", "%d.%m.%Y"]' in lines
    else:
        assert ('whole = { type = "text" }' in lines) == (form != "frame")


def test_what_is_advised_helps(tmp_path):
    lines = ["id;x;d;s"] + [f"p{i};{i},5;{i % 28 + 1:02d}.01.2024; Male" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    schema = {"x": sf.Float(0, 100), "d": sf.Date("2024-01-01", "2024-12-31"), "s": sf.Enum("Male")}
    first = sf.validate(table(tmp_path / "t.csv", schema)).tables[0]
    assert [change.new for change in first.changes] == [
        'decimal = ","',
        'dates = ["%d.%m.%Y"]',
        "trim = true",
    ]
    formed = sf.Csv(tmp_path / "t.csv", decimal=",", dates=["%d.%m.%Y"], trim=True)
    second = sf.validate(table(formed, schema))
    assert [column.fitting for column in second.tables[0].columns] == [40, 40, 40]
    assert second.fits
    assert "Every value fits" in str(second)


SPELLED = {  # by a type the ways in which cells of it are written
    "int": [lambda n: f"{n}", lambda n: f" {n}"],
    "float": [lambda n: f"{n},5", lambda n: f" {n},25", lambda n: f"{n}"],
    "date": [
        lambda n: f"2024-{n % 12 + 1:02d}-{n % 28 + 1:02d}",
        lambda n: f"{n % 28 + 1:02d}.{n % 12 + 1:02d}.2024",
    ],
    "bool": [lambda n: ("yes", "no")[n % 2]],
    "text": [lambda n: f"ward {n % 7}", lambda n: f"bed {n}", lambda n: f"{n}"],
}
TYPES = {"int": sf.Int(), "float": sf.Float(), "date": sf.Date(), "bool": sf.Bool(), "text": sf.Text()}


@pytest.mark.parametrize(
    "declared", [pytest.param(w, marks=() if w in ("int", "text") else pytest.mark.stats) for w in TYPES]
)
def test_columns_of_mixed_cells_are_read_once_they_are_declared_as_advised(tmp_path, declared):
    """Whatever they are declared as at first: spellings of a type, words for nothing, a word."""
    draw = random.Random(declared)
    cells = {"id": [f"p{row}" for row in range(ROWS)]}
    for word, ways in SPELLED.items():
        cells[word] = [draw.choice(ways)(row + 1) for row in range(ROWS)]
        for row in draw.sample(range(ROWS), ROWS // 4):
            cells[word][row] = draw.choice(["NA", "-", "null", "n/a"])
        cells[word][row] = "else"
    lines = [";".join(cells), *map(";".join, zip(*cells.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    schema = dict.fromkeys(SPELLED, TYPES[declared])
    (found,) = sf.validate(table(tmp_path / "t.csv", schema)).tables
    lines = [change.new for change in found.changes]
    settings = {
        name: eval(value, {"true": True})
        for name, _, value in (line.partition(" = ") for line in lines if "type" not in line)
    }
    for line in lines:
        if "type" in line:
            name, _, rest = line.partition(" = ")
            schema[name] = TYPES[rest.split('"')[1]]
    wanted = {word: word for word in SPELLED} | ({"int": "float"} if declared == "float" else {})
    assert {name: kind.to_dict()["type"] for name, kind in schema.items()} == wanted
    (again,) = sf.validate(table(sf.Csv(tmp_path / "t.csv", **settings), schema)).tables
    assert all(column.unread <= ROWS // 4 + 1 for column in again.columns)
    assert not again.changes


def test_numbers_in_two_forms_are_text_and_the_question_that_reads_them_is_told(tmp_path):
    lines = ["id;a;b;c", *(f"p{i};{i},5;{i}.5;{i},25" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    schema = {"a": sf.Float(), "b": sf.Float(), "c": sf.Text()}
    found = sf.validate(table(tmp_path / "t.csv", schema)).tables[0]
    assert [change.new for change in found.changes] == ['a = { type = "text" }']
    (told,) = [finding for finding in found.findings if "CAST" in finding]
    schema["a"] = sf.Text()
    cast = told.split("ask for ")[1].rstrip(".")
    unit = sf.PrivacyUnit("id", max_rows=1)
    asked = sf.PrivateTable("t", source=tmp_path / "t.csv", unit=unit, schema=schema)
    with sf.Session(asked, budget=sf.Budget(10**9)) as session:
        total = session.sql(f"SELECT SUM(LEAST(GREATEST({cast}, 0), 99)) AS s FROM t").release(epsilon=10**6)
    assert abs(total.table["s"][0].as_py() - sum(i + 0.5 for i in range(40))) < 1


def test_numbers_with_a_unit_are_to_be_written_plainly_and_not_to_be_text(tmp_path):
    cells = {
        "euros": "€ 1,874.64",
        "tight": "1.874,64€",
        "code": "EUR 5.20",
        "weight": "1 200 kg",
        "apart": "1,874,000.5",
        "minus": "-$5",
        "ids": "p1200",
        "beds": "bed 3",
    }
    lines = [";".join(["id", *cells]), *(";".join([f"u{i}", *cells.values()]) for i in range(20))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (found,) = sf.validate(table(tmp_path / "t.csv", dict.fromkeys(cells, sf.Float()))).tables
    assert [change.new for change in found.changes] == [
        f'{name} = {{ type = "text" }}' for name in ("ids", "beds")
    ]
    (told,) = [finding for finding in found.findings if "out of the file" in finding]
    assert told.startswith("euros, tight, code, weight, apart, minus: numbers with a unit")
    assert told.endswith("out of the file: 1874.64, not €1,874.64.")
    (text,) = sf.validate(table(tmp_path / "t.csv", dict.fromkeys(cells, sf.Text()))).tables
    assert not text.changes
    (told,) = text.findings
    assert told.startswith("euros, tight, code, weight, apart, minus: ")
    assert "declare euros and tight and code and weight and apart and minus as int or float: " in told
    comma = sf.validate(table(sf.Csv(tmp_path / "t.csv", decimal=","), {"tight": sf.Float()})).tables[0]
    assert comma.findings[-1].endswith("1874,64, not €1.874,64.")


def test_changes_can_be_pasted(tmp_path):
    names = [f"q{i}" for i in range(1, 36)]
    lines = [",".join(["id", *names]), *(",".join([f"u{i}", *["7"] * 35]) for i in range(20))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    schema = dict.fromkeys(names, sf.Text()) | {"q35": sf.Bool(nullable=False), "q34": sf.Enum("a" * 80)}
    report = sf.validate(table(tmp_path / "t.csv", schema), roles={"t": {"q2": "sensitive", "q35": "plain"}})
    new = [change.new for change in report.tables[0].changes]
    read = tomllib.loads("\n".join(new))
    assert read["q1"] == {"type": "int"}
    assert read["q2"] == {"type": "int", "role": "sensitive"}
    assert read["q35"] == {"type": "int", "role": "plain", "nullable": False}
    shown = str(report)
    assert "(12 of 35 columns; the others were not counted)" in " ".join(shown.split())
    assert "33 columns from text to int" in shown
    assert "- q1 =" not in shown
    assert '- q35 = { type = "bool", role = "plain", nullable = false }' in shown
    assert {f"+ {line}" for line in new} <= set(shown.split("\n"))


def test_shares_side_by_side_add_up():
    for n in range(1001):
        parts = [_share(part, 1000) for part in (n, 1000 - n)]
        if not any(sign in "".join(parts) for sign in "<>."):
            assert sum(int(part.split()[0]) for part in parts) == 100


def test_ids_that_look_alike_lost_rows_and_other_encodings(tmp_path):
    lines = [b"id,v", b"7,1", b"07,1", b"007,1", b"a,1", b"A,1", b" a,1", b"b,\xe9", b"c,1,2", b"c", b",1"]
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines) + b"\n")
    report = sf.validate(table(tmp_path / "t.csv", {"v": sf.Text()})).tables[0]
    assert report.units.alike == {"blanks around them": 1, "upper and lower case": 1, "leading zeros": 2}
    assert (report.lines.uneven, report.lines.broken, report.lines.first) == (2, 1, 8)
    assert report.units.unnamed == 1
    assert "1252" in report.findings[0]


def test_declarations_that_cannot_be_read_are_found_and_stop_nothing(tmp_path):
    rows = pa.table(
        {"id": ["a", "b"], "City": ["x", "y"], "when": [datetime.datetime(2024, 1, 1)] * 2, "n": [1, 2]}
    )
    schema = {"city": sf.Text(), "wen": sf.Date(), "when": sf.Int(0, 9), "n": sf.Int(0, 9), "gone": sf.Text()}
    report = sf.validate(table(rows, schema)).tables[0]
    lines = [(change.old, change.new) for change in report.changes]
    assert ("wen", None) in lines or ("wen", "when") in lines
    assert ("gone", None) in lines
    assert ('when = { type = "int", lower = 0, upper = 9 }', 'when = { type = "timestamp" }') in lines
    lost = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit("idd"), schema={"n": sf.Int(0, 9)})
    found = sf.validate(lost).tables[0]
    assert found.units is None
    assert ("idd", "id") in [(change.old, change.new) for change in found.changes]


def test_names_that_a_header_repeats_are_found(tmp_path):
    (tmp_path / "t.csv").write_text("id,city,city,ID\na,x,y,1\n")
    report = sf.validate(table(tmp_path / "t.csv", {"city": sf.Text(), "Id": sf.Text()})).tables[0]
    assert [finding.partition(":")[0] for finding in report.findings] == ["city", "Id"]
    assert report.units.rows == {1: 1}


def test_owners_in_another_table_are_counted(tmp_path):
    people = pa.table({"who": ["a", "b", "b"], "order": [1, 2, 3]})
    lines = pa.table({"order": [1, 2, 3, 3, 9], "q": [1, 1, 1, 1, 1]})
    orders = sf.PrivateTable("o", source=people, unit=sf.PrivacyUnit("who"), schema={"order": sf.Int()})
    unit = sf.PrivacyUnit.via("o", on="order")
    report = sf.validate(
        orders, sf.PrivateTable("l", source=lines, unit=unit, schema={"order": sf.Int(), "q": sf.Int(0, 9)})
    )
    units = report.tables[1].units
    assert units.rows == {1: 1, 3: 1}
    assert units.unnamed == 1


def test_public_tables_and_rows_as_units_have_no_picture():
    rows = pa.table({"v": ["x", "y"]})
    private = sf.PrivateTable("p", source=rows, unit=sf.PrivacyUnit.row(), schema={"v": sf.Enum("x")})
    report = sf.validate(private, sf.PublicTable("q", source=rows, schema={"v": sf.Text()}))
    assert [each.units for each in report.tables] == [None, None]
    assert report.tables[0].columns[0].outside == 1


@pytest.mark.parametrize("seed", range(3))
def test_no_file_makes_it_crash(tmp_path, seed):
    """Random bytes after a header: told, or refused as any source that cannot be read."""
    draw = random.Random(seed)
    alphabet = b"0123456789,;.-\"'\n\r\t \x00\xff\xe9\xc3abNaninf2024"
    for _ in range(4):
        body = bytes(draw.choices(alphabet, k=draw.randint(0, 400)))
        (tmp_path / "t.csv").write_bytes(b"id,whole,number,day,sex,truth,free\n" + body)
        with contextlib.suppress(SourceUnusable):
            assert str(sf.validate(table(tmp_path / "t.csv"))).startswith("For the steward alone.")


def test_an_analyst_cannot_run_it(tmp_path, monkeypatch):
    declared = table(pa.table({"id": ["a"], "v": ["x"]}), {"v": sf.Text()})
    with sf.Session(declared, budget=sf.Budget(1)) as session:
        assert session.validate().tables[0].rows == 1
        with session.as_analyst("ada") as analyst, pytest.raises(AccessDenied, match="Only the steward"):
            analyst.validate()
        assert session.balance().spent == 0
    monkeypatch.setenv("SFUMATO_ANALYST", "ada")
    with pytest.raises(AccessDenied):
        sf.validate(declared)
    monkeypatch.delenv("SFUMATO_ANALYST")
    with pytest.raises(InvalidParameter):
        sf.validate("t.csv")


def test_progress_only_grows(tmp_path):
    seen = []
    columns, _ = drawn(5)
    sf.validate(table(csv(columns, tmp_path)), progress=lambda done, what: seen.append((done, what)))
    assert seen[-1] == (1.0, "done")
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {what for _, what in seen} >= {"opening t", "reading t"}
