"""Accounts that went back in time, held against a ledger that cannot, in SQLite and in PostgreSQL."""

from __future__ import annotations

import pytest

from sfumato.cli.opening import ledger_of_accounts
from sfumato.errors import LedgerTampered, LoginFailed
from sfumato.ledger import Ledger, Steward
from sfumato.server.access import Role
from sfumato.server.access.record import REMOVED, REVOKED, added, issued, tell

ROWS = {
    "sfumato_accounts": "person, name, role, created, seal",
    "sfumato_tokens": "id, person, created, expires, revoked, hash, stored, server, seal",
}


class Books:
    """A ledger with the accounts beside it; each act is on record unless it is told otherwise."""

    def __init__(self, place):
        self.place = place
        self.ledger = Ledger.open(place.where, state=place.state)
        self.accounts = place.open()
        self._steward = Steward(self.ledger, by="sofia")

    def _witness(self, act, recorded):
        return (lambda account, token: tell(self._steward, act, account, token)) if recorded else None

    def add(self, name, role="analyst", *, recorded=True):
        self.accounts.add(name, role, witness=self._witness(added(role), recorded))

    def issue(self, name, *, recorded=True):
        return self.accounts.issue(name, witness=self._witness(issued(90), recorded))

    def remove(self, name):
        self.accounts.remove(name, witness=self._witness(REMOVED, True))

    def revoke(self, id):
        self.accounts.revoke(id, witness=self._witness(REVOKED, True))

    def copied(self):
        return {table: self.place.sql(f"SELECT {names} FROM {table}") for table, names in ROWS.items()}

    def put_back(self, copy):
        """All rows as they were: the database alone went back."""
        for table, names in ROWS.items():
            self.place.sql(f"DELETE FROM {table}")
            marks = ", ".join("?" * len(names.split(",")))
            for row in copy[table]:
                self.place.sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", *row)

    def lets_in(self, text, name):
        """By the token, and by a provider."""
        found = []
        for call in (lambda: self.accounts.check(text), lambda: self.accounts.named(name)):
            try:
                found.append(call().role)
            except LoginFailed:
                found.append(None)
        return found


@pytest.fixture
def books(place):
    made = Books(place)
    yield made
    made.ledger.close()


ACTS = ("removed", "revoked", "another role", "the same role", "renewed")
CASES = [("sqlite", act, recorded) for act in ACTS for recorded in (True, False)]
CASES += [("postgres", "removed", True), ("postgres", "renewed", True)]


@pytest.mark.parametrize(("place", "act", "recorded"), CASES, indirect=["place"])
def test_what_the_ledger_has_end_does_not_come_back(books, act, recorded):
    books.add("Ada", recorded=recorded)
    books.add("bob")
    (text, info), (bobs, _) = books.issue("ada", recorded=recorded), books.issue("bob")
    copy = books.copied()
    if act == "revoked":
        books.revoke(info.id)
    else:
        books.remove("ADA")
    if act == "another role":
        books.add("ada", "auditor")
    if act in ("the same role", "renewed"):
        books.add("Ada")
    if act == "renewed":
        books.issue("ada")
    books.put_back(copy)
    assert books.lets_in(text, "Ada") == [Role.ANALYST] * 2
    ended = books.accounts.hold(books.ledger)
    back = act in ("revoked", "the same role", "renewed")
    assert ended.accounts == (() if back else ("Ada",))
    assert ended.tokens == ((info.id,) if back else ())
    assert books.lets_in(text, "Ada") == [None, Role.ANALYST if back else None]
    assert books.lets_in(bobs, "bob") == [Role.ANALYST] * 2
    ended = books.accounts.hold(books.ledger)
    assert (ended.accounts, ended.tokens) == ((), ())
    if back:
        assert books.accounts.check(books.issue("ada")[0]).name == "Ada"


def test_what_is_as_the_ledger_has_it_stays(books):
    for name, role in (("ada", "analyst"), ("eve", "auditor"), ("sam", "steward")):
        books.add(name, role)
    books.add("unrecorded", "steward", recorded=False)
    books.remove("eve")
    books.add("Eve", "analyst")
    texts = {name: books.issue(name)[0] for name in ("ada", "Eve", "sam", "unrecorded")}
    own, _ = books.issue("ada", recorded=False)
    ended = books.accounts.hold(books.ledger)
    assert (ended.accounts, ended.tokens) == ((), ())
    roles = {name: books.lets_in(text, name) for name, text in texts.items()}
    assert roles == {
        "ada": [Role.ANALYST] * 2,
        "Eve": [Role.ANALYST] * 2,
        "sam": [Role.STEWARD] * 2,
        "unrecorded": [Role.STEWARD] * 2,
    }
    assert books.accounts.check(own).name == "ada"


def test_acts_are_put_on_a_ledger_once_there_is_one(place):
    with place.open() as accounts:
        accounts.add("ada")
    assert ledger_of_accounts(place.where, place.state) is None
    Ledger.open(place.where, state=place.state).close()
    with ledger_of_accounts(place.where, place.state) as ledger:
        assert list(ledger.accesses()) == []
    for anchor in place.state.glob("*.anchor"):
        anchor.unlink()
    for ledger in place.state.glob("visits.ledger"):
        ledger.unlink()
    if "://" in place.where:
        place.sql("DROP TABLE sfumato_receipts, sfumato_ledger")
    with pytest.raises(LedgerTampered):
        ledger_of_accounts(place.where, place.state)
