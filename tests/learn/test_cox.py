"""Cox's model: near the partial likelihood's own estimate, total on odd tables, and planted bugs are seen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, InvalidValue, NotCertified
from sfumato.learn import CoxRegression, load, save
from sfumato.learn.examples import Example, Given
from sfumato.learn.survival import _steps, cox
from sfumato.random import simulation
from sfumato.testing import seeded
from sfumato.testing.fits import check_pair
from sfumato.testing.mutants.fits import planted

SURE = {"epsilon": 10**6, "delta": 1e-6}
SLOPES = np.array([0.8, -1.0, 0.5])


def people(seed, size, *, power=1.0):
    """Columns, durations and events; the hazard of time t grows with t to the power − 1."""
    chance = simulation(seed)
    X = np.column_stack(
        [
            chance.integers(0, 2, size),
            chance.uniform(-1, 1, size),
            np.clip(chance.normal(0, 0.6, size), -2, 2),
        ]
    )
    time = 6 * (chance.exponential(size=size) / np.exp(X @ SLOPES)) ** (1 / power)
    left = np.minimum(chance.exponential(15, size), chance.uniform(4, 12, size))
    return X, np.minimum(time, left), time <= left


def partial_likelihood(X, time, event):
    """Cox's own estimate, by Newton's steps over every risk set."""
    order = np.argsort(-time, kind="stable")
    X, event, weights = X[order], event[order], np.zeros(X.shape[1])
    for _ in range(8):
        risk = np.exp(X @ weights)
        total = np.cumsum(risk)
        mean = np.cumsum(risk[:, None] * X, axis=0) / total[:, None]
        square = np.cumsum(risk[:, None, None] * X[:, :, None] * X[:, None, :], axis=0)
        bent = square / total[:, None, None] - mean[:, :, None] * mean[:, None, :]
        weights = weights + np.linalg.solve(bent[event].sum(axis=0), (X - mean)[event].sum(axis=0))
    return weights


BOUNDS = {"x0": (0, 1), "x1": (-1, 1), "x2": (-2, 2)}


@pytest.mark.parametrize("power", [0.7, 1.0, 1.6])
def test_without_noise_it_is_near_the_partial_likelihoods_estimate(power):
    X, time, event = people(1, 3000, power=power)
    seen, happened = np.minimum(time, 10), event & (time <= 10)
    with seeded(0):
        model = CoxRegression(**SURE, bounds=([0, -1, -2], [1, 1, 2]), horizon=10).fit(X, (time, event))
    expected = partial_likelihood(X, seen, happened)
    assert model.coef_ == pytest.approx(expected, abs=0.02)
    assert model.hazard_ratios_ == pytest.approx(np.exp(model.coef_))
    assert model.centre_ == pytest.approx(X.mean(axis=0), abs=0.01)
    assert model.events_ == pytest.approx(happened.sum(), abs=1)
    middle = model.centre_[None]
    truth = np.exp(-((np.array([2, 5, 9]) / 6) ** power) * np.exp(middle[0] @ SLOPES))
    assert model.predict_survival(middle, [2, 5, 9])[0] == pytest.approx(truth, abs=0.05)
    total = np.sum(model.baseline_hazard_ * np.diff(model.times_, prepend=0))
    assert model.predict_survival(middle, 10)[0, 0] == pytest.approx(np.exp(-total), rel=1e-3)
    assert model.concordance(X, (time, event)) == pytest.approx(
        slow_concordance(X @ expected, time, event), abs=0.01
    )


def slow_concordance(risk, time, event):
    before = event[:, None] & ((time[:, None] < time) | ((time[:, None] == time) & ~event))
    right = (risk[:, None] > risk) + (risk[:, None] == risk) / 2
    return right[before].mean()


def test_concordance_is_that_of_all_pairs():
    X, time, event = people(2, 200)
    time, X = np.round(time), np.round(X, 1)  # ties of both
    model = CoxRegression(epsilon=5, delta=1e-6, bounds=(-2, 2), horizon=10).fit(X, (time, event))
    found = model.concordance(X, (time, event))
    assert found == pytest.approx(slow_concordance(model.predict_risk(X), time, event))
    assert model.concordance(X, (time, np.zeros(200))) == 0.5


def test_at_an_ordinary_price_it_learns_the_hazard_ratios():
    X, time, event = people(3, 10_000)
    with seeded(1):
        model = CoxRegression(epsilon=1, delta=1e-6, bounds=(-2, 2), horizon=10).fit(X, (time, event))
    assert model.coef_ == pytest.approx(SLOPES, abs=0.3)
    with pytest.raises(NotCertified, match="No intervals for hazard ratios"):
        model.confidence_intervals()


def test_rare_columns_and_far_rows_do_not_lead_steps_astray():
    chance = simulation(7)
    far = np.clip(0.05 * chance.standard_t(2, 4000), -1, 1)
    X = np.column_stack([chance.random((4000, 3)) < [0.5, 0.02, 0.1], far])
    time = 5 * chance.exponential(size=4000) / np.exp(X @ [1.0, 1.5, -1.0, 4.0])
    event = chance.random(4000) < 0.7
    expected = partial_likelihood(X, np.minimum(time, 10), event & (time <= 10))
    for epsilon, off in ((5, 0.5), (SURE["epsilon"], 0.1)):
        model = CoxRegression(epsilon=epsilon, delta=1e-6, bounds=(-1, 1), horizon=10)
        with seeded(3):
            model.fit(X, (time, event))
        assert model.coef_ == pytest.approx(expected, abs=off)


ODD = {
    "nobody": ([], []),
    "one": ([1.0], [1]),
    "no events": ([1.0, 2.0, 99.0], [0, 0, 0]),
    "all at time 0": ([0.0] * 20, [1] * 20),
    "all left at time 0": ([0.0] * 20, [0] * 20),
    "before 0": ([-5.0, 3.0], [1, 1]),
    "all beyond the horizon": ([50.0] * 20, [1] * 20),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("epsilon", [1e-3, 1, 10**6])
def test_odd_tables_give_a_model(name, epsilon):
    time, event = ODD[name]
    frame = pa.table({"x": pa.array([0.5] * len(time), pa.float64()), "sex": pa.array(["f"] * len(time))})
    model = CoxRegression(
        epsilon=epsilon, delta=1e-6, bounds={"x": (0, 1), "sex": ["f", "m"]}, horizon=4, bins=3
    )
    model.fit(frame, (np.array(time), np.array(event)))
    shown = model.predict_survival(pa.table({"x": [0.0, 1.0], "sex": ["f", "m"]}), [0, 1, 4])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.baseline_hazard_).all()
    assert ((shown >= 0) & (shown <= 1)).all()
    assert (np.diff(shown, axis=1) <= 0).all()


def test_categories_are_compared_with_the_first():
    X, time, event = people(4, 4000)
    frame = pa.table({"arm": np.where(X[:, 0] == 1, "new", "old"), "x1": X[:, 1], "x2": X[:, 2]})
    bounds = {"arm": ["old", "new"], "x1": (-1, 1), "x2": (-2, 2)}
    with seeded(2):
        model = CoxRegression(**SURE, bounds=bounds, horizon=10).fit(frame, (time, event))
    expected = partial_likelihood(X, np.minimum(time, 10), event & (time <= 10))
    assert model.coefficient_names_ == ["arm=old", "arm=new", "x1", "x2"]
    assert model.hazard_ratios_[0] == 1
    assert np.log(model.hazard_ratios_[1:]) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({}, ([1.0], [1]), "Say what the times are"),
        ({"horizon": 5, "bins": 0}, ([1.0], [1]), "bins must be"),
        ({"horizon": 5, "bounds": None}, ([1.0], [1]), "bounds"),
    ],
)
def test_bad_declarations_are_refused(options, y, words):
    with pytest.raises(InvalidParameter, match=words):
        CoxRegression(**{"epsilon": 1, "delta": 1e-6, "bounds": (0, 1), **options}).fit([[0.5]], y)


def test_a_model_goes_through_a_file(tmp_path):
    X, time, event = people(5, 300)
    model = CoxRegression(epsilon=1, delta=1e-6, bounds=(-2, 2), times=[1, 4, 9]).fit(X, (time, event))
    save(model, tmp_path / "cox.json")
    again = load(tmp_path / "cox.json")
    assert again.predict_survival(X, [0.5, 9]).tolist() == model.predict_survival(X, [0.5, 9]).tolist()
    with pytest.raises(InvalidParameter, match="horizon"):
        model.predict_survival(X, 9.1)
    with pytest.raises(InvalidValue, match="one duration"):
        model.concordance(X, (time[1:], event[1:]))


@pytest.mark.parametrize("died", [sf.Int(0, 1), sf.Bool()])
def test_a_session_pays_for_hazard_ratios(died):
    X, time, event = people(6, 4000)
    columns = {"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "years": time}
    table = sf.PrivateTable(
        "patients",
        source=pa.table(columns | {"died": event if isinstance(died, sf.Bool) else event.astype(int)}),
        unit=sf.PrivacyUnit.row(),
        schema={name: sf.Float(*ends) for name, ends in BOUNDS.items()}
        | {"years": sf.Float(0, 30), "died": died},
    )
    session = sf.Session(table, budget=sf.Budget(epsilon=20, delta=1e-5))
    model = CoxRegression(epsilon=8, delta=1e-6, horizon=10)
    text, target = "SELECT x0, x1, x2, years, died FROM patients", ("years", "died")
    assert "CoxRegression" in str(model.quote(session, text, target=target))
    with seeded(1):
        model.fit(session, text, target=target)
    assert model.receipt is not None
    assert model.coef_ == pytest.approx(SLOPES, abs=0.25)
    with pytest.raises(InvalidParameter, match="Name both"):
        model.fit(session, text, target="years")


def test_an_event_of_words_is_refused_before_the_debit():
    table = sf.PrivateTable(
        "patients",
        source=pa.table({"x": [0.5], "years": [1.0], "died": ["yes"]}),
        unit=sf.PrivacyUnit.row(),
        schema={"x": sf.Float(0, 1), "years": sf.Float(0, 30), "died": sf.Enum("no", "yes")},
    )
    session = sf.Session(table, budget=sf.Budget(epsilon=2, delta=1e-5))
    model = CoxRegression(epsilon=1, delta=1e-6, horizon=10)
    with pytest.raises(InvalidParameter, match="'died' must be a truth value"):
        model.fit(session, "patients", target=("years", "died"))


def pairs():
    """Neighbours of all kinds: one unit more, of one row or many, early or late, with an event or not."""
    for seed in range(12):
        chance = simulation(seed)
        size, more = int(chance.integers(0, 60)), int(chance.integers(1, 6))
        X, time, event = people(100 + seed, size)
        far = chance.choice([-2.0, 0.0, 2.0], (more, 3))
        late, died = chance.choice([0.0, 0.1, 3.0, 9.9, 10.0, 50.0], more), chance.integers(0, 2, more)
        whose = np.append(np.arange(size), [size] * more)
        many = bool(seed % 2)
        if not many:
            far, late, died, whose = far[:1], late[:1], died[:1], whose[: size + 1]
        epsilon = float(chance.choice([0.5, 4.0, 1000.0]))
        yield Example(
            f"seed {seed}",
            lambda epsilon=epsilon: CoxRegression(
                epsilon=epsilon, delta="1e-5", bounds=(-2, 2), horizon=10, bins=5
            ),
            Given(X, (time, event), units=whose[:size] if many else None),
            Given(
                np.vstack([X, far]),
                (np.append(time, late), np.append(event, died)),
                units=whose if many else None,
            ),
        )


@pytest.mark.parametrize(
    "example", [each for each in pairs() if len(each.left.X)], ids=lambda each: each.name
)
def test_questions_keep_their_claims_on_neighbours_of_all_kinds(example):
    model, left = example.rows("left")
    other, right = example.rows("right")
    check_pair(model, left, other, right)
    check_pair(other, right, model, left)


GRADIENT, COUNTED, CUT = _steps._gradient, _steps._counted, _steps.cut


def _by_true_count(rows, meter, cells):
    curve, people, _ = COUNTED(rows, meter, cells)
    return curve, people, float(len(rows) + 1)


def _but_the_baseline(rows, lines, width, bound, bits):
    split = width - _steps.TERMS
    first = CUT(rows, lambda *given: lines(*given)[:, :split], split, bound, bits)
    second = CUT(rows, lambda *given: lines(*given)[:, split:], _steps.TERMS, 1000, bits)
    return first._replace(values=np.concatenate([first.values, second.values]))


def _events_that_weigh_twice(*given):
    honest = GRADIENT(*given)
    return honest._replace(sensitivity=honest.sensitivity / 2)


def kept(example):
    """Whether an example keeps its claims, for each of a few draws of noise."""
    model, left = example.rows("left")
    other, right = example.rows("right")
    for seed in range(6):
        with seeded(seed):
            try:
                check_pair(model, left, other, right)
                check_pair(other, right, model, left)
            except AssertionError:
                return False
    return True


@pytest.mark.parametrize(
    ("name", "bug"),
    [("_counted", _by_true_count), ("cut", _but_the_baseline), ("_gradient", _events_that_weigh_twice)],
)
def test_a_planted_bug_is_seen(monkeypatch, name, bug):
    """The true number of rows for a noisy one; the baseline's terms not cut; a gradient that claims half."""
    monkeypatch.setattr(_steps, name, bug)
    assert not any(map(kept, cox.examples()))


@pytest.mark.parametrize("bug", ["no clipping", "a bound that is used twice"])
def test_a_bug_in_the_cut_is_seen(bug):
    with planted(bug, CoxRegression):
        assert not any(map(kept, cox.examples()))
