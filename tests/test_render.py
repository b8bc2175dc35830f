"""What people see: digits that the error bar justifies, tables that fit, text that any terminal can write."""

import datetime
import math
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.render import encodable, html_table, key, shown, text_table, with_bar, without_password

LETTERS = st.characters(exclude_categories=["M", "Cs"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (np.bool_(False), "false"),
        (1234567, "1,234,567"),
        (-1234, "-1,234"),
        (np.int64(5000), "5,000"),
        (0.1, "0.1"),
        (1234.5, "1,234.5"),
        (123456.789, "123,457"),
        (3.0, "3"),
        (1e-9, "1e-09"),
        (Fraction(3, 10), "0.3"),
        (Fraction(4), "4"),
        (Decimal("2.50"), "2.5"),
        (math.nan, "n/a"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (datetime.date(2024, 5, 31), "2024-05-31"),
        (datetime.datetime(2024, 5, 31, 12, 0), "2024-05-31 12:00:00"),
        ("plain", "plain"),
        ("two\nlines\x1b[31m", "two lines [31m"),
    ],
)
def test_a_cell_as_text(value, text):
    assert shown(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2024, "2024"),
        (np.int64(12345), "12345"),
        (2024.0, "2024"),
        (-1234.5, "-1234.5"),
        (True, "true"),
        (None, ""),
        (math.inf, "∞"),
        (datetime.date(2024, 5, 31), "2024-05-31"),
        ("1,5", "1,5"),
    ],
)
def test_a_key_has_no_thousands_separators(value, text):
    assert key(value) == text


def test_symbols_are_spelled_out_before_a_table_is_cut():
    def plain(text):
        return encodable(text, "ascii")

    columns = {"who": ["x" * 90], "n": ["12 ± 3"]}
    table = text_table(columns, width=40, spell=plain)
    assert table.isascii()
    assert max(map(len, table.splitlines())) == 40
    assert "...  12 +/- 3" in table


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (12345, 30, "12,345 ± 30"),
        (12345, 29.2, "12,345 ± 30"),
        (12345, 31415, "12,345 ± 31,415"),
        (3.14159, 0.0123, "3.142 ± 0.013"),
        (41.237, 3, "41.2 ± 3.1"),
        (-0.001, 0.5, "0.00 ± 0.51"),
        (0.2, 0, "0.2 ± 0.0"),
        (5.0, math.inf, "5 ± ∞"),
        (5.0, math.nan, "5"),
        (math.nan, 3.0, "n/a"),
        (None, 3.0, ""),
        ("Lyon", None, "Lyon"),
        (7, None, "7"),
    ],
)
def test_an_error_bar_decides_the_digits(value, half, text):
    assert with_bar(value, half) == text
    assert shown(value, half) == text.partition(" ± ")[0]


@given(
    st.floats(-1e9, 1e9, allow_nan=False) | st.integers(-(10**12), 10**12),
    st.floats(1e-6, 1e9, allow_nan=False),
)
def test_the_interval_that_is_read_covers_the_exact_one(value, half):
    middle, _, width = with_bar(value, half).replace(",", "").partition(" ± ")
    exact, spread = Fraction(repr(value)), Fraction(repr(half))
    assert Fraction(middle) - Fraction(width) <= exact - spread
    assert Fraction(middle) + Fraction(width) >= exact + spread


def test_a_table_aligns_text_left_numbers_right_and_error_bars_on_their_sign():
    text = text_table({"city": ["Lyon", "Aix"], "n": [with_bar(12345, 30), with_bar(5, 1234)], "x": [1, 22]})
    assert text.splitlines() == [
        "city               n   x",
        "────  ──────────────  ──",
        "Lyon  12,345 ±    30   1",
        "Aix        5 ± 1,234  22",
    ]


@given(
    st.dictionaries(
        st.text(LETTERS, min_size=1, max_size=30),
        st.lists(st.text(LETTERS, max_size=90), min_size=2, max_size=2),
        max_size=6,
    ),
    st.integers(30, 120),
)
def test_a_table_of_text_fits_its_width_and_keeps_one_line_a_row(columns, width):
    for line in text_table(columns, width=width).split("\n"):
        assert sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line) <= width
        assert line.isprintable()


def test_the_widest_text_gives_way_first():
    lines = text_table(
        {"time": ["2024-05-31 12:00"], "sql": ["SELECT " * 20], "n": [1]}, width=50
    ).splitlines()
    assert len(lines[2]) == 50
    assert lines[2].startswith("2024-05-31 12:00  SELECT")
    assert "…" in lines[2]
    assert lines[2].endswith("  1")


def test_numbers_are_never_cut_but_continued_below_the_first_column():
    text = text_table({"k": ["a"], **{f"c{i}": [10**12 + i] for i in range(9)}}, width=60)
    assert max(map(len, text.splitlines())) <= 60
    for i in range(9):
        assert f"{10**12 + i:,}" in text
    blocks = text.split("\n\n")
    assert len(blocks) == 3
    assert all(block.startswith("k") for block in blocks)


@pytest.mark.parametrize(
    ("first", "repeated"), [("a", True), ("2024", True), ("3 to 5", True), ("3 ± 1", False)]
)
def test_only_keys_are_repeated_below(first, repeated):
    columns = {"first": [first], **{f"column {place}": ["1,000,000 ± 10"] for place in range(9)}}
    blocks = text_table(columns, width=60).split("\n\n")
    assert len(blocks) > 2
    assert [block.lstrip().startswith("first") for block in blocks] == [True] + [repeated] * (len(blocks) - 1)


@pytest.mark.parametrize("places", [(0,), (0, 1, 2), (1, 4), (7,), ()])
@pytest.mark.parametrize("width", [30, 60, 90])
def test_all_keys_are_repeated_in_every_block_wherever_they_stand(places, width):
    """Unless they leave no room: then as many of the first as do."""
    columns = {f"c{i}": [f"key {i}"] if i in places else [f"{10**9 + i:,} ± 10"] for i in range(9)}
    keys = [f"c{i}" for i in places]
    text = text_table(columns, width=width, keys=keys)
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert max(len(line) for block in blocks for line in block) <= width
    values = [head for block in blocks for head in block[0].split() if head not in keys]
    assert values == [head for head in columns if head not in keys]
    room = width - 20
    for block in blocks:
        heads = [head for head in block[0].split() if head in keys]
        assert heads == keys[: len(heads)]
        assert len(heads) == len(keys) or sum(len("key 0  ") for _ in range(len(heads) + 1)) > room


def test_more_keys_than_fit_continue_below():
    text = text_table({f"c{i}": ["key"] for i in range(20)}, width=30, keys=[f"c{i}" for i in range(20)])
    assert max(map(len, text.splitlines())) <= 30
    assert {f"c{i}" for i in range(20)} <= set(text.split())


def test_wide_characters_take_two_places():
    lines = text_table({"city": ["東京", "Lyon"], "n": [1, 2]}).splitlines()
    assert lines[2] == "東京  1"
    assert lines[3] == "Lyon  2"


def test_columns_of_different_length_are_refused():
    with pytest.raises(InvalidParameter, match="same length"):
        text_table({"a": [1], "b": []})


def test_html_is_escaped_everywhere():
    text = html_table({"<a>": ["<b>&"], "n": [12345]}, caption="<c>")
    assert re.findall(r"&lt;[abc]&gt;", text) == ["&lt;c&gt;", "&lt;a&gt;", "&lt;b&gt;"]
    assert "&amp;" in text
    assert "12,345" in text
    assert not re.search(r"<[abc]>", text)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8", None, "no-such-codec"])
def test_any_terminal_can_write_it(encoding):
    text = encodable("n ± 3 … ε ≤ 1 · 東京 ─", encoding)
    text.encode("ascii" if encoding in (None, "no-such-codec") else encoding)
    assert ("+/-" in text) == (encoding in ("ascii", None, "no-such-codec"))
    assert "?" not in encodable("n ± 3 … ε ≤ 1 ─", "ascii")


SECRET = "hunter2SECRET"
SETTINGS = ("password", "pass%77ord", "PASSWORD", "sslpassword", "scram_client_key", "passfile", "options")
PLACES = (
    *("postgresql://u:{}@h:1/db::t", "postgres://u:{}@h/db", "postgresql://u@h:1,u:{}@h:2/db::s.t"),
    *("postgresql://u%3A{}@h/db::t", "postgresql:u:{}@h/db::t", "postgresql:/u:{}@h/db::t"),
    *("postgresql//u:{}@h/db::t", "mysql://u:{}@h/db", "s3://k:{}@b/f.parquet", "https://{}@h/f.parquet"),
    *("host=h password={} dbname=d::t", "host=h password = '{}'::t", "https://h/f?X-Amz-Signature={}"),
    *(f"postgresql://u@h/db?{name}={{}}::t" for name in SETTINGS),
    *(f"postgresql://u@h/db?sslmode=require&{name}={{}}&port=1::t" for name in SETTINGS),
    *(f"postgresql:///?host=h&{name}={{}}" for name in SETTINGS),
    # Written as one part of an address, where it is none.
    *("postgresql://u%3A{}%40h/db::t", "postgresql://h/host=h%20password={}::t", "postgresql://h/u:{}::t"),
    "postgresql://h/?dbname=postgresql%3A%2F%2Fu%3A{}%40h%2Fdb::t",
)
BEFORE = ("", "a?b=", "x%40", "x@y:", "\n", *(f"x{mark}" for mark in ":@/?#&,[ ;'\""), "a::")
AFTER = ("", "@", ":", "=", "/x", "?y", "::z", "%00", "@x/")


def test_passwords_are_never_shown_wherever_they_stand():
    for place in PLACES:
        for before in BEFORE:
            for after in AFTER:
                address = place.format(f"{before}{SECRET}{after}")
                assert SECRET not in without_password(address), address


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://reader@db.example.org/clinic?sslmode=verify-full::public.visits",
        'postgresql://reader@[::1]:5432,other:1/db::"a b".t',
        "postgresql://%2Fvar%2Frun/db?sslrootcert=/etc/ca%20bundle.pem::t",
        "postgresql:///db::t",
        "spark://lake.clinic.visits",
        "hdfs://nn:8020/x/y.parquet",
        "/data/x@y.parquet",
        "C:\\data\\x@y.csv",
        "lake/year=2024/*.parquet",
        "visits.duckdb::main.visits",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address):
    assert without_password(address) == address
