"""What cannot be published is one sentence, its exit code, nothing spent and nothing written."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EDITS = [
    ('folder = "public"\n', "", 2, "lacks folder"),
    ('folder = "public"', "folder = 3", 2, "folder must be text"),
    ('folder = "public"', 'folder = "sfumato.toml"', 2, "cannot be written"),
    ('folder = "public"', 'folder = "sfumato.toml/deeper"', 2, "cannot be written"),
    ('folder = "public"', 'folder = "public', 2, "not valid TOML"),
    ('folder = "public"', 'folder = "public"\ntilte = "x"', 2, "Did you mean 'title'?"),
    ('folder = "public"', 'folder = "public"\ncatalog = "none.toml"', 2, "There is no none.toml"),
    ("horizon = 100\n", "", 2, "series daily lacks horizon"),
    ("horizon = 100", "horizont = 100", 2, "Did you mean 'horizon'?"),
    ("horizon = 100", "horizon = 0", 2, "series daily: horizon"),
    ("horizon = 100", "horizon = 10000000", 2, "9999"),
    ("horizon = 100", "horizon = 100\nmax_steps = 0", 2, "series daily: max_steps"),
    ("horizon = 100", "horizon = 100\nmax_steps = 2", 2, "Each row is in one step"),
    ("horizon = 100", 'horizon = 100\nof = "all"', 2, "of must be running, window or steps"),
    ("horizon = 100", 'horizon = 100\nof = "window"', 2, "window = 7"),
    ("horizon = 100", 'horizon = 100\nzone = "Mars/Olympus"', 2, "no time zone"),
    ("delta = 1e-6\n", "", 2, "series daily lacks delta"),
    ("delta = 1e-6", "delta = 2", 2, "series daily: delta"),
    ("epsilon = 1\n", "epsilon = -1\n", 2, "series daily: epsilon"),
    ("epsilon = 1\n", "epsilon = true\n", 2, "epsilon must be a number"),
    ("epsilon = 1\n", "epsilon = 2.75\n", 3, "Not within the budget"),
    ("epsilon = 0.25", "epsilon = 2", 3, "Not within the budget"),
    ('name = "daily"', 'name = "BY_SHOP"', 2, "Two releases are called by_shop"),
    ('name = "daily"', 'name = "../daily"', 2, "letters"),
    ('name = "daily"', "name = 7", 2, "series number 1: name must be text"),
    ("[[series]]", "[series]", 2, "write [[series]]"),
    ("GROUP BY day", "GROUP BY shop", 2, "series daily: "),
    ("GROUP BY day", "GROUP BY day HAVING COUNT(*) > 1", 2, "series daily: A series has the same columns"),
    ("FROM visits GROUP BY day", "FROM vists GROUP BY day", 2, "series daily: "),
    ("SUM(amount)", "SUM(amunt)", 2, "series daily: "),
    ("SELECT shop", "SELEC shop", 2, "question by_shop: "),
    ("SELECT shop", "EXPLAIN SELECT shop", 2, "question by_shop: "),
    (" AND day < $to", "", 2, "$from without $to"),
    ("day >= $from AND day < $to", "day < '2024-02-01'", 2, "says nothing of the window"),
    ("day < $to", "day < $too", 2, "question by_shop: "),
    ('every = "month"', 'every = "moon"', 2, "every must be minute, hour"),
    ('every = "month"\nstart = 2024-01-01', 'every = "month"\nstart = 2024-01-02', 2, "beginning of a month"),
    ('every = "month"\nstart = 2024-01-01', 'every = "month"\nstart = "soon"', 2, "question by_shop: start"),
    ('every = "month"\nstart = 2024-01-01', 'every = "month"\nstart = 5', 2, "start must be a date"),
    ('every = "month"\nstart = 2024-01-01', 'every = "month"\nstart = 9999-12-01', 2, "begin earlier"),
    ("horizon = 100", f"horizon = {'9' * 5000}", 2, "release.toml has a number with too many digits"),
    ("horizon = 100", f"horizon = {'[' * 3000}{']' * 3000}", 2, "lie too deep in one another"),
    ('folder = "public"', 'folder = "a\\u0000b"', 2, "cannot be written"),
    ('folder = "public"', 'folder = "public"\ncatalog = "a\\u0000b"', 2, "cannot be read"),
    ('folder = "public"', 'folder = "visits"', 2, "a file that visits is read from"),
]


@pytest.mark.parametrize(("old", "new", "code", "words"), EDITS, ids=[f"{e[3]} {e[1]}"[:50] for e in EDITS])
def test_bad_files_are_one_sentence_and_cost_nothing(clinic, old, new, code, words):
    release = clinic.folder / "release.toml"
    text = release.read_text()
    assert old in text
    release.write_text(text.replace(old, new, 1))
    said = clinic.publish("2024-03-01", code=code)
    assert words in said
    assert "nobody foresaw" not in said
    assert clinic.spent() == 0
    assert not (clinic.folder / "public").exists()


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ("2024-01-01", "Nothing is over yet"),
        ("2023-01-01", "still open"),
        ("2999-01-01", "--now is still to come"),
        ("soon", "--now is a time"),
    ],
)
def test_windows_that_are_open_are_not_published(clinic, now, words):
    assert words in clinic.publish(now, code=2)
    assert clinic.spent() == 0
    assert not (clinic.folder / "public").exists()


def test_files_of_others_are_not_written_over(clinic):
    public = clinic.folder / "public"
    public.mkdir()
    (public / "manifest.json").write_text('{"name": "a web app"}')
    assert "choose another folder" in clinic.publish("2024-03-01", code=2)
    (public / "manifest.json").unlink()
    (public / "daily.csv").mkdir()
    assert "there is a folder of that name" in clinic.publish("2024-03-01", code=2)
    assert clinic.spent() == 0


MANIFESTS = [
    (("terms",), "x"),
    (("terms",), None),
    (("terms", "epsilon"), "2"),
    (("name",), ["daily"]),
    (("windows",), float("inf")),
    (("windows",), "31"),
    (("windows",), 10**9),
]


def test_a_manifest_that_somebody_edited_is_one_sentence_and_costs_nothing(clinic):
    clinic.publish("2024-02-01")
    path, spent = clinic.folder / "public" / "manifest.json", clinic.spent()
    whole, files = path.read_text(), clinic.files()
    for release in (0, 1):
        for keys, value in MANIFESTS:
            known = json.loads(whole)
            (*above, last), place = keys, known["releases"][release]
            for key in above:
                place = place[key]
            place[last] = value
            path.write_text(json.dumps(known))
            assert "nobody foresaw" not in clinic.publish("2024-03-01", code=2), (release, keys, value)
    path.write_text(whole)
    assert (clinic.files(), clinic.spent()) == (files, spent)


@pytest.mark.parametrize("content", ["", "null", "[]", "[" * 100_000, '{"format": 1}'])
def test_what_is_no_manifest_is_not_written_over(clinic, content):
    (clinic.folder / "public").mkdir()
    (clinic.folder / "public" / "manifest.json").write_text(content)
    assert "choose another folder" in clinic.publish("2024-03-01", code=2)
    assert clinic.spent() == 0


def test_a_release_is_not_written_over_the_rows_of_a_table(clinic):
    """The file that a table is read from, or one that its folder or pattern would have then."""
    catalog, release = clinic.folder / "sfumato.toml", clinic.folder / "release.toml"
    (clinic.folder / "all").mkdir()
    (clinic.folder / "visits" / "01.parquet").rename(clinic.folder / "all" / "daily.parquet")
    listed, text = catalog.read_text(), release.read_text()
    for source, folder in [
        ("all/daily.parquet", "all"),
        ("all", "all/deeper"),
        ("all/*.parquet", "all"),
        ("**/*.parquet", "public"),
    ]:
        catalog.write_text(listed.replace("visits/*.parquet", source))
        release.write_text(text.replace('"public"', f'"{folder}"'))
        assert "visits is read from: choose another folder" in clinic.publish("2024-03-01", code=2), source
        assert clinic.spent() == 0
    catalog.write_text(listed.replace("visits/*.parquet", "all/*.parquet"))
    release.write_text(text.replace('"public"', '"all/deeper"'))
    clinic.publish("2024-02-01", "--dry-run")


def test_a_question_whose_windows_reach_the_last_year_is_listed_beside_others(clinic):
    clinic.lists(clinic.series + clinic.question.replace("2024-01-01", "9990-01-01").replace("month", "year"))
    assert "daily 31 of 100 days" in clinic.publish("2024-02-01", "--dry-run")


def test_a_missing_file_and_an_empty_one(clinic):
    release = clinic.folder / "release.toml"
    release.write_text('folder = "public"')
    assert "lists nothing to publish" in clinic.publish("2024-03-01", code=2)
    release.unlink()
    assert "There is no release.toml" in clinic.publish("2024-03-01", code=2)


def test_limits_that_are_left_to_a_profile_want_it_first(clinic):
    catalog = clinic.folder / "sfumato.toml"
    kept = [line for line in catalog.read_text().splitlines() if not line.startswith("amount")]
    catalog.write_text("\n".join(kept).replace('unit = "row"', 'unit = "amount"\nmax_rows = "auto"'))
    clinic.lists(clinic.question)
    assert "sfumato profile visits --epsilon 0.25" in clinic.publish("2024-03-01", code=2)
    assert clinic.spent() == 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT shop, COUNT(*) AS n FROM visits WHERE day >= $from AND day < $to GROUP BY shop",
        "SELECT COUNT(*) AS n FROM visits WHERE DATE_TRUNC('month', day) = $window",
        "SELECT COUNT(*) FILTER (WHERE day >= $from AND day < $to) AS n FROM visits",
    ],
)
def test_windows_of_timestamps_end_in_utc(clinic, text):
    """East of it they would be published while rows still come."""
    clinic.lists(clinic.question.replace(clinic.question.split('"')[3], text) + 'zone = "Asia/Tokyo"\n')
    catalog = clinic.folder / "sfumato.toml"
    of_dates = catalog.read_text()
    catalog.write_text(of_dates.replace('day = { type = "date"', 'day = { type = "timestamp"'))
    assert "day is a timestamp, and timestamps are in UTC" in clinic.publish("2024-03-01", code=2)
    assert clinic.spent() == 0
    catalog.write_text(of_dates)
    clinic.publish("2024-03-01")


def test_other_timestamps_of_a_question_may_be_of_any_zone(clinic):
    text = "SELECT EXTRACT(HOUR FROM at) AS hour, COUNT(*) AS n FROM visits WHERE day >= $from AND day < $to"
    text += " GROUP BY EXTRACT(HOUR FROM at)"
    clinic.lists(clinic.question.replace(clinic.question.split('"')[3], text) + 'zone = "Asia/Tokyo"\n')
    catalog = clinic.folder / "sfumato.toml"
    catalog.write_text(catalog.read_text() + 'at = "timestamp"\n')
    for file in (clinic.folder / "visits").iterdir():
        rows = pq.read_table(file)
        pq.write_table(rows.append_column("at", rows["day"].cast(pa.timestamp("s"))), file)
    clinic.publish("2024-03-01")
