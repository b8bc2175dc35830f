"""Pictures by the shape of an answer, and files that carry its receipt and run nowhere."""

import csv
import io
import json
import re

import pyarrow.parquet as pq
import pytest

from sfumato.server.page.ask import answered, charts
from sfumato.server.page.ask.charts import chart_of, drawable
from sfumato.server.page.ask.downloads import file_of, harmless, kinds
from sfumato.server.page.ask.past import leaf_of
from sfumato.session import shown

BAD = "<script>alert(1)</script>"


def released(session, sql):
    return session.sql(sql).release(epsilon="0.01")


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT COUNT(*) AS n FROM visits", "figure"),
        ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "bars"),
        ("SELECT city, age > 30 AS old, COUNT(*) AS n FROM visits GROUP BY 1, 2", "bars"),
        ("SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1", "line"),
        ("SELECT EXTRACT(month FROM day) AS month, COUNT(*) AS n FROM visits GROUP BY 1", "line"),
        ("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", "line"),
        ("SELECT FLOOR(age / 10) * 10 AS age, COUNT(*) AS n FROM visits GROUP BY 1", "histogram"),
    ],
)
def test_the_picture_follows_the_shape(session, sql, kind):
    release = released(session, sql)
    assert drawable(release) == ["n"]
    chart = chart_of(release, "n", "0.9")
    assert chart.kind == kind
    marks = {"figure": "dot", "bars": "whisker", "line": "band", "histogram": "whisker"}
    assert f'class="{marks[kind]}"' in chart.picture
    assert "90 %" in chart.note


def test_several_columns_are_drawn_one_at_a_time(session):
    release = released(session, "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city")
    assert drawable(release) == ["n", "mean"]
    assert "mean by city" in chart_of(release, "mean", "0.95").picture


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ("FLOOR(cost) AS part", "line"),
        ("FLOOR(cost / 2) * 2 AS part", "line"),
        ("city, FLOOR(cost) AS part", "bars"),
    ],
)
def test_pictures_and_tables_of_many_rows_are_bounded(session, monkeypatch, keys, kind):
    names = ", ".join(str(place + 1) for place in range(keys.count(",") + 1))
    release = released(session, f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY {names}")
    written = []
    monkeypatch.setattr(shown, "with_bar", lambda *pair: written.append(pair) or "1 ± 1")
    found = answered._shown(session, release.receipt.number, "0.95", "", "")
    assert found.rows == release.table.num_rows > 1_000
    assert len(written) == 400
    assert {len(column.cells) for table in found.tables for column in table} == {400}
    assert found.chart.kind == kind
    assert len(found.chart.picture) < 60_000
    assert ("the files have all" in found.chart.note) == (kind == "line")
    assert not found.printed


def test_many_bins_are_a_line_through_some_of_them():
    labels = [(float(place), place + 1.0) for place in range(1_000)]
    values = [float(place % 7) for place in range(1_000)]
    points = charts._Points(labels, values, values, values)
    assert charts._kind(["a_from", "a_to"], points) == "line"
    assert points.every == 3
    marks = charts._line(points, "n", "a", "n").count("L")
    assert marks < 4 * 334


def test_a_picture_of_the_greatest_says_that_they_look_greater_than_they_are(session):
    release = released(session, "SELECT city, day, COUNT(*) AS n FROM visits GROUP BY city, day")
    chart = chart_of(release, "n", "0.95")
    assert chart.picture.count('class="bar"') == 40
    assert "692 more are in the table" in chart.note
    assert "look greater than they are" in chart.note
    ordered = released(
        session, "SELECT city, day, COUNT(*) AS n FROM visits GROUP BY city, day ORDER BY day, city"
    )
    assert "look greater" not in chart_of(ordered, "n", "0.95").note


@pytest.mark.parametrize("by", ["ordered", "CASE WHEN age < 40 THEN 1 ELSE 2 END"])
def test_labels_are_text(session, by):
    key = f"CASE WHEN age < 40 THEN '{BAD}' ELSE 'b' END" if by == "ordered" else by
    release = released(session, f'SELECT {key} AS "{BAD}", COUNT(*) AS n FROM visits GROUP BY 1')
    picture = chart_of(release, "n", "0.95").picture
    assert "<script" not in picture
    assert "&lt;script" in picture


def test_files_carry_the_receipt(session):
    key = "CASE WHEN age < 40 THEN '=1+1' ELSE '-b' END AS receipt"
    release = released(session, f'SELECT {key}, COUNT(*) AS "+n" FROM visits GROUP BY 1')
    number, balance = release.receipt.number, session.balance()
    made = {kind: file_of(release, kind, own=True, balance=balance, confidence="0.95") for kind in kinds()}
    assert {file.name for file in made.values()} == {f"sfumato-receipt-{number}.{kind}" for kind in made}
    rows = list(csv.DictReader(io.StringIO(made["csv"].data.decode())))
    assert {row["receipt"] for row in rows} == {"'=1+1", "'-b"}
    assert {row["receipt_"] for row in rows} == {str(number)}
    assert all(float(row["'+n"]) == int(row["'+n"]) for row in rows)
    told = pq.read_schema(io.BytesIO(made["parquet"].data)).metadata
    assert json.loads(told[b"sfumato.receipt"])["mac"] == release.receipt.mac
    assert not any(b"totals" in file.data for file in made.values())
    document = json.loads(made["json"].data)
    assert document["receipt"] == document["paid_by"]["number"] == number
    assert release.receipt.mac.encode() in made["png"].data[:5_000]


def test_files_for_others_say_number_dataset_and_price_of_the_receipt(session):
    release = released(session, "SELECT COUNT(*) AS n FROM visits WHERE age > 3 /* for my boss */")
    made = [
        file_of(release, kind, own=False, balance=session.balance(), confidence="0.95") for kind in kinds()
    ]
    for file in made:
        assert release.receipt.mac.encode() not in file.data
        assert b"boss" not in file.data
        assert release.receipt.time.isoformat().encode() not in file.data
    facts = json.loads(pq.read_schema(io.BytesIO(made[1].data)).metadata[b"sfumato.receipt"])
    assert facts.keys() == {"number", "dataset", "price"}


def test_all_text_of_a_csv_is_in_quotes(session):
    sql = (
        "SELECT CASE WHEN age < 40 THEN 'a;=1' ELSE 'b' END AS \"k;=1\", COUNT(*) AS n FROM visits GROUP BY 1"
    )
    text = file_of(
        released(session, sql), "csv", own=True, balance=session.balance(), confidence="0.95"
    ).data.decode()
    assert text.startswith('"k;=1","n",')
    assert '\n"a;=1",' in text
    assert '"' not in text.splitlines()[1].split(",")[1]


@pytest.mark.parametrize("sign", list("=+-@＝＋－＠"))
@pytest.mark.parametrize(
    "before",
    ["", "\t", "\r", "\n", " ", "\u3000", "\xa0", "\ufeff", "\u200b", "\0", "\x1f", "\u2028", " \xa0\t"],
)
def test_no_sign_of_a_formula_comes_first(sign, before):
    assert harmless(f"{before}{sign}1") == f"'{before}{sign}1"
    assert harmless(f"a{before}{sign}1") == f"a{before}{sign}1"


@pytest.mark.parametrize("text", ["\ta", "\ra", "\na", "=", "-"])
def test_text_is_no_formula_and_numbers_stay_numbers(text):
    assert harmless(text) == f"'{text}"
    assert harmless(-1) == -1
    assert harmless(-1.5) == -1.5
    assert harmless("a=1") == "a=1"


def test_the_past_is_read_backwards_leaf_by_leaf(session):
    session = session.as_analyst("ada")
    asked = [
        released(session, f"SELECT COUNT(*) AS n FROM visits WHERE age < {n}").receipt for n in range(61, 68)
    ]
    numbers = [receipt.number for receipt in asked]
    found, before = [], None
    while True:
        leaf = leaf_of(session, before, most=3)
        found += [receipt.number for receipt in leaf.receipts]
        if leaf.older is None:
            break
        before = leaf.older
    assert found == sorted(set(found), reverse=True)
    assert set(numbers) <= set(found)


@pytest.mark.parametrize("names", [["NY", "LA"], ["a" * 22, "b"], ["x" * 60, None]])
def test_names_of_bars_have_room_for_the_large_letters_of_a_phone(names):
    count = len(names)
    points = charts._Points(names, [5.0] * count, [4.0] * count, [6.0] * count)
    picture = charts._bars(points, "n")
    found = re.findall(r'<text class="strong" x="(\d+)"[^>]*>([^<]*)<', picture)
    assert len(found) == count
    for place, name in found:
        assert 12 * len(name) <= int(place) <= 300  # the rest of 720 is for the bars
