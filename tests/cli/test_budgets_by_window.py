"""A budget for each month in `sfumato.toml`: asked, shown, raised, published, and told in the dossier."""

import json
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CATALOG = """
[datasets.stays]
epsilon = 1
delta = 1e-6
each = "month"

[tables.stays]
source = "stays.parquet"
unit = "patient"
window = "month"
time = "day"
max_rows = 2
size = 40

[tables.stays.columns]
day = { type = "date", start = "2026-01-01", end = "2026-12-31", role = "plain" }
ward = { type = "enum", values = ["a", "b"], role = "plain" }
"""
MARCH = "SELECT COUNT(*) AS n FROM stays WHERE day >= DATE '2026-03-01' AND day < DATE '2026-04-01'"
YEAR = "SELECT COUNT(*) AS n FROM stays WHERE YEAR(day) = 2026"
RELEASES = """
folder = "public"

[[question]]
name = "stays"
sql = "SELECT COUNT(*) AS n FROM stays WHERE day >= $from AND day < $to"
every = "month"
start = 2026-01-01
epsilon = 0.6

[[series]]
name = "daily"
sql = "SELECT day, COUNT(*) AS n FROM stays GROUP BY day"
start = 2026-01-01
horizon = 59
epsilon = 0.3
delta = 1e-7
"""


def flat(text):
    return " ".join(text.split())


@pytest.fixture
def hospital(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = [date(2026, 1, 1) + timedelta(days=row % 150) for row in range(600)]
    rows = {
        "patient": [row % 40 for row in range(600)],
        "day": days,
        "ward": ["ab"[row % 2] for row in range(600)],
    }
    pq.write_table(pa.table(rows), tmp_path / "stays.parquet")
    (tmp_path / "sfumato.toml").write_text(CATALOG)
    return tmp_path


def test_a_question_is_paid_in_its_month_and_the_ledger_shows_it(cli, hospital):
    quoted = flat(cli("quote", MARCH, "--epsilon", "0.8").out)
    assert "none is for life" in quoted
    assert "Left in the budget of stays: epsilon 1 of 1, delta 1e-06 in 2026-03." in quoted
    answered = cli("query", MARCH, "--epsilon", "0.8")
    assert answered.code == 0
    assert "0.2 of 1" in flat(answered.out + answered.err)
    refused = cli("query", YEAR, "--epsilon", "0.5")
    assert refused.code == 3
    assert "in 2026-03: asked epsilon 0.5, spent 0.8 of 1, left 0.2" in flat(refused.err)
    unnamed = cli("query", "SELECT COUNT(*) AS n FROM stays", "--epsilon", "0.1")
    assert unnamed.code != 0
    assert "WHERE day >= DATE '2026-03-01' AND day < DATE '2026-04-01'" in flat(unnamed.err)
    assert cli("query", YEAR, "--epsilon", "0.1").code == 0
    shown = {
        month: cli("ledger", "show", "--window", month, "--json").json["balances"][0]
        for month in ("2026-03", "2026-05", "2027-01")
    }
    assert [balance["spent"] for balance in shown.values()] == [0.9, 0.1, 0]
    assert [balance["window"] for balance in shown.values()] == [*shown]
    told = flat(cli("ledger", "show", "--window", "2026-03").out)
    assert "stays in 2026-03 (basic)" in told
    assert "epsilon 1, delta 1e-06 for each month" in told
    assert "2026-01 to 2026-12" in told
    listed = {
        month: [
            receipt["windows"]["to"]
            for receipt in cli("ledger", "show", "--window", month, "--json").json["receipts"]
            if receipt["kind"] == "debit"
        ]
        for month in shown
    }
    assert listed == {"2026-03": ["2026-12", "2026-03"], "2026-05": ["2026-12"], "2027-01": []}
    kinds = [
        receipt["kind"] for receipt in cli("ledger", "show", "--window", "2026-05", "--json").json["receipts"]
    ]
    assert (kinds.count("debit"), kinds.count("release"), kinds.count("register")) == (1, 1, 1)
    assert "window names one month, such as 2026-03" in cli("ledger", "show", "--window", "May").err
    exported = [json.loads(line) for line in cli("ledger", "export").out.splitlines()]
    assert {"each": "month", "from": "2026-03", "to": "2026-03"} in [line.get("windows") for line in exported]
    assert cli("ledger", "verify").code == 0


def test_limits_and_raises_are_for_each_month(cli, hospital):
    listed = "\n[datasets.stays.analysts]\nann = { epsilon = 0.5 }\n"
    (hospital / "sfumato.toml").write_text(CATALOG + listed)
    assert cli("query", MARCH, "--epsilon", "0.5", "--analyst", "ann").code == 0
    over = cli(
        "query", MARCH.replace("COUNT(*)", "COUNT(DISTINCT patient)"), "--epsilon", "0.1", "--analyst", "ann"
    )
    assert over.code == 3
    assert "the limit of 'ann' on 'stays' in 2026-03" in flat(over.err).replace("The limit", "the limit")
    april = MARCH.replace("-04-", "-05-").replace("-03-", "-04-")
    assert cli("query", april, "--epsilon", "0.5", "--analyst", "ann").code == 0
    raised = cli("ledger", "raise", "stays", "--epsilon", "2", "--reason", "more months")
    assert raised.code == 0
    assert "epsilon 2, delta 1e-06 (basic) for each month" in flat(raised.out)
    toml = hospital / "sfumato.toml"
    toml.write_text(toml.read_text().replace('each = "month"', 'each = "week"'))
    refused = cli("ledger", "raise", "stays", "--reason", "x")
    assert "opened for each month, which stays" in flat(refused.err)


def test_units_of_another_window_are_refused(cli, hospital):
    toml = hospital / "sfumato.toml"
    for old, new in (('window = "month"', 'window = "week"'), ('window = "month"\ntime = "day"\n', "")):
        toml.write_text(CATALOG.replace(old, new))
        refused = cli("query", MARCH, "--epsilon", "0.1")
        assert refused.code == 1
        assert "needs units that are windows of just that length" in flat(refused.err)
    toml.write_text(CATALOG.replace('each = "month"', 'each = "fortnight"'))
    assert "each is one of day, week, month, quarter, year" in flat(
        cli("query", MARCH, "--epsilon", "0.1").err
    )


def test_each_month_is_published_from_its_own_budget(cli, hospital):
    """Six months of 0.6 would not fit into one budget of 1; the series is paid in its two months."""
    (hospital / "release.toml").write_text(RELEASES)
    published = cli("publish", "release.toml", "--now", "2026-07-01T00:00Z")
    assert published.code == 0, published.err
    assert "over" in flat(published.out)  # enough for more months than were looked at
    assert "Left in the budget of stays: epsilon 0.1 of 1, delta 9e-07 in 2026-01." in flat(published.out)
    again = cli("publish", "release.toml", "--now", "2026-07-01T00:00Z", "--json").json
    assert [release["new"] for release in again["releases"]] == [0, 0]
    spent = [
        cli("ledger", "show", "--window", f"2026-0{month}", "--json").json["balances"][0]["spent"]
        for month in (1, 2, 3, 6, 7)
    ]
    assert spent == [0.9, 0.9, 0.6, 0.6, 0]
    dearer = RELEASES.replace("epsilon = 0.6", "epsilon = 0.8").replace('"stays"', '"others"')
    (hospital / "release.toml").write_text(dearer)
    refused = cli("publish", "release.toml", "--now", "2026-08-01T00:00Z")
    assert refused.code == 3
    assert "in 2026-01" in refused.err


def test_the_card_and_the_checklist_say_what_a_life_may_lose(cli, hospital):
    before = flat(cli("check", "stays").out)
    assert "none is for life: a person may lose up to epsilon 1 in each" in before
    assert cli("query", YEAR, "--epsilon", "0.25").code == 0
    assert cli("query", MARCH, "--epsilon", "0.5").code == 0
    card = flat(cli("card", "stays").out)
    assert "epsilon 0.75, delta 0 in 2 releases, the most in 2026-03" in card
    assert "for each month" in card
    assert (
        "So far 12 such windows are paid in, and whoever is in all of them may lose up to epsilon 12." in card
    )
    assert cli("card", "stays", "--json").json["budget"]["windows"] == 12
