"""A budget divided among teams from the command line, on record, and taken back by the steward alone."""

import pytest

ALL = "SELECT COUNT(*) AS n FROM visits"
ASK = ("ledger", "allot", "visits", "--ask", "ann=0.8", "--ask", "bob=0.1", "--ask", "cy=3")


@pytest.fixture
def asked(cli, hospital):
    """The hospital, a tenth of its budget spent."""
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    return hospital


def test_the_plan_is_shown_and_nothing_is_written(cli, asked):
    shown = cli(*ASK)
    assert shown.code == 0
    assert "Nothing is written yet" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    planned = cli(*ASK, "--json").json
    assert planned["shares"] == {"ann": "2/5", "bob": "1/10", "cy": "2/5"}
    assert planned["written"] == []
    assert len(cli("ledger", "show", "--json").json["receipts"]) == 4


def test_limits_are_written_hold_and_are_taken_back(cli, asked):
    written = cli(*ASK, "--write", "--reason", "spring")
    assert "on record" in written.out
    refused = cli("query", "SELECT AVG(age) AS a FROM visits", "--epsilon", "0.2", "--analyst", "bob")
    assert refused.code == 3
    assert cli("ledger", "verify").code == 0
    back = cli("ledger", "take-back", "visits", "--reason", "summer")
    assert back.code == 0
    assert "ann, bob, cy" in " ".join(back.out.split())
    assert cli("query", "SELECT AVG(age) AS a FROM visits", "--epsilon", "0.2", "--analyst", "bob").code == 0
    assert cli("ledger", "take-back", "visits", "--reason", "again").code == 1


def test_an_analyst_undoes_nothing(cli, asked, monkeypatch):
    assert cli(*ASK, "--write", "--reason", "spring").code == 0
    monkeypatch.setenv("SFUMATO_ANALYST", "bob")
    acts = (
        ("ledger", "take-back", "visits", "--reason", "mine"),
        ("ledger", "limit", "visits", "bob", "--epsilon", "0.9", "--reason", "mine"),
        (*ASK, "--write", "--reason", "mine"),
        ("ledger", "raise", "visits", "--epsilon", "9", "--reason", "mine"),
        ("ledger", "revoke", "visits", "ann", "--reason", "mine"),
        ("ledger", "close", "visits", "--reason", "mine"),
    )
    for act in acts:
        refused = cli(*act)
        assert refused.code == 2, act
        assert "the steward" in refused.err
    assert cli("ledger", "show", "--analyst", "bob", "--json").json["balances"][0]["epsilon"] == 0.1


def test_the_file_that_lists_analysts_is_told(cli, asked):
    toml = asked / "sfumato.toml"
    toml.write_text(toml.read_text() + "\n[datasets.visits.analysts]\nann = { epsilon = 0.5 }\n")
    slip = cli(*ASK, "--write", "--reason", "spring")
    assert slip.code == 2
    assert "does not list 'bob'" in " ".join(slip.err.split())
    written = cli(*ASK, "--write", "--reason", "spring", "--force")
    assert "[datasets.visits.analysts]" in written.out
    entries = [line.strip() for line in written.out.splitlines() if " = { " in line]
    assert [entry.split(" = ")[0] for entry in entries] == ["ann", "bob", "cy"]
    toml.write_text(toml.read_text().replace("ann = { epsilon = 0.5 }", "\n".join(entries)))
    assert cli("query", "SELECT AVG(age) AS a FROM visits", "--epsilon", "0.1", "--analyst", "ann").code == 0
    back = cli("ledger", "take-back", "visits", "--reason", "summer")
    assert "what held before for ann, bob, cy holds again" in " ".join(back.out.split())
    assert "gets the one that [datasets.visits.analysts] of the toml lists" in " ".join(back.out.split())
    toml.write_text(toml.read_text().replace(entries[0], "ann = { epsilon = 0.6 }"))
    assert cli("query", "SELECT SUM(age) AS a FROM visits", "--epsilon", "0.1", "--analyst", "ann").code == 0
    assert cli("ledger", "show", "--analyst", "ann", "--json").json["balances"][0]["epsilon"] == 0.6


def test_a_budget_is_divided_before_anything_is_asked(cli, hospital):
    planned = cli(*ASK, "--json").json
    assert planned["shares"] == {"ann": "9/20", "bob": "1/10", "cy": "9/20"}
    assert not (hospital / "sfumato.ledger").exists()  # looking makes none
    written = cli(*ASK, "--write", "--reason", "spring")
    assert written.code == 0
    assert "Others than these teams may ask" in " ".join(written.out.split())
    assert cli("query", ALL, "--epsilon", "0.2", "--analyst", "bob").code == 3
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "bob").code == 0
    (hospital / "sfumato.ledger").unlink()
    assert cli(*ASK).code == 4  # the anchor is left: it was not always without a ledger


def test_an_auction_is_held(cli, asked):
    values = ("--rule", "auction", "--value", "ann=5", "--value", "cy=2", "--value", "bob=1")
    held = cli(*ASK, *values, "--json").json
    assert held["shares"] == {"ann": "4/5", "bob": "0", "cy": "1/10"}
    assert held["payments"] == {"ann": "8/5", "bob": "0", "cy": "1/10"}
    assert held["limits"]["bob"] is None
    assert "nothing more" in cli(*ASK, *values).out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--ask", "dan"), "takes TEAM=NUMBER"),
        (("--ask", "ann=1"), "names ann twice"),
        (("--ask", "dan=-1"), "greater than 0"),
        (("--weight", "dan=1"), "who does not ask"),
        (("--rule", "auction"), "what a unit of epsilon is worth"),
        (("--write",), "need a reason"),
        (("--total", "5"), "left to give"),
    ],
)
def test_a_slip_is_told_and_nothing_is_written(cli, asked, more, words):
    ended = cli(*ASK, *more)
    assert ended.code in (2, 3)
    assert words in " ".join(ended.err.split())
    assert len(cli("ledger", "show", "--json").json["receipts"]) == 4


def test_a_ledger_that_does_not_open_is_not_taken_for_none(cli, hospital):
    (hospital / "sfumato.ledger").write_text("not a ledger")
    assert cli(*ASK).code in (1, 4)
    assert cli(*ASK, "--ledger", "postgresql://127.0.0.1:1/none").code == 1
