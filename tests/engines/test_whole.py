"""Quotes that hide rows of a CSV file: the steward is told, an analyst never."""

from __future__ import annotations

import gzip
import random

import pytest
from sqlglot import parse_one

import sfumato as sf
from sfumato.engines import whole
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.engines.whole import check_whole
from sfumato.errors import SourceUnusable

pytestmark = pytest.mark.duckdb  # CSV files

HIDING = {
    "cut inside quotes": b'a,b\n1,x\n2,"y\n3,z\n4,z\n',
    "backslashes": b'a,b\n1,x\n2,"y \\"so\\" w"\n3,z\n4,z\n',
    "a quote that ends too early": b'a,b\n1,x\n2,"y"w\n3,z\n',
    "an odd number": b'a,b\n1,x\n2,"y"""\n3,"z\n',
    "in another delimiter": b'a;b\n1;x\n2;"y,\n3;z\n',
    "after a space": b'a,b\n1,x\n2, "y\n3,z\n',
    "in the last field": b'a,b\n1,x\n2,"',
    "longer than any line": b'a,b\n1,"' + b"x,\n" * 2**20 + b'"\n2,y\n',
}
WHOLE = {
    "without quotes": b"a,b\n1,x\n2,y\n",
    "quotes": b'a,b\n1,"x, ""y""\nz"\n"2",\n',
    "quotes within": b'a,b\n1,x"y"z\n2,5"\n',
    "a mark of byte order": b'\xef\xbb\xbf"a",b\n1,x\n',
    "carriage returns": b'"a","b"\r\n1,"x"\r\n',
    "no end of line": b'a,b\n1,"x"',
    "too few fields": b"a,b\n1\n2,y\n",
    "nothing": b"a,b\n",
    "a long line": b"a,b\n1," + b"x" * 5_000_000 + b'"\n2,y\n',
    "spaces around": b'a,b\n1, "x" \n2, 5"\n',
    "pipes": b'a|b\n1|"x|"\n',
}


@pytest.fixture(params=[7, whole._BLOCK], ids=["small blocks", "large blocks"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(whole, "_BLOCK", request.param)
    return request.param


@pytest.mark.parametrize("name", [*HIDING, *WHOLE])
def test_a_quote_that_hides_rows_is_found(tmp_path, blocks, name):
    content = (HIDING | WHOLE)[name]
    if blocks == 7 and len(content) > 10_000:
        return  # a block at a time it takes as long as it is
    path, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    path.write_bytes(content)
    packed.write_bytes(gzip.compress(content, 1))
    for source in (path, str(packed), [path]):
        if name in WHOLE:
            check_whole(source)
            continue
        why = "of more than 1 MB" if "longer" in name else "a quote that is not closed where a field ends"
        with pytest.raises(SourceUnusable, match=why) as refused:
            check_whole(source)
        assert "so" not in str(refused.value).split()


def table_of(path):
    return sf.PrivateTable("t", source=path, unit=sf.PrivacyUnit("a"), schema={"b": sf.Text()})


def test_the_steward_is_told_and_an_analyst_is_not(tmp_path):
    (tmp_path / "t.csv").write_bytes(WHOLE["quotes"])
    table, ledger = table_of(tmp_path / "t.csv"), tmp_path / "t.ledger"
    sf.Session(table, budget=sf.Budget(1), ledger=ledger).close()
    (tmp_path / "t.csv").write_bytes(HIDING["backslashes"])
    with pytest.raises(SourceUnusable, match="not closed where a field ends"):
        sf.Session(table, ledger=ledger)
    with pytest.raises(SourceUnusable, match="not closed where a field ends"):
        prepare(table, tmp_path / "p.duckdb")
    with sf.Session(table, ledger=ledger, analyst="ada") as session:
        session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_text_that_is_not_utf8_is_refused_since_its_rows_would_be_lost(tmp_path, blocks, encoding):
    path, other = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_bytes("a,b\n1,Orl\u00e9ans\n2,Nice\n".encode(encoding))
    other.write_bytes("a,b\n3,\u00c9vry \u2713\n".encode())
    check_whole(other)
    with pytest.raises(SourceUnusable, match="text that is not UTF-8"):
        check_whole(path)
    with pytest.raises(SourceUnusable, match=r"text in t\.csv that is not UTF-8"):
        check_whole([path, other])
    path.write_bytes(other.read_bytes()[:-3])  # a file that was cut within a character
    with pytest.raises(SourceUnusable, match="text that is not UTF-8"):
        check_whole(path)


def test_a_source_that_is_refused_leaves_nothing_on_record(tmp_path):
    ledger = tmp_path / "t.ledger"
    (tmp_path / "t.csv").write_bytes(HIDING["backslashes"])
    wrong = sf.PrivateTable(
        "t", source=tmp_path / "t.csv", unit=sf.PrivacyUnit("aa"), schema={"b": sf.Text()}
    )
    for table in (table_of(tmp_path / "t.csv"), wrong, table_of(tmp_path / "missing.csv")):
        with pytest.raises(SourceUnusable):
            sf.Session(table, budget=sf.Budget(1), ledger=ledger)
    assert not ledger.exists()
    (tmp_path / "t.csv").write_bytes(WHOLE["quotes"])
    sf.Session(table_of(tmp_path / "t.csv"), budget=sf.Budget(2), ledger=ledger).close()


def test_the_stewards_own_reads_refuse_what_would_lose_rows(tmp_path):
    (tmp_path / "t.csv").write_bytes(HIDING["backslashes"])
    with pytest.raises(SourceUnusable, match="a quote that is not closed"):
        sf.anonymity.measure(tmp_path / "t.csv", quasi=["b"])


def test_what_is_no_csv_file_passes():
    for source in ("s3://somewhere/t.csv", "missing.csv", "t.parquet", object(), [], 3):
        check_whole(source)


def _hides(path):
    """Whether the engine loses one of the rows around what is in the middle."""
    with DuckDB(threads=1) as engine:
        engine.attach("t", path, {"a": "text", "b": "text"})
        found = engine.fetch(parse_one("SELECT a, b FROM t")).to_pylist()
    return any({"a": f"{i}", "b": f"k{i}"} not in found for i in (0, 1, 2, 4, 5))


def test_no_text_in_the_middle_of_a_file_hides_rows_unless_it_is_refused(tmp_path):
    draw, hidden, refused, passed = random.Random(7), 0, 0, 0
    pieces = ["a", ",", "\n", '"', "\\", '"a"', " ", '""', ',"x"\n', '"x",', "\r\n"]
    path = tmp_path / "t.csv"
    for _ in range(60):
        middle = "".join(draw.choice(pieces) for _ in range(draw.randint(1, 14)))
        rows = [f"{i},k{i}\n" for i in range(6)]
        path.write_text("a,b\n" + "".join(rows[:3]) + middle + "".join(rows[3:]), newline="")
        hides = _hides(path)
        try:
            check_whole(path)
        except SourceUnusable:
            refused, hidden = refused + 1, hidden + hides
        else:
            passed += 1
            assert not hides, ascii(middle)
    assert refused > 15
    assert passed > 15
    assert hidden > 5  # the twin: without the check these rows were lost


@pytest.mark.parametrize(
    ("text", "delimiter", "inside"),
    [
        ('a,b\n1,"x"\n', b",", False),
        ('a,b\n1,5" wide\n', b",", False),  # a quote within a field is a sign like any other
        ('a,b\n1,5" wide\n2,"x', b",", True),
        ('a,b\n1,"x ""y"" z"', b",", False),
        ('a,b\n"","",""\n', b",", False),
        ('"a\nb",c\n"1\n\n""2""\n",3\n', b",", False),
        ('"a\nb",c\n"1\n\n""2""\n",3\n,"', b",", True),
        ('\ufeff"a","b"\n1,2\n', b",", False),
        ('\ufeff"a,b"\n1,2\n', b"\t", False),
        ('a\tb\n1\t"x\ty"\n', b"\t", False),
        ('a|b\r\n1|"x\r\ny"\r\n', b"|", False),
        ('a|b\r\n1|"x\r\ny\r\n', b"|", True),
        ('a,b\r1,"x"\r2,"y\r', b",", True),
        ('a,b\n1,"x\ny" \n2,3\n', b",", False),
        ('a;b\n1;"x,""', b";", True),
    ],
)
@pytest.mark.parametrize("block", [1, 4, 1000])
def test_open_quotes_are_seen(text, delimiter, inside, block, monkeypatch, tmp_path):
    monkeypatch.setattr(whole, "_BLOCK", block)
    path = tmp_path / ("t.tsv" if delimiter == b"\t" else "t.csv")
    path.write_bytes(text.encode())
    if not inside:
        check_whole(path)
        return
    with pytest.raises(SourceUnusable, match="a quote that is not closed"):
        check_whole(path)
