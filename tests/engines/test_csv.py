"""CSV: the header decides everything, no data row can raise or pass for another."""

from __future__ import annotations

import pytest

from sfumato.errors import EngineFailed, SourceUnusable

pytestmark = pytest.mark.duckdb  # CSV files

KINDS = {"a": "integer", "b": "text", "c": "float"}
READ = {
    "ordinary": (b"a,b,c\n1,x,2.5\n", [(1, "x", 2.5)]),
    "a header alone": (b"a,b,c\n", []),
    "a header without an end of line": (b"a,b,c", []),
    "a byte order mark": (b"\xef\xbb\xbfa,b,c\n1,x,2.5\n", [(1, "x", 2.5)]),
    "carriage returns": (b"a,b,c\r\n1,x,2.5\r\n", [(1, "x", 2.5)]),
    "mixed ends of lines": (
        b"a,b,c\n1,x,2.5\r\n2,y,3\r3,z,4\n",
        [(1, "x", 2.5), (2, "y", 3.0), (3, "z", 4.0)],
    ),
    "blank lines": (b"a,b,c\n\n1,x,2.5\n\n", [(1, "x", 2.5)]),
    "what is no number": (b"a,b,c\n?,x,?\n", [(None, "x", None)]),
    "numbers after a thousand words": (
        b"a,b,c\n" + b"no,x,no\n" * 3 + b"1,x,2\n",
        [(None, "x", None)] * 3 + [(1, "x", 2.0)],
    ),
    "quotes, delimiters and lines in quotes": (b'a,b,c\n1,"x ""y"", z\nw",2\n', [(1, 'x "y", z\nw', 2.0)]),
    "quotes inside": (b'a,b,c\n1,x"y"z,2\n', [(1, 'x"y"z', 2.0)]),
    "too few fields": (b"a,b,c\n1,x\n2,y,3\n", [(2, "y", 3.0)]),
    "no UTF-8": (b"a,b,c\n1,\xff\xfe,2\n2,y,3\n", [(2, "y", 3.0)]),
    "a NUL byte": (b"a,b,c\n1,\x00,2\n", [(1, "\x00", 2.0)]),
    "an unfinished quote": (b'a,b,c\n1,x,2\n2,"y,3\n4,z,5\n', [(1, "x", 2.0)]),
    "empty fields": (b"a,b,c\n,,\n", [(None, None, None)]),
    "a very long line": (b"a,b,c\n1," + b"x" * 5_000_000 + b",2\n2,y,3\n", [(2, "y", 3.0)]),
    "another delimiter in quotes in the header": (b'a;b;"c"\n1;x,,,,;2\n', [(1, "x,,,,", 2.0)]),
}


@pytest.mark.parametrize("name", READ)
def test_a_row_cannot_raise(one, rows, tmp_path, name):
    content, wanted = READ[name]
    (tmp_path / "t.csv").write_bytes(content)
    one.attach("t", tmp_path / "t.csv", KINDS)
    assert sorted(map(repr, rows(one, "SELECT a, b, c FROM t"))) == sorted(map(repr, wanted))


def test_the_rows_do_not_depend_on_what_is_asked(one, rows, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b,c,d\n1,x,2,\xff\n?,\xff,?,1\n?,y,?,1\n3,z,4,1\n,,,\n")
    one.attach("t", tmp_path / "t.csv", KINDS)
    for expression in ("1", "a", "b", "c", "a + c", "b || c"):
        counted = rows(one, f"SELECT COUNT(*), COUNT({expression}) FROM t")
        assert counted[0][0] == 4, expression
    assert rows(one, "SELECT COUNT(*) FROM t JOIN (SELECT b FROM t GROUP BY b) USING (b)") == [(3,)]


def test_no_row_decides_a_type(one, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2020-01-01\n" * 100)
    assert one.schema(tmp_path / "t.csv") == {"a": "text", "b": "text"}


def test_text_in_quotes_cannot_pass_for_rows(make, rows, tmp_path):
    inner = "9,forged,9\n" * 200
    lines = (f'{i},"{inner}",1\n' if i % 7 == 0 else f"{i},plain,1\n" for i in range(40_000))
    with open(tmp_path / "t.csv", "w") as file:
        file.write("a,b,c\n")
        file.writelines(lines)
    for threads in (1, 4):
        engine = make(threads=threads)
        engine.attach("t", tmp_path / "t.csv", KINDS)
        assert rows(engine, "SELECT COUNT(*) FROM t") == [(40_000,)]
        assert rows(engine, "SELECT COUNT(*) FROM t WHERE b = 'forged'") == [(0,)]


def test_a_file_without_header_lacks_the_columns(one, tmp_path):
    (tmp_path / "t.csv").write_text("1,x,canary\n2,y,3\n")
    with pytest.raises(SourceUnusable, match='no column "a"') as caught:
        one.attach("t", tmp_path / "t.csv", KINDS)
    assert "canary" not in str(caught.value)


def test_a_truncated_archive_fails_the_read_without_saying_why(one, rows, tmp_path):
    import gzip
    import random

    noise = random.Random(1)
    whole = gzip.compress(
        ("a,b,c\n" + "".join(f"{noise.random()},canary,1\n" for _ in range(200_000))).encode()
    )
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    one.attach("t", tmp_path / "t.csv.gz", KINDS)
    with pytest.raises(EngineFailed) as caught:
        rows(one, "SELECT COUNT(*), SUM(c) FROM t")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
