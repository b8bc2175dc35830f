"""Choosing between models: prices, parts by each unit's coin, and planted bugs that are seen."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier

from sfumato.audit.registry import Subject, examined
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter, Total
from sfumato.games import RandomStopping
from sfumato.learn._choosing import scores, trials
from sfumato.learn._choosing.scores import goodness
from sfumato.learn._choosing.searching import Candidates
from sfumato.learn._core.design import UNIT
from sfumato.learn.examples import searches
from sfumato.learn.folds import SCORED, _scored, cross_val_score, fold_prices
from sfumato.learn.kinds import PrivateClassifier, PrivateRegressor
from sfumato.learn.linear import Ridge
from sfumato.learn.pipeline import Pipeline
from sfumato.learn.scaling import MinMaxScaler
from sfumato.learn.search import HoldoutSearch, RandomSearch
from sfumato.loss import GaussianLoss, RenyiLoss, compose
from sfumato.testing import seeded
from sfumato.testing.fits import _Recording

PAID = {"epsilon": 1, "delta": "1e-6"}


class Side(PrivateClassifier):
    """Says on which side of a cut a row's first number is: which class is there is learned."""

    def __init__(self, epsilon=None, delta=None, bounds=None, classes=None, cut=0.5, fit_intercept=True):
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.cut, self.fit_intercept = cut, fit_intercept

    def _learn(self, rows, meter):
        above = rows.integers[:, 0] > self.cut * UNIT
        whose = np.arange(len(rows)) if rows.units is None else rows.units
        signs = np.where(above == (rows.target == 1), 1, -1)
        people, first = np.unique(whose, return_index=True)
        total = Total(np.array([signs[first].sum() if len(people) else 0]), Fraction(1), Fraction(1))
        return {"sign": meter.noisy(total, 1)}

    def _set(self, learned):
        self._set_classes()
        self.sign_ = float(learned["sign"][0])

    def predict(self, X):
        above = self._coordinates(X)[:, 0] > self.cut
        return self.classes_[np.where(above == (self.sign_ > 0), 1, 0)]

    def predict_proba(self, X):
        right = (self.predict(X)[:, None] == self.classes_) * 0.5 + 0.25
        return np.asarray(right, np.float64)


class Level(PrivateRegressor):
    """Says the middle of the target's bounds, plus what is given."""

    def __init__(self, epsilon=None, delta=None, bounds=None, target_bounds=None, more=0.0):
        self.epsilon, self.delta, self.bounds, self.target_bounds = epsilon, delta, bounds, target_bounds
        self.more = more

    def _learn(self, rows, meter):
        return {"count": meter.noisy(Total(np.array([0]), Fraction(1), Fraction(1)), 1)}

    def _set(self, learned):
        column = self._target_column()
        self.level_ = float(column.lower + column.upper) / 2 + self.more

    def predict(self, X):
        return np.full(len(self._coordinates(X)), self.level_)


SIDE = Side(bounds=(0, 1), classes=["no", "yes"])


def people(seed=0, size=400, units=False):
    """Rows of which nine in ten are right with a cut at 0.3."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (size, 2))
    right = rng.uniform(0, 1, size) < 0.9
    y = np.where((X[:, 0] > 0.3) == right, "yes", "no")
    return X, y, rng.integers(0, 1 + size // 3, size) if units else None


# What a trial costs


@pytest.mark.parametrize(("epsilon", "gamma"), [(1, "0.1"), ("0.3", "0.5"), (4, "0.02")])
def test_the_price_of_a_random_search_is_that_of_the_theorem(epsilon, gamma):
    search = RandomSearch(SIDE, {"cut": [0.3, 0.6]}, epsilon=epsilon, delta="1e-6", gamma=gamma)
    stopping = RandomStopping(search.run, gamma)
    assert search.loss == RenyiLoss(stopping.loss.orders, stopping.loss.values, (epsilon, "1e-6"))
    assert search.loss.approximate == (Fraction(epsilon), Fraction("1e-6"))
    assert float(epsilon) * 0.99 < search.loss.epsilon("1e-6") <= float(epsilon)
    # By hand: at each order, for any other order.
    rho, ways = float(search.run.rho), -np.log(float(gamma))
    pulled = min(
        2 * (1 - 1 / m) * m * rho + 2 * ways / m for m in (1.25, 2, 4, 8, 16, 32, 64, 256, 1024, 4096)
    )
    for order in (2, 8, 64):
        assert search.loss.rdp(order) >= order * rho
        assert search.loss.rdp(order) <= order * rho + pulled + ways / (order - 1) + 1e-9
    assert "never shown" in str(search.quote())
    assert search.quote().loss == search.loss


def test_a_random_search_too_cheap_for_the_theorem_is_refused():
    with pytest.raises(InvalidParameter, match="raise epsilon"):
        RandomSearch(SIDE, {"cut": [0.3]}, epsilon="0.0001", delta="1e-9").fit(*people()[:2])


def test_the_price_of_a_holdout_search_is_the_dearer_part():
    search = HoldoutSearch(SIDE, {"cut": [0.3, 0.5, 0.7]}, **PAID)
    fits = compose([search.run] * 3)
    assert abs(fits.epsilon("1e-6") - 1) < 1e-9
    held = compose([search.selection.mechanism.loss, search._scoring_noise(search._terms()).loss])
    assert held.pure == 1
    for epsilon in (0.3, 1, 2):
        slow = max(fits.delta(epsilon), held.delta(epsilon))
        assert search.loss.delta(epsilon) == pytest.approx(slow, rel=1e-9)
    assert search.loss.epsilon("1e-6") <= 1
    assert "epsilon 0.5 each" in str(search.quote())


@pytest.mark.parametrize("folds", [2, 5, 100])
def test_a_unit_meets_all_fits_but_one_and_one_score(folds):
    rho = Fraction("0.02")
    fit, scored = fold_prices(rho, folds)
    assert compose([*[fit] * (folds - 1), scored]).rho == rho
    assert scored.rho == rho * SCORED


# What a trial does: on neighbours, with the same coins and the same noisy answers


def replay(units=False, *, trial, split):
    """A search's trial on a table and on the same with one more person, for both sides of their coin.

    In the part where the person is not, nothing may change; in the other, the questions keep their claims;
    and what is made of the same answers is the same.
    """
    X, y, whose = people(3, 60, units)
    rest = (whose != 0) if units else np.arange(60) != 59
    seen = set()
    for seed in range(12):
        model = trials.model_of(SIDE, {"cut": 0.3})
        told = None
        for kept in (np.ones(60, bool), rest):
            records = model._records(X[kept], y[kept], None if whose is None else -whose[kept])
            with seeded(seed):
                parts = split(records)
            meters = [
                _Recording(Meter.alone(GaussianLoss(1)), None if told is None else told[at].answers)
                for at in range(len(parts.meters))
            ]
            found = trial(records, parts, meters)
            if told is None:
                told, first, whole = meters, found, len(np.unique(-whose)) if units else 60
                side = parts.side(records, whole)
                seen.add(side)
                continue
            assert found == first, "what is released depends on the data beyond the noisy answers"
            for at, (mine, theirs) in enumerate(zip(told, meters, strict=True)):
                for (one, share), (other, same) in zip(mine.asked, theirs.asked, strict=True):
                    assert (share, one.sensitivity) == (same, other.sensitivity)
                    moved = sum((int(a) - int(b)) ** 2 for a, b in zip(one.values, other.values, strict=True))
                    allowed = one.sensitivity**2 if parts.meets(side, at) else 0
                    assert moved <= allowed, f"question {at} moves by more than it may"
    assert len(seen) > 1


class Halves:
    """One part to learn from, one to score on."""

    meters = ("fit", "score")

    def __init__(self, records):
        self.held = trials.held_out(records, Fraction(1, 2))

    def side(self, records, whole):
        return bool(self.held[-1 if records.units is None else int(np.argmax(records.units))])

    def meets(self, side, at):
        return side == (at == 1)


class Folds:
    """Three folds; each meter belongs to one, first of its fit, then of its score."""

    meters = tuple(range(6))

    def __init__(self, records):
        self.place = trials.folds_of(records, 3)

    def side(self, records, whole):
        return int(self.place[-1 if records.units is None else int(np.argmax(records.units))])

    def meets(self, side, at):
        return (side == at // 2) == (at % 2 == 1)


def one_trial(records, parts, meters):
    search = RandomSearch(SIDE, {"cut": [0.3]}, **PAID)
    model = trials.model_of(SIDE, {"cut": 0.3})
    learned, tested = records.taken(~parts.held), records.taken(parts.held)
    level, chosen = search._trial(0, model, "accuracy", learned, tested, *meters)
    return level, chosen.score, float(chosen.fitted.learned["sign"][0])


def all_folds(records, parts, meters):
    pairs = list(zip(meters[::2], meters[1::2], strict=True))
    return _scored(trials.model_of(SIDE, {}), records, parts.place, "accuracy", pairs).tolist()


CASES = pytest.mark.parametrize(("trial", "split"), [(one_trial, Halves), (all_folds, Folds)])


@CASES
@pytest.mark.parametrize("units", [False, True])
def test_a_unit_meets_the_part_that_its_coin_says_and_no_other(units, trial, split):
    replay(units, trial=trial, split=split)


def _by_place(records, draw):
    """The first rows are learned from, the last are not."""
    size = len(records)
    drawn = draw(size)
    return np.arange(size) >= size // 2 if drawn.dtype == bool else np.arange(size) * 3 // max(1, size)


def _half_a_unit(good, units):
    return good


def _exactly(total, share):
    return total.values * float(total.step)


@CASES
@pytest.mark.parametrize(
    ("home", "name", "bug", "units"),
    [
        (trials, "_by_unit", _by_place, False),
        (scores, "_by_unit", _half_a_unit, True),
        (trials, "_by_unit", lambda records, draw: draw(len(records)), True),
    ],
    ids=["split by the row's place", "rows are scored, not units", "rows are split, not units"],
)
def test_a_planted_split_is_seen(monkeypatch, trial, split, home, name, bug, units):
    monkeypatch.setattr(home, name, bug)
    with pytest.raises(AssertionError):
        replay(units, trial=trial, split=split)


def test_a_score_without_noise_is_seen(monkeypatch):
    honest = RandomSearch._trial

    def exact(self, at, model, scoring, learned, tested, fit, score):
        level, chosen = honest(self, at, model, scoring, learned, tested, fit, score)
        good, bad = goodness(model, tested, scoring).values
        return level, chosen._replace(score=good / max(1, good + bad))

    monkeypatch.setattr(RandomSearch, "_trial", exact)
    with pytest.raises(AssertionError, match="beyond the noisy answers"):
        replay(trial=one_trial, split=Halves)


def test_scoring_where_it_learned_is_seen():
    def same_part(records, parts, meters):
        search, model = RandomSearch(SIDE, {"cut": [0.3]}, **PAID), trials.model_of(SIDE, {"cut": 0.3})
        part = records.taken(~parts.held)
        level, chosen = search._trial(0, model, "accuracy", part, part, *meters)
        return level, chosen.score

    with pytest.raises(AssertionError, match="moves by more"):
        replay(trial=same_part, split=Halves)


# How many trials there are


def trial_counts(many=120, gamma="0.25"):
    """How many trials searches made."""
    search, counts = RandomSearch(SIDE, {"cut": [0.3]}, **PAID, gamma=gamma), []
    records = trials.model_of(SIDE, {})._records(*people(0, 4)[:2], None)

    class Counted(RandomSearch):
        def _trial(self, *_):
            counts[-1] += 1
            return 0.0, None

    counting = Counted(**search.get_params(deep=False))
    for _ in range(many):
        counts.append(0)
        counting._choose(Candidates(SIDE, ({"cut": 0.3},), "accuracy"), records, counting._terms())
    return counts


def stops_as_it_should(counts, gamma=0.25):
    """Whether the counts follow P(K > k) = (1 − gamma)^k, at a level of 1e-9 (DKW)."""
    counts = np.array(counts)
    width = np.sqrt(np.log(2e9) / (2 * len(counts)))
    ends = np.arange(0, 60)
    return np.abs((counts[:, None] > ends).mean(axis=0) - (1 - gamma) ** ends).max() <= width


def test_the_number_of_trials_is_geometric_and_a_fixed_one_is_seen(monkeypatch):
    assert stops_as_it_should(trial_counts())

    def fixed(self, run):
        return max((run() for _ in range(4)), key=lambda scored: scored[0])

    monkeypatch.setattr(RandomStopping, "select", fixed)
    assert not stops_as_it_should(trial_counts())


def test_a_cap_on_the_trials_is_seen(monkeypatch):
    def capped(self, run):
        best = run()
        for _ in range(2):
            best = max(best, run(), key=lambda scored: scored[0])
        return best

    monkeypatch.setattr(RandomStopping, "select", capped)
    assert not stops_as_it_should(trial_counts())


# Scores


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scoring", ["accuracy", "brier"])
def test_nobody_moves_a_score_by_more_than_one(seed, scoring):
    X, y, whose = people(seed, 40, units=seed % 2 == 0)
    model = Side(1, "1e-6", (0, 1), ["no", "yes"], cut=0.3).fit(X, y)
    whole = goodness(model, model._records(X, y, whose), scoring)
    assert whole.sensitivity == UNIT
    for unit in range(40) if whose is None else np.unique(whose):
        kept = (np.arange(40) if whose is None else whose) != unit
        fewer = goodness(
            model, model._records(X[kept], y[kept], None if whose is None else whose[kept]), scoring
        )
        good, bad = (int(a) - int(b) for a, b in zip(whole.values, fewer.values, strict=True))
        assert good >= 0
        assert bad >= 0
        assert good + bad == UNIT


def test_scores_are_those_of_slow_arithmetic():
    X, y, _ = people(5, 3000)
    model = Side(9, "1e-6", (0, 1), ["no", "yes"], cut=0.3).fit(X, y)
    right = int((model.predict(X) == y).sum())
    assert goodness(model, model._records(X, y, None), "accuracy").values.tolist() == [
        right * UNIT,
        (3000 - right) * UNIT,
    ]
    good = goodness(model, model._records(X, y, None), "brier").values[0] / UNIT / 3000
    said = model.predict_proba(X)
    assert good == pytest.approx(
        1 - ((said - (y[:, None] == model.classes_)) ** 2).sum(1).mean() / 2, abs=1e-3
    )
    target = np.linspace(-1, 3, 3000)
    level = Level(1, "1e-6", (0, 1), (-2, 2), more=0.5).fit(X, target)
    good = goodness(level, level._records(X, target, None), "squared_error").values[0] / UNIT / 3000
    assert good == pytest.approx(1 - np.mean((np.clip(target, -2, 2) - 0.5) ** 2) / 16, abs=1e-3)


def test_what_is_said_of_a_row_does_not_depend_on_those_beside_it():
    X, y, _ = people(1, 2000)

    class Placed(Side):
        """Answers by the shape of what it is asked."""

        def predict(self, X):
            return self.classes_[np.full(len(self._coordinates(X)), len(self._coordinates(X)) % 2)]

    model = Placed(1, "1e-6", (0, 1), ["no", "yes"]).fit(X, y)
    for size in (1, 2, 3, 1999, 2000):
        said = scores._said(model.predict, model._records(X[:size], y[:size], None), ())
        assert set(said.tolist()) == {"no"}


# The searches as they are used


@pytest.mark.parametrize("kind", [RandomSearch, HoldoutSearch])
@pytest.mark.parametrize("units", [False, True])
def test_a_search_finds_the_better_candidate(kind, units):
    X, y, whose = people(2, 4000, units)
    rule = {"gamma": "0.05"} if kind is RandomSearch else {}
    search = clone(kind(SIDE, {"cut": [0.3, 0.95]}, epsilon=4, delta="1e-6", **rule))
    assert is_classifier(search)
    with seeded(2):
        search.fit(X, y, units=whose)
    assert search.best_params_ == {"cut": 0.3}
    assert search.best_index_ == 0
    assert abs(search.best_score_ - 0.9) < 0.1
    assert (search.predict(X) == search.best_estimator_.predict(X)).all()
    assert search.predict_proba(X).shape == (4000, 2)
    assert search.score(X, y) > 0.85
    assert search.classes_.tolist() == ["no", "yes"]
    assert search.best_estimator_.loss == search.loss
    assert not hasattr(search, "decision_function")
    assert not any("trial" in name or "cv_" in name for name in vars(search))


def test_searches_over_frames_with_bought_bounds():
    X, y, _ = people(4, 600)
    frame = pa.table({"a": X[:, 0], "b": np.where(X[:, 1] > 0.5, "u", "v")})
    model = Side(bounds={"a": "auto", "b": ["u", "v"]}, classes=["no", "yes"])
    search = HoldoutSearch(model, [{"cut": 0.3}, {"cut": 0.5, "fit_intercept": False}], **PAID).fit(frame, y)
    assert set(search.best_estimator_.bounds_) == {"a"}
    assert search.predict(frame).shape == (600,)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("kind", [RandomSearch, HoldoutSearch])
def test_an_empty_part_is_no_error(kind, size):
    X, y, _ = people(0, size)
    for seed in range(4):
        with seeded(seed):
            search = kind(SIDE, {"cut": [0.3]}, **PAID, holdout="0.5", scoring="brier").fit(X, y)
        assert 0 <= search.best_score_ <= 1


def test_regressors_are_searched_by_squared_error():
    X, _, _ = people(0, 500)
    search = HoldoutSearch(
        Level(bounds=(0, 1), target_bounds=(0, 1)), {"more": [0, 0.5]}, epsilon=9, delta="1e-6"
    )
    assert search.fit(X, np.full(500, 0.5)).best_params_ == {"more": 0}
    assert search.best_score_ > 0.9


def test_cross_validation_tells_how_good_a_model_is():
    X, y, whose = people(6, 4000, units=True)
    with seeded(3):
        found = cross_val_score(
            Side(bounds=(0, 1), classes=["no", "yes"], cut=0.3), X, y, **PAID, units=whose
        )
    assert found.scores.shape == (5,)
    assert abs(found.score - 0.9) < 0.15
    assert found.noise < 0.1
    assert found.loss.epsilon("1e-6") <= 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"candidates": {"cut": 0.3}}, "dictionary of lists"),
        ({"candidates": []}, "combinations"),
        ({"candidates": {"cut": []}}, "combinations"),
        ({"candidates": {"epsilon": [1]}}, "same for all"),
        ({"candidates": {"model__classes": [["no", "yes"]]}}, "same for all"),
        ({"candidates": {"depth": [1]}}, "no parameter 'depth'"),
        ({"epsilon": None}, "whole search"),
        ({"holdout": 1}, "between 0 and 1"),
        ({"scoring": "roc"}, "one of"),
        ({"estimator": object()}, r"sf\.learn"),
        ({"estimator": Level(bounds=(0, 1), target_bounds="auto")}, "target_bounds"),
    ],
)
@pytest.mark.parametrize("kind", [RandomSearch, HoldoutSearch])
def test_what_cannot_be_searched_is_refused_before_rows_are_read(kind, given, said):
    asked = {"estimator": SIDE, "candidates": {"cut": [0.3]}, **PAID, **given}
    with pytest.raises(InvalidParameter, match=said):
        kind(**asked).fit(None, None)


def test_a_model_that_predicts_nothing_is_not_scored():
    from sfumato.learn import Moments

    with pytest.raises(InvalidParameter, match="scored"):
        cross_val_score(Moments(bounds=(0, 1)), np.zeros((2, 1)), **PAID)
    with pytest.raises(InvalidParameter, match="folds"):
        cross_val_score(SIDE, np.zeros((2, 1)), **PAID, folds=1)


@pytest.mark.stats
@pytest.mark.parametrize("search", searches(), ids=lambda search: search.name)
def test_samples_break_no_claim_of_a_search(search):
    subject = Subject(search.name, "fit", lambda: (search.loss, search.draw))
    with seeded(search.name):
        found = examined(subject, samples=500, share=1 - 1e-9)
    assert all(finding.verdict != "broken" for finding in found)


def test_how_many_trials_there_were_shows_nowhere(monkeypatch):
    rows, target = np.linspace(0, 1, 20)[:, None], np.linspace(0, 1, 20)
    made, seen, learn = list[int](), set(), Ridge._learn

    def counted(self, rows, meter):
        made.append(1)
        warnings.warn("a fact about a trial", stacklevel=1)
        return learn(self, rows, meter)

    monkeypatch.setattr(Ridge, "_learn", counted)
    numbers = set()
    for seed in range(6):
        model = Ridge(bounds=(0, 1), target_bounds=(0, 1))
        steps = Pipeline([("scale", MinMaxScaler(bounds=(0, 1))), ("model", Ridge(target_bounds=(0, 1)))])
        for one, key in ((model, "alpha"), (steps, "model__alpha")):
            made.clear()
            search = RandomSearch(one, {key: [0, 1]}, 50, "1e-3", gamma="0.3")
            with seeded(seed), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                search.fit(rows, target)
            numbers.add(len(made))
            again = pickle.loads(pickle.dumps(search.best_estimator_))
            parts = [search.best_estimator_, again, one, *(step for _, step in getattr(one, "steps", []))]
            counts = [part._copy for part in parts], [getattr(part._lineage, "copies", 0) for part in parts]
            seen.add((key, str(counts), len(told)))
    assert len(numbers) > 2
    assert len(seen) == 2
