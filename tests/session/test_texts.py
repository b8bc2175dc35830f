"""A text that is asked again has the plan that it had: what is kept is a plan, and not for ever."""

import threading

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.prices.terms import Terms
from sfumato.session import texts
from sfumato.session.texts import Texts
from sfumato.sql.asking import ask

TABLE = sf.PrivateTable(
    "t", source=pa.table({"g": [1, 2]}), unit=sf.PrivacyUnit.row(), schema={"g": sf.Int(0, 9)}
)
TABLES = {"t": TABLE}
COUNT = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def test_a_text_that_is_asked_again_has_the_same_plan():
    kept = Texts(TABLES)
    first = kept.asked(COUNT)
    assert kept.asked(COUNT) is first
    fresh = ask(COUNT, TABLES)
    assert first.plan.recipe.measured.fingerprint == fresh.plan.recipe.measured.fingerprint
    assert kept.asked(COUNT + " ") is not first


def test_parameters_and_refusals_are_read_each_time():
    kept = Texts(TABLES)
    text = "SELECT COUNT(*) AS n FROM t WHERE g = ?"
    prints = [kept.asked(text, [value]).plan.recipe.measured.fingerprint for value in (1, 2, 1)]
    assert prints[0] == prints[2] != prints[1]
    for _ in range(2):
        with pytest.raises(sf.errors.QueryRefused):
            kept.asked("SELECT * FROM t")
        with pytest.raises(sf.errors.QueryRefused):
            kept.asked(7)
    assert not kept._kept


def test_only_the_last_texts_are_kept(monkeypatch):
    monkeypatch.setattr(texts, "_MOST", 3)
    kept = Texts(TABLES)
    asked = [f"SELECT COUNT(*) AS n{i} FROM t" for i in range(5)]
    for text in asked[:3]:
        kept.asked(text)
    kept.asked(asked[0])
    for text in asked[3:]:
        kept.asked(text)
    assert list(kept._kept) == [asked[0], *asked[3:]]


def test_plans_of_many_groups_make_room_for_others(monkeypatch):
    monkeypatch.setattr(texts, "_GROUPS", 25)
    kept = Texts(TABLES)
    for i in range(4):
        kept.asked(f"SELECT g, COUNT(*) AS n{i} FROM t GROUP BY g")
        assert kept._groups == sum(text.groups for text in kept._kept.values()) <= 25
        assert {*kept._plans} == {id(text.asking.plan) for text in kept._kept.values()}
    assert len(kept._kept) == 2
    monkeypatch.setattr(texts, "_GROUPS", 5)
    kept.asked(COUNT)
    assert COUNT not in kept._kept


def test_long_texts_make_room_for_others(monkeypatch):
    monkeypatch.setattr(texts, "_LETTERS", 250)
    kept = Texts(TABLES)
    asked = [
        f"SELECT COUNT(*) AS n FROM t WHERE g IN ({', '.join('1' * long)})" for long in (20, 21, 22, 1, 90)
    ]
    for text, left in zip(asked, ([0], [0, 1], [1, 2], [1, 2, 3], []), strict=True):
        kept.asked(text)
        assert [*kept._kept] == [asked[place] for place in left]
        assert kept._letters == sum(map(len, kept._kept)) <= 250
        assert {*kept._plans} == {id(text.asking.plan) for text in kept._kept.values()}


def test_threads_share_what_is_kept():
    kept = Texts(TABLES)
    found = []
    asking = [threading.Thread(target=lambda: found.append(kept.asked(COUNT))) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len({one.plan.recipe.measured.fingerprint for one in found}) == 1
    assert kept._groups == 10


def test_sessions_keep_no_plans_of_each_other():
    one, other = (sf.Session(TABLE, budget=sf.Budget(1)) for _ in range(2))
    assert one.sql(COUNT)._asking is one.sql(COUNT)._asking
    assert one.sql(COUNT)._asking is not other.sql(COUNT)._asking
    assert one.as_analyst("ada").sql(COUNT)._asking is not one.sql(COUNT)._asking


def test_a_quote_on_the_same_terms_is_made_once():
    session = sf.Session(TABLE, budget=sf.Budget(9, "1e-3"))
    quotes = [
        session.sql(COUNT)._quoted(session.sql(COUNT)._asking.plan, Terms.of(epsilon))
        for epsilon in ("0.1", "0.2", "0.1")
    ]
    assert quotes[0] is quotes[2] is not quotes[1]
    other = sf.Session(TABLE, budget=sf.Budget(9, "1e-3"))
    for terms in ({"epsilon": "0.1"}, {"epsilon": "0.2", "delta": 0}, {"error": {"n": 30}}):
        for _ in range(2):
            quote = session.sql(COUNT).quote(**terms)
            assert str(quote) == str(other.sql(COUNT).quote(**terms))
            assert quote.loss == other.sql(COUNT).quote(**terms).loss


def test_the_quotes_of_a_text_are_few_and_go_with_it(monkeypatch):
    monkeypatch.setattr(texts, "_QUOTES", 2)
    kept, made = Texts(TABLES), iter(range(100))
    plan = kept.asked(COUNT).plan
    for terms in range(5):
        assert kept.quoted(plan, terms, lambda: next(made)) == terms
        assert len(kept._kept[COUNT].quotes) <= 2
    monkeypatch.setattr(texts, "_MOST", 0)
    kept.asked("SELECT COUNT(*) AS n FROM t")
    assert not kept._plans
    assert [kept.quoted(plan, 4, lambda: next(made)) for _ in range(2)] == [5, 6]
