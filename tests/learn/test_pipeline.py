"""Pipelines: one price that is split, bounds that follow, one purchase, and nothing learned unpaid."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.preprocessing as theirs
from sklearn.base import clone
from sklearn.pipeline import Pipeline as Chain

import sfumato as sf
from sfumato import learn
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Following, Number, declared, number
from sfumato.learn._core.rows import Rows
from sfumato.learn._steps.features import Source, features_of
from sfumato.learn._steps.splitting import shares_of
from sfumato.learn._steps.spreads import spreads
from sfumato.learn.examples import Example, Given
from sfumato.loss import NO_LOSS, GaussianLoss
from sfumato.testing.fits import check_fit

PRICE = {"epsilon": 1, "delta": "1e-6"}
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(40, 10, 3000), RNG.exponential(3, 3000)])
Y = (X[:, 0] / 10 - X[:, 1] / 3 + RNG.normal(0, 1, 3000) > 3).astype(int)


def model():
    return learn.LogisticRegression(classes=[0, 1])


STEPS = {
    "scaled": lambda: [("scale", learn.StandardScaler(bounds=(0, 200)))],
    "quantiles": lambda: [("even", learn.QuantileTransformer(bounds=(0, 200), cells=64))],
    "bins": lambda: [("bins", learn.KBinsDiscretizer(bounds=(0, 200), strategy="uniform", n_bins=8))],
    "three": lambda: [
        ("range", learn.MinMaxScaler(bounds=(0, 200))),
        ("skip", "passthrough"),
        ("log", theirs.FunctionTransformer(np.sqrt)),
        ("scale", learn.StandardScaler()),
    ],
    "none": lambda: [("range", learn.MinMaxScaler(bounds=(0, 200)))],
}


def pipe(name, **given):
    return learn.Pipeline([*STEPS[name](), ("model", model())], **{**PRICE, **given})


@pytest.mark.parametrize("name", STEPS)
def test_the_price_of_all_is_one_gaussian_and_the_parts_add_up_to_it(name):
    fitted = pipe(name).fit(X, Y)
    assert fitted.loss == model().set_params(**PRICE).loss
    assert fitted.score(X, Y) > 0.5
    parts = fitted.split_.parts
    assert sum(part.rho for part in parts) == fitted.loss.rho
    for part in parts:
        step = fitted[part.name]
        if isinstance(step, learn.LogisticRegression | learn.StandardScaler):
            assert step.loss == GaussianLoss(part.rho)
    assert str(fitted.quote()) == str(fitted.split_)
    assert "epsilon 1, delta 1e-06" in str(fitted.split_)


def test_weights_split_rho_and_not_epsilon():
    split = pipe("scaled", split={"scale": 1, "model": 3}).split_
    assert [part.share for part in split.parts] == [Fraction(1, 4), Fraction(3, 4)]
    assert sum(part.epsilon for part in split.parts) > 1
    assert shares_of(None, ["a", "b", "c"]) == {"a": Fraction(1, 6), "b": Fraction(1, 6), "c": Fraction(2, 3)}


def learners():
    """Pipelines of every kind of step, with neighbours that differ by somebody with many rows."""
    few = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.3]])
    more = np.vstack([few, np.ones((5, 2))])
    left, right = Given(few, [0, 1, 0], [0, 1, 2]), Given(more, [0, 1, 0, *[1] * 5], [0, 1, 2, *[3] * 5])
    for name in STEPS:

        def made(name=name):
            return pipe(name, bounds=None)

        yield Example(name, made, left, right)


@pytest.mark.parametrize("example", list(learners()), ids=lambda example: example.name)
def test_questions_of_all_steps_stay_within_their_claims(example):
    check_fit(example)


@pytest.mark.parametrize(
    "bug",
    [
        lambda self, rows, meter: {"sums": np.array([len(rows), 0.0, 0.0, 1.0, 1.0]), "noise": np.array(0.0)},
        lambda self, rows, meter: {
            "sums": meter._whole.noisy(spreads(rows, [0, 1]), 1),
            "noise": np.array(0.0),
        },
    ],
    ids=["a step reads rows unpaid", "a step takes the whole price"],
)
def test_a_planted_bug_is_seen(monkeypatch, bug):
    monkeypatch.setattr(learn.StandardScaler, "_learn", bug)
    with pytest.raises(Exception, match=r"depends on the data|more than the price|budget"):
        check_fit(next(example for example in learners() if example.name == "scaled"))


def test_bounds_follow_from_the_step_before():
    fitted = pipe("three").fit(X, Y)
    scale = fitted["scale"]
    assert scale.bounds is None
    assert [(float(column.lower), float(column.upper)) for column in scale.design_.columns] == [
        (0, 1),
        (0, 1),
    ]
    columns = fitted["model"].design_.columns
    assert {
        column.name: (float(column.lower), float(column.upper)) for column in columns
    } == scale.output_bounds_
    assert clone(fitted).get_params()["scale__bounds"] is None


def test_encoded_categories_weigh_as_one_column_and_pass_scalers():
    frame = pd.DataFrame({"sex": np.where(Y, "F", "M"), "age": X[:, 0]})
    steps = [
        ("hot", learn.OneHotEncoder(bounds={"sex": ["F", "M", "X"], "age": (0, 200)})),
        ("scale", learn.StandardScaler()),
        ("model", model()),
    ]
    fitted = learn.Pipeline(steps, **PRICE).fit(frame, Y)
    assert fitted["model"].design_.most == 3
    assert fitted["scale"].mean_[:3].tolist() == [0, 0, 0]
    assert fitted.score(frame, Y) > 0.9
    assert fitted[:-1].transform(frame)[:, :3].max() == 1
    assert isinstance(fitted[:-1], Chain)


def test_rows_of_a_step_are_looked_up_and_functions_see_none():
    seen = []

    def watched(matrix):
        seen.append(matrix)
        return matrix**2

    rows = learn.Pipeline([("model", model())], **PRICE, bounds=(0, 200))._rows(X, Y, None)
    features = features_of(rows.design)
    again = Source(rows).rows_of(rows.design, features)
    assert (again.integers == rows.integers).all()
    steps = [("square", theirs.FunctionTransformer(watched)), ("model", model())]
    learn.Pipeline(steps, **PRICE, bounds=(0, 200)).fit(X, Y)
    assert {len(matrix) for matrix in seen} <= {1, 2**13 + 1, 2**14 + 1}
    assert not any(np.isin(X[:50, 0], matrix).any() for matrix in seen)


def test_frames_and_arrays_name_steps_as_scikit_learn_does():
    frame = pd.DataFrame(X, columns=["a", "b"])
    for name in STEPS:
        fitted = pipe(name).fit(frame, Y)
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        assert fitted.n_features_in_ == 2
        fitted.predict_proba(frame)
        fitted = pipe(name).set_output(transform="pandas").fit(frame, Y)
        fitted.predict(frame)
        fitted = pipe(name).fit(X, Y)
        assert fitted.predict(X).shape == Y.shape
        assert not hasattr(fitted, "feature_names_in_")
    changed = fitted[:-1].set_output(transform="default").transform(X)
    assert changed.shape == X.shape


def test_a_pipeline_of_declarations_is_free():
    fitted = learn.Pipeline([("range", learn.MinMaxScaler(bounds=(0, 200)))]).fit(X)
    assert fitted.loss == NO_LOSS
    assert fitted.transform(X).max() <= 1
    assert fitted.fit_transform(X).shape == X.shape


def test_bounds_can_be_bought_for_the_first_step():
    fitted = learn.Pipeline(
        [("scale", learn.StandardScaler(bounds="auto")), ("model", model())], **PRICE
    ).fit(X, Y)
    assert fitted.bounds_paid_.share == Fraction(1, 10)
    assert set(fitted.bounds_) == {"x0", "x1"}
    assert all(isinstance(column, Number) for column in fitted["scale"].design_.columns)
    target = learn.LinearRegression(target_bounds="auto")
    fitted = learn.Pipeline([("range", learn.MinMaxScaler(bounds=(0, 200))), ("model", target)], **PRICE)
    fitted.fit(X, X[:, 0])
    assert fitted["model"].target_bounds_ == fitted.target_bounds_
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize(
    ("steps", "given", "words"),
    [
        (lambda: [("s", theirs.StandardScaler())], {}, "use sfumato.learn.StandardScaler"),
        (lambda: [("s", theirs.RobustScaler())], {}, "RobustScaler would learn from the rows without paying"),
        (lambda: [("s", theirs.Normalizer())], {}, "each number by itself"),
        (
            lambda: [("s", theirs.FunctionTransformer(lambda x: x - x.mean(axis=0)))],
            {},
            "each number by itself",
        ),
        (lambda: [("s", theirs.FunctionTransformer(np.sort))], {}, "each number by itself"),
        (lambda: [("s", theirs.FunctionTransformer(np.log))], {}, "NaN or infinity"),
        (lambda: [("s", theirs.FunctionTransformer(lambda x: x[:, :1]))], {}, "one column for each"),
        (lambda: [("s", theirs.FunctionTransformer(lambda x: x[:5]))], {}, "one row for each"),
        (lambda: [("s", learn.StandardScaler(epsilon=1))], {}, "epsilon of its own"),
        (lambda: [("s", learn.Moments())], {}, "no step can follow a Moments"),
        (lambda: [("s", learn.Pipeline([]))], {}, "put its steps in this one"),
        (lambda: [("s", learn.MinMaxScaler(bounds=(0, 9)))], {}, "leave one out"),
        (lambda: [("s", learn.StandardScaler())], {"split": {"s": 1}}, "nothing of 'model'"),
        (lambda: [("s", learn.MinMaxScaler())], {"split": {"s": 1, "model": 1}}, "costs anything"),
        (lambda: [("s", learn.StandardScaler())], {"split": {"s": 0, "model": 1}}, "split"),
        (lambda: [("s", learn.StandardScaler())], {"split": [1, 2]}, "weights by step"),
        (lambda: [("s", learn.MinMaxScaler()), ("t", learn.StandardScaler(bounds="auto"))], {}, "first step"),
        (lambda: [("s", learn.StandardScaler(clip=-1))], {}, "clip"),
        (lambda: [("s", learn.StandardScaler)], {}, "must be an estimator"),
        (list, {"bounds": None}, "Bounds are needed"),
        (list, {"epsilon": None}, "epsilon=1"),
    ],
)
def test_bad_declarations_are_refused_with_nothing_fitted(steps, given, words):
    refused = learn.Pipeline([*steps(), ("model", model())], **{**PRICE, "bounds": (0, 200), **given})
    with pytest.raises(InvalidParameter, match=words):
        refused.fit(X, Y)
    assert not hasattr(refused, "design_")
    assert not any(hasattr(step, "design_") for _, step in refused.steps)


def test_somebody_who_is_not_there_gives_a_model():
    made = pipe("scaled")
    rows = made._rows(X, Y, None)
    nobody = Rows(rows.design, rows.integers[:0], rows.target[:0])
    made._keep(rows.design, made._learn(nobody, Meter.alone(made._price())), made._price(), None)
    assert set(made.predict(X)) <= {0, 1}


@pytest.fixture
def session():
    held = pa.table({"age": X[:400, 0], "hours": X[:400, 1], "rich": Y[:400] == 1, "sex": ["F", "M"] * 200})
    schema = {"age": sf.Float(0, 200), "hours": sf.Float(0, 200), "rich": sf.Bool(), "sex": sf.Enum("F", "M")}
    people = sf.PrivateTable("people", source=held, unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(people, budget=sf.Budget(2, "1e-5")) as made:
        yield made


TEXT = "SELECT age, sex, rich FROM people"


def hot(**given):
    steps = [
        ("hot", learn.OneHotEncoder()),
        ("scale", learn.StandardScaler()),
        ("model", learn.LogisticRegression()),
    ]
    return learn.Pipeline(steps, **{**PRICE, **given})


def test_on_a_session_the_whole_is_one_purchase(session):
    made = hot()
    quote = made.quote(session, TEXT, target="rich")
    assert "epsilon 1" in str(quote)
    made.fit(session, TEXT, target="rich")
    assert made.receipt is not None
    assert made["model"].classes_.tolist() == [False, True]
    assert made["model"].receipt == made["scale"].receipt == made.receipt
    again = hot().fit(session, TEXT, target="rich")
    assert again.receipt == made.receipt
    assert again["model"].coef_.tolist() == made["model"].coef_.tolist()
    free = learn.Pipeline([("hot", learn.OneHotEncoder())]).fit(session, "SELECT age, sex FROM people")
    assert free.receipt is None
    assert free["hot"].get_feature_names_out().tolist() == ["age", "sex_F", "sex_M"]


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: hot(epsilon=50), BudgetExceeded),
        (lambda: hot(split={"scale": 1}), InvalidParameter),
        (
            lambda: learn.Pipeline([("scale", learn.StandardScaler()), ("model", model())], **PRICE),
            InvalidParameter,
        ),
    ],
    ids=["too dear", "a split that lacks a step", "categories where numbers go"],
)
def test_what_cannot_be_is_refused_before_the_debit(session, made, error):
    refused = made()
    with pytest.raises(error):
        refused.fit(session, TEXT, target="rich")
    assert not any(hasattr(step, "design_") for _, step in refused.steps)
    hot(epsilon="1.9").fit(session, TEXT, target="rich")  # all of the budget is still there


def test_rows_of_a_session_are_not_handed_out(session):
    changing = learn.Pipeline([("scale", learn.StandardScaler())], **PRICE)
    for ask in (changing.fit_transform, hot().fit_predict, learn.StandardScaler(**PRICE).fit_transform):
        with pytest.raises(InvalidParameter, match="not handed out"):
            ask(session, TEXT)


def test_a_pickled_pipeline_predicts_the_same():
    fitted = pipe("three").fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict_proba(X).tolist() == fitted.predict_proba(X).tolist()
    assert again.loss == fitted.loss


def test_a_delta_that_is_not_named_is_what_the_budget_spares(session):
    made = hot(delta=None)
    assert "delta" in str(made.quote(session, TEXT, target="rich"))
    made.fit(session, TEXT, target="rich")
    assert made.receipt is not None
    assert made.split_.rho == made.loss.rho


def test_columns_of_one_name_are_refused():
    # Bins of a column weigh as one: those of two columns of one name would weigh as one, too.
    for bounds in ((0, 1), {"a": (0, 1)}, "auto", Following([number("a", 0, 1)] * 2)):
        with pytest.raises(InvalidParameter, match="same name"):
            declared(bounds, ["a", "a"])
