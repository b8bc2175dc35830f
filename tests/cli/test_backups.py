"""`sfumato ledger backup` and `restore`, with the accounts of a server."""

import shutil

from sfumato.errors import LoginFailed
from sfumato.server.access import Accounts

ALL = "SELECT COUNT(*) AS n FROM visits"


def lost(folder):
    for path in folder.glob("sfumato.ledger*"):
        if path.name.removeprefix("sfumato.ledger") in ("", "-wal", "-shm", ".accounts"):
            path.unlink()


def test_ledger_and_accounts_come_back_and_tokens_do_not(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("account", "add", "ada").code == 0
    token = cli("account", "token", "ada").out.strip()
    made = cli("ledger", "backup", "copy")
    assert made.code == 0
    assert "and the accounts" in made.out
    assert cli("ledger", "backup", "copy").code == 2
    revoked = cli("account", "token", "ada", "--json").json
    assert cli("account", "revoke", revoked["id"]).code == 0
    lost(hospital)
    done = cli("ledger", "restore", "copy", "--json").json
    assert (done["anchored"], done["accounts"], done["aside"]) == (True, True, [])
    assert cli("ledger", "verify").code == 0
    assert cli("query", ALL, "--epsilon", "0.1", "--json").json["free"] is True
    (ada,) = cli("account", "list", "--json").json
    assert (ada["name"], [each["status"] for each in ada["tokens"]]) == ("ada", ["revoked"])
    with Accounts.open(str(hospital / "sfumato.ledger")) as accounts:
        for text in (token, revoked["token"]):
            try:
                accounts.check(text)
            except LoginFailed:
                continue
            raise AssertionError("a token of before is valid again")
        new, _ = accounts.issue("ada")
        assert accounts.check(new).name == "ada"


def test_accounts_that_are_there_stay_as_they_are(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("account", "add", "ada").code == 0
    assert cli("ledger", "backup", "copy").code == 0
    assert cli("account", "add", "bob").code == 0
    (hospital / "sfumato.ledger").unlink()
    assert cli("ledger", "restore", "copy", "--json").json["accounts"] is False
    assert [each["name"] for each in cli("account", "list", "--json").json] == ["ada", "bob"]


def test_an_older_backup_is_refused_with_its_own_exit_code(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("ledger", "backup", "copy").code == 0
    assert cli("ledger", "restore", "copy").code == 2  # nothing is lost
    assert cli("query", ALL, "--epsilon", "0.2").code == 0
    lost(hospital)
    refused = cli("ledger", "restore", "copy")
    assert refused.code == 4
    assert "Nothing was restored" in " ".join(refused.err.split())
    assert cli("query", ALL, "--epsilon", "0.1").code == 4


def test_without_the_anchor_the_steward_is_told_what_adopting_means(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("ledger", "backup", "copy").code == 0
    lost(hospital)
    (hospital / "sfumato.ledger.anchor").unlink()
    told = cli("ledger", "restore", "copy")
    assert told.code == 0
    assert "what was spent since is then given back" in " ".join(told.out.split())
    assert cli("query", ALL, "--epsilon", "0.1").code == 4
    assert cli("ledger", "adopt", "--reason", "the disk died").code == 0
    assert cli("query", ALL, "--epsilon", "0.1", "--json").json["free"] is True


def test_what_is_not_for_an_analyst_or_no_backup_is_said(cli, hospital, monkeypatch):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    none = cli("ledger", "restore", str(hospital))
    assert none.code == 2
    assert "is no backup of a ledger" in " ".join(none.err.split())
    shutil.rmtree(hospital / "copy", ignore_errors=True)
    monkeypatch.setenv("SFUMATO_ANALYST", "ada")
    for what in ("backup", "restore"):
        assert cli("ledger", what, "copy").code == 2
    assert not (hospital / "copy").exists()
