"""`sfumato ledger backup` and `restore`, with the accounts of a server."""

import shutil
from contextlib import contextmanager, suppress

import pytest

from provider import AUDIENCE, provider
from scram_client import ScramClient
from served import Client
from sfumato.catalog import Catalog
from sfumato.cli.serving import opened
from sfumato.errors import LoginFailed
from sfumato.server.access import Accounts
from sfumato.server.access.issuers import Issuer
from sfumato.server.doors import http_front
from sfumato.server.ways import Ways

ALL = "SELECT COUNT(*) AS n FROM visits"
ACCOUNTS = "sfumato.ledger.accounts"


def lost(folder, *ends):
    for path in folder.glob("sfumato.ledger*"):
        if path.name.removeprefix("sfumato.ledger") in (ends or ("", "-wal", "-shm", ".accounts")):
            path.unlink()


def test_ledger_and_accounts_come_back_and_tokens_do_not(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("account", "add", "ada").code == 0
    token = cli("account", "token", "ada").out.strip()
    revoked = cli("account", "token", "ada", "--json").json
    assert cli("account", "revoke", revoked["id"]).code == 0
    made = cli("ledger", "backup", "copy")
    assert made.code == 0
    assert "and the accounts" in made.out
    assert cli("ledger", "backup", "copy").code == 2
    lost(hospital)
    done = cli("ledger", "restore", "copy", "--json").json
    assert (done["anchored"], done["accounts"], done["left_out"], done["aside"]) == (True, True, [], [])
    assert cli("ledger", "verify").code == 0
    assert cli("query", ALL, "--epsilon", "0.1", "--json").json["free"] is True
    (ada,) = cli("account", "list", "--json").json
    assert (ada["name"], [each["status"] for each in ada["tokens"]]) == ("ada", ["revoked"] * 2)
    with Accounts.open(str(hospital / "sfumato.ledger")) as accounts:
        for text in (token, revoked["token"]):
            with pytest.raises(LoginFailed):
                accounts.check(text)
        new, _ = accounts.issue("ada")
        assert accounts.check(new).name == "ada"


@pytest.fixture(scope="module")
def issuing():
    with provider() as made:
        yield made


class Fronts:
    """Both fronts of a server that has just begun, and what each says of somebody."""

    def __init__(self, accounts, ask, issuing):
        self.accounts, self._ask, self._issuing = accounts, ask, issuing

    def role_by_provider(self, name):
        return self._ask("GET", "/api/me", self._issuing.token(sub=name)).json().get("role")

    def takes(self, name, token):
        """Whether a token opens, by HTTP and over the wire: both or none."""
        login, client = self.accounts.login(name), ScramClient(token)
        with suppress(LoginFailed):
            login.final(client.final(login.first(client.first())))
        by_http = self._ask("GET", "/api/me", token).status_code == 200
        assert by_http is (login.account is not None)
        return by_http


@contextmanager
def begun(issuing):
    """As `sfumato serve` begins."""
    issuer = Issuer(issuing.issuer, AUDIENCE)
    with opened(Catalog.read(environ={})) as (house, accounts):
        yield Fronts(accounts, Client(http_front(house, accounts, Ways(issuer=issuer))), issuing)


def removed(cli, token):
    assert cli("account", "remove", "ada").code == 0


def removed_over_http(cli, token):
    """The same act, by a steward with a token."""
    assert cli("account", "add", "sofia", "--role", "steward").code == 0
    own = cli("account", "token", "sofia").out.strip()
    with opened(Catalog.read(environ={})) as (house, accounts):
        ask = Client(http_front(house, accounts))
        assert ask("DELETE", "/api/accounts/ada", own).status_code == 200


def revoked(cli, token):
    assert cli("account", "revoke", token.split("_")[1]).code == 0


def made_an_auditor(cli, token):
    removed(cli, token)
    assert cli("account", "add", "ada", "--role", "auditor").code == 0


def made_anew(cli, token):
    removed(cli, token)
    assert cli("account", "add", "ada").code == 0


ACTS = {  # what is done after the backup, and whether ada may log in by a provider from a copy of before
    "removed": (removed, None),
    "removed over HTTP": (removed_over_http, None),
    "revoked": (revoked, "analyst"),
    "another role": (made_an_auditor, None),
    "removed and added again": (made_anew, "analyst"),
}


@pytest.fixture
def copied(cli, hospital):
    """A backup with the accounts of ada, an analyst, and bob, an auditor; her token."""
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("account", "add", "ada").code == 0
    assert cli("account", "add", "bob", "--role", "auditor").code == 0
    token = cli("account", "token", "ada").out.strip()
    assert cli("ledger", "backup", "copy").code == 0
    return token


@pytest.mark.parametrize("act", ["removed", "revoked", "another role", "removed and added again"])
def test_accounts_that_are_put_back_alone_are_held_against_the_ledger(cli, hospital, copied, issuing, act):
    run, role = ACTS[act]
    run(cli, copied)
    lost(hospital, ".accounts")
    done = cli("ledger", "restore", "copy", "--json").json
    gone = [] if role else ["ada"]
    assert (done["accounts"], done["left_out"], done["aside"]) == (True, gone, [])
    assert [each["name"] for each in cli("account", "list", "--json").json] == [*({"ada"} - {*gone}), "bob"]
    with begun(issuing) as fronts:
        assert fronts.role_by_provider("ada") == role
        assert fronts.role_by_provider("bob") == "auditor"
        assert not fronts.takes("ada", copied)


@pytest.mark.parametrize("act", ACTS)
def test_accounts_that_are_put_back_by_hand_are_held_against_the_ledger(cli, hospital, copied, issuing, act):
    run, role = ACTS[act]
    run(cli, copied)
    lost(hospital, ".accounts", ".accounts-wal", ".accounts-shm")
    shutil.copy(hospital / "copy" / ACCOUNTS, hospital / ACCOUNTS)
    with begun(issuing) as fronts:
        assert fronts.role_by_provider("ada") == role
        assert fronts.role_by_provider("bob") == "auditor"
        assert not fronts.takes("ada", copied)
        assert fronts.takes("bob", fronts.accounts.issue("bob")[0])


def test_an_act_on_accounts_that_are_older_than_the_ledger_is_refused(cli, hospital, copied):
    removed(cli, copied)
    lost(hospital, ".accounts", ".accounts-wal", ".accounts-shm")
    shutil.copy(hospital / "copy" / ACCOUNTS, hospital / ACCOUNTS)
    refused = cli("account", "token", "ada")
    assert (refused.code, refused.out) == (2, "")
    assert "removed, changed or revoked since: ada." in " ".join(refused.err.split())
    assert [each["name"] for each in cli("account", "list", "--json").json] == ["bob"]


@pytest.mark.parametrize("act", ["removed", "revoked", "another role"])
def test_a_copy_from_before_an_act_on_accounts_is_older_than_the_anchor(cli, hospital, copied, act):
    ACTS[act][0](cli, copied)
    lost(hospital)
    assert cli("ledger", "restore", "copy").code == 4
    assert not (hospital / ACCOUNTS).exists()


def test_where_nobody_can_tell_who_was_removed_no_account_is_put_back(cli, hospital, copied, issuing):
    removed(cli, copied)
    lost(hospital)
    (hospital / "sfumato.ledger.anchor").unlink()
    told = cli("ledger", "restore", "copy")
    assert told.code == 0
    assert "There were: ada (analyst), bob (auditor)." in " ".join(told.out.split())
    assert cli("account", "add", "eve").code == 4  # before it is adopted
    assert cli("ledger", "adopt", "--reason", "the disk died").code == 0
    with begun(issuing) as fronts:
        for name in ("ada", "bob"):
            assert fronts.role_by_provider(name) is None
        assert not fronts.takes("ada", copied)
    assert cli("account", "add", "bob", "--role", "auditor").code == 0
    with begun(issuing) as fronts:
        assert fronts.role_by_provider("bob") == "auditor"


def test_accounts_that_are_as_the_ledger_has_them_stay(cli, hospital, copied, issuing):
    """Also those that came and went while there was no ledger, or that the ledger has nothing of."""
    with Accounts.open(str(hospital / "sfumato.ledger")) as accounts:
        accounts.add("unrecorded", "auditor")
        own, _ = accounts.issue("unrecorded")
    with begun(issuing) as fronts:
        assert fronts.takes("ada", copied)
        assert fronts.takes("unrecorded", own)
        roles = [fronts.role_by_provider(name) for name in ("ada", "bob", "unrecorded")]
    assert roles == ["analyst", "auditor", "auditor"]


def test_accounts_that_are_there_stay_as_they_are(cli, hospital):
    assert cli("query", ALL, "--epsilon", "0.1").code == 0
    assert cli("account", "add", "ada").code == 0
    assert cli("ledger", "backup", "copy").code == 0
    with Accounts.open(str(hospital / "sfumato.ledger")) as accounts:
        accounts.add("bob")  # which the anchor knows nothing of
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
