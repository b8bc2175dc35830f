"""A model file gives back the fitted model, and nothing but a model file is taken for one."""

import copy
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sfumato import learn
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn.examples import examples, flat
from sfumato.testing import seeded

FIRST = {type(example.make()).__name__: example for example in reversed(examples())}
WHOLE = FIRST.pop("Pipeline")


def fitted(example):
    with seeded("a model for a file"):
        return example.make().fit(*example.right[:2], units=example.right.units)


@pytest.mark.parametrize("name", FIRST)
def test_every_model_comes_back_from_its_file(name, tmp_path):
    model, X = fitted(FIRST[name]), FIRST[name].right.X
    learn.save(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    again = learn.load(tmp_path / "model.json")
    assert type(again) is type(model)
    assert np.array_equal(
        flat(again.design_, again._learned), flat(model.design_, model._learned), equal_nan=True
    )
    assert again.loss == model.loss
    assert again.receipt is None
    for call in ("predict", "predict_proba", "transform"):
        if hasattr(model, call):
            mine, theirs = (np.asarray(getattr(one, call)(X)) for one in (model, again))
            assert np.array_equal(mine, theirs)
    learn.save(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == text


def test_a_pipeline_is_refused_with_nothing_written(tmp_path):
    with pytest.raises(InvalidParameter, match="cannot be written"):
        learn.save(fitted(WHOLE), tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def moments(bounds=None, X=None):
    X = pd.DataFrame({"age": [1.0, 2.0], "sex": ["F", "M"]}) if X is None else X
    bounds = {"age": (Fraction(1, 3), 90), "sex": ["F", "M"]} if bounds is None else bounds
    return learn.Moments(epsilon="0.5", delta=1e-6, bounds=bounds).fit(X)


def test_parameters_keep_their_meaning(tmp_path):
    path = tmp_path / "m.json"
    learn.save(moments(), path)
    again = learn.load(path)
    assert again.get_params() == moments().get_params()
    assert [column.name for column in again.design_.columns] == ["age", "sex"]
    assert again.feature_names_in_.tolist() == ["age", "sex"]
    arrays = (np.zeros(2), np.array([1.0, 5.0]))
    learn.save(moments(arrays, np.ones((3, 2))), path)
    again = learn.load(path)
    assert np.array_equal(again.bounds, arrays)
    assert not hasattr(again, "feature_names_in_")
    assert again.n_features_in_ == 2


def test_bought_bounds_come_back(tmp_path):
    model = learn.Moments(epsilon=50, delta="1e-3", bounds="auto").fit(np.arange(60.0).reshape(30, 2))
    learn.save(model, tmp_path / "m.json")
    again = learn.load(tmp_path / "m.json")
    assert again.bounds == "auto"
    assert again.bounds_ == model.bounds_
    assert again.bounds_paid_ == model.bounds_paid_


def broken(facts):
    """Files that are nearly right: each fact gone, of another type, or of another size."""
    for key in facts:
        if key != "receipt":
            yield {name: value for name, value in facts.items() if name != key}
        for other in ([], {}, "x", -1, [[]], {"tuple": 3}):
            if key not in ("receipt", "features", "bought", "target"):
                yield facts | {key: other}
    for change in (
        lambda one: one["price"].update(epsilon="-1"),
        lambda one: one["price"].update(delta="1e9"),
        lambda one: one["price"].update(epsilon="1e999999999"),
        lambda one: one["columns"][0].update(upper="1e999999999"),
        lambda one: one["parameters"].update(epsilon={"number": "1e999999999"}),
        lambda one: one["parameters"].update(extra=1),
        lambda one: one["parameters"].update(bounds={"os.system": "ls"}),
        lambda one: one["columns"].pop(),
        lambda one: one["columns"][0].update(lower="1", upper="0"),
        lambda one: one["columns"][0].update(lower="0"),  # and not what the bounds say
        lambda one: one["learned"]["moments"].update(shape=[1, 2]),
        lambda one: one["learned"]["moments"].update(type="object"),
        lambda one: one["learned"]["moments"]["values"].__setitem__(0, "1"),
        lambda one: one["learned"]["moments"]["values"].__setitem__(0, None),
        lambda one: one["learned"].pop("moments"),
    ):
        changed = copy.deepcopy(facts)
        change(changed)
        yield changed


def test_what_is_not_a_model_file_is_refused(tmp_path):
    path = tmp_path / "m.json"
    learn.save(moments(), path)
    facts = json.loads(path.read_text())
    refused = 0
    for changed in broken(facts):
        path.write_text(json.dumps(changed))
        with pytest.raises(InvalidValue, match=r"not a model file|another version"):
            learn.load(path)
        refused += 1
    assert refused > 40
    for text in ("", "[]", "{", "[" * 100_000, '{"format": "sfumato model"}', "\udcff"):
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(InvalidValue, match=r"not a model file|another version"):
            learn.load(path)
    with pytest.raises(InvalidValue, match="cannot be read"):
        learn.load(tmp_path)


def test_only_fitted_models_are_written(tmp_path):
    for given in (learn.Moments(epsilon=1, delta=0.1, bounds=(0, 1)), object(), None):
        with pytest.raises(InvalidParameter, match="Only a fitted model"):
            learn.save(given, tmp_path / "m.json")
    with pytest.raises(InvalidParameter, match="existing folder"):
        learn.save(moments(), tmp_path / "none" / "m.json")
    assert not list(tmp_path.iterdir())
