"""Who may do what: the steward's acts are the steward's, and what an analyst is given does not carry them."""

from __future__ import annotations

import pytest

from reach import powers
from sfumato.errors import AccessDenied, InvalidParameter, LedgerUnusable
from sfumato.games import DailyReserve, ReservePrice
from sfumato.ledger import Budget, Counter, Ledger, Memo, Steward
from sfumato.ledger.blocks import BlocksOf
from sfumato.loss import PureLoss
from sfumato.purchase import Purchase, buy

DECLARED = {"unit": "row", "version": 1}
TENTH = PureLoss("0.1")

READS = {
    *("analyst", "balance", "datasets", "entries", "export", "given"),
    *("end", "is_open", "recall", "spare", "verify", "whose"),
}
PAYS = {"close", "count_read", "debit", "record", "refuse_several", "register", "resume", "series", "turn"}
ACTS = {
    "raise_budget": lambda steward: steward.raise_budget("visits", Budget(3), reason="more"),
    "close_budget": lambda steward: steward.close_budget("visits", reason="over"),
    "limit": lambda steward: steward.limit("visits", "ada", Budget(1), reason="a project"),
    "allot": lambda steward: steward.allot("visits", {"ada": Budget(1)}, reason="spring"),
    "take_back": lambda steward: steward.take_back("visits", reason="summer"),
    "revoke": lambda steward: steward.revoke("visits", "ada", reason="left"),
    "redeclare": lambda steward: steward.redeclare("visits", DECLARED, reason="again"),
    "give": lambda steward: steward.give("visits", paid(steward), reason="published"),
    "access": lambda steward: Steward(steward._ledger, by="sofia").access("ada", "account added"),
    "adopted": lambda steward: steward.adopted(reason="the anchor is lost"),
}


def paid(steward):
    return steward._ledger.debit("visits", TENTH, fingerprint="what can be given").receipt


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.fixture
def ledger():
    with Ledger.open() as opened:
        opened.register("visits", DECLARED, Budget(2))
        Steward(opened).allot("visits", {"bob": Budget("0.5")}, reason="what can be taken back")
        yield opened


@pytest.fixture
def counter(ledger):
    return Counter(ledger, "ada")


def given(counter):
    """All that an analyst is given: the counter, and what each of its methods answers."""
    right = counter.debit("visits", TENTH, fingerprint="q")
    counter.record(right, b"7")
    fit = counter.debit("visits", TENTH, fingerprint="fit", resumable=True)
    series = counter.debit("visits", TENTH, fingerprint="daily", points=2).receipt
    return [
        counter,
        right,
        fit,
        fit.block("1/2"),
        counter.resume("visits", "fit"),
        counter.series.right(series, 0, ("q",)),
        counter.series.begun("visits", "daily", "ada"),
        counter.balance("visits"),
        counter.balance("visits", "ada"),
        counter.datasets(),
        counter.register("visits", DECLARED, None),
        counter.entries(),
        list(counter.entries()),
        counter.recall("visits", "q"),
        counter.verify(),
        counter.turn("visits", "q"),
        *(getattr(counter, name) for name in public(type(counter))),
    ]


# ── the lists are whole


def test_every_name_is_somebodys():
    assert public(Counter) == READS | PAYS
    assert public(Ledger) == READS | PAYS | {"open", "inspect", "promised", "analysts", "number", "accesses"}
    assert public(Steward) == set(ACTS)
    assert not set(ACTS) & public(Ledger)
    assert not issubclass(Counter, Ledger)


@pytest.mark.parametrize("act", ACTS)
def test_a_steward_acts_on_a_ledger_and_on_nothing_else(ledger, counter, act):
    before = ledger.export()
    assert not hasattr(counter, act)
    with pytest.raises(AccessDenied, match="Only the steward can do this"):
        ACTS[act](Steward(counter))
    for wrong in (None, "visits.ledger", ledger._journal):
        with pytest.raises(InvalidParameter, match="acts on a Ledger"):
            ACTS[act](Steward(wrong))
    assert ledger.export() == before
    ACTS[act](Steward(ledger))
    assert len(ledger.export()) > len(before)
    assert ledger.verify().ok


# ── nothing that an analyst holds leads to an act


def test_no_act_can_be_reached_from_what_an_analyst_is_given(counter):
    assert powers(*given(counter)) == []


def _an_attribute(ledger, counter, _):
    counter.limit = Steward(ledger).limit


def _the_ledger_behind_it(ledger, counter, _):
    counter._ledger = ledger


def _in_its_dictionary(ledger, counter, _):
    counter.__dict__["notes"] = [{"ledger": ledger}]


def _a_closure(ledger, counter, monkeypatch):
    monkeypatch.setattr(counter, "balance", lambda *names: ledger.balance(*names), raising=False)


def _the_closure_of_an_answer(ledger, counter, monkeypatch):
    balance = ledger.balance("visits")
    monkeypatch.setattr(Counter, "balance", lambda *_: balance)


def _a_copy(ledger, counter, monkeypatch):
    monkeypatch.setattr(Counter, "__copy__", lambda _: ledger, raising=False)


def _a_pickle(ledger, counter, monkeypatch):
    monkeypatch.setattr(Counter, "__reduce__", lambda _: (Ledger.open, (None,)))


def _a_right(ledger, counter, monkeypatch):
    monkeypatch.setattr(Counter, "_blocks", property(lambda _: _Blocks(ledger)))


class _Blocks(BlocksOf):
    def __init__(self, ledger):
        super().__init__(ledger._journal)
        self.ledger = ledger


PLANTED = [
    _an_attribute,
    _the_ledger_behind_it,
    _in_its_dictionary,
    _a_closure,
    _the_closure_of_an_answer,
    _a_copy,
    _a_pickle,
    _a_right,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_the_search_finds_an_act_that_is_planted(ledger, counter, monkeypatch, plant):
    plant(ledger, counter, monkeypatch)
    assert powers(*given(counter))


# ── one name


def escapes(ledger) -> list[str]:
    """Debits that an analyst makes in a name that is not theirs."""
    counter = Counter(ledger, "ada")
    ways = {
        "nobody": lambda: counter.debit("visits", TENTH, fingerprint="q1"),
        "own": lambda: counter.debit("visits", TENTH, fingerprint="q2", analyst="ada"),
        "spelled": lambda: counter.debit("visits", TENTH, fingerprint="q3", analyst="ADA"),
        "other": lambda: counter.debit("visits", TENTH, fingerprint="q4", analyst="bob"),
        "bought": lambda: buy(counter, _wanted("q5")),
        "bought for another": lambda: buy(counter, _wanted("q6"), "bob"),
        "counter of a counter": lambda: Counter(counter, "bob").debit("visits", TENTH, fingerprint="q7"),
        "daily": lambda: _learned(counter, "2026-03-01"),
        "daily for another": lambda: _learned(counter, "2026-03-02", analyst="bob"),
    }
    refused = set()
    for name, way in ways.items():
        try:
            way()
        except AccessDenied:
            refused.add(name)
    found = [each.analyst for each in ledger.entries() if each.kind == "debit"]
    assert len(found) == len(ways) - len(refused)
    return [f"in the name of {name}" for name in found if name != "ada"]


def _learned(counter, day, **whose):
    reserve = ReservePrice("0.1", [1, 2], max_auctions=1)
    DailyReserve(counter, "visits", reserve, **whose).learn(day, lambda: ([1], [1], [1]))


def _wanted(question):
    return Purchase(
        dataset="visits",
        loss=TENTH,
        fingerprint=question,
        memo=Memo("test", question),
        answer=lambda _: b"7",
        write=bytes,
        read_back=bytes,
    )


def test_a_counter_pays_in_one_name(ledger):
    assert escapes(ledger) == []


def test_the_search_finds_a_counter_that_pays_in_any_name(ledger, monkeypatch):
    monkeypatch.setattr(Counter, "whose", lambda _, analyst=None: analyst)
    assert {"in the name of None", "in the name of bob"} <= set(escapes(ledger))


def test_a_counter_lets_nobody_else_in(counter):
    for name in ("bob", "ada"):
        with pytest.raises(AccessDenied, match="Only the steward can let an analyst in"):
            Counter(counter, name)
    with pytest.raises(AttributeError):
        counter.analyst = "bob"


@pytest.mark.parametrize("name", ["", " ada", None, 3, "a\x00"])
def test_a_counter_has_a_name(ledger, name):
    with pytest.raises(InvalidParameter):
        Counter(ledger, name)


def test_a_revoked_analyst_buys_nothing_and_recalls_nothing(ledger, counter):
    buy(counter, _wanted("q"))
    Steward(ledger).revoke("visits", "ada", reason="left")
    for question in ("q", "another"):
        with pytest.raises(AccessDenied):
            buy(counter, _wanted(question))  # without a word of who asks
    assert buy(Counter(ledger, "bob"), _wanted("q")).free


# ── closing


def test_a_counter_that_is_closed_ends_alone(ledger, counter):
    other = Counter(ledger, "bob")
    counter.close()
    with pytest.raises(LedgerUnusable, match="closed"):
        counter.balance("visits")
    with pytest.raises(LedgerUnusable, match="closed"):
        counter.debit("visits", TENTH, fingerprint="q")
    other.debit("visits", TENTH, fingerprint="q")
    assert ledger.verify().ok
    ledger.close()
    with pytest.raises(LedgerUnusable, match="closed"):
        other.balance("visits")
    with pytest.raises(LedgerUnusable, match="closed"):
        Counter(ledger, "eve")


# ── what it is given cannot be written to, and shows nobody else's limit


def test_what_is_declared_cannot_be_changed_through_what_is_given(ledger, counter):
    before = ledger.export()
    for dataset in (*counter.datasets(), counter.register("visits", DECLARED, None)):
        written_to = dataset.declaration
        for value in (written_to, *(part for part in written_to.values() if isinstance(part, dict))):
            value.clear()
    assert ledger.export() == before
    assert dict(counter.datasets()[0].declaration) == dict(DECLARED)
    counter.register("visits", DECLARED, None)


def test_nobody_elses_limit_is_shown(ledger, counter):
    Steward(ledger).limit("visits", "Ada", Budget(1), reason="a project")
    Steward(ledger).revoke("visits", "bob", reason="left")
    about = {(receipt.kind, receipt.analyst) for receipt in counter.entries()}
    assert ("limit", "bob") in {(receipt.kind, receipt.analyst) for receipt in ledger.entries()}
    assert {who for kind, who in about if kind in ("limit", "revoke")} == {"Ada"}
    assert "bob" not in {entry["analyst"] for entry in counter.export()}
    assert counter.balance("visits", "ADA").epsilon == 1
    for ask in (counter.balance, counter.is_open):
        with pytest.raises(AccessDenied, match="in no other"):
            ask("visits", "bob")


def test_whoever_is_revoked_recalls_nothing(ledger, counter):
    counter.record(counter.debit("visits", TENTH, fingerprint="q"), b"7")
    assert counter.recall("visits", "q")
    Steward(ledger).revoke("visits", "ada", reason="left")
    with pytest.raises(AccessDenied, match="may no longer ask"):
        counter.recall("visits", "q")
    assert ledger.recall("visits", "q")


@pytest.mark.parametrize("others", ["bob", None])
def test_a_fit_is_gone_on_with_by_whoever_paid_for_it(ledger, counter, others):
    ledger.debit("visits", TENTH, fingerprint="fit", analyst=others, resumable=True)
    assert counter.resume("visits", "fit") is None
    assert ledger.resume("visits", "fit", others) is not None
    counter.debit("visits", TENTH, fingerprint="fit", resumable=True)
    again = counter.resume("visits", "fit")
    assert again is not None
    assert again.receipt.analyst == "ada"
    assert ledger.resume("visits", "fit", "ADA").receipt == again.receipt
