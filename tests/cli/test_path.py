"""From a file to an answer and its proof, as a steward and an analyst would go."""

import re
import sqlite3

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def test_init_edit_quote_query_again_exhausted_verified_tampered(cli, data):
    made = cli("init", "visits.parquet")
    assert made.code == 0
    assert "no value of a row was used" in " ".join(made.out.split())
    toml = (data / "sfumato.toml").read_text()
    assert "DECIDE" in toml

    undecided = cli("quote", BY_CITY, "--epsilon", "0.1")
    assert undecided.code == 2
    assert "epsilon of datasets.visits; unit of tables.visits" in " ".join(undecided.err.split())

    toml = toml.replace('epsilon = "?"', "epsilon = 1").replace('unit = "?"', 'unit = "patient_id"')
    toml = re.sub(r'city = \{ type = "text"', 'city = { type = "enum", values = ["Lyon", "Nice"]', toml)
    (data / "sfumato.toml").write_text(toml)

    quote = cli("quote", BY_CITY, "--epsilon", "0.4")
    assert quote.code == 0
    assert "A quote is free. Left in the budget of visits: epsilon 1 of 1." in quote.out

    first = cli("query", BY_CITY, "--epsilon", "0.4")
    assert first.code == 0
    paid = "Paid epsilon 0.4: 0.08 for the profile, 0.32 for the answer"
    assert paid in " ".join(first.out.split())
    assert "epsilon 0.6 of 1" in " ".join(first.out.split())
    assert len(re.findall(r"\d ± ", first.out)) == 2

    again = cli("query", BY_CITY.replace("n FROM", "visits FROM") + " ORDER BY city", "--epsilon", "0.4")
    assert "Answered again from the ledger, free" in " ".join(again.out.split())
    assert re.findall(r"-?[\d,]+ ± +\d+", again.out) == re.findall(r"-?[\d,]+ ± +\d+", first.out)

    exhausted = cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.7")
    assert exhausted.code == 3
    assert exhausted.out == ""
    assert "left 0.6" in " ".join(exhausted.err.split())

    # Bounds that nobody declared: not summable, and the rest works.
    unbounded = cli("query", "SELECT SUM(cost) AS s FROM visits", "--epsilon", "0.1")
    assert unbounded.code == 2
    assert "cost" in unbounded.err

    assert cli("ledger", "verify").code == 0
    with sqlite3.connect(data / "sfumato.ledger") as database:
        # The debit becomes cheaper behind the ledger's back.
        database.execute(
            "UPDATE sfumato_receipts SET body = replace(body, '8/25', '1/5') WHERE kind = 'debit'"
        )
    database.close()
    tampered = cli("ledger", "verify")
    assert tampered.code == 4
    assert "does not hold" in tampered.out
    asked = cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1")
    assert asked.code == 4
    assert asked.out == ""


def test_the_steward_acts_with_a_reason(cli, hospital):
    assert cli("query", BY_CITY, "--epsilon", "0.9").code == 0
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5").code == 3

    assert cli("ledger", "raise", "visits", "--epsilon", "2").code == 2  # no reason
    raised = cli("ledger", "raise", "visits", "--epsilon", "2", "--reason", "the board agreed")
    assert raised.code == 0
    assert "write it into the toml" in raised.out
    # Until it is written there, file and ledger disagree, and that is said.
    assert cli("query", BY_CITY, "--epsilon", "0.9").code == 1
    toml = hospital / "sfumato.toml"
    toml.write_text(toml.read_text().replace("epsilon = 1", "epsilon = 2"))
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5").code == 0

    assert cli("ledger", "limit", "visits", "ann", "--epsilon", "0.1", "--reason", "new").code == 0
    mine = ("query", "SELECT AVG(age) AS a FROM visits", "--analyst", "ann")
    assert cli(*mine, "--epsilon", "0.2").code == 3
    assert cli(*mine, "--epsilon", "0.1").code == 0
    assert cli("ledger", "revoke", "visits", "ann", "--reason", "left").code == 0
    assert cli(*mine, "--epsilon", "0.05").code == 2

    toml.write_text(toml.read_text().replace("upper = 105", "upper = 120"))
    changed = cli("query", "SELECT COUNT(*) AS n FROM visits WHERE age > 3", "--epsilon", "0.1")
    assert changed.code == 1
    assert cli("ledger", "redeclare", "visits", "--reason", "somebody turned 106").code == 0
    assert cli("query", "SELECT COUNT(*) AS n FROM visits WHERE age > 3", "--epsilon", "0.1").code == 0

    assert cli("ledger", "close", "visits", "--reason", "the study is over").code == 0
    assert cli("query", "SELECT COUNT(*) AS n FROM visits WHERE age > 9", "--epsilon", "0.1").code == 2
    shown = cli("ledger", "show").out
    for reason in ("the board agreed", "new", "left", "somebody turned 106", "the study is over"):
        assert reason in shown
    assert cli("ledger", "verify").code == 0


def test_limits_in_the_file_are_put_on_record_and_a_revoked_analyst_stays_out(cli, hospital):
    toml = hospital / "sfumato.toml"
    toml.write_text(toml.read_text() + "\n[datasets.visits.analysts]\nann = { epsilon = 0.2 }\n")
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 2
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "eve").code == 2
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann").code == 0
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.2", "--analyst", "ann").code == 3
    toml.write_text(toml.read_text().replace("epsilon = 0.2", "epsilon = 0.5"))
    other = cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann")
    assert other.code == 1
    assert "sfumato ledger limit visits ann" in " ".join(other.err.split())
    assert cli("ledger", "limit", "visits", "ann", "--reason", "as in the file").code == 0
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.2", "--analyst", "ann").code == 0
    assert cli("ledger", "revoke", "visits", "ann", "--reason", "left").code == 0
    for _ in range(2):  # listed in the file as ever, and still out
        assert cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "ann").code == 2
    # The same for one who was revoked before a limit of theirs was on record.
    assert cli("ledger", "revoke", "visits", "bob", "--reason", "not him").code == 2  # who?
    assert cli("ledger", "revoke", "visits", "bob", "--reason", "not him", "--force").code == 0
    toml.write_text(toml.read_text() + "bob = { epsilon = 0.1 }\n")
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--analyst", "bob").code == 2


def test_an_attempt_with_another_unit_is_told(cli, hospital):
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 0
    toml = hospital / "sfumato.toml"
    toml.write_text(toml.read_text().replace('unit = "patient_id"\nmax_groups = 2', 'unit = "row"'))
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 1
