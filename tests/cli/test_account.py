"""`sfumato account`: accounts and tokens, for the steward alone."""

import json
import os
import stat

import pytest

from sfumato.errors import LoginFailed
from sfumato.ledger import Ledger
from sfumato.server.access import Account, Accounts, Role


def issued(cli, *options):
    outcome = cli("account", "token", *options)
    assert outcome.code == 0
    return outcome.out.strip()


def test_from_the_first_account_to_its_end(cli, hospital):
    made = cli("account", "add", "ada", "--role", "analyst")
    assert "sfumato account token ada" in made.out
    assert "token 'Grace Hopper'" in cli("account", "add", "Grace Hopper", "--role", "auditor").out
    outcome = cli("account", "token", "ADA", "--days", "7")
    token = outcome.out.strip()
    assert token.startswith("sfu_")
    assert token not in outcome.err
    assert "not shown again" in " ".join(outcome.err.split())
    (ledger,) = hospital.rglob("*.accounts")
    where = ledger.with_suffix("")
    with Accounts.open(where, create=False) as accounts:
        assert accounts.check(token) == Account("ada", Role.ANALYST)
    listed = cli("account", "list").out
    label = token.split("_")[1]
    assert label in listed
    assert "valid until" in listed
    assert "Grace Hopper" in listed
    assert token.split("_")[2] not in listed
    assert f"The token {label} of ada is revoked." in cli("account", "revoke", label).out
    assert "revoked on" in cli("account", "list").out
    with Accounts.open(where, create=False) as accounts, pytest.raises(LoginFailed):
        accounts.check(token)
    assert "stays on record" in " ".join(cli("account", "remove", "Ada").out.split())
    assert "ada" not in cli("account", "list").out


def test_each_act_is_on_the_ledger_once_there_is_one(cli, hospital):
    assert cli("account", "add", "early").code == 0
    assert not (hospital / "sfumato.ledger").exists()
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1").code == 0
    assert cli("account", "add", "Ada", "--role", "auditor").code == 0
    label = issued(cli, "ada", "--days", "7").split("_")[1]
    assert cli("account", "revoke", label).code == 0
    assert cli("account", "revoke", label).code == 0  # which changes nothing
    assert cli("account", "remove", "ADA").code == 0
    assert cli("account", "remove", "early").code == 0
    assert cli("account", "token", "nobody").code == 2
    assert cli("account", "list").code == 0
    with Ledger.open(hospital / "sfumato.ledger", create=False) as ledger:
        told = [
            (one.analyst, one.memo["act"], one.memo.get("token"), one.memo["by"]) for one in ledger.accesses()
        ]
        assert ledger.verify().ok
    by = "sfumato account"
    assert told == [
        ("Ada", "account added as auditor", None, by),
        ("Ada", "token issued for 7 days", label, by),
        ("Ada", "token revoked", label, by),
        ("Ada", "account removed", None, by),
        ("early", "account removed", None, by),
    ]


def test_an_act_that_the_ledger_cannot_write_down_is_not_done(cli, hospital):
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1").code == 0
    assert cli("account", "add", "ada").code == 0
    before = cli("account", "list", "--json").json
    (hospital / "sfumato.ledger.anchor").unlink()
    for command in (("add", "eve"), ("token", "ada"), ("remove", "ada")):
        assert cli("account", *command).code == 4
    assert cli("account", "list", "--json").json == before


def test_json(cli, hospital):
    assert cli("account", "add", "ada", "--json").json == {"name": "ada", "role": "analyst"}
    made = cli("account", "token", "ada", "--json").json
    assert set(made) == {"token", "id", "name", "created", "expires", "revoked", "status"}
    facts = {name: value for name, value in made.items() if name != "token"}
    (ada,) = cli("account", "list", "--json").json
    assert (ada["name"], ada["role"], ada["tokens"]) == ("ada", "analyst", [facts])
    ended = cli("account", "revoke", made["id"], "--json").json
    assert (ended["id"], ended["status"]) == (made["id"], "revoked")
    assert cli("account", "remove", "ada", "--json").json == {"removed": "ada"}
    assert cli("account", "list", "--json").json == []
    assert cli("account", "list").out == "There are no accounts.\n"


@pytest.mark.parametrize(
    "command",
    [("add", "eve"), ("token", "ada"), ("list",), ("revoke", "aaaaaaaa"), ("remove", "ada")],
)
def test_it_is_the_stewards(cli, hospital, monkeypatch, command):
    cli("account", "add", "ada")
    before = cli("account", "list").out
    monkeypatch.setenv("SFUMATO_ANALYST", "ada")
    outcome = cli("account", *command)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Only the steward can do this" in outcome.err
    monkeypatch.delenv("SFUMATO_ANALYST")
    assert cli("account", "list").out == before


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("add", "ADA"), 2, "There is an account 'ada' already"),
        (("add", "eve", "--role", "king"), 2, "king"),
        (("token", "eve"), 2, "There is no account 'eve'"),
        (("token", "ada", "--days", "0"), 2, "--days"),
        (("revoke", "aaaaaaaa"), 2, "There is no token with this id"),
        (("remove", "eve"), 2, "There is no account 'eve'"),
    ],
)
def test_slips_are_told_in_a_sentence(cli, hospital, command, code, message):
    cli("account", "add", "ada")
    outcome = cli("account", *command)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in " ".join(outcome.err.split())


def test_looking_before_there_are_accounts_makes_none(cli, hospital):
    before = sorted(hospital.rglob("*"))
    for command in (("list",), ("token", "ada"), ("revoke", "aaaaaaaa"), ("remove", "ada")):
        outcome = cli("account", *command, "--json")
        assert outcome.code == 1
        assert "sfumato account add" in json.loads(outcome.err)["error"]["message"]
    assert sorted(hospital.rglob("*")) == before


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_key_that_others_can_read_is_refused(cli, hospital):
    cli("account", "add", "ada")
    (key,) = hospital.rglob("*.serverkey")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o644)
    outcome = cli("account", "list")
    assert outcome.code == 1
    assert "chmod 600" in outcome.err
    assert key.read_text().strip() not in outcome.err


def test_with_a_ledger_named_by_a_flag(cli, tmp_path):
    cli("account", "add", "ada", "--ledger", "other.ledger")
    assert issued(cli, "ada", "--ledger", "other.ledger").startswith("sfu_")
    assert (tmp_path / "other.ledger.accounts").exists()
    assert not (tmp_path / "other.ledger").exists()
