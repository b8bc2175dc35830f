"""`sfumato init` on CSV files: no cell of a row is shown or written, and what it writes opens."""

import gzip
import itertools

import pytest

from sfumato.catalog import Catalog

ROWS = [
    ["Zwetschgenmus", "1983-02-01", "Quedlinburg", "female", "47,11"],
    ["Ypsilanti", "Quedlinburg", "divorced", "xylophonist", "Wuppertal"],
    ["Katie Price", "Baker Street", "heart disease", "Surgical Ward", "Nino"],
    ["Ward", "Street", "illness", "First class", "Weight loss"],
    ["7000001", "7000002", "3.5", "-1", "2023-11-30"],
]
NAMES = ["patient_id", "visit_date", "city", "sex", "cost"]
DELIMITERS = [",", ";", "\t", "|"]


def written(names, rows, delimiter):
    return "".join(
        delimiter.join(f'"{c}"' if delimiter in c else c for c in line) + "\n" for line in names + rows
    )


def cells_in(text, rows):
    return sorted({cell for row in rows for cell in row if len(cell) > 2 and cell in text})


@pytest.mark.parametrize("flags", [[], ["--no-header"], ["--json"]])
def test_no_cell_of_a_file_without_a_header_is_shown_or_written(cli, data, flags):
    files = []
    for place, (row, delimiter) in enumerate(itertools.product(ROWS, DELIMITERS)):
        others = [other for other in ROWS if other is not row]
        (data / f"t{place}.csv").write_text(written([], [row, *others], delimiter))
        files.append(f"t{place}.csv")
    made = cli("init", *files, *flags)
    assert made.code == 0, made.err
    text = (data / "sfumato.toml").read_text()
    assert not cells_in(made.out + made.err + text, ROWS)
    assert text.count('"c1", "c2", "c3", "c4", "c5"') == len(files)
    if flags == ["--json"]:
        assert set(made.json["header"].values()) == {False}


def test_a_planted_leak_is_seen(cli, data, monkeypatch):
    monkeypatch.setattr("sfumato.schema.headers.doubt_about", lambda cells: None)
    (data / "t.csv").write_text(written([], ROWS, ","))
    made = cli("init", "t.csv")
    assert cells_in(made.out + (data / "sfumato.toml").read_text(), ROWS)


@pytest.mark.parametrize("header", [True, False])
def test_what_is_written_can_be_asked_once_it_is_decided(cli, data, header):
    lines = written(
        [NAMES] if header else [], [[f"p{i}", "2024-01-02", "Lyon", "f", "3.5"] for i in range(40)], ";"
    )
    (data / "t.csv").write_text(lines)
    unit = "patient_id" if header else "c1"
    # Whichever limit up to 100 rows the noisy profile chooses, the count is within 10 but for e**-64.
    assert cli("init", "t.csv", "--unit", unit, "--epsilon", "900").code == 0
    asked = cli("query", "SELECT COUNT(*) AS n FROM t", "--epsilon", "800", "--json")
    assert asked.code == 0, asked.err
    assert abs(asked.json["rows"][0]["n"] - 40) < 10


def test_a_unit_that_stands_in_a_line_taken_for_a_row_is_told_the_way_out(cli, data):
    (data / "ok.csv").write_text("id,x\n1,2\n")
    refused = cli("init", "ok.csv", "--unit", "id")
    assert refused.code == 2
    message = " ".join(refused.err.split())
    assert "taken for a row" in message
    assert "--header" in message
    assert cli("init", "ok.csv", "--unit", "id", "--header").code == 0


def test_the_suggestions_fit_each_other(cli, data):
    """Each unit that the draft names goes with the limits that it writes."""
    limits = ["max_groups = 1", "max_rows = 1", 'max_rows = "auto"']
    for unit, limit in itertools.product(["row", "patient_id"], limits):
        ledger = ("--ledger", f"{unit}.{limit[:8]}{limit[-2]}.ledger")
        assert cli("init", "visits.parquet", "--force", "--epsilon", "1").code == 0
        file = data / "sfumato.toml"
        text = file.read_text().replace('unit = "?"', f'unit = "{unit}"').replace('max_rows = "auto"', limit)
        file.write_text(text)
        assert Catalog.read(environ={}).tables[0].unit.max_rows == 1
        assert cli("quote", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", *ledger).code == 0
    file.write_text(
        text.replace('unit = "patient_id"', 'unit = "row"').replace('max_rows = "auto"', "max_rows = 2")
    )
    refused = cli("schema")
    assert refused.code == 2
    assert "leave max_rows out" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("latin-1", "WINDOWS-1252"), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")],
)
def test_another_encoding_is_named_with_the_way_out(cli, data, encoding, named):
    (data / "t.csv").write_bytes("Größe,city\n1,x\n".encode(encoding))
    refused = cli("init", "t.csv")
    assert refused.code == 1
    assert f"iconv -f {named} -t UTF-8" in " ".join(refused.err.split())
    assert not (data / "sfumato.toml").exists()


ZIP, OLE = b"PK\x03\x04" + bytes(600), bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)


@pytest.mark.parametrize(
    ("name", "content"), [("t.xlsx", ZIP), ("t.XLS", OLE), ("t.ods", b""), ("t.csv", ZIP), ("t.csv", OLE)]
)
def test_a_spreadsheet_is_to_be_saved_as_csv(cli, data, name, content):
    (data / name).write_bytes(content)
    refused = cli("init", name, "--header", "--unit", "row", "--epsilon", "1")
    assert refused.code == 1
    said = " ".join(refused.err.split())
    assert f'The source "{name}" is a spreadsheet.' in said
    assert "save it as CSV" in said
    assert not (data / "sfumato.toml").exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf\r\n"])
def test_an_empty_file_is_called_empty(cli, data, content):
    for name in ("t.csv", "t.tsv.gz"):
        (data / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        refused = cli("init", name, "--header")
        assert refused.code == 1
        assert f'The source "{name}" is empty.' in " ".join(refused.err.split())


def test_what_is_neither_keeps_its_own_reason(cli, data):
    (data / "t.csv").write_text("\na,b\n1,2\n")
    assert "has no header" in " ".join(cli("init", "t.csv").err.split())
    (data / "t.json").write_text("[]")
    assert "unknown format" in " ".join(cli("init", "t.json").err.split())
    assert "does not exist" in " ".join(cli("init", "nowhere.xlsx").err.split())


def test_init_reads_no_row(cli, data):
    """A row that would be lost is for a session of the steward, and for validate, to tell."""
    for place, rest in enumerate([b'1,"x,2\n', b"1,\xff,2\n", b"1\n", b""]):
        (data / f"t{place}.csv").write_bytes(b"id,city,cost\n" + rest)
        assert cli("init", f"t{place}.csv", "-o", f"t{place}.toml").code == 0
    texts = {(data / f"t{place}.toml").read_text().replace(f"t{place}", "t") for place in range(4)}
    assert len(texts) == 1


def test_a_header_that_repeats_names_or_leaves_them_out(cli, data):
    (data / "t.csv").write_text(", sex,city,city,cost\n0,f,a,b,1\n")
    made = cli("init", "t.csv", "--unit", "row", "--epsilon", "9", "--json")
    assert made.code == 0
    assert list(made.json["roles"]["t"]) == ["c1", "sex", "city", "city_2", "cost"]
    query = "SELECT COUNT(*) AS n FROM t WHERE city = 'a' AND city_2 = 'b' AND sex = 'f'"
    assert cli("query", query, "--epsilon", "8").code == 0


@pytest.mark.parametrize("answer", ["y\n", "n\n"])
def test_in_a_terminal_the_steward_is_asked(cli, data, monkeypatch, answer):
    monkeypatch.setattr("sfumato.cli.headers._can_ask", lambda quiet: True)
    (data / "t.csv").write_text("alpha,beta\n1,2\n")
    made = cli("init", "t.csv", stdin=answer)
    assert made.code == 0, made.err
    shown = "alpha" in made.out.split("Wrote")[1]
    assert shown == (answer == "y\n")
    assert "alpha" not in made.out.split("Wrote")[0]


def test_a_column_of_a_csv_file_whose_name_tells_no_type_may_hold_numbers(cli, data):
    (data / "t.csv").write_text("minutes,ward,age\n")
    assert cli("init", "t.csv", "--header").code == 0
    lines = (data / "sfumato.toml").read_text().splitlines()
    for name in ("minutes", "ward"):
        place = lines.index(f'{name} = {{ type = "text", role = "plain" }}')
        assert 'type = "int" or "float" if it holds numbers' in lines[place - 2]
    assert sum("if it holds numbers" in line for line in lines) == 2
