"""`Pipeline`: steps and a model that share one price, each between the bounds that the step before leaves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline as Chain
from sklearn.pipeline import _final_estimator_has
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Declared, Following, Unbought, declared, is_auto, number
from sfumato.learn._core.design import Design
from sfumato.learn._core.frames import names_of
from sfumato.learn._core.rows import Rows
from sfumato.learn._steps.features import Feature, Source, features_of
from sfumato.learn._steps.splitting import Split, shares_of
from sfumato.learn._steps.tabled import is_stateless, public_rows, tabled
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.learn.examples import Example, Given
from sfumato.learn.transforming import PrivateTransformer
from sfumato.loss import NO_LOSS, GaussianLoss, PrivacyLoss
from sfumato.numeric.exact import Rational
from sfumato.session import Session

__all__ = ["Pipeline"]

Learning: TypeAlias = Callable[[int, PrivateEstimator, Design, list[Feature]], Learned]


class _Own:
    """An attribute of the pipeline itself, where scikit-learn's asks the first step."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, kind: type | None = None) -> Any:
        if model is None:
            return self
        try:
            return model.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, model: Any, value: Any) -> None:
        model.__dict__[self._name] = value

    def __delete__(self, model: Any) -> None:
        model.__dict__.pop(self._name, None)


def _can_transform(pipeline: Any) -> bool:
    return hasattr(pipeline, "transform")


class Pipeline(PrivateEstimator, Chain):
    """Steps one after the other, the model last, for one price.

    ```python
    steps = [
        ("scale", learn.StandardScaler(bounds={"age": (17, 90), "hours": (1, 99)})),
        ("model", learn.LogisticRegression(classes=[0, 1])),
    ]
    pipe = learn.Pipeline(steps, epsilon=1, delta=1e-6, split={"scale": 1, "model": 4})
    print(pipe.split_)
    ```

    Steps have no epsilon of their own: `split` says how they share rho. Bounds are declared once, for the
    first step or the pipeline; each later step works between those that the step before leaves. On a session
    the whole is one purchase, and rows are read once.

    A step of scikit-learn that learns nothing, such as a FunctionTransformer, is taken if it treats each
    number by itself: it is asked once for all numbers within the bounds, and never sees a row.

    Args:
        steps: Pairs of a name and a step, or "passthrough".
        epsilon: What the whole fit costs; None: nothing in it does.
        delta: Likewise.
        split: Weights of the steps that cost something; None: 4 for the last one, 1 for each before it.
        bounds: What is public about each column; None: what the first step says.

    Attributes:
        split_: How the price is split, also before the fit.

    Privacy:
        Claim: that of `PrivateEstimator`, for the steps together. Proof: each step learns from its own rows
        with a part of one meter (`Meter.part`), the parts add up to 1, and rows of a step follow from those
        that were read and what was released before (`Source`).
    """

    n_features_in_ = _Own()
    feature_names_in_ = _Own()
    transform_input = None
    memory = None
    verbose = False

    def __init__(
        self,
        steps: Any,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        *,
        split: Mapping[str, Rational] | None = None,
        bounds: Any = None,
    ) -> None:
        self.steps, self.epsilon, self.delta = steps, epsilon, delta
        self.split, self.bounds = split, bounds

    @property
    def split_(self) -> Split:
        """How the price is split: a line for each step as text."""
        names = [name for name, _ in self._parts()]
        paid = getattr(self, "_paid", None)
        return Split.of(names, self._shares(), paid if isinstance(paid, GaussianLoss) else self._price())

    def quote(
        self, session: Any = None, rows: Any = None, *, target: Any = None, parameters: Any = None
    ) -> Any:
        """What the whole costs and how it is split: free, and nothing is read.

        Args:
            session: Whose ledger would pay; None: the split alone.
            rows: As `fit` takes them after the session.
            target: The column that is to be learned.
            parameters: Values for the text's `?`, `$1` and `$name`.
        """
        if session is None:
            self._check()
            return self.split_
        return super().quote(session, rows, target=target, parameters=parameters)

    @available_if(_can_transform)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, *, units: Any = None) -> Any:
        """Fit, and change the same rows; what comes out is as private as the rows are."""
        self._refuse_session(X)
        return self.fit(X, y, units=units).transform(X)

    @available_if(_final_estimator_has("predict"))  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, *, units: Any = None) -> Any:
        """Fit, and predict for the same rows; what comes out is as private as the rows are."""
        self._refuse_session(X)
        return self.fit(X, y, units=units).predict(X)

    def __getitem__(self, place: Any) -> Any:
        """A step by its place or name; or some of them, in a pipeline of scikit-learn, to transform with."""
        return Chain(self.steps[place]) if isinstance(place, slice) else super().__getitem__(place)

    def _refuse_session(self, X: Any) -> None:
        if isinstance(X, Session):
            raise InvalidParameter("A session's rows are not handed out, changed or not: use fit.")

    def _parts(self) -> list[tuple[str, Any]]:
        """The steps that do something."""
        return [(name, step) for name, step in self.steps if step is not None and step != "passthrough"]

    @property
    def _last(self) -> PrivateEstimator | None:
        """The step that learns the target, with what is known about that; None: nothing does."""
        parts = self._parts()
        if not parts or not isinstance(parts[-1][1], PrivateEstimator):
            return None
        return self._told(copy(parts[-1][1]))

    def _told(self, step: PrivateEstimator) -> PrivateEstimator:
        """A step that knows what is public about the target."""
        step._public, step._bought_target = self._public, self._bought_target
        return step

    def _shares(self) -> dict[str, Fraction]:
        costs = [
            name for name, step in self._parts() if isinstance(step, PrivateEstimator) and not step._is_free()
        ]
        return shares_of(self.split, costs)

    def _is_free(self) -> bool:
        return all(not isinstance(step, PrivateEstimator) or step._is_free() for _, step in self._parts())

    def _given_bounds(self) -> Any:
        parts = self._parts()
        return getattr(parts[0][1], "bounds", None) if self.bounds is None and parts else self.bounds

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.steps, list | tuple) or not self._parts():
            raise InvalidParameter('steps must be pairs such as ("model", learn.LogisticRegression(…)).')
        self._validate_names([name for name, _ in self.steps])
        parts = self._parts()
        for place, (name, step) in enumerate(parts):
            _check_step(name, step, last=place == len(parts) - 1)
            if place == 0 and self.bounds is not None and getattr(step, "bounds", None) is not None:
                raise InvalidParameter(f"The pipeline has bounds, and {name!r} has its own: leave one out.")
            if place and is_auto(getattr(step, "bounds", None)):
                raise InvalidParameter(
                    f"Bounds are bought for the first step, not for {name!r}: leave them out."
                )
        if (last := self._last) is not None:
            last._check()
        for _, step in parts[:-1]:
            if isinstance(step, PrivateEstimator):
                step._check()
        if self._is_free():
            if self.split is not None:
                raise InvalidParameter("No step costs anything: leave split out.")
        else:
            self._shares()

    def _design_of(self, bounds: Any, names: list[str]) -> Design:
        return Design(declared(bounds, names), intercept=False)

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        shares, names = self._shares(), [name for name, _ in self._parts()]
        source, learned = Source(rows), dict[str, NDArray[Any]]()

        def learn(place: int, step: PrivateEstimator, design: Design, features: list[Feature]) -> Learned:
            if names[place] not in shares:
                return {}
            found = step._learn(source.rows_of(design, features), meter.part(shares[names[place]]))
            learned.update({f"{place}.{key}": value for key, value in found.items()})
            return found

        for _ in self._fitted(rows.design, learn, copy):
            pass
        return learned

    def _set(self, learned: Learned) -> None:
        def found(place: int, *_: Any) -> Learned:
            return {
                key.partition(".")[2]: learned[key] for key in learned if key.partition(".")[0] == str(place)
            }

        paid = {} if self._is_free() else self._shares()
        named = hasattr(self, "feature_names_in_")
        for name, step, features in self._fitted(self.design_, found, lambda step: step):
            names = [feature.column.name for feature in features]
            if isinstance(step, PrivateEstimator):
                cost = self._part_paid(paid[name]) if name in paid else NO_LOSS
                step._paid, step._receipt, step.n_features_in_ = cost, self._receipt, len(names)
                _name(step, names, named=named)
            else:
                step.fit(public_rows(features))
            named = _gives_names(step, features, named=named)

    def _part_paid(self, share: Fraction) -> PrivacyLoss:
        """What a step cost of the whole; all of it where the whole is no Gaussian release, but a search."""
        paid: PrivacyLoss = self._paid
        return GaussianLoss(paid.rho * share) if isinstance(paid, GaussianLoss) else paid

    def _fitted(
        self, design: Design, learn: Learning, taken: Callable[[Any], Any]
    ) -> Iterator[tuple[str, Any, list[Feature]]]:
        """The steps, each fitted in its turn, with the columns that go into it."""
        features, parts = features_of(design), self._parts()
        for place, (name, given) in enumerate(parts):
            if not isinstance(given, PrivateEstimator):
                yield name, taken(given), features
                features = tabled(name, given, features)
                continue
            step, last = taken(given), place == len(parts) - 1
            bounded = self._told(copy(given)) if last else copy(given)
            if place == 0 or given.bounds is None:
                bounded.bounds = Following(feature.column for feature in features)
            own = bounded._design([feature.column.name for feature in features])
            learned = learn(place, bounded, own, features)
            if last:
                self._told(step)
            step._keep(own, learned, NO_LOSS, None)
            yield name, step, features
            if not last:
                features = step._features(features)

    def _rehearse(self, design: Design, paid: GaussianLoss) -> None:
        """Goes through all steps on a table without rows: what they refuse is refused before it is paid."""
        columns: list[Declared] = [
            number(column.name, 0, 1) if isinstance(column, Unbought) else column for column in design.columns
        ]
        plain = design.with_columns(columns)
        nobody = np.zeros((0, len(plain.coordinates)), np.int16)
        copy(self)._learn(Rows(plain, nobody, np.zeros(0, np.int64)), Meter.alone(paid))

    def _target(self, y: Any, size: int) -> NDArray[Any] | None:
        return super()._target(y, size) if (last := self._last) is None else last._target(y, size)

    def _target_unbought(self) -> Unbought | None:
        return None if (last := self._last) is None else last._target_unbought()

    def _target_names(self, target: Any) -> tuple[str, ...]:
        return super()._target_names(target) if (last := self._last) is None else last._target_names(target)

    def _target_declared(self, names: tuple[str, ...]) -> tuple[Declared, ...]:
        return () if (last := self._last) is None else last._target_declared(names)

    def _target_read(self, columns: list[NDArray[Any]]) -> NDArray[Any] | None:
        return None if (last := self._last) is None else last._target_read(columns)


def _check_step(name: str, step: Any, *, last: bool) -> None:
    """Refuses what cannot be a step, by its name and with the reason."""
    kind = type(step).__name__
    if isinstance(step, Pipeline):
        raise InvalidParameter(f"Step {name!r} is a pipeline: put its steps in this one.")
    if isinstance(step, PrivateEstimator):
        if step.epsilon is not None or step.delta is not None:
            raise InvalidParameter(
                f"Step {name!r} has an epsilon of its own: leave it out, split shares the pipeline's."
            )
        if not last and not isinstance(step, PrivateTransformer):
            raise InvalidParameter(
                f"Step {name!r}: no step can follow a {kind}, since its output has no bounds."
            )
    elif isinstance(step, type) or not hasattr(step, "fit"):
        raise InvalidParameter(f"Step {name!r} must be an estimator such as learn.StandardScaler().")
    elif not is_stateless(step):
        _refuse_unpaid(name, kind)


def _refuse_unpaid(name: str, kind: str) -> NoReturn:
    from sfumato import learn

    fix = f"use sfumato.learn.{kind}" if kind in learn.__all__ else "leave it out, or do it on public data"
    raise InvalidParameter(f"Step {name!r}: {kind} would learn from the rows without paying for it: {fix}.")


def _name(step: Any, names: list[str], *, named: bool) -> None:
    """Names the columns of a step where it will be handed names."""
    if named:
        step.feature_names_in_ = np.array(names, dtype=object)
    else:
        step.__dict__.pop("feature_names_in_", None)


def _gives_names(step: Any, features: list[Feature], *, named: bool) -> bool:
    """Whether a step will give frames with names, where it is handed such or not."""
    if isinstance(step, PrivateEstimator):
        return bool(_get_output_config("transform", step)["dense"] != "default")
    rows: Any = public_rows(features)[:1]
    if named and find_spec("pandas"):
        import pandas as pd

        rows = pd.DataFrame(rows, columns=[feature.column.name for feature in features])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a row has no names
        return names_of(step.transform(rows)) is not None


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    from sfumato.learn.moments import Moments
    from sfumato.learn.scaling import StandardScaler

    few = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.3]])

    def scaled() -> Pipeline:
        steps = [("scale", StandardScaler(bounds=(0, 1))), ("model", Moments())]
        return Pipeline(steps, epsilon=1, delta="1e-5")

    return (
        Example("pipeline: a row more", scaled, Given(few), Given(np.vstack([few, [[1.0, 0.0]]]))),
        Example(
            "pipeline: somebody with many rows",
            scaled,
            Given(few, units=[0, 1, 2]),
            Given(np.vstack([few, np.ones((6, 2))]), units=[0, 1, 2, *[3] * 6]),
        ),
    )
