"""Accounts and tokens: the right one opens, nothing else does, and nothing that is kept could be used."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import stat
import string
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scram_client import ScramClient
from sfumato.errors import (
    AccessDenied,
    InvalidParameter,
    LedgerTampered,
    LedgerUnusable,
    LoginFailed,
    TooManyTries,
)
from sfumato.ledger import Ledger
from sfumato.server.access import FRESH, LIVE_TOKENS, Account, Accounts, Act, Exchange, Role, tokens
from sfumato.server.access.scram import refused

DAY = 86_400.0
ADA = Account("ada", Role.ANALYST)


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def denied(call, *arguments, **more):
    with pytest.raises(LoginFailed) as told:
        call(*arguments, **more)
    assert str(told.value) == str(refused())
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def log_in(accounts, name, password, **more):
    login, client = accounts.login(name, **more), ScramClient(password)
    assert login.final(client.final(login.first(client.first()))) == client.expects
    return login


def with_ada(place, **wishes):
    accounts = place.open(**wishes)
    accounts.add("ada")
    return accounts, *accounts.issue("ada")


# ── what is right


def test_a_token_opens_by_http_and_by_scram(place):
    accounts, text, info = with_ada(place)
    assert accounts.check(text) == ADA
    login = log_in(accounts, "ada", text)
    assert (login.account, login.token) == (ADA, info.id)
    assert accounts.current(login.token) == ADA
    with place.open(create=False) as again:
        assert again.check(text) == ADA
        assert log_in(again, "ada", text).account == ADA


def test_a_token_is_256_bits_behind_a_public_id(place):
    accounts, text, info = with_ada(place)
    start, label, secret = text.split("_")
    assert (start, label, len(secret)) == ("sfu", info.id, 52)  # 5 bits a letter
    assert set(label + secret) <= set(string.ascii_lowercase + "234567")
    texts = {accounts.issue("ada")[0] for _ in range(LIVE_TOKENS - 1)}
    assert len(texts | {text}) == LIVE_TOKENS


def test_other_spellings_are_the_same_account(place):
    accounts, text, _ = with_ada(place)
    for spelling in ("ADA", "Ada", "ａｄａ", " ada "):
        with pytest.raises(InvalidParameter, match="There is an account 'ada' already"):
            accounts.add(spelling.strip())
        assert log_in(accounts, spelling, text).account == ADA
        assert accounts.verifier(spelling).salt == accounts.verifier("ada").salt
    assert accounts.issue("ADA")[1].name == "ada"
    assert accounts.remove("Ada") == "ada"


def test_each_token_of_an_account_opens_and_not_those_of_others(place):
    accounts, first, _ = with_ada(place)
    second, third = accounts.issue("ada")[0], accounts.issue("ada", timedelta(days=1))[0]
    accounts.add("bob", "auditor")
    bobs, _ = accounts.issue("bob")
    assert accounts.check(bobs) == Account("bob", Role.AUDITOR)
    for text in (first, second, third):
        assert accounts.check(text) == ADA
        assert log_in(accounts, "ada", text).account == ADA
        denied(log_in, accounts, "bob", text)
    denied(log_in, accounts, "ada", bobs)


def test_an_account_has_so_many_tokens_and_no_more(place):
    clock = Clock()
    accounts, first, info = with_ada(place, clock=clock)
    for _ in range(LIVE_TOKENS - 2):
        accounts.issue("ada", timedelta(days=200))
    last, _ = accounts.issue("ada", timedelta(days=200))
    with pytest.raises(InvalidParameter, match="revoke one"):
        accounts.issue("ada")
    assert log_in(accounts, "ada", first).account == log_in(accounts, "ada", last).account == ADA
    accounts.revoke(info.id)
    accounts.issue("ada")  # there is room again
    clock.now += 91 * DAY
    accounts.issue("ada")


def test_roles():
    may = {role: {act for act in Act if Account("x", role).may(act)} for role in Role}
    assert may == {
        Role.ANALYST: {Act.SPEND},
        Role.STEWARD: {Act.SPEND, Act.AUDIT, Act.GOVERN},
        Role.AUDITOR: {Act.AUDIT},
    }
    Account("x", Role.AUDITOR).needs(Act.AUDIT)
    with pytest.raises(
        AccessDenied, match="role auditor may not release answers: log in as analyst or steward"
    ):
        Account("x", Role.AUDITOR).needs(Act.SPEND)
    with pytest.raises(AccessDenied, match="may not act on budgets"):
        ADA.needs(Act.GOVERN)


def test_the_list_says_what_anybody_may_know(place):
    clock = Clock()
    accounts, _, first = with_ada(place, clock=clock)
    clock.now += 5
    _, second = accounts.issue("ada", timedelta(days=1))
    accounts.add("bob", Role.STEWARD)
    ended = accounts.revoke(first.id)
    assert accounts.revoke(first.id) == ended
    ada, bob = accounts.list()
    assert (ada.account, ada.tokens) == (ADA, (ended, second))
    assert (bob.account, bob.tokens) == (Account("bob", Role.STEWARD), ())
    assert (ended.expires - ended.created, second.expires - second.created) == (
        timedelta(days=90),
        timedelta(days=1),
    )
    assert ended.revoked.timestamp() == clock.now


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda a: a.add("ada", "king"), "one of analyst, steward, auditor"),
        (lambda a: a.add(""), "1 to 200 characters"),
        (lambda a: a.add("аda"), "mixes letters"),
        (lambda a: a.add("a\x00da"), "control characters"),
        (lambda a: a.issue("bob"), "no account 'bob'"),
        (lambda a: a.issue("b\x00b"), "no account"),
        (lambda a: a.remove("bob"), "no account 'bob'"),
        (lambda a: a.revoke("aaaaaaaa"), "no token with this id"),
        (lambda a: a.revoke("a\x00'; --"), "no token with this id"),
        (lambda a: a.issue("ada", timedelta(0)), "1 second to 3,660 days"),
        (lambda a: a.issue("ada", timedelta(days=4000)), "1 second to 3,660 days"),
        (lambda a: a.issue("ada", 90), "1 second to 3,660 days"),
    ],
)
def test_acts_that_cannot_be(place, act, message):
    with place.open() as accounts:
        accounts.add("ada")
        with pytest.raises(InvalidParameter, match=message):
            act(accounts)
        assert [entry.account for entry in accounts.list()] == [ADA]
        assert accounts.list()[0].tokens == ()


# ── what is wrong


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_other_text_is_a_token(data):
    with Accounts.open(None) as accounts:
        no_other_text(accounts, data)


def no_other_text(accounts, data):
    accounts.add("ada")
    text, _ = accounts.issue("ada")
    other, _ = accounts.issue("ada")
    label, secret = text.split("_")[1:]
    place = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(place, len(text)))
    put = data.draw(st.text(string.ascii_lowercase + "234567_", max_size=3) | st.text(max_size=3))
    wrong = data.draw(
        st.sampled_from(
            [
                text[:place] + put + text[end:],
                text.upper(),
                text.title(),
                text + "\n",
                " " + text,
                text * 2,
                f"sfu_{other.split('_')[1]}_{secret}",
                f"sfu_{label}_{other.split('_')[2]}",
                "".join(chr(ord(letter) + 0xFEE0) for letter in text),  # full-width letters
                text.replace("s", "ſ", 1),
                "\udc80" + text,
                text + "\x00",
                label,
                secret,
                "ada",
                "",
                "x" * 100_000,
            ]
        )
    )
    if wrong != text:
        denied(accounts.check, wrong)
        accounts.check(text), accounts.check(other)  # which are remembered from now on
        denied(accounts.check, wrong)
        if wrong.isascii() and wrong.isprintable() and wrong:
            denied(log_in, accounts, "ada", wrong)
    assert accounts.check(text) == ADA


def test_an_expired_token_is_refused_whether_or_not_it_was_checked_lately(place):
    clock = Clock()
    accounts, text, info = with_ada(place, clock=clock, ticks=Clock())
    login, client = accounts.login("ada"), ScramClient(text)
    proof = client.final(login.first(client.first()))
    clock.now += 90 * DAY - 1
    assert accounts.check(text) == accounts.current(info.id) == ADA
    clock.now += 1
    denied(accounts.check, text)
    denied(accounts.current, info.id)
    denied(login.final, proof)  # begun before, ended after
    denied(log_in, accounts, "ada", text)


@pytest.mark.parametrize("end", [lambda a, info: a.revoke(info.id), lambda a, info: a.remove("ada")])
def test_a_revoked_token_is_refused_at_once_here_and_soon_by_all(place, end):
    ticks = Clock(0.0)
    accounts, text, info = with_ada(place)
    with place.open(ticks=ticks) as elsewhere:
        assert elsewhere.check(text) == elsewhere.current(info.id) == accounts.check(text) == ADA
        login, client = elsewhere.login("ada"), ScramClient(text)
        proof = client.final(login.first(client.first()))
        ticks.now += FRESH / 2
        assert elsewhere.check(text) == ADA
        end(accounts, info)
        denied(accounts.check, text)
        denied(accounts.current, info.id)
        denied(log_in, accounts, "ada", text)
        ticks.now += FRESH / 2  # since it was last looked up, not since it was last used
        denied(elsewhere.check, text)
        denied(elsewhere.current, info.id)
        denied(login.final, proof)


def test_an_account_that_comes_again_has_no_old_tokens(place):
    accounts, text, _ = with_ada(place)
    accounts.remove("ada")
    accounts.add("ada", "steward")
    denied(accounts.check, text)
    denied(log_in, accounts, "ada", text)


def test_a_revoked_token_cannot_be_made_live_in_the_database(place):
    accounts, text, info = with_ada(place)
    accounts.revoke(info.id)
    place.sql("UPDATE sfumato_tokens SET revoked = NULL")
    denied(accounts.check, text)
    denied(accounts.current, info.id)
    denied(log_in, accounts, "ada", text)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sfumato_accounts SET role = 'steward'",
        "UPDATE sfumato_accounts SET name = 'root'",
        "UPDATE sfumato_tokens SET expires = expires + 100000000",
        "UPDATE sfumato_tokens SET person = (SELECT person FROM sfumato_accounts WHERE name = 'bob')",
        "UPDATE sfumato_tokens SET stored = hash",
        "UPDATE sfumato_tokens SET id = 'aaaaaaaa'",
    ],
)
def test_whoever_writes_to_the_database_alone_gains_nothing(place, change):
    accounts, text, info = with_ada(place)
    accounts.add("bob", "steward")
    place.sql(change)
    denied(accounts.check, text)
    denied(accounts.current, info.id)
    denied(log_in, accounts, "ada", text)
    denied(log_in, accounts, "bob", text)
    if "sfumato_tokens" in change:  # what was changed is not even held against a login
        assert not [
            keys.label for name in ("ada", "bob") for keys in accounts.verifier(name).keys if keys.label
        ]
    if "aaaaaaaa" in change:
        denied(accounts.check, f"sfu_aaaaaaaa_{text.split('_')[2]}")
    with pytest.raises(LedgerTampered, match="changed by other means"):
        accounts.list()
    accounts.remove(next((name for name in ("bob", "root") if name in change), "ada"))
    accounts.list()


def test_another_key_of_the_server_is_refused_and_opens_nothing(tmp_path, place):
    accounts, text, _ = with_ada(place)
    accounts.close()
    place.key.write_text("ab" * 32 + "\n")
    with pytest.raises(LedgerTampered, match="not the one of these accounts"):
        place.open()
    with Accounts.open(tmp_path / "other.ledger") as others:
        denied(others.check, text)


# ── nothing tells what was wrong


def test_as_much_is_computed_whatever_is_wrong(place, monkeypatch):
    clock = Clock()
    accounts, text, _ = with_ada(place, clock=clock)
    old, _ = accounts.issue("ada", timedelta(seconds=1))
    gone, revoked = accounts.issue("ada")
    accounts.revoke(revoked.id)
    clock.now += 2
    calls, asked = [], []
    keyed, run = tokens._keyed, accounts._tables._run
    monkeypatch.setattr(tokens, "_keyed", lambda key, message: calls.append(1) or keyed(key, message))
    monkeypatch.setattr(accounts._tables, "_run", lambda *given: asked.append(given[0]) or run(*given))
    unknown = tokens.draw()[1]
    wrongs = [
        unknown,
        text[:-1] + ("a" if text[-1] != "a" else "b"),
        old,
        gone,
        "",
        "ada",
        "é" * 300,
        text[:-1],
    ]
    work = []
    for wrong in wrongs:
        calls.clear(), asked.clear()
        denied(accounts.check, wrong)
        work.append((len(calls), tuple(asked)))
    assert len(set(work)) == 1, work
    assert work[0][0] == 3
    accounts.add("bob")
    work = []
    for name in ("ada", "bob", "nobody", "", "\x00", "\udc80", "x" * 10_000):
        calls.clear(), asked.clear()
        verifier = accounts.verifier(name)
        work.append((len(calls), tuple(asked), len(verifier.keys), len(verifier.salt), verifier.iterations))
    assert len(set(work)) == 1, work


def test_names_cannot_be_probed(place):
    accounts = place.open()
    before = accounts.verifier("ada")
    assert before == accounts.verifier("ada")
    assert before.salt != accounts.verifier("bob").salt
    accounts.add("ada")
    assert accounts.verifier("ada") == before
    accounts.issue("ada")
    with_token = accounts.verifier("ada")
    assert (with_token.salt, with_token.iterations) == (before.salt, before.iterations)
    assert len(with_token.keys) == len(before.keys) == LIVE_TOKENS
    client = ScramClient("anything")
    for name in ("ada", "nobody"):
        exchange = Exchange(accounts.verifier(name))
        denied(exchange.final, client.final(exchange.first(client.first())))
    with Accounts.open(None) as others:
        assert others.verifier("ada").salt != before.salt  # by another server's key


def test_nothing_secret_is_shown_kept_or_pickled(place, tmp_path):
    accounts, text, info = with_ada(place)
    secret = text.split("_")[2]
    accounts.check(text)
    login = log_in(accounts, "ada", text)
    verifier = accounts.verifier("ada")
    things = [accounts, info, login, verifier, accounts.list(), *vars(accounts).values(), vars(accounts)]
    for thing in things:
        assert secret not in repr(thing) + str(thing)
        assert verifier.keys[0].stored.hex() not in repr(thing)
        assert repr(verifier.keys[0].stored) not in repr(thing)
    assert secret.encode() not in pickle.dumps((info, accounts.list(), ADA))
    for thing in (accounts, verifier, accounts._key):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    for wrong in (text + "x", text[:-1]):
        with pytest.raises(LoginFailed) as told:
            accounts.check(wrong)
        assert secret[:20] not in str(told.value) + repr(told.value)
    if "://" in place.where:
        kept = repr(place.sql("SELECT * FROM sfumato_tokens"))
        kept += repr(place.sql("SELECT hash::text || stored::text || server::text FROM sfumato_tokens"))
        assert info.id in kept
        assert secret not in kept
        return
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {f"visits.ledger.{end}" for end in ("accounts", "serverkey")} <= {path.name for path in files}
    whole = b"".join(path.read_bytes() for path in files)
    assert info.id.encode() in whole
    for form in (secret, secret[:16], secret[-16:], secret.upper()):
        assert form.encode() not in whole
    accounts.close()
    assert secret.encode() not in (tmp_path / "visits.ledger.accounts").read_bytes()


# ── the files


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_files_are_their_owners_alone_and_a_key_open_to_others_is_refused(place):
    with_ada(place)[0].close()
    assert stat.S_IMODE(place.key.stat().st_mode) == 0o600
    if "://" not in place.where:
        assert stat.S_IMODE(os.stat(f"{place.where}.accounts").st_mode) == 0o600
    place.key.chmod(0o604)
    with pytest.raises(LedgerUnusable, match="chmod 600"):
        place.open()


def test_without_its_key_there_is_no_way_in(place):
    with_ada(place)[0].close()
    place.key.unlink()
    with pytest.raises(LedgerUnusable, match="key of the server is missing"):
        place.open()
    assert not list(place.state.glob("*.serverkey"))  # none is made in its place


def test_looking_makes_nothing(place):
    with pytest.raises(LedgerUnusable, match=r"no accounts .* sfumato account add"):
        place.open(create=False)
    assert not list(place.state.glob("**/*"))


def test_other_files_are_left_alone(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "x.ledger.accounts") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(LedgerUnusable, match="database of something else"):
        Accounts.open(tmp_path / "x.ledger")
    for where in ("", "http://x", "a\x00b"):
        with pytest.raises(InvalidParameter):
            Accounts.open(where)


def test_a_newer_version_is_refused(place):
    with_ada(place)[0].close()
    place.sql("UPDATE sfumato_access SET version = 99")
    with pytest.raises(LedgerUnusable, match="newer Sfumato"):
        place.open()


# ── many at once


def test_a_thousand_checks_ask_the_database_once(place, monkeypatch):
    accounts, text, info = with_ada(place, ticks=Clock())
    run, asked = accounts._tables._run, []
    monkeypatch.setattr(accounts._tables, "_run", lambda *given: asked.append(1) or run(*given))
    for _ in range(1_000):
        accounts.check(text, address="10.0.0.1")
        accounts.current(info.id)
    assert len(asked) == 1
    monkeypatch.setattr("sfumato.server.access.remembered._MOST", 3)
    for _ in range(LIVE_TOKENS - 1):
        accounts.check(accounts.issue("ada")[0])
        assert len(accounts._checked._held) <= 3


def test_threads(place):
    accounts, text, _ = with_ada(place, ticks=iter(range(10**9)).__next__)  # nothing is remembered for long
    wrong, results = tokens.draw()[1], []

    def work(number):
        for step in range(10):
            if number % 2:
                results.append(accounts.check(text) == ADA)
            else:
                with pytest.raises(LoginFailed):
                    accounts.check(wrong)
                name = f"t{number}-{step}"
                accounts.add(name)
                results.append(accounts.check(accounts.issue(name)[0]).name == name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 60
    assert len(accounts.list()) == 31


_OTHER = """
import json, sys
from pathlib import Path
from sfumato.errors import InvalidParameter, LoginFailed
from sfumato.server.access import Accounts
where, state, name = sys.argv[1:]
with Accounts.open(where, state=Path(state)) as accounts:
    print("open", flush=True)
    sys.stdin.readline()
    won = 0
    for number in range(20):
        try:
            accounts.add(f"person {number}")
            won += 1
        except InvalidParameter:
            pass
    accounts.add(name)
    print(json.dumps([won, accounts.issue(name)[0]]), flush=True)
    token = json.loads(sys.stdin.readline())
    print(accounts.check(token).name, flush=True)
    sys.stdin.readline()
    import time
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            accounts.check(token)
        except LoginFailed:
            print("refused", flush=True)
            break
        time.sleep(0.05)
"""


def test_two_processes_on_one_store(place):
    crew = [
        subprocess.Popen(
            [sys.executable, "-c", _OTHER, place.where, str(place.state), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ada", "bob")
    ]

    def tell(text):
        for process in crew:
            process.stdin.write(text + "\n")
            process.stdin.flush()

    def hear():
        return [process.stdout.readline().strip() for process in crew]

    try:
        assert hear() == ["open", "open"]  # both made them at once
        tell("go")
        (won, ada), (lost, _) = map(json.loads, hear())
        assert won + lost == 20  # each name was taken once
        tell(json.dumps(ada))
        assert hear() == ["ada", "ada"]
        with place.open() as accounts:
            accounts.revoke(ada.split("_")[1])
            denied(accounts.check, ada)
        tell("now")
        assert hear() == ["refused", "refused"]
    finally:
        for process in crew:
            process.stdin.close()
            process.stdout.close()
            process.wait(timeout=60)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_connection_of_its_own(place):
    accounts, text, _ = with_ada(place, ticks=iter(range(10**9)).__next__)
    parents = accounts._tables._store._open
    child = os.fork()
    if child == 0:
        try:
            fine = accounts.check(text) == ADA and accounts._tables._store._open is not parents
            accounts.add("child")
            os._exit(0 if fine else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert accounts.check(text) == ADA
    assert [entry.account.name for entry in accounts.list()] == ["ada", "child"]


def test_writers_wait_for_each_other_also_while_a_ledger_is_begun(postgres_place, monkeypatch):
    one, other = postgres_place.open(), postgres_place.open()
    Ledger.open(postgres_place.where, state=postgres_place.state).close()
    store = one._tables._store
    monkeypatch.setattr(store, "_made", lambda: False)  # it looked just before
    store.begin()
    began = threading.Event()

    def write():
        with other._tables.writing():
            began.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert not began.wait(0.3)
    store.commit()
    assert began.wait(30)
    thread.join()


def test_a_lost_connection_is_made_again(postgres_place):
    accounts, text, _ = with_ada(postgres_place, ticks=iter(range(10**9)).__next__)
    for call in (lambda: accounts.check(text), lambda: accounts.add("bob"), lambda: accounts.verifier("ada")):
        postgres_place.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database()"
        )
        call()


# ── wrong tries


def test_ten_thousand_wrong_tries_get_nowhere_and_lock_nobody_out_elsewhere(place):
    ticks = Clock(0.0)
    accounts, text, info = with_ada(place, ticks=ticks)
    looked, waits = 0, []
    for _ in range(10_000):
        try:
            accounts.check(tokens.draw()[1], address="6.6.6.6")
        except TooManyTries as told:
            waits.append(told.wait)
        except LoginFailed:
            looked += 1
    assert (looked, len(waits)) == (100, 9_900)
    assert 0 < min(waits) <= max(waits) <= 1
    wrong = f"sfu_{info.id}_{tokens.draw()[1].split('_')[2]}"
    kinds = []
    for _ in range(20):
        with pytest.raises(LoginFailed) as told:
            accounts.check(wrong, address="7.7.7.7")
        kinds.append(type(told.value))
    assert kinds == [LoginFailed] * 10 + [TooManyTries] * 10
    assert accounts.check(text, address="8.8.8.8") == ADA  # the owner, from elsewhere
    assert accounts.check(text, address="7.7.7.7") == ADA  # and from there, while it is remembered
    ticks.now += 10
    assert accounts.check(text, address="7.7.7.7") == ADA  # one try is forgotten


def test_wrong_passwords_are_counted_by_name_and_address(place):
    ticks = Clock(0.0)
    accounts, text, _ = with_ada(place, ticks=ticks)
    for spelling in ["ada", "ADA"] * 5:
        denied(log_in, accounts, spelling, "wrong", address="6.6.6.6")
    for password in ("wrong", text):
        with pytest.raises(TooManyTries):
            log_in(accounts, "Ada", password, address="6.6.6.6")
    assert log_in(accounts, "ada", text, address="8.8.8.8").account == ADA
    for _ in range(10):
        with pytest.raises(LoginFailed):
            accounts.login("nobody", address="5.5.5.5").first("rubbish")
    with pytest.raises(TooManyTries):
        accounts.login("nobody", address="5.5.5.5").first("rubbish")
