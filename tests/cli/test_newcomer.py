"""The first hour with nothing but the tour and a messy file of 30 columns: all that is typed and seen."""

import re
from pathlib import Path

import pytest

import sfumato as sf
from messy import UNREADABLE, write_messy
from sfumato.testing import seeded

TOUR = Path(__file__).parents[2] / "docs/tour.md"
DECIDED = {  # what the steward knows about such a hospital, before looking at a row
    "age": 'type = "int", lower = 0, upper = 110',
    "sex": 'type = "enum", values = ["F", "M", "f", "m"]',
    "ward": 'type = "enum", values = ["Chirurgie", "Geburtshilfe", "Innere", "Notaufnahme", "Augen"]',
    "admitted": 'type = "date", start = 2024-01-01, end = 2024-12-31',
    "cost": 'type = "float", lower = 0, upper = 5000',
    "glucose": 'type = "float", lower = 0, upper = 400',
    "bp_dia": 'type = "int", lower = 40, upper = 140',
}
BY_SEX = "SELECT UPPER(sex) AS sex, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY UPPER(sex)"
BY_MONTH = "SELECT MONTH(admitted) AS month, COUNT(*) AS n FROM visits GROUP BY 1"
LOST = "SELECT COUNT(*) AS n FROM visits WHERE admitted IS NULL"


def as_told(text: str, diff: str) -> str:
    """The file with the changes that `validate` prints: lines of the section csv, and types of columns."""
    for line in re.findall(r"^\+ (\w+ = .*)$", diff, flags=re.M):
        name, _, value = line.partition(" = ")
        if value.startswith("{"):
            word = re.search(r'"(\w+)"', value)[1]
            text, n = re.subn(rf'^({name} = {{ type = )"\w+"', rf'\1"{word}"', text, flags=re.M)
        else:
            text, n = re.subn(rf"^# {name} = .*$", line, text, flags=re.M)
        assert n == 1, line
    return text


def decided(text: str) -> str:
    for name, settings in DECIDED.items():
        text, n = re.subn(rf"^{name} = {{.*}}$", f"{name} = {{ {settings} }}", text, flags=re.M)
        assert n == 1, name
    return text


def covers(ends, truth):
    low, high = ends
    return low <= truth <= (float("inf") if high is None else high)


@pytest.mark.parametrize("rows", [2_000, pytest.param(500_000, marks=pytest.mark.stats)])
def test_from_a_messy_file_to_answers_that_hold_the_truth(cli, tmp_path, rows):
    messy = write_messy(tmp_path, rows)
    catalog = tmp_path / "sfumato.toml"

    def run(*arguments, code=0):
        with seeded(" ".join(arguments)):
            done = cli(*arguments)
        assert done.code == code, done.err
        if "--json" not in arguments:
            assert max(map(len, (done.out + done.err).split("\n"))) <= 80
        return done

    def asked(*arguments):
        sure = (
            () if arguments[0] == "validate" else ("--confidence", "0.9999")
        )  # of many intervals none misses
        return run(*arguments, *sure, "--json").json

    # init: no cell is shown or written, whatever it takes the first line for
    first = run("init", "visits.csv")
    assert "two cells of it are the same" in " ".join(first.out.split())
    again = run("init", "visits.csv", code=2)
    assert "exists and was left as it is; --force" in again.err
    named = run(
        "init",
        "visits.csv",
        "--header",
        "--force",
        "--unit",
        "patient_id",
        "--epsilon",
        "20",
        "--delta",
        "1e-6",
    )
    draft = catalog.read_text()
    assert not [word for word in messy.words if word in first.out + named.out + draft]
    assert re.search(r"^cost_2 +float", named.out, flags=re.M)
    assert re.search(r"^bp_dia +text", named.out, flags=re.M)

    # validate: for the steward alone, with a diff that can be followed to the letter
    latin = run("validate").out
    assert "probably in Windows-1252 or Latin-1" in " ".join(latin.split())
    messy.path.write_text(messy.path.read_text(encoding="latin-1"), encoding="utf-8")
    found = run("validate").out
    assert "ids are the same as another but for upper and lower case" in " ".join(found.split())
    for line in ('+ decimal = ","', '+ dates = ["%Y-%m-%d", "%d.%m.%Y"]', "+ trim = true"):
        assert line in found
    catalog.write_text(decided(as_told(draft, found)))
    told = asked("validate")["tables"][0]
    columns = {column["name"]: column for column in told["columns"]}
    assert columns["admitted"]["unread"] == messy.lost.sum()
    assert columns["admitted"]["outside"] == columns["sex"]["outside"] == columns["cost"]["unread"] == 0
    assert told["changes"] == []
    assert "patient_id" in run("schema").out
    assert not list(tmp_path.glob("*.ledger"))  # nothing was asked yet

    # quote, query, and the same again
    assert asked("quote", BY_SEX, "--epsilon", "2")["left"]["epsilon"] == 20
    answer = asked("query", BY_SEX, "--epsilon", "2")
    assert "rows, at most" in answer["estimands"]["n"]
    assert "mean of age over rows" in answer["estimands"]["age"]
    for row, ends in zip(answer["rows"], answer["covering"], strict=True):
        of_sex = messy.columns["sex"] == row["sex"]
        assert covers(ends["n"], of_sex.sum())
        assert covers(ends["age"], messy.columns["age"][of_sex].mean())
    shown = run("query", BY_SEX, "--epsilon", "2").out
    assert "Answered again from the ledger, free" in " ".join(shown.split())
    assert (
        "An answer is on record: asking for this again is free" in run("quote", BY_SEX, "--epsilon", "2").out
    )
    assert "This is more than what is left" in run("quote", BY_MONTH, "--epsilon", "90").out
    assert "± noise" in shown
    assert "n, all rows" in shown

    # a month of which three days in ten cannot be read: those rows are in no month, and can be asked for
    months = asked("query", BY_MONTH, "--epsilon", "2")
    assert [row["month"] for row in months["rows"]] == list(range(1, 13))
    for number, ends in enumerate(months["covering"], start=1):
        assert covers(ends["n"], messy.readable(number)), number
    (lost,) = asked("query", LOST, "--epsilon", "1")["covering"]
    assert covers(lost["n"], messy.lost.sum())
    assert messy.readable(UNREADABLE) < 0.8 * messy.readable(UNREADABLE + 1)

    # no SQL: bins and pairs
    bins = asked("histogram", "age", "--bins", "0,18,65,110", "--epsilon", "1")
    ages = messy.columns["age"]
    for row, ends in zip(bins["rows"], bins["covering"], strict=True):
        assert covers(ends["count"], ((ages >= row["age_from"]) & (ages <= row["age_to"])).sum())
    pairs = asked("crosstab", "ward", "urgent", "--epsilon", "1")
    assert {row["ward"] for row in pairs["rows"]} <= set(messy.columns["ward"])

    # what is refused costs nothing and says what to do
    left = asked("query", BY_SEX, "--epsilon", "2")["left"]
    for arguments, code, words in (
        (
            ("query", "SELECT COUNT(*) AS n FROM visits WHERE sex = 'X'", "--epsilon", "1"),
            2,
            "Values: 'F', 'M'",
        ),
        (("query", "SELECT AVG(weigth) AS w FROM visits", "--epsilon", "1"), 2, "Did you mean weight?"),
        (("query", "SELECT AVG(weight) AS w FROM visits", "--epsilon", "1"), 2, "needs bounds for weight"),
        (("query", "SELECT * FROM visits", "--epsilon", "1"), 2, "would show the rows"),
        (("query", BY_MONTH, "--epsilon", "90"), 3, "asked epsilon 90"),
        (("query", BY_MONTH), 2, "Give a price, --epsilon 0.5"),
    ):
        assert words in " ".join(run(*arguments, code=code).err.split())
    assert asked("query", BY_SEX, "--epsilon", "2")["left"] == left
    assert "chained and anchored" in " ".join(run("ledger", "verify").out.split())

    # the same file, ledger and answers from Python, as the tour has it
    (lines,) = re.findall(r"^```py\n(.*?)^```", TOUR.read_text(), flags=re.S | re.M)
    names = {"sf": sf}
    exec(lines, names)
    with names["s"] as session:
        assert float(session.balance().remaining) == pytest.approx(left["epsilon"])
        release = session.sql(BY_SEX).release(epsilon=2)
        assert release.free
        frame = release.to_pandas(errors=True, confidence=0.9999)
        assert list(frame)[:5] == ["sex", "n", "n_error", "n_low", "n_high"]
        truth = [(messy.columns["sex"] == sex).sum() for sex in frame["sex"]]
        assert (frame["n_low"] <= truth).all()
        assert (truth <= frame["n_high"]).all()
        session.unreadable("visits", "admitted", epsilon=1)
        widened = session.sql(BY_MONTH).release(epsilon=2).interval(0.9999).to_pylist()
        for number, ends in enumerate(widened, start=1):
            assert covers((ends["n_low"], ends["n_high"]), messy.admitted(number)), number
        costs = session.table("visits").agg(spend=sf.sum("cost"), middle=sf.median("glucose"))
        ends = costs.release(epsilon=2).interval(0.9999).to_pylist()[0]
        assert covers((ends["spend_low"], ends["spend_high"]), messy.columns["cost"].clip(0, 5000).sum())
        assert "middle" in repr(costs)
