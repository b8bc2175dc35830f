"""Choosing on a session: one debit before any row is read, parts by each unit, planted bugs that are seen."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import sfumato as sf
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidParameter, UnsupportedLoss
from sfumato.fits.meter import Meter, price
from sfumato.games import RandomStopping
from sfumato.learn import LogisticRegression, MinMaxScaler, OneHotEncoder, Pipeline, Ridge, folds
from sfumato.learn._choosing import trials
from sfumato.learn._core import paying
from sfumato.learn.folds import cross_val_quote, cross_val_score
from sfumato.learn.search import HoldoutSearch, RandomSearch
from sfumato.loss import ApproximateLoss, GaussianLoss, ParallelLoss, RenyiLoss
from sfumato.session.vault import Vault
from sfumato.testing import seeded

SCHEMA = {"age": sf.Int(17, 90), "pay": sf.Float(0, 100), "sex": sf.Enum("F", "M"), "rich": sf.Bool()}
TYPES = {
    "id": pa.int64(),
    "age": pa.int64(),
    "pay": pa.float64(),
    "sex": pa.string(),
    "rich": pa.bool_(),
}
TEXT = "SELECT age, sex, pay FROM people"
PAID = {"epsilon": 1, "delta": "1e-6"}
ALPHAS = {"alpha": [0, 10]}


def rows_of(seed=0, size=60):
    draws = random.Random(seed)
    return [
        {
            "id": draws.randrange(size // 3),
            "age": draws.choice([17, 30, 64, 90, 200, None]),
            "pay": draws.choice([0.0, 33.3, 70.0, 1e9, None]),
            "sex": draws.choice(["F", "M", "none", None]),
            "rich": draws.choice([True, False, None]),
        }
        for _ in range(size)
    ]


def session_of(rows=None, unit=None, budget=None):
    rows = rows_of() if rows is None else rows
    held = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
    people = sf.PrivateTable("people", source=held, unit=unit or sf.PrivacyUnit.row(), schema=SCHEMA)
    return sf.Session(people, budget=budget or sf.Budget(100, "0.01"))


def by_search(kind, **more):
    def choose(session, **given):
        return kind(Ridge(), ALPHAS, **PAID | more | given).fit(session, TEXT, target="pay")

    return choose


def by_folds(session, **given):
    return cross_val_score(Ridge(), session, TEXT, target="pay", folds=3, **PAID | given)


WAYS = {
    "random": by_search(RandomSearch, gamma="0.5"),
    "holdout": by_search(HoldoutSearch),
    "folds": by_folds,
}
ALL = pytest.mark.parametrize("choose", WAYS.values(), ids=WAYS)
SEARCHES = pytest.mark.parametrize("kind", [RandomSearch, HoldoutSearch])


def spent(session):
    return session.balance().spent, session.balance().spent_delta


def numbers(found):
    """All that a choice released."""
    if not hasattr(found, "best_estimator_"):
        return [found.score, *found.scores]
    return [found.best_index_, found.best_score_, *np.ravel(found.best_estimator_.coef_)]


# ── one purchase


@ALL
def test_it_is_paid_once_before_it_is_read_and_free_again(choose, monkeypatch):
    read, rows = [], Vault.rows
    with session_of() as session:
        monkeypatch.setattr(Vault, "rows", lambda *given: read.append(spent(session)) or rows(*given))
        found = choose(session)
        assert read == [(1, Fraction("1e-6"))]
        assert spent(session) == (1, Fraction("1e-6"))
        (receipt,) = session.releases()
        assert receipt == found.receipt
        assert receipt.loss == found.loss
        for again in (choose(session), choose(session, epsilon="0.5")):
            assert numbers(again) == numbers(found)
            assert (again.receipt, again.loss) == (receipt, found.loss)
        assert len(read) == 1
        assert spent(session) == (1, Fraction("1e-6"))
        choose(session, epsilon=2)
        assert spent(session) == (3, Fraction("2e-6"))


@SEARCHES
def test_the_quote_is_what_is_paid(kind):
    with session_of(unit=sf.PrivacyUnit("id", max_rows=2)) as session:
        search = kind(Ridge(), ALPHAS, epsilon=1)
        quote = search.quote(session, TEXT, target="pay")
        told = " ".join(str(quote).split())
        assert "on people: epsilon 1, delta 0.0001 (a hundredth of the budget's) for all of it" in told
        assert "At most 2 rows of each unit are read." in told
        assert spent(session) == (0, 0)
        search.fit(session, TEXT, target="pay")
        assert spent(session) == (quote.epsilon, quote.delta) == (1, Fraction(1, 10_000))
        assert search.loss == quote.loss == search.receipt.loss == search.best_estimator_.loss
        assert search.best_estimator_.receipt == search.receipt
        assert search.receipt.memo["unnamed"] == "delta"
        assert str(search.receipt.memo["words"]) == f"{kind.__name__} of pay: {TEXT}"
        assert "on record" in clone(search).quote(session, TEXT, target="pay").note


def test_the_quote_of_folds_is_what_is_paid():
    with session_of() as session:
        quote = cross_val_quote(Ridge(), session, TEXT, target="pay", epsilon=1, folds=3)
        assert "cross_val_score of Ridge on people, from age and sex: epsilon 1" in str(quote)
        found = cross_val_score(Ridge(), session, TEXT, target="pay", epsilon=1, folds=3)
        assert spent(session) == (quote.epsilon, quote.delta)
        assert found.receipt.loss == found.loss == quote.loss
        with pytest.raises(InvalidParameter, match="on arrays"):
            cross_val_quote(Ridge(), None, TEXT, target="pay", epsilon=1)


def test_the_recorded_loss_is_that_of_the_theorem():
    with session_of() as session:
        found = by_search(RandomSearch, gamma="0.5")(session)
        curve = RandomStopping(found.run, "0.5").loss
        assert found.receipt.loss == RenyiLoss(curve.orders, curve.values, (1, "1e-6"))
        held = by_search(HoldoutSearch)(session).receipt.loss
        assert isinstance(held, ParallelLoss)
        assert held.approximate == (1, Fraction("1e-6"))
        assert by_folds(session).receipt.loss == sf.Gaussian(1, "1e-6", sensitivity=1).loss


def test_whatever_the_choice_depends_on_makes_it_another_one():
    choices = [
        lambda session: by_search(RandomSearch, gamma="0.5")(session),
        lambda session: by_search(RandomSearch, gamma="0.4")(session),
        lambda session: by_search(HoldoutSearch, holdout="0.3")(session),
        lambda session: by_search(HoldoutSearch)(session),
        lambda session: HoldoutSearch(Ridge(), {"alpha": [0, 11]}, **PAID).fit(session, TEXT, target="pay"),
        lambda session: HoldoutSearch(Ridge(bounds={"age": (0, 9)}), ALPHAS, **PAID).fit(
            session, TEXT, target="pay"
        ),
        lambda session: HoldoutSearch(Ridge(), ALPHAS, **PAID).fit(session, TEXT, target="age"),
        lambda session: by_folds(session),
        lambda session: cross_val_score(Ridge(), session, TEXT, target="pay", folds=4, **PAID),
        lambda session: Ridge(**PAID).fit(session, TEXT, target="pay"),
    ]
    with session_of() as session:
        for count, choose in enumerate(choices, start=1):
            choose(session)
            assert spent(session)[0] == count
        for choose in choices:
            choose(session)
        assert spent(session)[0] == len(choices)


@pytest.mark.parametrize(
    ("accountant", "refused"),
    [("basic", ()), ("rdp", ()), ("zcdp", ("random",)), ("gaussian", ("random", "holdout"))],
)
def test_budgets_pay_or_refuse_unread_what_they_cannot_add_up(accountant, refused, monkeypatch):
    read, rows = [], Vault.rows
    monkeypatch.setattr(Vault, "rows", lambda *given: read.append(1) or rows(*given))
    with session_of(budget=sf.Budget(9, "1e-4", accountant=accountant)) as session:
        for way, choose in WAYS.items():
            before = spent(session)
            if way in refused:
                with pytest.raises(UnsupportedLoss):
                    choose(session)
            else:
                choose(session)
            assert (spent(session) > before) == (way not in refused)
        assert 0 < session.balance().spent <= 9
        assert len(read) == 3 - len(refused)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-3"), (5, "1e-7"), (5, 0)])
def test_a_budget_that_cannot_pay_refuses_and_nothing_is_read(monkeypatch, epsilon, delta):
    monkeypatch.setattr(Vault, "rows", lambda *_: pytest.fail("read unpaid"))
    with session_of(budget=sf.Budget(epsilon, delta)) as session:
        for choose in WAYS.values():
            with pytest.raises(BudgetExceeded):
                choose(session)
        assert spent(session) == (0, 0)
        note = HoldoutSearch(Ridge(), ALPHAS, **PAID).quote(session, TEXT, target="pay").note
        assert "more than what is left" in note


REFUSED = [
    ({"epsilon": None}, TEXT, "pay", "may cost"),
    ({"holdout": 1}, TEXT, "pay", "between 0 and 1"),
    ({"scoring": "accuracy"}, TEXT, "pay", "one of"),
    ({"candidates": {"depth": [1]}}, TEXT, "pay", "no parameter"),
    ({"candidates": {"alpha": [0, -1]}}, TEXT, "pay", "alpha"),
    ({"estimator": Ridge(target_bounds="auto")}, TEXT, "pay", "target_bounds"),
    ({"estimator": LogisticRegression(), "candidates": [{}]}, TEXT, "pay", "classes"),
    ({"estimator": object()}, TEXT, "pay", r"sf\.learn"),
    ({}, "SELECT pay FROM people", "pay", "Nothing is left"),
    ({}, TEXT, None, "Say which column"),
    (
        {
            "estimator": Pipeline([("m", Ridge())]),
            "candidates": {"m": [Ridge(), Ridge(target_bounds=(0, 9))]},
        },
        TEXT,
        "pay",
        "same for all",
    ),
    (
        {
            "estimator": Pipeline([("s", MinMaxScaler()), ("m", Ridge())]),
            "candidates": {"s": [MinMaxScaler(), Ridge(target_bounds=(0, 1))]},
        },
        TEXT,
        "pay",
        "no step can follow",
    ),
]


@SEARCHES
def test_what_cannot_be_searched_is_refused_before_it_is_paid(monkeypatch, kind):
    monkeypatch.setattr(Vault, "rows", lambda *_: pytest.fail("read unpaid"))
    with session_of() as session:
        for given, text, target, said in REFUSED:
            search = kind(**{"estimator": Ridge(), "candidates": ALPHAS, **PAID, **given})
            for act in (search.fit, search.quote):
                with pytest.raises(InvalidParameter, match=said):
                    act(session, text, target=target)
            assert not hasattr(search, "best_estimator_")
        assert spent(session) == (0, 0)


def test_arrays_and_sessions_are_not_mixed_up():
    X, y = np.zeros((3, 1)), np.zeros(3)
    model = Ridge(bounds=(0, 1), target_bounds=(0, 1))
    with session_of() as session:
        for wrong in (
            lambda: HoldoutSearch(model, ALPHAS, **PAID).fit(session, TEXT, target="pay", units=[1]),
            lambda: HoldoutSearch(model, ALPHAS, **PAID).fit(X, y, target="pay"),
            lambda: HoldoutSearch(model, ALPHAS, **PAID).quote(X),
            lambda: cross_val_score(model, X, y, **PAID, parameters=[1]),
            lambda: cross_val_score(model, X, y, epsilon=1),
            lambda: cross_val_score(model, session, TEXT, target="pay", **PAID, units=[1]),
        ):
            with pytest.raises(InvalidParameter):
                wrong()
        assert spent(session) == (0, 0)


def test_what_fails_stays_paid_and_tells_nothing(monkeypatch):
    def failing(self, rows, meter):
        raise ZeroDivisionError(f"a row is {rows.integers[0]}")

    monkeypatch.setattr(Ridge, "_learn", failing)
    with session_of() as session:
        with pytest.raises(EngineFailed, match="could not be finished") as failed:
            by_search(HoldoutSearch)(session)
        assert failed.value.__context__ is None
        assert spent(session)[0] == 1


# ── the rows


SMALL = {
    "no row": [],
    "one row": rows_of()[:1],
    "no complete row": [row | {"pay": None} for row in rows_of()],
    "one class": [row | {"rich": True, "age": 30} for row in rows_of()],
}


@pytest.mark.parametrize("rows", SMALL)
@pytest.mark.parametrize("unit", [None, sf.PrivacyUnit("id", max_rows=3, adjacency="exchange")])
def test_whatever_the_rows_are_there_is_a_choice_and_a_price(rows, unit):
    with session_of(SMALL[rows], unit) as session:
        for count, choose in enumerate(WAYS.values(), start=1):
            choose(session)
            assert spent(session)[0] == count
        model = LogisticRegression()
        search = RandomSearch(model, [{}], **PAID, gamma="0.5", scoring="brier")
        search.fit(session, "SELECT age, sex, rich FROM people", target="rich")
        assert 0 <= search.best_score_ <= 1
        assert search.classes_.tolist() == [False, True]


@SEARCHES
def test_a_session_gives_the_records_of_arrays(kind, monkeypatch):
    seen = []

    def spied(self, between, records, terms):
        seen.append(records)
        return honest(self, between, records, terms)

    honest = kind._choose
    monkeypatch.setattr(kind, "_choose", spied)
    whole = [row for row in rows_of() if row["age"] is not None and row["pay"] is not None]
    frame = pa.table({"age": [float(row["age"]) for row in whole], "sex": [row["sex"] for row in whole]})
    bounds = {"age": (17, 90), "sex": ["F", "M"]}
    with session_of() as session:
        one = kind(Ridge(), ALPHAS, **PAID).fit(session, TEXT, target="pay")
    other = kind(Ridge(bounds=bounds, target_bounds=(0, 100)), ALPHAS, **PAID)
    other.fit(frame, [row["pay"] for row in whole])
    rows = [sorted(map(tuple, np.c_[records.rows().integers, records.target].tolist())) for records in seen]
    assert rows[0] == rows[1]
    assert one.best_estimator_.design_.to_dict() == other.best_estimator_.design_.to_dict()
    assert one.predict(frame).shape == (len(whole),)


def test_bought_bounds_and_pipelines_come_back_from_the_record():
    steps = Pipeline([("one", OneHotEncoder()), ("scale", MinMaxScaler()), ("model", Ridge())], bounds="auto")
    for model, key in ((Ridge(bounds="auto"), "alpha"), (steps, "model__alpha")):
        with session_of() as session:
            search = HoldoutSearch(model, {key: [0, 10]}, **PAID).fit(session, TEXT, target="pay")
            again = clone(search).fit(session, TEXT, target="pay")
            assert spent(session)[0] == 1
        frame = pa.table({"age": [20.0, 50.0], "sex": ["F", "M"]})
        assert set(search.best_estimator_.bounds_) == {"age"}
        assert again.best_estimator_.bounds_ == search.best_estimator_.bounds_
        assert again.best_estimator_.bounds_paid_ == search.best_estimator_.bounds_paid_
        assert again.predict(frame).tolist() == search.predict(frame).tolist()


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_noise_and_losses_are_those_of_the_tables_neighbours(adjacency, monkeypatch):
    moves = set()
    honest = Meter.noisy

    def spied(self, total, share):
        moves.add(self._moves)
        return honest(self, total, share)

    monkeypatch.setattr(Meter, "noisy", spied)
    with session_of(unit=sf.PrivacyUnit("id", max_rows=2, adjacency=adjacency)) as session:
        for choose in WAYS.values():
            found = choose(session)
            assert found.receipt.loss.approximate == (1, Fraction("1e-6"))
            assert found.receipt.loss.adjacency in (None, adjacency)
    assert moves == {2 if adjacency == "exchange" else 1}
    search = HoldoutSearch(Ridge(), ALPHAS, **PAID)
    terms = search._terms(exchange=True)
    assert search._loss(terms) == ApproximateLoss(1, "1e-6")
    assert search._scoring_noise(terms).scale == 2 * search._scoring_noise(search._terms()).scale
    assert not search._selection(terms).mechanism.monotone
    assert search.selection.mechanism.monotone


# ── neighbours: one unit more, on both sides of its coin


class Told(Meter):
    """A meter that remembers its questions, and repeats answers that it is told."""

    asked: ClassVar[list] = []
    answers: ClassVar[list] = []

    def noisy(self, total, share):
        Told.asked.append((total, self.rho * Fraction(share)))
        if len(Told.answers) < len(Told.asked):
            Told.answers.append(super().noisy(total, share))
        return Told.answers[len(Told.asked) - 1].copy()


def of_unit(records, coins):
    """The coin of each row's unit, which can be told by its age: whoever else is there, it is the same."""
    return coins[records.column(0).astype(int)]


def check_neighbours(way, monkeypatch, toss=of_unit):
    """Leaves out a unit: with the same coins and answers, questions move by what they claim and cost."""
    everybody = [row | {"age": 17 + row["id"], "pay": row["pay"] or 5.0} for row in rows_of(4, 36)]
    left = everybody[0]["id"]
    fewer = [row for row in everybody if row["id"] != left]
    monkeypatch.setattr("sfumato.learn.search.Meter", Told)
    monkeypatch.setattr("sfumato.learn.folds.Meter", Told)
    monkeypatch.setattr(RandomStopping, "select", lambda self, run: run())  # one trial, whose price it is
    whole = RandomSearch(Ridge(), ALPHAS, **PAID, gamma="0.5").run if way == "trial" else price(1, "1e-6")
    met = set()
    for side in range(2):
        Told.answers.clear()
        asked, found = [], []
        for rows in (everybody, fewer):
            Told.asked.clear()
            coins = np.arange(91) % (2 if way == "trial" else 3)
            coins[17 + left] = side
            drawn = coins == 1 if way == "trial" else coins
            monkeypatch.setattr(trials, "_by_unit", lambda records, _, drawn=drawn: toss(records, drawn))
            # No row is cut: which ones would be is another session's own choice.
            with session_of(rows, sf.PrivacyUnit("id", max_rows=36)) as session, seeded("candidates"):
                choose = by_folds if way == "folds" else by_search(RandomSearch, gamma="0.5", holdout="0.5")
                found.append(numbers(choose(session)))
            asked.append(list(Told.asked))
        assert found[0] == found[1], "what is released depends on the data beyond the noisy answers"
        paid = Fraction(0)
        for place, ((one, rho), (other, also)) in enumerate(zip(*asked, strict=True)):
            assert (one.sensitivity, rho) == (other.sensitivity, also)
            moved = sum((int(a) - int(b)) ** 2 for a, b in zip(one.values, other.values, strict=True))
            assert moved <= one.sensitivity**2, "a question moves by more than it claims"
            if moved:
                met.add(place)
                paid += rho
        assert paid <= whole.rho, "the unit is in more questions than are paid for"
    assert len(met) > 1


@pytest.mark.parametrize("way", ["trial", "folds"])
def test_a_unit_meets_one_part_of_a_session_and_its_price_alone(way, monkeypatch):
    check_neighbours(way, monkeypatch)


def trained_and_scored(monkeypatch):
    """A score on the rows that the model has learned from, beside its fit."""
    honest = RandomSearch._trial

    def planted(self, at, model, scoring, learned, tested, fit, score):
        return honest(self, at, model, scoring, learned, learned, fit, score)

    monkeypatch.setattr(RandomSearch, "_trial", planted)


def dearer_folds(monkeypatch):
    """Each fold's fit costs as much as if the unit were in one of them."""
    monkeypatch.setattr(
        folds, "fold_prices", lambda rho, many: (GaussianLoss(rho * 4 / 5), GaussianLoss(rho / 5))
    )


@pytest.mark.parametrize(("way", "plant"), [("trial", trained_and_scored), ("folds", dearer_folds)])
def test_a_planted_bug_is_seen(way, plant, monkeypatch):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_neighbours(way, monkeypatch)


def test_rows_that_are_split_apart_from_their_unit_are_seen(monkeypatch):
    with pytest.raises(AssertionError):
        check_neighbours("trial", monkeypatch, toss=lambda records, coins: coins[np.arange(len(records))])


def test_a_search_that_pays_for_one_trial_alone_is_seen(monkeypatch):
    """Trials that are not counted: the price of a run in place of that of the best of a random number."""
    monkeypatch.setattr(
        RandomSearch, "_loss", lambda self, terms: sf.Gaussian(*terms[:2], sensitivity=1).loss
    )
    with pytest.raises(AssertionError):
        test_the_recorded_loss_is_that_of_the_theorem()


def test_a_search_that_is_paid_again_is_seen(monkeypatch):
    """A record that does not serve: each asking is another debit."""
    honest = paying.whole_purchase
    monkeypatch.setattr(
        paying,
        "whole_purchase",
        lambda *given, **more: replace(honest(*given, **more), choose=lambda kept: None),
    )
    with pytest.raises(AssertionError):
        test_it_is_paid_once_before_it_is_read_and_free_again(WAYS["holdout"], monkeypatch)
