"""Strangers who share an address with people, such as a proxy's: their wrong tries keep nobody out."""

from __future__ import annotations

import contextlib
import time

import pytest

from provider import AUDIENCE, provider
from scram_client import ScramClient
from served import Client, house
from sfumato.errors import LoginFailed, TooManyTries
from sfumato.server.access import FRESH, Accounts, tokens
from sfumato.server.access.issuers import Issuer
from sfumato.server.access.tries import _Allowance
from sfumato.server.doors import http_front
from sfumato.server.ways import Ways

HERE = "127.0.0.1"  # where all of them come from
FORGIVEN, MANY = 20, 25  # wrong tries of an address: fewer than usual, so that it is locked soon


@pytest.fixture(scope="module")
def issuing():
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def strangers():
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def shared():
    with house() as made:
        yield made


class Door:
    """Both ways in, for people and strangers behind one address, at a time that stands still."""

    def __init__(self, accounts, app, now):
        self.accounts, self.now, self._ask = accounts, now, Client(app)

    def http(self, token):
        return self._ask("GET", "/api/me", token).status_code

    def scram(self, name, password):
        login, client = self.accounts.login(name, address=HERE), ScramClient(password)
        login.final(client.final(login.first(client.first())))
        return login.account.name


@pytest.fixture
def door(issuing, shared):
    now = [0.0]
    with Accounts.open(None, ticks=lambda: now[0]) as accounts:
        for name in ("ada", "bob"):
            accounts.add(name)
        accounts.tries._addresses._allowance = _Allowance(FORGIVEN, 1.0)
        issuer = Issuer(issuing.issuer, AUDIENCE)
        yield Door(accounts, http_front(shared, accounts, Ways(issuer=issuer)), now)


def rubbish_of_scram(door, name):
    with pytest.raises(LoginFailed):
        door.accounts.login(name, address=HERE).first("rubbish")


def wrong_password(door, name):
    with pytest.raises(LoginFailed):
        door.scram(name, "wrong")


def secret_of(text):
    return text.split("_")[2]


def garbage(shape, door, issuing, strangers, number):
    """One wrong try of a shape that names nobody."""
    words = {
        "no form": lambda: "garbage",
        "no form, another each time": lambda: f"garbage{number}",
        "the form of a token": lambda: tokens.draw()[1],
        "too long": lambda: "x" * 5_000,
        "dots": lambda: "..",
        "no signature": lambda: f"{issuing.token().rsplit('.', 1)[0]}.",
        "an unknown key": lambda: issuing.token(headers={"kid": f"unknown{number}"}),
        "another signer": lambda: strangers.token(),
        "over": lambda: issuing.token(exp=int(time.time()) - 60),
        "signed for nobody": lambda: issuing.token(sub="nobody"),
    }
    if shape in words:
        assert door.http(words[shape]()) in (401, 429)
    elif shape == "a name that is nobody's":
        wrong_password(door, f"nobody{number}")
    else:
        rubbish_of_scram(door, f"nobody{number % 3}")


SHAPES = (
    "no form",
    "no form, another each time",
    "the form of a token",
    "too long",
    "dots",
    "no signature",
    "an unknown key",
    "another signer",
    "over",
    "signed for nobody",
    "a name that is nobody's",
    "rubbish over the wire",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_garbage_keeps_out_nobody_who_comes_from_the_same_address(door, issuing, strangers, shape):
    static, wire = door.accounts.issue("ada")[0], door.accounts.issue("bob")[0]
    for number in range(MANY):
        garbage(shape, door, issuing, strangers, number)
    assert door.http(static) == 200  # which this process never saw before
    assert door.http(issuing.token()) == 200
    assert door.scram("bob", wire) == "bob"
    for _ in range(3):
        garbage(shape, door, issuing, strangers, 0)
    door.now[0] += FRESH
    assert door.http(static) == 200
    assert door.scram("bob", wire) == "bob"
    assert door.http(wire) == 200
    assert door.http("garbage") in (401, 429)


def test_who_is_named_by_strangers_stays_in(door, issuing):
    text, info = door.accounts.issue("ada")
    assert door.http(text) == 200
    assert door.scram("ada", text) == "ada"
    for _ in range(15):
        assert door.http(f"sfu_{info.id}_{secret_of(tokens.draw()[1])}") in (401, 429)
        wrong_password(door, "ada")
        rubbish_of_scram(door, "ada")
    door.now[0] += FRESH
    assert door.http(text) == 200
    assert door.scram("ada", text) == "ada"
    assert door.http(issuing.token()) == 200


def test_a_token_that_one_front_knows_is_known_to_the_other(door):
    text, _ = door.accounts.issue("ada")
    assert door.http(text) == 200
    for _ in range(15):
        wrong_password(door, "ada")
    assert door.scram("ada", text) == "ada"


@pytest.mark.parametrize("flood", [False, True])
def test_guesses_at_one_token_or_name_stay_few(door, monkeypatch, flood):
    """Also while made-up ones by the thousand come from the same address, which push nothing out."""
    text, info = door.accounts.issue("ada")
    monkeypatch.setattr(door.accounts.tries._names, "_most", 200)
    looked, live = [], door.accounts._live
    monkeypatch.setattr(
        door.accounts, "_live", lambda found, *more: looked.append(found) or live(found, *more)
    )
    for number in range(60):
        for _ in range(20 if flood else 0):
            with contextlib.suppress(LoginFailed):
                door.accounts.check(tokens.draw()[1], address=HERE)
            rubbish_of_scram(door, f"nobody{number}")
        with contextlib.suppress(LoginFailed):
            door.accounts.check(f"sfu_{info.id}_{secret_of(tokens.draw()[1])}", address=HERE)
    assert len([found for found in looked if found]) == 10
    with pytest.raises(TooManyTries):
        door.accounts.check(text, address=HERE)  # never seen: it waits as a guess would
    for _ in range(10):
        wrong_password(door, "ada")
    with pytest.raises(TooManyTries):
        door.scram("ada", text)
    door.now[0] += 10
    assert door.http(text) == 200


def test_who_guesses_at_a_locked_name_is_told_the_same_of_all_names(door):
    door.accounts.issue("ada")
    for name in ("ada", "nobody"):
        told = []
        for _ in range(12):
            with pytest.raises(LoginFailed) as caught:
                door.scram(name, "wrong")
            told.append((type(caught.value), str(caught.value)))
        assert told[9][0] is LoginFailed
        assert told[10] == told[11]
        assert told[10][0] is TooManyTries
    while told[-1][0] is LoginFailed or len(told) < MANY:
        with pytest.raises(LoginFailed) as caught:
            door.scram(f"nobody{len(told)}", "wrong")
        told.append((type(caught.value), str(caught.value)))
    for name in ("bob", "somebody"):  # the address is locked now
        for _ in range(11):
            with pytest.raises(TooManyTries):
                door.scram(name, "wrong")


@pytest.mark.parametrize("end", ["revoke", "remove"])
def test_ending_one_token_forgets_nobody_else(door, end):
    own, other, bobs = (door.accounts.issue(name) for name in ("ada", "ada", "bob"))
    for text, _ in (own, other, bobs):
        assert door.http(text) == 200
    for _, info in (own, other, bobs):  # their ids are locked, and they are in
        for _ in range(15):
            assert door.http(f"sfu_{info.id}_{secret_of(tokens.draw()[1])}") in (401, 429)
    if end == "revoke":
        door.accounts.revoke(own[1].id)
    else:
        door.accounts.remove("ada")
    assert door.http(own[0]) == 429
    assert (door.http(other[0]) == 200) is (end == "revoke")
    assert door.http(bobs[0]) == 200
    door.now[0] += FRESH
    assert door.http(own[0]) == 429
    assert (door.http(other[0]) == 200) is (end == "revoke")
    assert door.http(bobs[0]) == 200
