"""What a steward does and is told: limits, revocations, a lost anchor, a deleted ledger."""

import json

import pytest

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
ALL = "SELECT COUNT(*) AS n FROM visits"


def flat(text):
    return " ".join(text.split())


@pytest.fixture
def shared(hospital):
    """The hospital with two analysts listed."""
    toml = hospital / "sfumato.toml"
    toml.write_text(
        toml.read_text() + "\n[datasets.visits.analysts]\nann = { epsilon = 0.5 }\nbob = { epsilon = 0.9 }\n"
    )
    return hospital


def test_a_deleted_ledger_whose_anchor_is_left_does_not_verify(cli, hospital):
    absent = cli("ledger", "verify")
    assert absent.code == 1
    assert "There is no ledger" in absent.err
    assert not (hospital / "sfumato.ledger").exists()  # looking makes none
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 0
    (hospital / "sfumato.ledger").unlink()
    for command in (["ledger", "verify"], ["ledger", "show"], ["query", BY_CITY, "--epsilon", "0.1"]):
        assert cli(*command).code == 4, command
    assert cli("ledger", "verify", "--json").json["ok"] is False


def test_a_limit_that_differs_stops_only_whom_it_is_for(cli, shared):
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann").code == 0
    told = cli("ledger", "limit", "visits", "ann", "--epsilon", "0.8", "--reason", "more")
    assert "ann = { epsilon = 0.8 }" in told.out
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "bob").code == 0
    stopped = cli("query", ALL, "--epsilon", "0.1", "--analyst", "ann")
    assert stopped.code == 1
    # Both ways are offered, each to be followed to the letter.
    assert "ann = { epsilon = 0.8 }" in stopped.err
    assert "sfumato ledger limit visits ann --epsilon 0.5 --reason …" in flat(stopped.err)
    assert cli("ledger", "show", "--analyst", "ann", "--json").json["balances"][0]["epsilon"] == 0.8
    toml = shared / "sfumato.toml"
    toml.write_text(toml.read_text().replace("ann = { epsilon = 0.5 }", "ann = { epsilon = 0.8 }"))
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "ann").code == 0


def test_before_anything_is_spent_the_file_may_be_changed_freely(cli, shared):
    toml = shared / "sfumato.toml"
    right = toml.read_text()
    slips = {
        '"patient_id"': '"cost"',
        "epsilon = 1\n": "epsilon = 7\n",
        "ann = { epsilon = 0.5": "ann = { epsilon = 0.7",
    }
    for of, slip in slips.items():
        toml.write_text(right.replace(of, slip))
        assert cli("quote", ALL, "--epsilon", "0.1", "--analyst", "ann").code == 0
        assert cli("query", ALL, "--epsilon", "9", "--analyst", "ann").code != 0
    toml.write_text(right)
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "ann").code == 0
    assert cli("ledger", "show", "--analyst", "ann", "--json").json["balances"][0]["epsilon"] == 0.5
    for of, slip in slips.items():
        toml.write_text(right.replace(of, slip))
        refused = cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann")
        assert refused.code == 1
        assert "on record" in refused.err or "in the ledger" in refused.err


def test_anothers_answer_counts_until_it_is_given_to_all(cli, shared):
    paid = cli("query", ALL, "--epsilon", "0.8", "--analyst", "bob", "--json").json
    refused = cli("query", ALL, "--epsilon", "0.8", "--analyst", "ann")
    assert refused.code == 3
    assert "counts toward your own limit" in flat(refused.err)
    given = cli("ledger", "give", "visits", str(paid["receipt"]), "--reason", "published")
    assert "given to all" in given.out
    read = cli("query", ALL, "--epsilon", "0.8", "--analyst", "ann", "--json").json
    assert (read["rows"], read["free"], read["counted"]) == (paid["rows"], True, {})
    cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "bob")
    told = cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann")
    assert "epsilon 0.1 counts toward your limit" in flat(told.out + told.err)
    shown = flat(cli("ledger", "show", "--analyst", "ann").out)
    assert "in 0 debits and 1 answer of others" in shown
    assert cli("ledger", "verify").code == 0


def test_a_limit_as_large_as_the_budget_is_not_undone_by_the_file(cli, shared):
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann").code == 0
    raised = ("ledger", "limit", "visits", "ann", "--epsilon", "1", "--delta", "1e-6", "--reason", "all")
    assert cli(*raised).code == 0
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "ann").code == 1
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "bob").code == 0
    assert cli("ledger", "show", "--analyst", "ann", "--json").json["balances"][0]["epsilon"] == 1


def test_a_limit_for_somebody_whom_the_file_does_not_list_says_so(cli, shared):
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "bob").code == 0
    told = cli("ledger", "limit", "visits", "carol", "--epsilon", "0.1", "--reason", "new")
    assert "add carol to the toml" in flat(told.out)
    assert "carol = { epsilon = 0.1, delta = 1e-06 }" in told.out
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "carol").code == 2
    toml = shared / "sfumato.toml"
    toml.write_text(toml.read_text() + "carol = { epsilon = 0.1, delta = 1e-06 }\n")
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "carol").code == 0


def test_a_balance_says_what_bounds_it(cli, shared):
    assert cli("query", BY_CITY, "--epsilon", "0.9", "--analyst", "bob").code == 0
    capped = cli("ledger", "show", "--analyst", "ann").out
    assert "epsilon 0.1, delta 0: all that visits has left" in capped
    asked = cli("quote", ALL, "--epsilon", "0.1", "--analyst", "ann").out
    assert "epsilon 0.1 of 0.5; visits has no more" in flat(asked)
    revoked = cli("ledger", "revoke", "visits", "ann", "--reason", "left").out
    assert "left    nothing: revoked" in revoked
    document = cli("ledger", "show", "--analyst", "ann", "--json").json["balances"][0]
    assert (document["remaining"], document["open"], document["closed"]) == (0, False, False)
    closed = cli("ledger", "close", "visits", "--reason", "over").out
    assert "left    nothing: the budget is closed" in closed


def test_a_name_that_was_never_seen_is_not_revoked_by_a_slip(cli, shared):
    assert cli("query", ALL, "--epsilon", "0.1", "--analyst", "bob").code == 0
    slip = cli("ledger", "revoke", "visits", "bbo", "--reason", "left")
    assert slip.code == 2
    assert "Did you mean 'bob'?" in slip.err
    assert cli("ledger", "revoke", "visits", "zorro", "--reason", "never", "--force").code == 0
    assert cli("ledger", "revoke", "visits", "zorro", "--reason", "known by now").code == 0


def test_a_lost_anchor_is_adopted_with_a_receipt(cli, hospital):
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 0
    assert cli("ledger", "adopt", "--reason", "why not").code == 2  # nothing is lost
    (hospital / "sfumato.ledger.anchor").unlink()
    lost = cli("query", BY_CITY, "--epsilon", "0.1")
    assert lost.code == 4
    assert "sfumato ledger adopt --reason" in flat(lost.err)
    assert cli("ledger", "adopt", "--reason", " ").code == 2
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 4
    adopted = cli("ledger", "adopt", "--reason", "the disk died")
    assert adopted.code == 0
    assert "cannot be noticed any more" in flat(adopted.out)
    assert cli("ledger", "verify").code == 0
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--json").json["free"] is True
    newest = cli("ledger", "show", "--json").json["receipts"][0]
    assert (newest["kind"], newest["memo"]["reason"]) == ("adopt", "the disk died")


def test_an_older_ledger_is_not_adopted(cli, hospital):
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 0
    older = (hospital / "sfumato.ledger").read_bytes()
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    for left in hospital.glob("sfumato.ledger-*"):
        left.unlink()
    (hospital / "sfumato.ledger").write_bytes(older)
    assert cli("ledger", "adopt", "--reason", "the backup is all we have").code == 4


def test_receipts_of_answers_are_listed_on_demand(cli, hospital):
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 0
    short, whole = cli("ledger", "show").out, cli("ledger", "show", "--all").out
    assert "Not listed: receipts of kept answers" in short
    assert "release" not in short
    assert "release" in whole
    assert "Not listed" not in whole


def test_headlines_fit_what_happened(cli, hospital):
    toml = hospital / "sfumato.toml"
    text = toml.read_text()
    for broken, headline in (
        (text.replace("epsilon = 1", 'epsilon = "?"'), "The catalog needs a decision."),
        (text + "\n[[[", "The catalog cannot be used."),
        (text.replace("max_groups", "max_grops"), "The catalog cannot be used."),
    ):
        toml.write_text(broken)
        assert cli("schema").err.splitlines()[0] == f"sfumato: {headline}"
    toml.unlink()
    assert cli("schema").err.splitlines()[0] == "sfumato: There is no catalog."
    toml.write_text(text)
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("ledger", "show", "visit").err.splitlines()[0] == "sfumato: Which dataset?"
    assert cli("init", "visits.parquet").err.splitlines()[0] == "sfumato: Nothing was written."


@pytest.mark.parametrize(
    "wrong", [["query", "--nonsense"], ["quere"], ["ledger", "shw"], ["query", ALL, "--format", "xml"]]
)
def test_wrong_usage_is_json_where_json_is_asked_for(cli, hospital, wrong):
    told = cli(*wrong, "--json")
    assert told.code == 2
    assert told.out == ""
    assert json.loads(told.err)["error"]["code"] == "usage"
    assert json.loads(told.err)["error"]["message"]


def test_the_price_is_asked_for_in_the_words_of_the_command_line(cli, hospital):
    missing = cli("query", ALL)
    assert "--epsilon 0.5, or the error you want, --error n=50." in flat(missing.err)
    assert "not both" in cli("quote", ALL, "--epsilon", "1", "--error", "n=3").err


def test_the_format_follows_the_name_of_the_file(cli, hospital):
    import pyarrow.parquet as pq

    for name in ("a.csv", "a.json", "a.parquet", "a.txt"):
        assert cli("query", BY_CITY, "--epsilon", "0.5", "-o", name).code == 0
    assert (hospital / "a.csv").read_text().startswith("city,n,n_error\n")
    assert json.loads((hospital / "a.json").read_text())["columns"] == ["city", "n"]
    assert pq.read_table(hospital / "a.parquet").column_names == ["city", "n", "n_error"]
    assert "±" in (hospital / "a.txt").read_text(encoding="utf-8")
    refused = cli("query", BY_CITY, "--epsilon", "0.5", "--json", "--format", "csv")
    assert refused.code == 2
    assert "--format csv" in json.loads(refused.err)["error"]["message"]


def test_follow_up_commands_name_another_catalog(cli, data):
    made = cli("init", "visits.parquet", "-o", "z.toml").out
    commands = [line.strip() for line in made.splitlines() if line.strip().startswith("sfumato ")]
    assert len(commands) == 3
    assert all(each.endswith(" --config z.toml") for each in commands)
    plain = cli("init", "visits.parquet").out
    assert "--config" not in plain


def test_the_screen_and_the_file_agree_about_a_csv(cli, data):
    import tomllib

    (data / "people.csv").write_text("user_id,age,joined_date,fee,note\n")
    shown = cli("init", "people.csv", "-o", "p.toml").out
    columns = tomllib.loads((data / "p.toml").read_text())["tables"]["people"]["columns"]
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.split()[1:2]}
    assert set(columns) == {"age", "joined_date", "fee", "note"}
    for name, settings in columns.items():
        assert rows[name] == [settings["type"], settings["role"]]


def test_functions_are_listed_as_in_the_guide_and_as_they_are_parsed(cli):
    from pathlib import Path

    from sfumato.plan.expressions.functions import FUNCTIONS

    listed = cli("functions", "--json").json["functions"]
    assert [each["name"] for each in listed] == list(FUNCTIONS)
    guide = (Path(__file__).parents[2] / "docs/sql.md").read_text()
    for each in listed:
        sql = each["sql"].replace("|", "\\|")
        assert f"| `{sql}` | `{each['name']}` |" in guide
    text = cli("functions").out
    assert max(map(len, text.splitlines())) <= 80
    assert "DATE_TRUNC('month', d)" in text
    only = cli("functions", "LOG2").out
    assert "LOG2(a)" in only
    assert "LOG10(a)" not in only
    assert "No function" in cli("functions", "nonsense").out


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('timeout = "5m"', "engine.timeout must be a positive number of seconds"),
        ("timeout = 0", "engine.timeout must be"),
        ('threads = "2"', "engine.threads must be a whole number"),
        ("threads = 1.5", "engine.threads must be"),
        ("threads = true", "engine.threads must be"),
        ("memory = 2", "engine.memory must be a text"),
    ],
)
def test_an_engines_setting_is_named(cli, hospital, setting, told):
    with (hospital / "sfumato.toml").open("a") as file:
        file.write(f"\n[engine]\n{setting}\n")
    refused = cli("quote", ALL, "--epsilon", "0.1")
    assert refused.code == 2
    assert told in flat(refused.err)


def test_settings_as_they_should_be(cli, hospital):
    with (hospital / "sfumato.toml").open("a") as file:
        file.write('\n[engine]\ntimeout = 59.5\nthreads = 2\nmemory = "2GB"\n')
    assert cli("query", ALL, "--epsilon", "0.1").code == 0


def test_an_empty_variable_names_no_ledger(cli, hospital, monkeypatch):
    monkeypatch.setenv("SFUMATO_LEDGER", " ")
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("ledger", "show").code == 0
    assert (hospital / "sfumato.ledger").exists()


def test_acts_say_which_line_and_which_delta(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    raised = flat(
        cli("ledger", "raise", "visits", "--epsilon", "2", "--delta", "1e-5", "--reason", "more").out
    )
    assert "epsilon = 2, delta = 1e-05 in [datasets.visits], line 3 of sfumato.toml." in raised
    limited = flat(cli("ledger", "limit", "visits", "carol", "--epsilon", "0.1", "--reason", "new").out)
    assert "Its delta is all that visits has, 1e-05, as none was given: --delta." in limited
    given = flat(
        cli("ledger", "limit", "visits", "dan", "--epsilon", "0.1", "--delta", "0", "--reason", "n").out
    )
    assert "Its delta" not in given
