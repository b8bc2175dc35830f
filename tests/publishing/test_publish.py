"""Scheduled releases: paid once, the same bytes each time, whole after a crash, and never a row in a word."""

from __future__ import annotations

import hashlib
import io
import json
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from commands import forked
from sfumato.errors import EngineFailed
from sfumato.publishing import KEYS, read
from sfumato.publishing.page import page
from sfumato.publishing.questions import Question
from sfumato.session.query import Query
from sfumato.session.vault import Vault

FILES = ["by_shop.csv", "by_shop.parquet", "daily.csv", "daily.parquet", "index.html", "manifest.json"]


def test_a_second_run_is_free_reads_nothing_and_writes_the_same(clinic, monkeypatch):
    said = clinic.publish("2024-03-01")
    assert "62 windows published for epsilon 1.5, delta 1e-06." in said
    assert "Left in the budget of visits: epsilon 1.5 of 3" in said
    assert clinic.spent() == Fraction(3, 2)
    first = clinic.files()
    assert list(first) == FILES
    clinic.month(2, many=500)  # rows that come late: what is published stays
    monkeypatch.setattr(Vault, "read", lambda *_, **__: pytest.fail("a row was read"))
    again = clinic.publish("2024-03-01")
    assert "Nothing is new" in again
    assert clinic.files() == first
    assert clinic.spent() == Fraction(3, 2)


def test_files_have_the_same_rows_with_intervals(clinic):
    clinic.publish("2024-03-01")
    for name, columns, rows in (("daily", ["n", "total"], 60), ("by_shop", ["n"], 4)):
        parquet = pq.read_table(clinic.folder / "public" / f"{name}.parquet")
        csv = pa.csv.read_csv(io.BytesIO(clinic.files()[f"{name}.csv"]))
        assert csv.to_pydict() == parquet.to_pydict()
        assert parquet.num_rows == rows
        for column in columns:
            assert {f"{column}_error", f"{column}_low", f"{column}_high"} <= set(parquet.column_names)
    shops = parquet.to_pydict()
    assert shops["window"] == [date(2024, month, 1) for month in (1, 1, 2, 2)]
    assert shops["shop"] == ["north", "south"] * 2
    assert abs(sum(shops["n"]) - 2 * 29 * 20) < 200


def test_the_manifest_tells_what_was_paid_and_the_digests_hold(clinic):
    clinic.publish("2024-03-01")
    files = clinic.files()
    manifest = json.loads(files["manifest.json"])
    digests = dict(manifest["files"])
    for release in manifest["releases"]:
        digests |= release["files"]
    assert set(digests) == set(files) - {"manifest.json"}
    for name, told in digests.items():
        assert told == {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}
    daily, shops = manifest["releases"]
    assert (daily["windows"], daily["last"], daily["epsilon"], daily["delta"]) == (60, "2024-02-29", 1, 1e-6)
    assert (shops["windows"], shops["last"], shops["epsilon"], shops["delta"]) == (2, "2024-02-01", 0.5, 0)
    assert len(daily["receipts"]) == 1
    assert len(set(shops["receipts"])) == 2


def test_new_windows_are_added_to_what_is_there(clinic):
    clinic.publish("2024-02-01")
    before = clinic.files()
    clinic.month(3)
    told = json.loads(clinic.publish("2024-04-01", "--json"))
    assert [release["new"] for release in told["releases"]] == [60, 2]
    assert [release["epsilon"] for release in told["releases"]] == [0, 0.5]
    after = clinic.files()
    for name in ("daily.csv", "by_shop.csv"):
        assert after[name].startswith(before[name])
        assert len(after[name]) > len(before[name])
    assert clinic.spent() == Fraction(7, 4)


def test_a_dry_run_tells_all_and_does_nothing(clinic):
    said = clinic.publish("2024-03-01", "--dry-run")
    assert "62 windows would be published for epsilon 1.5, delta 1e-06" in said
    assert clinic.spent() == 0
    assert not (clinic.folder / "public").exists()
    told = json.loads(clinic.publish("2024-03-01", "--dry-run", "--json"))
    assert told["dry_run"] is True
    assert told["files"] == []
    assert clinic.spent() == 0


def test_after_a_crash_between_two_releases_the_next_run_goes_on(clinic, monkeypatch):
    def fail(self):
        raise EngineFailed("The read failed.")

    with monkeypatch.context() as patch:
        patch.setattr(Question, "publish", fail)
        assert "The read failed." in clinic.publish("2024-03-01", code=1)
    assert clinic.spent() == 1  # the series alone
    assert not (clinic.folder / "public").exists()
    assert "2 windows published for epsilon 0.5." in clinic.publish("2024-03-01")
    assert clinic.spent() == Fraction(3, 2)
    assert list(clinic.files()) == FILES


def test_after_files_that_could_not_be_written_the_next_run_writes_them_free(clinic, monkeypatch):
    clinic.publish("2024-02-01")
    before = clinic.files()

    def fail(path, content):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.publishing.writing.write_whole", fail)
        said = clinic.publish("2024-03-01", code=2)
    assert "on record: the next run writes them, free" in said
    assert "disk" not in said
    assert clinic.files() == before
    spent = clinic.spent()
    clinic.publish("2024-03-01")
    assert clinic.spent() == spent
    assert clinic.files() != before


@pytest.mark.parametrize("paid", ["", "2024-01-11"])
def test_what_cannot_be_paid_is_refused_after_few_prices_however_many_windows_are_over(
    clinic, monkeypatch, paid
):
    clinic.lists(clinic.question.replace("month", "day"))  # twelve windows fit
    if paid:
        clinic.publish(paid)
    spent, asked, counted = clinic.spent(), Query.quote, []

    def quote(self, *more, **named):
        counted[-1] += 1
        return asked(self, *more, **named)

    monkeypatch.setattr(Query, "quote", quote)
    for now in ("2024-03-01", "2026-01-01"):
        counted.append(0)
        said = clinic.publish(now, code=3)
    assert max(counted) <= 1 + 2 * 12
    assert len(set(counted)) == 1
    assert "Not within the budget of 'visits'" in said
    assert "for question by_shop up to 2024-01-1" in said
    assert "alone, and 731 days of it are over: choose a smaller epsilon" in said
    assert clinic.spent() == spent
    assert "published for epsilon" in clinic.publish("2024-01-13")  # up to the last one that fits
    assert clinic.spent() == 3


def test_what_is_said_to_fit_fits_and_no_more(clinic):
    told = json.loads(clinic.publish("2024-02-01", "--json"))
    daily, shops = (release["enough_for"] for release in told["releases"])
    assert daily == {"windows": 69, "paid": True, "more": False, "every": "day"}
    assert shops == {"windows": 7, "paid": False, "more": False, "every": "month"}
    refused = clinic.publish("2024-10-01", code=3)
    assert "Not within the budget" in refused
    assert clinic.spent() == Fraction(5, 4)
    last = json.loads(clinic.publish("2024-09-01", "--json"))["releases"][1]
    assert last["enough_for"]["windows"] == 0
    assert clinic.spent() == 3
    assert "no more months" in clinic.publish("2024-09-01")


def test_questions_of_one_budget_share_what_is_left_in_the_order_of_time(clinic):
    weekly = """
[[question]]
name = "weekly"
sql = "SELECT COUNT(*) AS n FROM visits WHERE day >= $from AND day < $to"
every = "week"
start = 2024-01-01
epsilon = 0.25
"""
    other = weekly.replace("AND day < $to", "AND day < $to AND amount > 3")
    clinic.lists(weekly.replace("weekly", "a") + other.replace("weekly", "b"))
    told = json.loads(clinic.publish("2024-01-08", "--json"))
    assert [release["enough_for"]["windows"] for release in told["releases"]] == [5, 5]
    cheap = weekly.replace("0.25", "0.0001").replace("weekly", "c")
    clinic.lists(cheap)
    assert json.loads(clinic.publish("2024-01-08", "--json"))["releases"][0]["enough_for"]["more"] is True


def test_a_series_at_its_end_is_told_and_stays_as_it_is(clinic):
    clinic.lists(
        '\n[[series]]\nname = "few"\nsql = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"\n'
        "start = 2024-01-01\nhorizon = 5\nepsilon = 1\ndelta = 1e-6\n"
    )
    said = clinic.publish("2024-01-09")
    assert "5 of 5 days" in said
    assert "few has all points of its horizon, and 3 days since are not published" in said
    assert "start = 2024-01-06" in said
    first = clinic.files()
    clinic.publish("2024-02-09")
    assert clinic.files() == first
    assert clinic.spent() == 1


def test_a_release_that_is_not_begun_waits_for_its_time(clinic):
    later = clinic.folder / "release.toml"
    later.write_text(later.read_text().replace("start = 2024-01-01\nhorizon", "start = 2024-02-01\nhorizon"))
    told = json.loads(clinic.publish("2024-02-01", "--json"))
    assert [release["windows"] for release in told["releases"]] == [0, 1]
    assert told["releases"][1]["enough_for"]["windows"] == 7  # the series is going to need 1 of epsilon
    assert "nothing yet" in clinic.files()["index.html"].decode()
    assert "daily.csv" not in clinic.files()
    clinic.publish("2024-02-05")
    assert "daily.csv" in clinic.files()


def test_all_that_somebody_wrote_is_escaped(clinic):
    alias = "<script>alert(1)</script>"
    clinic.lists(
        f"""
[[question]]
name = "odd"
sql = '''SELECT shop AS "<img src=x>", COUNT(*) AS "{alias}" FROM visits
WHERE DATE_TRUNC('month', day) = :window GROUP BY shop'''
every = "month"
start = 2024-01-01
epsilon = 1

[[question]]
name = "drawn"
sql = '''SELECT COUNT(*) AS "{alias}" FROM visits WHERE DATE_TRUNC('month', day) = @window'''
every = "month"
start = 2024-01-01
epsilon = 0.25
""",
        head=f'folder = "public"\ntitle = "{alias}"\n',
    )
    clinic.publish("2024-03-01")
    text = clinic.files()["index.html"].decode()
    assert "<svg" in text
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_page_says_what_is_protected_and_at_which_price(clinic):
    clinic.publish("2024-03-01")
    text = clinic.files()["index.html"].decode()
    for words in (
        "one row, which is in one step",
        "epsilon 1, delta 1e-06, once for all 100 steps",
        "epsilon 0.25 for each month; together epsilon 0.5 for the 2 so far",
        "60 of 100 days, 2024-01-01 to 2024-02-29 (UTC)",
        "prefers-color-scheme: dark",
        "@media print",
        "<svg",
    ):
        assert words in text
    assert "http" not in text
    assert page("t", []).count("<h2>") == 1


def test_what_is_said_follows_from_no_row(clinic):
    """The same words and the same columns of files whether there are rows or none."""
    said = []
    for many in (0, 20):
        for number in (1, 2):
            clinic.month(number, many=many)
        said.append([clinic.publish("2024-03-01", "--dry-run"), clinic.publish("2024-03-01")])
        names = [line.split(b"\n")[0] for name, line in clinic.files().items() if name.endswith(".csv")]
        said[-1] += names
        for path in (*clinic.folder.glob("sfumato.ledger*"), *clinic.folder.glob("public/*")):
            path.unlink()
    assert said[0] == said[1]


def test_two_runs_at_once_pay_once_and_write_the_same(clinic):
    run = ["publish", "release.toml", "--now", "2024-03-01T00:00Z"]
    assert [code for code, _ in forked(run, run, folder=clinic.folder)] == [0, 0]
    assert clinic.spent() == Fraction(3, 2)
    files = clinic.files()
    assert "Nothing is new" in clinic.publish("2024-03-01")
    assert clinic.files() == files


def test_the_file_in_the_documentation_is_one_and_all_keys_are_described(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, flags=re.S | re.M)
    (tmp_path / "release.toml").write_text(block)
    assert [wanted.name for wanted in read(tmp_path / "release.toml").wanted] == ["daily", "by_shop"]
    table = text.partition("| key | meaning |")[2].partition("\n\n")[0]
    described = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, flags=re.M))))
    assert described == {key for keys in KEYS.values() for key in keys} - {
        "folder",
        "title",
        "series",
        "question",
    }


@pytest.mark.parametrize("kind", ["series", "question"])
def test_what_is_published_is_never_bought_again(clinic, kind):
    """With another ledger, or a table that is declared anew, nobody meant to pay for all of it twice."""
    clinic.lists(getattr(clinic, kind))
    clinic.publish("2024-02-01")
    files, spent = clinic.files(), clinic.spent()
    catalog = clinic.folder / "sfumato.toml"
    before = catalog.read_text()
    catalog.write_text(before.replace('unit = "row"', 'unit = "row"\nversion = "2"'))
    said = clinic.publish("2024-03-01", code=2)
    assert "What is published is not on record; nothing was spent." in said
    assert "and the ledger has 0 of them" in said
    assert (clinic.files(), clinic.spent()) == (files, spent)
    catalog.write_text(before)
    for path in clinic.folder.glob("sfumato.ledger*"):
        path.rename(path.with_name(f"old-{path.name}"))
    assert "is not on record" in clinic.publish("2024-03-01", code=2)
    assert clinic.spent() == 0


def test_tables_of_two_budgets_and_an_analyst(clinic):
    catalog = clinic.folder / "sfumato.toml"
    other = catalog.read_text().replace("visits]", "calls]").replace("visits.columns", "calls.columns")
    catalog.write_text(catalog.read_text() + other)
    (clinic.folder / "calls").symlink_to(clinic.folder / "visits")
    calls = clinic.question.replace("by_shop", "calls").replace("FROM visits", "FROM calls")
    clinic.lists(clinic.question + calls, head='folder = "public"\nanalyst = "ann"\n')
    told = json.loads(clinic.publish("2024-02-01", "--json"))
    assert [(left["dataset"], left["analyst"], left["epsilon"]) for left in told["left"]] == [
        ("visits", "ann", 2.75),
        ("calls", "ann", 2.75),
    ]
    assert clinic.spent() == Fraction(1, 2)


def test_a_clock_that_goes_back_is_refused_whatever_is_listed(clinic):
    clinic.publish("2024-03-01")
    files, spent = clinic.files(), clinic.spent()
    assert "went back; nothing was spent. series daily: the day 2024-02-29 is published" in clinic.publish(
        "2024-02-10", code=2
    )
    clinic.lists(clinic.question)
    assert "question by_shop: the month 2024-02-01" in clinic.publish("2024-02-10", code=2)
    assert (clinic.files(), clinic.spent()) == (files, spent)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epsilon = 0.25", "epsilon = 0.3", "question by_shop is published, and epsilon was"),
        ("horizon = 100", "horizon = 90", "series daily is published, and horizon was"),
        ("AS n FROM visits WHERE", "AS m FROM visits WHERE", "and sql was something else"),
    ],
)
def test_what_is_published_keeps_its_terms(clinic, old, new, words):
    clinic.publish("2024-02-01")
    files, spent = clinic.files(), clinic.spent()
    release = clinic.folder / "release.toml"
    assert old in release.read_text()
    release.write_text(release.read_text().replace(old, new))
    assert words in clinic.publish("2024-02-01", code=2)
    assert (clinic.files(), clinic.spent()) == (files, spent)


FOUND = """
[[series]]
name = "by_shop"
sql = "SELECT day, shop, COUNT(*) AS n FROM visits GROUP BY day, shop"
start = 2024-01-01
horizon = 100
epsilon = 2
delta = 1e-4
"""


def test_groups_that_come_later_are_published_from_then_on_and_a_second_run_writes_the_same(clinic):
    toml = clinic.folder / "sfumato.toml"
    toml.write_text(toml.read_text().replace('type = "enum", values = ["north", "south"]', 'type = "text"'))
    for number, shops in ((1, ["north"]), (2, ["north", "west"])):
        clinic.month(number, many=90)
        path = clinic.folder / "visits" / f"{number:02}.parquet"
        rows = pq.read_table(path)
        listed = [shops[place % len(shops)] for place in range(rows.num_rows)]
        pq.write_table(rows.set_column(1, "shop", pa.array(listed)), path)
    clinic.lists(FOUND)
    clinic.publish("2024-02-01")
    assert {*pq.read_table(clinic.folder / "public" / "by_shop.parquet")["shop"].to_pylist()} == {"north"}
    clinic.publish("2024-02-03")
    first, table = clinic.files(), pq.read_table(clinic.folder / "public" / "by_shop.parquet")
    later = [row["day"] for row in table.to_pylist() if row["shop"] == "west"]
    assert later == [date(2024, 2, 1), date(2024, 2, 2)]
    assert pa.csv.read_csv(io.BytesIO(first["by_shop.csv"])).to_pydict() == table.to_pydict()
    page = " ".join(first["index.html"].decode().split())
    assert "A group is counted from the step on that found it." in page
    assert "units share, after noise" in page
    assert "Nothing is new" in clinic.publish("2024-02-03")
    assert clinic.files() == first
