"""Fits with planted bugs: what the kit for models must see, whatever the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter
from sfumato.learn._core import sums
from sfumato.learn._core.design import UNIT
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.mechanisms import Gaussian
from sfumato.numeric.exact import Rational, positive

__all__ = ["FIT_MUTANTS", "planted"]

Floats: TypeAlias = NDArray[np.float64]
Patch: TypeAlias = tuple[Any, str, Callable[..., Any]]

_HELD, _CLIPPED, _MECHANISM = sums._held, sums.clipped, Meter.mechanism


def _as_they_are(found: NDArray[Any], *_: Any) -> NDArray[Any]:
    return found


def _unshortened(rows: Any, *_: Any) -> Floats:
    return np.ones(len(rows))


def _half(meter: Meter, sensitivity: Fraction, share: Rational) -> Gaussian:
    """Half the noise that is paid for."""
    return _MECHANISM(meter, sensitivity / 2, positive(share, "share"))


def _each_half(found: Floats, squares: Floats, bound: Fraction) -> Floats:
    """As if a row were two parts, with the whole bound for either."""
    return _HELD(found, squares / 2, bound)


def _each_half_of_units(lines: NDArray[np.int64], bound: Fraction) -> NDArray[np.int64]:
    middle = lines.shape[1] // 2
    return np.hstack([_CLIPPED(lines[:, :middle], bound), _CLIPPED(lines[:, middle:], bound)])


def _but_the_intercept(found: Floats, squares: Floats, bound: Fraction) -> Floats:
    return _HELD(found, np.maximum(squares - UNIT**2, 0), bound)


def _normalised(model: type[PrivateEstimator]) -> Patch:
    learn = model._learn

    def divided(self: PrivateEstimator, rows: Any, meter: Meter) -> Learned:
        learned = learn(self, rows, meter)
        return {name: np.asarray(array) / max(1, len(rows)) for name, array in learned.items()}

    return model, "_learn", divided


FIT_MUTANTS: Mapping[str, Callable[[type[PrivateEstimator]], tuple[Patch, ...]]] = MappingProxyType(
    {
        "no clipping": lambda _: (
            (sums, "_held", _as_they_are),
            (sums, "clipped", _as_they_are),
            (sums, "_factors", _unshortened),
        ),
        "half the noise": lambda _: ((Meter, "mechanism", _half),),
        "a bound that is used twice": lambda _: (
            (sums, "_held", _each_half),
            (sums, "clipped", _each_half_of_units),
        ),
        "the true number of rows as normaliser": lambda model: (_normalised(model),),
        "an intercept that is left out of the clip": lambda _: ((sums, "_held", _but_the_intercept),),
    }
)
"""What is wrong, in words, and what is put in its place for a model."""


@contextmanager
def planted(name: str, model: type[PrivateEstimator]) -> Iterator[None]:
    """Runs what is inside with the bug of that name in a model, or in what all models stand on."""
    patches = [patch.object(home, attribute, bug) for home, attribute, bug in FIT_MUTANTS[name](model)]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
