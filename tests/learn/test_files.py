"""A model file gives back the fitted model, and nothing but a model file is taken for one."""

import copy
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.preprocessing import FunctionTransformer

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn.examples import examples, flat
from sfumato.testing import seeded

FIRST = {type(example.make()).__name__: example for example in reversed(examples())}


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


def pipeline(bounds=None, first=None, last=None, **more):
    steps = [
        ("codes", learn.OneHotEncoder(bounds=first)),
        ("none", "passthrough"),
        ("scale", learn.StandardScaler()),
        ("model", last or learn.Ridge(target_bounds=(0, 1))),
    ]
    return learn.Pipeline(steps, epsilon=4, delta="1e-3", bounds=bounds, **more)


FRAME = pd.DataFrame({"age": [1.0, 20.0, 50.0, 8.0] * 9, "sex": ["F", "M", "F", "X"] * 9})
BOUNDS = {"age": (Fraction(1, 3), 90), "sex": ["F", "M"]}
PIPELINES = {
    "bounds of its own": lambda: pipeline(BOUNDS, split={"scale": 1, "model": 3}).fit(FRAME, np.ones(36)),
    "bounds of a step": lambda: pipeline(first=BOUNDS).fit(FRAME, np.ones(36)),
    "bought bounds": lambda: pipeline(BOUNDS | {"age": "auto"}, last=learn.Ridge(target_bounds="auto")).fit(
        FRAME, np.linspace(0, 1, 36)
    ),
    "classes": lambda: pipeline(BOUNDS, last=learn.LogisticRegression(classes=["no", "yes"])).fit(
        FRAME, ["no", "yes", "yes"] * 12
    ),
    "names of no columns": lambda: learn.Pipeline(
        [("scale", learn.StandardScaler(bounds=(0, 9))), ("model", learn.Moments())], epsilon=1, delta="1e-3"
    ).fit(np.ones((5, 2))),
    "free": lambda: learn.Pipeline([("codes", learn.OneHotEncoder(bounds=BOUNDS))]).fit(FRAME),
    "of a session": lambda: on_session(pipeline(last=learn.LogisticRegression())),
    "of a session, with some bounds": lambda: on_session(
        pipeline(first={"age": (0, 9)}, last=learn.LogisticRegression())
    ),
}


def on_session(model):
    held = pa.Table.from_pandas(FRAME).append_column("old", pa.array([False, True, True, False] * 9))
    schema = {"age": sf.Float(0, 90), "sex": sf.Enum("F", "M"), "old": sf.Bool()}
    people = sf.PrivateTable("people", source=held, unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(people, budget=sf.Budget(9, "0.01")) as session:
        return model.fit(session, "SELECT age, sex, old FROM people", target="old")


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_comes_back_from_its_file(name, tmp_path):
    with seeded("a pipeline for a file"):
        model = PIPELINES[name]()
    X = FRAME if hasattr(model, "feature_names_in_") else np.ones((2, 2))
    learn.save(model, tmp_path / "model.json")
    again = learn.load(tmp_path / "model.json")
    assert [step for step, _ in again.steps] == [step for step, _ in model.steps]
    assert again.loss == model.loss
    for call in ("predict", "predict_proba", "transform"):
        assert hasattr(again, call) == hasattr(model, call)
        if hasattr(model, call):
            assert np.array_equal(getattr(again, call)(X), getattr(model, call)(X))
    for mine, theirs in zip(again.named_steps.values(), model.named_steps.values(), strict=True):
        assert getattr(mine, "loss", None) == getattr(theirs, "loss", None)
    assert getattr(again, "bounds_paid_", None) == getattr(model, "bounds_paid_", None)
    learn.save(again, tmp_path / "again.json")
    told = [json.loads((tmp_path / file).read_text()) for file in ("model.json", "again.json")]
    for key in set(told[0]) - {"receipt", "parameters"}:  # categories may be written as a list
        assert told[0][key] == told[1][key]
    text = (tmp_path / "model.json").read_text()
    assert "X" not in text.replace("OneHotEncoder", "")  # a value that is in the rows alone


def test_only_own_steps_are_written_and_read(tmp_path):
    steps = [("log", FunctionTransformer(np.log1p)), ("model", learn.Moments())]
    model = learn.Pipeline(steps, epsilon=1, delta="1e-3", bounds=(0, 9)).fit(np.ones((5, 2)))
    with pytest.raises(InvalidParameter, match="'log' is not of"):
        learn.save(model, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())
    learn.save(PIPELINES["bounds of its own"](), tmp_path / "m.json")
    facts = json.loads((tmp_path / "m.json").read_text())
    for change in (
        lambda steps: steps[0].__setitem__(0, 1),
        lambda steps: steps[0][1].update(model="FunctionTransformer"),
        lambda steps: steps[0][1].update(model="save"),
        lambda steps: steps[0][1].update(model="Pipeline"),
        lambda steps: steps[0][1].pop("parameters"),
        lambda steps: steps[2][1]["parameters"].update(epsilon=1),
        lambda steps: steps[3][1]["parameters"].update(extra=1),
        lambda steps: steps.pop(),
        lambda steps: steps.pop(2),
        lambda steps: steps.append(["more", "os.system"]),
        lambda steps: steps.clear(),
    ):
        changed = copy.deepcopy(facts)
        change(changed["parameters"]["steps"])
        (tmp_path / "m.json").write_text(json.dumps(changed))
        with pytest.raises(InvalidValue, match="not a model file"):
            learn.load(tmp_path / "m.json")


@pytest.mark.parametrize("kind", [learn.RandomSearch, learn.HoldoutSearch])
def test_the_chosen_model_of_a_search_comes_back_with_what_the_search_cost(kind, tmp_path):
    ridge = learn.Ridge(bounds=BOUNDS | {"age": "auto"}, target_bounds=(0, 1))
    search = kind(ridge, {"alpha": [0, 10]}, epsilon=4, delta="1e-3")
    with pytest.raises(InvalidParameter, match="fitted"):
        learn.save(search, tmp_path / "m.json")
    learn.save(search.fit(FRAME, np.ones(36)), tmp_path / "m.json")
    again = learn.load(tmp_path / "m.json")
    assert again.loss == search.loss
    assert again.bounds_paid_ == search.best_estimator_.bounds_paid_
    assert again.alpha == search.best_params_["alpha"]
    assert np.array_equal(again.predict(FRAME), search.predict(FRAME))
    facts = json.loads((tmp_path / "m.json").read_text())
    facts["price"]["epsilon"] = "1"  # cheaper than its loss says
    (tmp_path / "m.json").write_text(json.dumps(facts))
    with pytest.raises(InvalidValue):
        learn.load(tmp_path / "m.json")


def test_a_model_of_a_session_with_some_bounds_comes_back(tmp_path):
    model = on_session(learn.LogisticRegression(4, "1e-3", bounds={"age": (0, 9)}))
    learn.save(model, tmp_path / "m.json")
    assert np.array_equal(learn.load(tmp_path / "m.json").predict(FRAME), model.predict(FRAME))


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
