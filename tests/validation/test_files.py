"""Files that are not what was meant: which file it is, why it cannot be read, and what to do."""

from __future__ import annotations

import builtins
import itertools

import pytest

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.catalog.looking import naming_of
from sfumato.catalog.toml_text import NotToml, parsed
from sfumato.engines.sources import locate
from sfumato.errors import CatalogUnusable, SourceUnusable
from sfumato.validation import patterns


def table(source, **schema):
    return sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit("id", max_rows=1), schema=schema)


def found(source, **schema):
    return sf.validate(table(source, **schema), threads=1).tables[0]


NOTES = [
    f"{mark}{word}{sign}{end}"
    for mark, word, sign, end in itertools.product(("", "\ufeff"), ("sep=", "SEP="), ",;|\t", ("\n", "\r\n"))
]


def test_a_note_for_excel_is_no_header(tmp_path):
    file = tmp_path / "t.csv"
    for note in NOTES:
        file.write_text(f"{note}id;v\na;1\n", newline="")
        for open_ in (lambda: naming_of(str(file), None), lambda: found(file, v=sf.Int())):
            with pytest.raises(SourceUnusable, match="a note for Excel: delete it"):
                open_()
    for header in ("sep;id", "sep=x;id", "id;sep="):
        file.write_text(f"{header}\na;1\n")
        assert len(naming_of(str(file), True).names or ("sep", "id")) == 2


def test_who_may_not_read_a_file_is_told_so(tmp_path, monkeypatch):
    file = tmp_path / "t.csv"
    file.write_text("id,v\na,1\n")
    opened = builtins.open

    def refuse(name, *rest, **options):
        if str(name) == str(file):
            raise PermissionError(13, "Permission denied")
        return opened(name, *rest, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    for open_ in (lambda: naming_of(str(file), None), lambda: found(file, v=sf.Int())):
        with pytest.raises(SourceUnusable, match="permission denied"):
            open_()


def test_of_several_files_the_one_that_is_meant_is_named(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("id,v\nx,1\n")
    (tmp_path / "b.csv").write_bytes(b"id,v\nx,1,2\nx,\xe9\n")
    files = tmp_path / "*.csv"
    assert [finding.count("of b.csv") for finding in found(files, v=sf.Text()).findings] == [1, 1]
    (tmp_path / "b.csv").write_bytes(b"id,v\xe9\nx,1\n")
    with pytest.raises(SourceUnusable, match=r'The file "b.csv" of the source .* is not in UTF-8'):
        naming_of(str(files), None)
    with pytest.raises(SourceUnusable, match=r'different headers: "b.csv" is not like the first one'):
        found(files, v=sf.Int())
    (tmp_path / "b.csv").write_bytes(b"sep=,\nid,v\nx,1\n")
    with pytest.raises(SourceUnusable, match=r'The file "b.csv" of'):
        naming_of(str(files), None)


def test_an_analyst_hears_of_no_file_of_several(tmp_path):
    """One may be called as a person is; the steward alone is told which."""
    (tmp_path / "a.csv").write_text("id,v\nx,1\n")
    (tmp_path / "Zanzibar.csv").write_text("id,w\nx,1\n")
    with (
        pytest.raises(SourceUnusable) as refused,
        sf.Session(table(str(tmp_path / "*.csv"), v=sf.Int()), budget=sf.Budget(1)) as session,
    ):
        session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)
    assert "Zanzibar" not in str(refused.value)


def test_a_file_that_is_another_one_is_not_to_lose_all_of_its_columns(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes(bytes(range(14, 256)) * 20)
    report = found(file, age=sf.Int(), city=sf.Text(), income=sf.Float())
    assert not report.changes
    assert "No column matches what is declared: is this the right file?" in report.findings
    file.write_text("id,aeg,citty,incomes\n")
    assert len(found(file, age=sf.Int(), city=sf.Text(), income=sf.Float()).changes) == 3


def test_one_of_a_thing_is_one(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes(b"id,v\na,\xe9\n")
    said = found(file, v=sf.Text())
    assert "its row is left out" in said.findings[0]
    assert "0 rows" in str(sf.validate(table(file, v=sf.Text())))
    file.write_bytes(b"id,v\na,1\n")
    assert "· 1 row\n" in str(sf.validate(table(file, v=sf.Int())))


def test_words_and_numbers_that_excel_writes_have_a_name(tmp_path):
    file = tmp_path / "t.csv"
    for yes, no in (("WAHR", "FALSCH"), ("VRAI", "FAUX"), ("VERDADERO", "FALSO")):
        file.write_text(f"id,v\na,{yes}\nb,{no}\nc,true\n")
        (column,) = found(file, v=sf.Bool()).columns
        assert column.patterns == {patterns.TRUTHS: 2}
    for number in ("(63)", "63-", "(1.063)"):
        file.write_text(f"id,v\na,{number}\nb,5\n")
        (column,) = found(file, v=sf.Int()).columns
        assert column.patterns == {patterns.BRACKETS: 1}, number
    assert locate(file).shown


GOOD = '[datasets.t]\nepsilon = 5\ndelta = 0\naccountant = "basic"\n'
SLIPS = {
    "x = 0,5": "0.5, not 0,5",
    "x = 1.000,5": "0.5, not 0,5",
    'x = { type = "float", lower = 0,5, upper = 3 }': "0.5, not 0,5",
    "x = “row”": "straight quotes",
    "x = ‘row’": "straight quotes",
    "x = row": "straight quotes",
    'x = { type = int, role = "plain" }': "straight quotes",
    "x = True": "true or false",
    "x = .5": "0.5, not .5",
    "x = 5.": "5.0, not 5.",
    "x = 01.02.2024": "2024-01-31",
    "x: 5": "write =",
    "x 5": "write =",
    'x = "C:\\data"': "single quotes",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_toml_has_its_line_and_its_fix(slip):
    for before, after in (("", ""), ("a = 1\n", "\nb = 2"), ("# x = “a”\n", "  # 0,5")):
        with pytest.raises(NotToml) as refused:
            parsed(before + slip + after)
        assert SLIPS[slip] in str(refused.value), str(refused.value)
        assert f"at line {1 + before.count(chr(10))}" in str(refused.value)


def test_a_catalog_in_another_encoding_is_read_or_told_of(tmp_path, monkeypatch):
    text = GOOD + '[tables.t]\nsource = "t.csv"\ndataset = "t"\nunit = "row"\n[tables.t.columns]\n'
    text += 'v = { type = "text" }  # é\n'
    file = tmp_path / "sfumato.toml"
    file.write_text(text)
    plain = Catalog.read(file, environ={})
    file.write_text(text, encoding="utf-8-sig")
    assert str(Catalog.read(file, environ={})) == str(plain)
    file.write_text(text, encoding="latin-1")
    with pytest.raises(CatalogUnusable, match="not in UTF-8"):
        Catalog.read(file, environ={})

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(file), "read_bytes", refuse)
    with pytest.raises(CatalogUnusable, match="cannot be read: permission denied"):
        Catalog.read(file, environ={})
