"""The textbook's chapter on machine learning: logistic regression by gradient descent, plain and private.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah), with the data as an
argument where the original reads a global. A model is a vector theta, a label is −1 or 1, and the loss of one
row is log(1 + exp(−y·x·theta)). Whatever takes one row also takes a matrix of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from sfumato.book._data import floats_of, stacked
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Gaussian
from sfumato.numeric.exact import Rational, as_integer, float_down, positive

__all__ = [
    "L2_clip",
    "accuracy",
    "avg_grad",
    "descent_noise",
    "gradient",
    "gradient_descent",
    "gradient_sum",
    "loss",
    "noisy_gradient_descent",
    "predict",
]

Floats: TypeAlias = NDArray[np.float64]

_BITS = 32  # clipped gradients are whole multiples of 2**-32 to 2**-33 of the bound
_MOST_ROWS = 2**28  # their sum fits in 64 bits
_MOST_COLUMNS = 2**20
_BLOCK = 2**18  # numbers handled at a time, so that a large table needs no second one beside it
# A float norm of 2**20 numbers is right to 2**-32; clipping to this much less keeps the true norm below b.
_SHORTER = 1 - 2.0**-30


def gradient(theta: ArrayLike, xi: ArrayLike, yi: ArrayLike) -> Floats:
    """The gradient of the loss at one row, or at each row of a matrix.

    Trap of the original: `np.exp(yi * xi.dot(theta))` overflows for a row that the model is sure of.

    Privacy:
        None: a gradient is a multiple of the row, so that whoever sees it has the row
        (`sfumato.attacks.gradients`).
    """
    rows, signs = _rows(xi), floats_of(yi, "yi")
    weights = _vector(theta, rows.shape[-1])
    if signs.shape != rows.shape[:-1]:
        raise InvalidParameter("There must be one label for each row.")
    with np.errstate(over="ignore", invalid="ignore"):
        # Where a model and a row are so large that their product is no number, there is no slope to follow.
        slopes = np.nan_to_num(signs * expit(-signs * _margins(rows, weights)), nan=0.0)
    return np.asarray(-slopes[..., None] * rows)


def avg_grad(theta: ArrayLike, X: ArrayLike, y: ArrayLike) -> Floats:
    """The mean of the gradients over all rows, exactly.

    Trap of the original: a Python loop over the rows; and a mean whose sensitivity is left as '???', since it
    divides by how many rows there are, which is private where rows may be added and removed.

    Privacy:
        None: not bounded, no noise. `noisy_gradient_descent` does not use it.
    """
    data, labels = _data(X, y)
    if not len(data):
        raise InvalidParameter("The mean of no gradients is not defined; give at least one row.")
    theta = _vector(theta, data.shape[1])
    return np.asarray(-((labels * expit(-labels * (data @ theta))) @ data) / len(data))


def L2_clip(v: ArrayLike, b: Rational) -> Floats:  # noqa: N802 - the textbook's name
    """The vector, or each row of a matrix, shortened to a length of at most b.

    Trap of the original: `b * (v / norm)` is often longer than b by a rounding error, and is NaN where the
    norm overflows.

    Privacy:
        Claim: the result has L2 norm at most b, in exact arithmetic over its floats, for up to 2**20
        coordinates; it is a function of that row alone. Proof: the norm is computed with a relative error
        below 2**-32, and what is longer than b·(1 − 2**-30) by that figure is scaled to it. Numbers so small
        that their squares vanish are, together, shorter than any b that is allowed.
    """
    vectors = floats_of(v, "v")
    bound = _bound(b)
    if vectors.ndim not in (1, 2) or vectors.shape[-1] > _MOST_COLUMNS:
        raise InvalidParameter("v must be a vector or a matrix of rows, of at most 2**20 coordinates.")
    if not np.isfinite(vectors).all():
        raise InvalidValue("vectors must be finite: replace NaN and infinity first.")
    return _clipped(vectors, bound)


def gradient_sum(theta: ArrayLike, X: ArrayLike, y: ArrayLike, b: Rational) -> Floats:
    """The sum of the gradients of all rows, each clipped to length b and rounded to a grid towards zero.

    Trap of the original: a sum of floats. Whether a row is there changes how all the others are rounded, so
    that the sum moves by more than b. Here it is a sum of integers.

    Privacy:
        Claim: adding or removing one row moves the sum by at most b in L2, while the sum is below 2**20·b
        (beyond that the float that is given here is rounded; `noisy_gradient_descent` adds its noise to the
        integers). Proof: a row's term depends on that row and theta alone (no library routine that
        handles a row by its place among the others), `L2_clip` bounds it, rounding a coordinate towards zero
        makes no vector longer, and integers add up exactly. No noise is added here: the sum itself is not
        private.
    """
    data, labels = _data(X, y)
    unit = _unit(positive(b, "b"))
    return _whole_sum(_vector(theta, data.shape[1]), data, labels, b).astype(np.float64) * unit


def gradient_descent(iterations: int, X: ArrayLike, y: ArrayLike, *, rate: float = 1.0) -> Floats:
    """The model after so many steps of plain gradient descent from zero.

    Trap of the original: its twin `gradient_descent_log` prints the exact loss at every step, which is as
    much a release of the data as the model is; there is no such function here.

    Privacy:
        None: the model memorises rows where there are fewer of them than features
        (`sfumato.attacks.membership`).
    """
    data, labels = _data(X, y)
    _check_rate(rate)
    theta = np.zeros(data.shape[1])
    for _ in range(as_integer(iterations, "iterations", least=0)):
        theta = theta - rate * avg_grad(theta, data, labels)
    return theta


def descent_noise(
    iterations: int, epsilon: Rational, delta: Rational, *, b: Rational = 5, counted: bool = True
) -> tuple[Gaussian, Gaussian | None]:
    """The noise of each step and of the count of rows, before anything is read: the price of a descent.

    The first mechanism is used once a step, the second once in all; it is None if the size is public.

    Privacy:
        Claim: k releases of the first and one of the second are (epsilon, delta)-private together, exactly:
        `compose([step.loss] * k + [count.loss])` has the curve of one Gaussian calibrated to (epsilon,
        delta). Proof: Gaussian noise of deviation sigma on a value that moves by at most s is dominated by
        N(μ, 1) against N(0, 1) with μ = s/σ, and k of these in turn, each question depending on the answers
        before, by μ_total² = Σμ² (Dong, Roth, Su 2022, Cor. 3.3): k steps of sensitivity b are one release
        of sensitivity √k·b, for they are one vector of k blocks that moves by at most b in each. So
        ρ = μ²/2 is divided equally between the steps, the count being one more of them.
    """
    steps = as_integer(iterations, "iterations")
    whole = Gaussian(epsilon, delta, sensitivity=1).rho
    share = whole / (steps + counted)
    step = Gaussian(rho=share, sensitivity=positive(b, "b"))
    return step, Gaussian(rho=share, sensitivity=1) if counted else None


def noisy_gradient_descent(
    iterations: int,
    epsilon: Rational,
    delta: Rational,
    *,
    X: ArrayLike,
    y: ArrayLike,
    b: Rational = 5,
    size: int | None = None,
    rate: float = 1.0,
) -> Floats:
    """The model after so many steps of gradient descent, (epsilon, delta)-private over all of them.

    Traps of the original: epsilon and delta are paid *per step* and once more for the count, so that 10 steps
    at epsilon 1 cost 11; the sensitivity of its first version is '???'; the noise is of floats, from a
    generator that can be predicted; the noisy count may be zero or negative.

    Args:
        iterations: How many steps. Each sees the whole table; more steps mean more noise in each.
        epsilon: For the whole model, all steps and the count of rows included.
        delta: Likewise.
        X: One row a person: a matrix of finite numbers, best scaled so that rows are about as long as b.
        y: A label of −1 or 1 a row.
        b: What each row's gradient is clipped to, in L2; it must not be read off the data.
        size: A *public* number that the sum of gradients is divided by: a size that was declared or released
            before. A wrong one makes the steps longer or shorter, and costs no privacy. If None, the number
            of rows counts as private and is bought with as much of the budget as one step gets.
        rate: The length of a step.

    Returns:
        The model theta, one number a column.

    Privacy:
        Claim: (epsilon, delta), for tables that differ by one row added or removed; the model and all that
        was computed on the way may be published. Tables that differ in the *content* of one row are two such
        steps apart: there the loss is that of μ doubled (`loss.group(2)`). Conditions: a person has one row;
        `b`, `size`, `rate` and `iterations` are public. Proof: `gradient_sum` for the sensitivity of a step,
        `descent_noise` for the sum over them; all else is post-processing. That a table is refused (NaN,
        a label other than ±1) is not covered: clean it by a rule for each row first.

    Raises:
        InvalidParameter: for unusable parameters or shapes.
        InvalidValue: for rows that are not finite and labels other than −1 and 1.
    """
    data, labels = _data(X, y)
    _check_rate(rate)
    unit = _unit(positive(b, "b"))
    step, count = descent_noise(iterations, epsilon, delta, b=b, counted=size is None)
    # The same noise in the grid's units, so that it is added to whole numbers.
    noise = Gaussian(rho=step.rho, sensitivity=step.sensitivity / Fraction(unit))
    if count is not None:
        parts = max(1.0, count.release(len(data)))
    else:
        parts = float(as_integer(size, "size")) if size is not None else math.nan
    theta = np.zeros(data.shape[1])
    for _ in range(iterations):
        total = noise.release(_whole_sum(theta, data, labels, b)) * unit
        theta = theta - rate * total / parts
    return theta


def predict(theta: ArrayLike, xi: ArrayLike) -> Any:
    """The label, −1 or 1, that the model gives a row, or each row of a matrix.

    Trap of the original: `np.sign` gives 0 on the boundary, which is not a label. Here that is 1.

    Privacy:
        Post-processing of the model, as far as the rows asked about are the asker's own.
    """
    rows = _rows(xi)
    return np.where(_margins(rows, _vector(theta, rows.shape[-1])) >= 0, 1, -1)


def loss(theta: ArrayLike, xi: ArrayLike, yi: ArrayLike) -> Any:
    """The logistic loss log(1 + exp(−y·x·theta)) of one row, or of each row of a matrix.

    Trap of the original: it overflows to infinity for a row that the model is wrong about.

    Privacy:
        None: a loss on training rows is a fact about them.
    """
    rows = _rows(xi)
    return np.logaddexp(0, -floats_of(yi, "yi") * _margins(rows, _vector(theta, rows.shape[-1])))


def accuracy(theta: ArrayLike, X: ArrayLike, y: ArrayLike) -> float:
    """The share of rows whose label the model gives.

    Trap of the original: the test set is as sensitive as the training set, and this is an exact statistic of
    it.

    Privacy:
        None. Publish a count of hits with noise instead.
    """
    data, labels = _data(X, y)
    if not len(data):
        raise InvalidParameter("accuracy needs at least one row.")
    return float(np.mean(predict(theta, data) == labels))


def _margins(rows: Floats, theta: Floats) -> Floats:
    # Not rows @ theta: matrix libraries round a row's product by its place in a block of rows, and
    # then one row more or less would move the terms of all the others.
    return np.asarray(np.add.reduce(rows * theta, axis=-1))


def _clipped(rows: Floats, bound: float) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.add.reduce(rows * rows, axis=-1))
        factors = np.minimum(1.0, np.divide(bound, norms, out=np.ones_like(norms), where=norms > bound))
        return np.asarray(rows * factors[..., None])


def _whole_sum(theta: Floats, data: Floats, labels: Floats, b: Rational) -> NDArray[np.int64]:
    """The sum of the clipped gradients in grid units, exactly."""
    bound, unit = _bound(b), _unit(positive(b, "b"))
    total = np.zeros(data.shape[1], np.int64)
    for part in _blocks(data):
        # Conversion cuts towards zero; dividing by a power of two is exact.
        terms = _clipped(gradient(theta, data[part], labels[part]), bound) / unit
        total += terms.astype(np.int64).sum(axis=0)
    return total


def _blocks(data: Floats) -> Iterator[slice]:
    rows = max(1, _BLOCK // max(1, data.shape[1]))
    for start in range(0, len(data), rows):
        yield slice(start, start + rows)


def _unit(exact: Fraction) -> float:
    """A power of two, between 2**-33 and 2**-32 of the bound."""
    return math.ldexp(1.0, math.frexp(float(exact))[1] - 1 - _BITS)


def _bound(b: Rational) -> float:
    exact = positive(b, "b")
    if not Fraction(1, 10**100) < exact < 10**100:
        raise InvalidParameter("b must lie between 1e-100 and 1e100; scale the features.")
    return float_down(exact) * _SHORTER


def _rows(given: ArrayLike) -> Floats:
    rows = np.ascontiguousarray(floats_of(given, "rows"))
    if rows.ndim not in (1, 2):
        raise InvalidParameter("rows must be a vector or a matrix with one row a record.")
    return rows


def _vector(theta: ArrayLike, width: int) -> Floats:
    vector = floats_of(theta, "theta")
    if vector.shape != (width,):
        raise InvalidParameter("theta must be a vector with one number for each column of the rows.")
    return vector


def _data(X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    try:
        data, labels = np.ascontiguousarray(stacked(X), dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("X must be a matrix and y a vector of numbers; encode text first.") from None
    if data.ndim != 2 or not 0 < data.shape[1] <= _MOST_COLUMNS:
        raise InvalidParameter("X must be a matrix with one row a person and at most 2**20 columns.")
    if labels.shape != data.shape[:1]:
        raise InvalidParameter("y must have one label for each row of X.")
    if len(data) > _MOST_ROWS:
        raise InvalidParameter("X must have at most 2**28 rows.")
    if not np.isfinite(data).all():
        raise InvalidValue("X must be finite: replace NaN and infinity first.")
    if not np.isin(labels, (-1, 1)).all():
        raise InvalidValue("labels must be -1 or 1: map them first, for instance 0 to -1.")
    return data, labels


def _check_rate(rate: float) -> None:
    if not (rate > 0 and math.isfinite(rate)):
        raise InvalidParameter("rate must be a positive number, such as 1.")
