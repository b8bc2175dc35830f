"""Wrong tries: how many are looked at, when they are forgotten, and that they fill no memory."""

from __future__ import annotations

import contextlib
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import LoginFailed, TooManyTries
from sfumato.server.access import Accounts, Tries
from sfumato.server.access.accounts import FRESH
from sfumato.server.access.tokens import draw


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def admitted(tries, address, name=""):
    try:
        tries.admit(address, name)
    except TooManyTries:
        return False
    return True


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 30), min_size=1, max_size=80))
def test_no_more_wrong_tries_are_looked_at_than_are_forgiven(pauses):
    clock = Clock()
    tries, looked = Tries(ticks=clock), 0
    for pause in pauses:
        clock.now += pause
        while admitted(tries, "1.2.3.4", "ada"):
            tries.wrong("1.2.3.4", "ada")
            looked += 1
        assert looked <= 10 + clock.now / 10


def test_who_waits_as_long_as_told_is_looked_at():
    clock = Clock()
    tries = Tries(ticks=clock)
    for _ in range(10):
        tries.wrong("1.2.3.4", "ada")
    with pytest.raises(TooManyTries, match="try again in 10 s") as told:
        tries.admit("1.2.3.4", "ada")
    clock.now += told.value.wait * 0.9
    assert not admitted(tries, "1.2.3.4", "ada")
    clock.now += told.value.wait * 0.1001
    assert admitted(tries, "1.2.3.4", "ada")
    clock.now += 10_000
    for _ in range(10):
        assert admitted(tries, "1.2.3.4", "ada")
        tries.wrong("1.2.3.4", "ada")
    assert not admitted(tries, "1.2.3.4", "ada")


def test_names_and_addresses_are_counted_apart():
    tries = Tries(ticks=Clock())
    for _ in range(10):
        tries.wrong("1.2.3.4", "ada")
    assert not admitted(tries, "1.2.3.4", "ada")
    assert admitted(tries, "1.2.3.4", "bob")
    assert admitted(tries, "1.2.3.5", "ada")
    for number in range(90):
        tries.wrong("1.2.3.4", f"name {number}")
    assert not admitted(tries, "1.2.3.4", "bob")
    assert admitted(tries, "1.2.3.5", "bob")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),  # one network of 64 bits
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:1.2.3.4", "1.2.3.4", True),
        ("::1", "0.0.0.1", False),
        ("fe80::1%eth0", "fe80::1%eth1", True),
        ("1.2.3.4", "1.2.3.5", False),
        ("a socket", "a socket", True),
    ],
)
def test_what_counts_as_one_address(one, other, same):
    tries = Tries(ticks=Clock())
    for _ in range(10):
        tries.wrong(one, "ada")
    assert admitted(tries, other, "ada") is not same


def test_it_remembers_a_bounded_number():
    tries = Tries(ticks=Clock(), most=50)
    for number in range(2_000):
        tries.wrong(f"10.0.{number // 250}.{number % 250}", f"name {number}")
        tries.wrong("6.6.6.6", f"name {number}")
    assert len(tries._addresses._held) == len(tries._names._held) == 50
    assert not admitted(tries, "6.6.6.6", "new")  # whoever goes on is not forgotten


def test_a_refusal_can_be_pickled():
    told = pickle.loads(pickle.dumps(TooManyTries(3.2)))
    assert (told.wait, str(told)) == (3.2, "Too many wrong logins: try again in 4 s.")
    assert isinstance(told, LoginFailed)


def test_a_stranger_behind_the_same_proxy_does_not_keep_out_who_was_in():
    now = [0.0]
    with Accounts.open(None, ticks=lambda: now[0]) as accounts:
        accounts.add("ada")
        (known, info), (new, _) = accounts.issue("ada"), accounts.issue("ada")
        assert accounts.check(known, address="127.0.0.1").name == "ada"
        for _ in range(100):
            with pytest.raises(LoginFailed):
                accounts.check(draw()[1], address="127.0.0.1")
        assert accounts.recent(known)
        now[0] += FRESH
        assert accounts.check(new, address="127.0.0.2").name == "ada"
        for _ in range(3):
            with contextlib.suppress(LoginFailed, TooManyTries):
                accounts.check(draw()[1], address="127.0.0.1")
        assert accounts.recent(known) is None
        assert accounts.check(known, address="127.0.0.1").name == "ada"
        with pytest.raises(TooManyTries):
            accounts.check(draw()[1], address="127.0.0.1")
        accounts.revoke(info.id)
        with pytest.raises(TooManyTries):
            accounts.check(known, address="127.0.0.1")
