"""`OneHotEncoder`: a column of 0 and 1 for each category."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Category, Declared, Number
from sfumato.learn._core.design import Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._steps.counts import by_column, counts
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.transforming import PrivateTransformer
from sfumato.numeric.exact import Rational, positive

__all__ = ["OneHotEncoder"]

Floats: TypeAlias = NDArray[np.float64]


class OneHotEncoder(PrivateTransformer):
    """A column of 0 and 1 for each declared category; numbers pass as they are.

    Models encode categories themselves: this is for steps that take numbers alone. A category that is not
    listed has 0 in all columns.

    Args:
        epsilon: What `min_frequency` costs; None without it.
        delta: Likewise.
        bounds: The categories of each column, as a list; numbers have pairs (lower, upper).
        min_frequency: Categories with fewer rows than this by a noisy count (or a smaller part of them, below
            1) share one column, the last. None: each has its own, for nothing.

    Attributes:
        categories_: The declared categories of each column that has some.
        infrequent_categories_: Those of them that share a column; None where there are none.

    Privacy:
        Claim: that of `PrivateEstimator`: nothing is read, or one Gaussian measurement of `counts`.
    """

    takes_categories = True

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        min_frequency: float | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.min_frequency = min_frequency

    def _is_free(self) -> bool:
        return self.min_frequency is None

    def _check(self) -> None:
        super()._check()
        if self.min_frequency is not None:
            positive(self.min_frequency, "min_frequency")

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        return {"counts": meter.noisy(counts(rows, _listed(rows.design), 1), 1)}

    def _set(self, learned: Learned) -> None:
        listed = _listed(self.design_)
        self.categories_ = [self.design_.columns[place].values for place in listed]  # type: ignore[union-attr]
        self._places: dict[int, NDArray[np.int64]] = {
            place: np.arange(len(self.design_.columns[place].values))  # type: ignore[union-attr]
            for place in listed
        }
        self.infrequent_categories_: list[tuple[Any, ...] | None] = [None] * len(listed)
        if learned and self.min_frequency is not None:
            for at, noisy in enumerate(by_column(learned["counts"], self.design_, listed, 1)):
                least = float(self.min_frequency) * (
                    max(1.0, float(np.maximum(noisy, 0).sum())) if self.min_frequency < 1 else 1
                )
                rare = noisy < least
                if rare.any():
                    self._places[listed[at]] = np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)
                    self.infrequent_categories_[at] = tuple(
                        value for value, is_rare in zip(self.categories_[at], rare, strict=True) if is_rare
                    )

    def _changed(self, place: int, values: NDArray[Any]) -> list[Floats]:
        if place not in self._places:
            return super()._changed(place, values)
        codes = np.asarray(values, np.int64)
        # The last of them, −1, is that of no category.
        places = np.r_[self._places[place], -1][codes]
        return [(places == at).astype(np.float64) for at in range(int(self._places[place].max()) + 1)]

    def _rule(self, place: int, held: Floats) -> list[Floats]:  # noqa: ARG002 - numbers pass
        return [held]

    def _outputs(self, column: Declared, place: int) -> list[Number]:
        if isinstance(column, Number):
            return [column]
        shared = self.infrequent_categories_[list(self._places).index(place)] or ()
        names = [f"{column.name}_{value}" for value in column.values if value not in shared]
        names += [f"{column.name}_infrequent"] if shared else []
        return [Number(name, Fraction(0), Fraction(1), column.name) for name in names]

    def _back(self, place: int, part: Floats) -> NDArray[Any]:
        column = self.design_.columns[place]
        if isinstance(column, Number):
            return part[:, 0]
        places = self._places[place]
        firsts = [column.values[int(np.flatnonzero(places == at)[0])] for at in range(int(places.max()) + 1)]
        shared = self.infrequent_categories_[list(self._places).index(place)]
        values = np.array(
            [*firsts[: len(firsts) - bool(shared)], *([None] if shared else []), None], dtype=object
        )
        chosen = np.where(part.max(axis=1) > 0, np.argmax(part, axis=1), len(values) - 1)
        return np.asarray(values[chosen])


def _listed(design: Design) -> list[int]:
    return [place for place, column in enumerate(design.columns) if isinstance(column, Category)]


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object)
    bounds = {"0": ["a", "b", "c"], "1": ["x", "y"]}
    return (
        Example(
            "one-hot: common categories are bought",
            lambda: OneHotEncoder(1, "1e-5", bounds, min_frequency=2),
            Given(few),
            Given(np.vstack([few, [["c", "x"]]])),
        ),
    )
