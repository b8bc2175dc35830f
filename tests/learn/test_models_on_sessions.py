"""Every model fits on a session, whatever is in its table: one price, free again, the same model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter
from sfumato.learn.examples import examples
from sfumato.learn.pca import PCA

KINDS = {"double": sf.Float(-(2.0**20), 2.0**20), "int64": sf.Int(-100, 100), "string": sf.Text()}
# Of models that learn from a table and at most one column beside it; survival has tests of its own.
TABLES = [each for each in examples() if np.ndim(each.left.X) == 2 and np.ndim(each.left.y) < 2]
# One example of each, with units where it has one.
EXAMPLES = {
    type(each.make()).__name__: each for each in sorted(TABLES, key=lambda each: each.left.units is not None)
}


def columns(given):
    """What is handed to `fit`, by column."""
    held = {f"x{place}": column for place, column in enumerate(np.asarray(given.X, object).T)}
    held |= {} if given.y is None else {"y": np.asarray(given.y)}
    return {name: pa.array(np.asarray(values).tolist()) for name, values in held.items()}


def session_of(given, rows):
    """A session whose table has some of the rows."""
    held = columns(given)
    schema = {name: KINDS[str(column.type)] for name, column in held.items()}
    unit = sf.PrivacyUnit.row()
    if given.units is not None:
        held["who"], unit = pa.array(list(map(str, given.units))), sf.PrivacyUnit("who", max_rows=3)
    source = pa.table(held).take(pa.array(rows, pa.int64()))
    table = sf.PrivateTable("t", source=source, unit=unit, schema=schema)
    return sf.Session(table, budget=sf.Budget(1000, "0.5"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_model_fits_on_any_table_of_a_session(name):
    example = EXAMPLES[name]
    given, paid = example.right, example.loss
    target = None if given.y is None else "y"
    text = f"SELECT {', '.join(each for each in columns(given))} FROM t"
    for rows in (range(len(given.X)), [], [0]):
        with session_of(given, list(rows)) as session:
            model = example.make()
            quote = model.quote(session, text, target=target)
            model.fit(session, text, target=target)
            assert model.loss == model.receipt.loss == quote.loss == paid
            assert session.balance().spent == quote.epsilon
            again = example.make().fit(session, text, target=target)
            assert session.balance().spent == quote.epsilon
            assert again.receipt == model.receipt
            assert again._learned.keys() == model._learned.keys()
            for kept, array in model._learned.items():
                np.testing.assert_array_equal(again._learned[kept], array)


def test_too_many_components_are_refused_before_they_are_paid():
    with session_of(EXAMPLES["PCA"].right, [0, 1]) as session:
        with pytest.raises(InvalidParameter, match="n_components"):
            PCA(epsilon=1, delta="1e-6", n_components=3).fit(session, "SELECT x0, x1 FROM t")
        assert session.balance().spent == 0


@pytest.mark.parametrize(
    "kind", ["LogisticRegression", "LinearRegression", "Ridge", "PoissonRegression", "KMeans"]
)
def test_more_categories_than_a_model_takes_are_refused_before_they_are_paid(kind):
    listed = {name: [f"{name}{place}" for place in range(700)] for name in ("a", "b")}
    held = pa.table({"a": ["a1", "a2"], "b": ["b1", None], "y": [0.0, 1.0], "z": [True, False]})
    schema = {"a": sf.Text(), "b": sf.Text(), "y": sf.Float(0, 1), "z": sf.Bool()}
    table = sf.PrivateTable("t", source=held, unit=sf.PrivacyUnit.row(), schema=schema)
    target = {"LogisticRegression": "z", "KMeans": None}.get(kind, "y")
    text = f"SELECT a, b{'' if target is None else f', {target}'} FROM t"
    model = getattr(learn, kind)(epsilon=1, delta="1e-6", bounds=listed)
    with sf.Session(table, budget=sf.Budget(5, "0.5")) as session:
        for ask in (model.quote, model.fit):
            with pytest.raises(InvalidParameter, match="coordinates"):
                ask(session, text, target=target)
        assert session.balance().spent == 0
