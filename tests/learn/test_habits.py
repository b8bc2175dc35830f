"""scikit-learn's habits: copies, pickles, pictures, and searches that fit again and again."""

from __future__ import annotations

import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter, UnknownName

PRICE = {"epsilon": 1, "delta": "1e-6"}
RNG = np.random.default_rng(0)
SOMEBODY = pd.DataFrame({"age": [30.0]})
X = RNG.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)


def model():
    return learn.LogisticRegression(**PRICE, bounds=(-3, 3), classes=[0, 1])


def test_cross_validation_is_warned_about_with_how_often_it_was_paid():
    with pytest.warns(learn.FittedAgain) as said:
        cross_val_score(model(), X, Y, cv=4)
    assert [f"fitted {times} times" in str(each.message) for times, each in zip((2, 3, 4), said, strict=True)]
    assert "epsilon=1 4 times over" in str(said[-1].message)


def test_a_search_is_warned_about_up_to_its_last_fit():
    with pytest.warns(learn.FittedAgain) as said:
        GridSearchCV(model(), {"epsilon": [1, 2]}, cv=2).fit(X, Y)
    assert "fitted 5 times" in str(said[-1].message)


def test_one_copy_or_one_model_fitted_by_hand_is_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model()).fit(X, Y)
        model().fit(X, Y).fit(X, Y)
        clone(clone(model())).fit(X, Y)


def test_copies_in_other_processes_know_the_how_manieth_they_are():
    first = model()
    copies = [pickle.loads(pickle.dumps(clone(first))) for _ in range(3)]
    with pytest.warns(learn.FittedAgain, match="fitted 3 times"):
        copies[2].fit(X, Y)


def test_a_search_cannot_take_a_session(session):
    for search in (GridSearchCV(model(), {"epsilon": [1]}), clone(GridSearchCV(model(), {"epsilon": [1]}))):
        with pytest.raises(InvalidParameter, match="not handed out"):
            search.fit(session, "SELECT age, rich FROM people")
    with pytest.raises(InvalidParameter, match="not handed out"):
        cross_val_score(model(), session)


@pytest.fixture
def session():
    held = {"age": [20, 40, 60] * 20, "rich": [True, False, True] * 20}
    schema = {"age": sf.Int(0, 100), "rich": sf.Bool()}
    people = sf.PrivateTable("people", source=pa.table(held), unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(people, budget=sf.Budget(3, "1e-5")) as made:
        yield made


class _Watched(pickle.Pickler):
    """Writes down the class of everything that goes into a pickle."""

    def __init__(self, stream):
        super().__init__(stream)
        self.kinds = set()

    def reducer_override(self, value):
        kind = value if isinstance(value, type) else type(value)
        self.kinds.add(f"{kind.__module__}.{kind.__name__}")
        return NotImplemented


def test_a_pickle_holds_no_session_no_key_and_no_rows(session, tmp_path):
    made = learn.LogisticRegression(**PRICE).fit(session, "SELECT age, rich FROM people", target="rich")
    piped = learn.Pipeline(
        [("scale", learn.StandardScaler()), ("model", learn.LogisticRegression())],
        epsilon="0.5",
        delta="1e-6",
    ).fit(session, "SELECT age, rich FROM people", target="rich")
    for each in (made, piped):
        watched = _Watched(io.BytesIO())
        watched.dump(each)
        parts = {kind for kind in watched.kinds if kind.startswith("sfumato.")}
        allowed = (
            "sfumato.learn.",
            "sfumato.loss.",
            "sfumato.ledger.receipts.",
            "sfumato.session.rows_wanted.WantedColumn",
        )
        assert {kind for kind in parts if not kind.startswith(allowed) and not kind.endswith(".Receipt")} <= {
            "sfumato.ledger.memo.Memo"
        }
        assert not any(
            word in kind for kind in parts for word in ("Right", "Ledger", "Session", "Vault", "Rows")
        )
        joblib.dump(each, tmp_path / "model")
        again = joblib.load(tmp_path / "model")
        assert again.predict(SOMEBODY).tolist() == each.predict(SOMEBODY).tolist()
        assert again.receipt == each.receipt


def test_partial_fit_is_not_there_for_a_reason():
    for name in learn.__all__:
        kind = getattr(learn, name)
        if isinstance(kind, type) and issubclass(kind, learn.base.PrivateEstimator):
            assert not hasattr(kind, "partial_fit")
    with pytest.raises(UnknownName, match="each call would cost epsilon again"):
        model().partial_fit(X, Y)


def test_pictures_are_short_however_many_columns_there_are():
    many = learn.Moments(**PRICE, bounds={f"column {at}": (0, at + 1) for at in range(500)})
    assert repr(many) == (
        "Moments(epsilon=1, delta='1e-6', bounds={'column 0': (0, 1), 'column 1': (0, 2), … 498 more})"
    )
    arrays = learn.Moments(**PRICE, bounds=(np.zeros(500), np.ones(500)))
    assert repr(arrays) == "Moments(epsilon=1, delta='1e-6', bounds=(<array of 500>, <array of 500>))"
    assert len(repr(learn.OneHotEncoder(bounds={"a": [f"value {at}" for at in range(999)]}))) < 120


def test_parameters_are_got_set_and_copied():
    piped = learn.Pipeline([("scale", learn.StandardScaler(bounds=(0, 1)))], **PRICE)
    piped.set_params(scale__clip=3, epsilon=2)
    copied = clone(piped)
    assert copied.get_params()["scale__clip"] == 3
    assert copied.epsilon == 2
    assert copied["scale"] is not piped["scale"]
