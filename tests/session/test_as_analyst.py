"""A session for each analyst over one engine: their name, their limit, no way to the steward's acts."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import weakref

import pytest

import sfumato as sf
from reach import powers, reached
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import AccessDenied, BudgetExceeded, EngineFailed, InvalidParameter, LedgerUnusable
from sfumato.ledger import Counter, Right, kept, turns
from sfumato.session import Session, texts
from tables import make

COUNT = "SELECT COUNT(*) AS n FROM visits"


def about(age: int) -> str:
    return f"{COUNT} WHERE age > {age}"


@pytest.fixture
def steward(data):
    with sf.Session(make(data), budget=sf.Budget(10)) as opened:
        yield opened


def test_it_asks_in_the_analysts_name_and_within_their_limit(steward):
    sf.Steward(steward.ledger).limit("visits", "ada", sf.Budget(1), reason="a project")
    ada, bob = steward.as_analyst("ada"), steward.as_analyst("bob")
    assert (steward.analyst, ada.analyst, bob.analyst) == (None, "ada", "bob")
    ada.sql(about(1)).release(epsilon=1)
    with pytest.raises(BudgetExceeded, match="limit of 'ada'"):
        ada.sql(about(2)).release(epsilon="0.1")
    bob.table("visits").agg(n=sf.count()).release(epsilon=2)
    steward.sql(about(3)).release(epsilon=3)
    assert [each.analyst for each in steward.releases()] == ["ada", "bob", None]
    assert (ada.balance().spent, ada.balance().remaining, bob.balance().spent) == (1, 0, 2)
    assert steward.balance().spent == 6
    assert bob.sql(about(1)).release(epsilon=1).free  # what anybody has paid for
    sf.Steward(steward.ledger).revoke("visits", "ada", reason="left")
    for text in (about(1), about(4)):
        with pytest.raises(AccessDenied):
            ada.sql(text).release(epsilon="0.1")
    assert steward.ledger.verify().ok


def test_nothing_is_attached_opened_or_looked_through_again(steward, monkeypatch):
    made = []
    for owner, name in ((DuckDB, "attach"), (DuckDB, "fetch"), (DuckDB, "check_whole"), (DuckDB, "__init__")):
        monkeypatch.setattr(owner, name, lambda *_, **__: made.append("the engine"))
    monkeypatch.setattr(sf.Ledger, "open", lambda *_: made.append("the ledger"))
    ada = steward.as_analyst("ada")
    assert made == []
    assert ada._engine is steward._engine
    assert (ada.tables, ada.prepared) == (steward.tables, steward.prepared)
    assert ada.dataset_of(ada.sql(COUNT).report) == steward.dataset_of(ada.sql(COUNT).report)


# ── who may


def hostile(ada):
    """Ways from one analyst's session to another's."""
    return {
        "as_analyst": lambda: ada.as_analyst("bob"),
        "as_analyst, own name": lambda: ada.as_analyst("ada"),
        "a session with its ledger": lambda: Session(
            ada.tables["visits"], ledger=ada.ledger, engine=ada._engine, analyst="bob"
        ),
        "a counter": lambda: Counter(ada.ledger, "bob"),
        "a steward": lambda: sf.Steward(ada.ledger),
    }


@pytest.mark.parametrize("way", hostile(None))
@pytest.mark.parametrize("how", ["as_analyst", "analyst=", "ledger="])
def test_an_analysts_session_becomes_nobody_else(steward, how, way):
    table = steward.tables["visits"]
    ada = (
        steward.as_analyst("ada")
        if how == "as_analyst"
        else sf.Session(table, ledger=steward.ledger, analyst="ada")
        if how == "analyst="
        else sf.Session(table, ledger=Counter(steward.ledger, "ada"))
    )
    with contextlib.closing(ada):
        before = steward.ledger.export()
        with pytest.raises(AccessDenied) as refusal:
            hostile(ada)[way]()
        assert str(refusal.value).count(".") <= 2
        with pytest.raises(AttributeError):
            ada.analyst = "bob"
        assert steward.ledger.export() == before
        assert ada.analyst == "ada"


def shown(ada):
    query = ada.sql(COUNT)
    released = query.release(epsilon=1)
    return [
        ada,
        query,
        query.quote(epsilon=1),
        released,
        ada.balance(),
        ada.releases(),
        ada.vault,
        ada.ledger,
    ]


def test_no_act_can_be_reached_from_an_analysts_session(steward, tmp_path, data):
    assert powers(*shown(steward.as_analyst("ada"))) == []
    with sf.Session(make(data), budget=sf.Budget(9), ledger=tmp_path / "v.ledger"):
        pass
    with sf.Session(make(data), ledger=tmp_path / "v.ledger", analyst="ada") as ada:
        assert powers(*shown(ada)) == []


@pytest.mark.parametrize(
    "plant",
    [
        lambda ada, steward: setattr(ada, "owner", steward),
        lambda ada, steward: setattr(ada, "ledger", steward.ledger),
        lambda ada, steward: setattr(ada, "buy", steward.buy),
        lambda ada, steward: setattr(ada.vault, "_paid", lambda: steward.ledger),
    ],
)
def test_the_search_finds_a_way_to_the_steward(steward, plant):
    ada = steward.as_analyst("ada")
    plant(ada, steward)
    assert powers(*shown(ada))


@pytest.mark.parametrize("name", ["", " ada", None, 3, "a\x00"])
def test_an_analyst_has_a_name(steward, name):
    with pytest.raises(InvalidParameter):
        steward.as_analyst(name)


def test_what_is_declared_otherwise_by_now_is_refused(steward, data):
    steward.as_analyst("ada")
    with sf.Session(make(data, version="2"), ledger=steward.ledger):
        pass
    with pytest.raises(AccessDenied, match="another version"):
        steward.as_analyst("ada")


# ── closing


def test_an_analysts_session_ends_alone_and_the_stewards_ends_all(steward):
    ada, bob = steward.as_analyst("ada"), steward.as_analyst("bob")
    ada.close()
    ada.close()
    with pytest.raises(LedgerUnusable, match="closed"):
        ada.sql(COUNT).release(epsilon=1)
    bob.sql(COUNT).release(epsilon=1)
    steward.sql(about(1)).release(epsilon=1)
    question = bob.sql(COUNT).quote(epsilon=1).recipe.questions[0]
    steward.close()
    with pytest.raises(LedgerUnusable, match="closed"):
        bob.sql(about(2)).release(epsilon=1)
    with pytest.raises(EngineFailed, match="closed"):
        steward.as_analyst("eve")
    with pytest.raises(EngineFailed, match="closed"):
        bob.vault._fetch(question)


# ── threads


def at_once(*work):
    wrong, ready = [], threading.Barrier(len(work))

    def run(each):
        try:
            ready.wait()
            each()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_two_analysts_ask_at_once_from_two_threads(steward):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    answers = {"ada": [], "bob": []}

    def asks(name, ages):
        session = steward.as_analyst(name)
        for age in ages:
            answers[name].append(session.sql(about(age)).release(epsilon="0.1").table.to_pylist())

    try:
        at_once(lambda: asks("ada", range(12)), lambda: asks("bob", range(8, 20)))
    finally:
        sys.setswitchinterval(before)
    assert answers["ada"][8:] == answers["bob"][:4]  # asked by both, paid by one
    paid = [(each.analyst, each.fingerprint) for each in steward.releases()]
    assert len(paid) == len({question for _, question in paid}) == 20
    names = [name for name, _ in paid]
    assert (names.count("ada") >= 8, names.count("bob") >= 8) == (True, True)
    assert steward.balance().spent == 2
    assert steward.ledger.verify().ok


# ── nothing grows


def kept_by_modules():
    """What the modules on the way of a question keep, and their classes; caches have a size of their own."""
    rooms = ("sfumato.ledger", "sfumato.purchase", "sfumato.session", "sfumato.engines")
    for name, module in list(sys.modules.items()):
        if name.startswith(rooms):
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == name:
                    yield from vars(value).values()
                elif not hasattr(value, "cache_info"):
                    yield value


def test_what_is_held_does_not_grow_with_what_was_asked(steward, monkeypatch):
    """Locks, used marks, statements and sums: as many after many questions as after a few."""
    monkeypatch.setattr(texts, "_MOST", 3)  # plans of the last texts are kept: so many, once they are full
    monkeypatch.setattr(kept, "_MOST", 3)  # and so are the last answers
    ada = steward.as_analyst("ada")
    sizes = []
    for first in (0, 20, 40):
        for age in range(first, first + 6):
            ada.sql(about(age)).release(epsilon="0.01")
            with pytest.raises(BudgetExceeded):
                ada.sql(about(age)).release(epsilon=100)
            ada.sql(about(age)).quote(epsilon=1)
            steward.as_analyst("ada").close()
        gc.collect()
        held = reached([steward, ada, *kept_by_modules()])
        # SQLite's module keeps weak references to its last two hundred cursors.
        sizes.append(sum(not isinstance(thing, weakref.ref) for thing in held))
        assert (turns._locks.turns, turns._locks.files) == ({}, {})
    assert sizes[0] == sizes[1] == sizes[2]


@pytest.mark.parametrize("keeper", ["session", "class", "module"])
def test_the_count_finds_a_mark_that_is_kept(steward, monkeypatch, keeper):
    use, marks = Right.use, set()
    place = {"session": steward, "class": Right, "module": turns}[keeper]
    monkeypatch.setattr(place, "marks", marks, raising=False)
    monkeypatch.setattr(Right, "use", lambda *of: (marks.add(of[1:]), use(*of))[1])
    with pytest.raises(AssertionError, match="=="):
        test_what_is_held_does_not_grow_with_what_was_asked(steward, monkeypatch)


def test_what_is_declared_is_for_looking_at_alone(steward):
    ada = steward.as_analyst("ada")
    rows = sf.PrivateTable(
        "visits", source=None, unit=sf.PrivacyUnit.row(), schema=steward.tables["visits"].schema
    )
    for session in (ada, steward):
        table = session.tables["visits"]
        for held in (session.tables, session.prepared, table.schema):
            with pytest.raises(TypeError):
                held["visits"] = rows
            with pytest.raises(AttributeError):
                held.clear()
        for name in ("tables", "prepared"):
            with pytest.raises(AttributeError):
                setattr(session, name, {})


@pytest.mark.parametrize("handed", ["the ledger", "the engine", "both", "neither"])
def test_nothing_is_charged_once_the_stewards_session_is_closed(data, handed):
    ledger = sf.Ledger.open() if handed in ("the ledger", "both") else None
    engine = DuckDB() if handed in ("the engine", "both") else None
    steward = sf.Session(make(data), budget=sf.Budget(10), ledger=ledger, engine=engine)
    ada = steward.as_analyst("ada")
    ada.sql(about(1)).release(epsilon=1)
    steward.close()
    for session in (steward, ada):
        for text in (about(1), about(2)):
            with contextlib.suppress(EngineFailed, LedgerUnusable):
                assert session.sql(text).release(epsilon=1).free
        for ask in (lambda given: given.most_common("country", 1), lambda given: given.as_analyst("eve")):
            with pytest.raises((EngineFailed, LedgerUnusable, AccessDenied)):
                ask(session)
    if ledger is not None:
        assert ledger.balance("visits").spent == 1
        ledger.close()
    if engine is not None:
        engine.close()


def test_a_revoked_analyst_is_told_so_whatever_they_ask(steward):
    ada = steward.as_analyst("ada")
    sf.Steward(steward.ledger).revoke("visits", "ada", reason="left")
    asked = [
        lambda: ada.sql(COUNT).release(epsilon=1),
        lambda: ada.sql("SELECT SUM(age * 2) AS s FROM visits").release(epsilon=1, bounds="auto"),
        lambda: ada.most_common("country", 1),
        lambda: ada.first_above([COUNT], 3, 1),
    ]
    for ask in asked:
        with pytest.raises(AccessDenied):
            ask()
    assert steward.balance().spent == 0
