"""An Idempotency-Key is for one request: at whatever address it comes again, another one is not charged."""

from __future__ import annotations

import itertools
import time

import pytest

from served import client_of, house

ADDRESSES = ("/api/release", "/api/jobs", "/api/session/release")
NAMED = {"Idempotency-Key": "tuesday"}


@pytest.fixture
def place():
    with house() as made:
        yield made


@pytest.fixture
def ask(place):
    return client_of(place)


def body(most):
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE amount < {most}", "epsilon": 0.1}


def spent(place, name="ada"):
    return float(place.session(name).balance().spent)


def answered(ask, address, question, token="token-of-ada"):
    """The status, and what was answered: of a job its result."""
    if address == ADDRESSES[2]:
        question = {**question, "epsilon": "0.1"}  # numbers are exact there, as texts
    found = ask("POST", address, token, json=question, headers=NAMED)
    if found.status_code == 202:
        job = found.json()
        for _ in range(3000):
            if ask("GET", job["address"], token).json()["state"] in ("done", "failed"):
                return 202, ask("GET", job["result"], token).json()["rows"]
            time.sleep(0.01)
    return found.status_code, found.json()


def answer_of(shown):
    """The answer alone, of all that an address tells."""
    return shown if isinstance(shown, list) else shown.get("rows") or shown["answer"]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(ADDRESSES, 2)))
def test_a_word_for_another_address_is_refused_and_not_charged(ask, place, first, second):
    assert answered(ask, first, body(31))[0] in (200, 202)
    before = spent(place)
    status, told = answered(ask, second, body(32))
    assert status == 422
    assert "Idempotency-Key" in told["error"]["message"]
    assert answered(ask, second, body(31))[0] == 422  # a word is for one address, whatever is asked there
    assert spent(place) == before == 0.1


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_true_repeat_gets_the_same_answer_for_one_price(ask, place, address):
    first = answered(ask, address, body(31))
    again = answered(ask, address, body(31))
    assert answer_of(first[1]) == answer_of(again[1])
    assert spent(place) == 0.1
    assert answered(ask, address, body(32))[0] == 422
    assert spent(place) == 0.1


def test_a_word_is_of_one_account(ask, place):
    assert answered(ask, "/api/release", body(31))[0] == 200
    assert answered(ask, "/api/jobs", body(32), "token-of-bob")[0] == 202
    assert spent(place, "bob") == pytest.approx(0.1)


def test_another_process_knows_the_answer_and_not_the_word(place):
    """Words are of one process; what makes a true repeat free is the ledger, which all of them read."""
    one, other = client_of(place), client_of(place)
    assert answered(one, "/api/release", body(31))[0] == 200
    assert answered(other, "/api/jobs", body(31))[0] == 202
    assert spent(place) == 0.1
