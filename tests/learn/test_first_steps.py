"""What a newcomer does with a model: looks at it, hands in the wrong thing, and reads one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter, InvalidValue, NotCertified
from sfumato.learn.examples import examples

DRAW = np.random.default_rng(0)
X = pd.DataFrame({"age": DRAW.uniform(0, 100, 60), "sex": DRAW.choice(["F", "M"], 60)})
Y = DRAW.integers(0, 2, 60)
BOUNDS = {"age": (0, 100), "sex": ["F", "M"]}
SECRET = "Mona Lisa"  # what no message may show


def model(**given):
    return learn.LogisticRegression(
        **{"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "classes": [0, 1], **given}
    )


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_a_model_can_be_looked_at(example):
    """`dir`, which completes names, `hasattr` and notebooks ask for every attribute: none may break them."""
    fitted = example.make()
    for _ in range(2):
        names = dir(fitted)
        assert [hasattr(fitted, name) for name in names]
        assert fitted._repr_html_()
        assert repr(fitted).startswith(type(fitted).__name__)
        fitted.fit(*example.left[:2], units=example.left.units)


def without_a_price():
    """Every public model as it is first typed, with nothing but what its class insists on."""
    steps = [("scale", learn.StandardScaler()), ("model", learn.LogisticRegression())]
    search = [learn.Ridge(), {"alpha": [0]}]
    given = {"Pipeline": [steps], "RandomSearch": search, "HoldoutSearch": search}
    for name in learn.__all__:
        kind = getattr(learn, name)
        if isinstance(kind, type) and issubclass(kind, BaseEstimator):
            yield kind(*given.get(name, []))


@pytest.mark.parametrize("bare", list(without_a_price()), ids=lambda bare: type(bare).__name__)
def test_names_are_completed_before_there_is_a_price(bare):
    assert {"fit", "quote", "loss"} <= set(dir(bare))
    assert "partial_fit" not in dir(bare)
    assert bare._repr_html_()


def test_withheld_errors_say_why():
    fitted = model().fit(X, Y)
    assert not hasattr(fitted, "standard_errors_")
    assert not hasattr(fitted, "p_values_")
    for ask in (fitted.confidence_intervals, fitted.odds_ratios, lambda: fitted.standard_errors_):
        with pytest.raises(NotCertified, match="categories"):
            ask()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"aeg": (0, 100), "sex": ["F", "M"]}, "'aeg', which is no column. Did you mean age?"),
        ({**BOUNDS, "weight": (0, 9)}, "'weight', which is no column. Leave it out."),
        ({"qqq": (0, 9), "sex": ["F", "M"]}, "'qqq', which is no column. Columns without bounds: age."),
        ({"age": (0, 100)}, "nothing for 'sex': add (lower, upper)"),
        ({**BOUNDS, "age": [0, 100]}, r"write (0, 100) for all numbers between, or sf.Enum(0, 100)"),
        ([(0, 100), (0, 1)], "give them by column, bounds={'age': (lower, upper)"),
        ([[0, 0], [100, 1]], "give them by column"),
        ([np.zeros(2), np.ones(2)], "give them by column"),
    ],
)
def test_bounds_that_could_mean_something_else_are_refused(bounds, words):
    with pytest.raises(InvalidParameter) as refused:
        model(bounds=bounds).fit(X, Y)
    assert words in str(refused.value)


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (-3, 7)])
def test_two_categories_that_are_numbers_are_declared_as_an_enum(pair, tmp_path):
    rows = pd.DataFrame({"code": DRAW.choice(pair, 60)})
    fitted = model(bounds={"code": sf.Enum(*pair)}).fit(rows, Y)
    assert fitted.coefficient_names_ == [f"code={value}" for value in pair]
    array = model(bounds={"0": sf.Enum(*pair)}).fit(rows.to_numpy(), Y)
    assert array.coefficient_names_ == [f"x0={value}" for value in pair]
    table = sf.PrivateTable(
        "t",
        source=rows.assign(y=Y),
        unit=sf.PrivacyUnit.row(),
        schema={"code": sf.Enum(*pair), "y": sf.Int(0, 1)},
    )
    session = sf.Session(table, budget=sf.Budget(epsilon=9, delta=1e-5))
    for given in (None, {"code": sf.Enum(*pair)}):
        on_session = model(bounds=given).fit(session, "SELECT code, y FROM t", target="y")
        assert on_session.coefficient_names_ == fitted.coefficient_names_
        for known in (fitted, on_session):
            learn.save(known, tmp_path / "model.json")
            assert (learn.load(tmp_path / "model.json").coef_ == known.coef_).all()


def wrong_tables():
    """Every kind of thing that is no table of numbers, with what its message must say."""
    text = X.assign(sex=SECRET)
    numbers = {"age": (0, 100), "sex": (0, 1)}
    yield "series", X.age, (0, 100), "Reshape your data"
    yield "array", X.age.to_numpy(), (0, 100), "Reshape your data"
    yield "list", X.age.tolist(), (0, 100), "Reshape your data"
    yield "nothing", None, (0, 100), "not None"
    yield "dictionary", {"age": [SECRET]}, (0, 100), "not a dict"
    yield "text", SECRET, (0, 100), "not a str"
    yield "lazy", pl.from_pandas(X).lazy(), BOUNDS, "X.collect()"
    for kind, made in {
        "pandas": text,
        "polars": pl.from_pandas(text),
        "arrow": pa.Table.from_pandas(text),
    }.items():
        yield f"{kind} text", made, numbers, "Column 'sex' has values that are no numbers"
        mixed = {"age": ["a", "b"], "sex": (0, 1)}
        yield f"{kind} text beside categories", made, mixed, "Column 'sex' has values that are no numbers"
    yield "array of text", text.to_numpy(), (0, 100), "no numbers"


@pytest.mark.parametrize(
    ("made", "bounds", "words"),
    [case[1:] for case in wrong_tables()],
    ids=[case[0] for case in wrong_tables()],
)
def test_what_is_no_table_gets_one_sentence_and_shows_no_value(made, bounds, words):
    with pytest.raises((InvalidValue, InvalidParameter)) as refused:
        model(bounds=bounds).fit(made, Y)
    said = str(refused.value)
    assert words in said
    assert SECRET not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "labels", [[*Y[:-1], 7], [*Y[:-1], np.nan], [*Y[:-1].astype(str), SECRET], [SECRET] * 60]
)
def test_labels_that_are_not_declared_are_not_shown(labels):
    with pytest.raises(InvalidValue, match=r"missing or not among the declared classes \[0, 1\]") as refused:
        model().fit(X, np.array(labels))
    assert SECRET not in str(refused.value)


def test_a_target_of_text_is_not_shown():
    line = learn.LinearRegression(epsilon=1, delta=1e-6, bounds=BOUNDS, target_bounds=(0, 1))
    with pytest.raises(InvalidValue, match="no numbers") as refused:
        line.fit(X, [SECRET] * 60)
    assert SECRET not in str(refused.value)


def test_missing_columns_are_named():
    fitted = model().fit(X, Y)
    with pytest.raises(InvalidParameter, match="X has no column 'sex'"):
        fitted.predict(X[["age"]])
    assert (fitted.predict(X[["sex", "age"]]) == fitted.predict(X)).all()


def test_a_quote_needs_no_session_and_fits_a_line():
    quote = model().quote()
    assert str(quote).startswith("LogisticRegression: epsilon 1, delta 1e-06 for the whole fit.")
    assert quote.loss == model().loss
    ridge = learn.Ridge(bounds=(0, 1), target_bounds=(0, 1))
    for kind in (learn.RandomSearch, learn.HoldoutSearch):
        search = kind(ridge, {"alpha": [0, 1]}, epsilon=1, delta=1e-6).quote()
        assert repr(search) == str(search)
        assert max(map(len, str(search).splitlines())) <= 80
    assert max(map(len, str(quote).splitlines())) <= 80
    with pytest.raises(InvalidParameter, match="classes"):
        model(classes=None).quote()
    with pytest.raises(InvalidParameter, match=r"quote\(\) is the price on arrays"):
        model().quote(X, Y)


def test_labels_of_training_rows_are_refused_with_the_reason():
    clusters = learn.KMeans(epsilon=1, delta=1e-6, bounds=(0, 1), n_clusters=2)
    with pytest.raises(AttributeError, match="a fact about that row"):
        clusters.labels_  # noqa: B018 - asking is what is refused
