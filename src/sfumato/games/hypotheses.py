"""Finite, public classes of hypotheses, each of which counts the mistakes of all its members at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._rule import Rule
from sfumato.numeric.exact import as_integer

__all__ = [
    "Hypothesis",
    "HypothesisClass",
    "Predictor",
    "array_of",
    "class_of",
    "conjunctions",
    "decision_stumps",
    "labels_of",
    "parities",
    "thresholds",
]

Hypothesis: TypeAlias = Callable[[Any], ArrayLike]
"""A rule for a batch of examples: features in, a label of 0 or 1 for each row out."""

# Predictions of many hypotheses for a block of rows are held at once; no more than this many.
_CELLS = 2**24
# The tables of these classes have 2**bits and 3**bits whole numbers of 8 bytes.
_PARITY_BITS, _CONJUNCTION_BITS = 24, 14


@runtime_checkable
class HypothesisClass(Protocol):
    """A class of hypotheses with a count of its own; write one for a class too large to list."""

    def __len__(self) -> int:
        """How many hypotheses there are."""

    def __getitem__(self, index: int, /) -> Hypothesis:
        """One of them."""

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of the examples each hypothesis gets wrong."""


@runtime_checkable
class Predictor(Protocol):
    """A class of hypotheses that answers for many rows at once: `predict(features)` → (hypotheses, rows)."""

    def __len__(self) -> int:
        """How many hypotheses there are."""

    def predict(self, features: Any, /) -> ArrayLike:
        """A row of labels for each hypothesis."""


def class_of(hypotheses: object) -> HypothesisClass:
    """The class that a caller meant: a ready one, an object with `predict`, or a sequence of callables.

    Raises:
        InvalidParameter: if it is none of these, or empty.
    """
    if isinstance(hypotheses, HypothesisClass):
        found: HypothesisClass = hypotheses
    elif isinstance(hypotheses, Predictor):
        found = _Predicted(hypotheses)
    elif isinstance(hypotheses, Sequence) and all(callable(each) for each in hypotheses):
        found = _Listed(tuple(hypotheses))
    else:
        raise InvalidParameter(
            "hypotheses must be a sequence of callables, or an object with a length and predict(features): "
            "thresholds, parities, conjunctions and decision_stumps make some."
        )
    if len(found) == 0:
        raise InvalidParameter("The class of hypotheses is empty: give at least one to choose from.")
    return found


def array_of(given: Any, told: str) -> NDArray[Any]:
    """An array of what was given; a ragged one is refused without being shown."""
    try:
        return np.asarray(given)
    except ValueError:
        raise InvalidValue(told) from None


def labels_of(labels: ArrayLike) -> NDArray[np.bool_]:
    """Labels as truth values.

    Raises:
        InvalidValue: if they are not a flat array of 0 and 1.
    """
    array = array_of(labels, "Labels must be a flat array with one label for each example.")
    if array.ndim != 1:
        raise InvalidValue("Labels must be a flat array with one label for each example.")
    if array.dtype == np.bool_ or array.size == 0:
        return array.astype(np.bool_)
    if array.dtype.kind not in "iuf" or not bool(np.all((array == 0) | (array == 1))):
        raise InvalidValue("Labels must be 0 or 1: recode them before learning.")
    return array.astype(np.bool_)


def numbers_of(features: Any, dimensions: int | None = None) -> NDArray[Any]:
    """Features as an array of numbers without NaN.

    Raises:
        InvalidValue: for anything else, without showing a value.
    """
    array = array_of(features, "Features must be a table with as many columns in every row.")
    if array.dtype.kind not in "biuf":
        raise InvalidValue("Features must be numbers: encode text and categories first.")
    if array.dtype.kind == "f" and bool(np.isnan(array).any()):
        raise InvalidValue("Features hold NaN: fill the gaps by a public rule, or drop those examples.")
    if dimensions is not None and array.ndim != dimensions:
        shape = "a flat array" if dimensions == 1 else "a table with one row for each example"
        raise InvalidValue(f"Features of this class must be {shape}.")
    return array


def _answers(given: ArrayLike, rows: int, hypotheses: int | None) -> NDArray[np.bool_]:
    """Predictions as truth values of the right shape."""
    array = np.asarray(given)
    if array.shape != ((rows,) if hypotheses is None else (hypotheses, rows)):
        raise InvalidParameter(
            "A hypothesis must answer with one label for each row it was shown (a class that predicts: with "
            "one row of labels for each hypothesis)."
        )
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf" or not bool(np.all((array == 0) | (array == 1))):
        raise InvalidParameter("A hypothesis must answer with labels of 0 and 1.")
    return array.astype(np.bool_)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A sequence of callables."""

    hypotheses: tuple[Hypothesis, ...]

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, index: int, /) -> Hypothesis:
        return self.hypotheses[index]

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """One callable at a time, over all rows."""
        rows = numbers_of(features)
        answers = (_answers(hypothesis(rows), len(labels), None) for hypothesis in self.hypotheses)
        return np.array([np.count_nonzero(answer != labels) for answer in answers], np.int64)


@dataclass(frozen=True, slots=True)
class _Predicted:
    """An object with `predict`, asked for a block of rows at a time."""

    predictor: Predictor

    def __len__(self) -> int:
        return len(self.predictor)

    def __getitem__(self, index: int, /) -> Hypothesis:
        def one(features: Any) -> ArrayLike:
            rows = np.asarray(features)
            return np.concatenate([each[index] for each in self._blocks(rows)] or [np.zeros(0, np.bool_)])

        return one

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Blocks of rows, so that memory stays bounded."""
        rows = numbers_of(features)
        total, start = np.zeros(len(self), np.int64), 0
        for answers in self._blocks(rows):
            here = labels[start : start + answers.shape[1]]
            total += np.count_nonzero(answers != here, axis=1)
            start += len(here)
        return total

    def _blocks(self, rows: NDArray[Any]) -> Any:
        size = max(1, _CELLS // len(self))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            yield _answers(self.predictor.predict(block), len(block), len(self))


def _sorted_points(points: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(points)
    except ValueError:
        array = np.zeros(0)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        raise InvalidParameter(f"{name} must be a flat list of at least one number, fixed without the data.")
    values = array.astype(np.float64)
    if not bool(np.isfinite(values).all()) or bool(np.any(np.diff(values) <= 0)):
        raise InvalidParameter(f"{name} must be finite and increasing.")
    values.flags.writeable = False
    return values


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class thresholds:  # noqa: N801  (read as a function: thresholds(points))
    """Rules "x ≥ t" on the line for every public point t, and last the rule that says 0 to all.

    Millions of points and examples are no trouble: every example is placed among the points once, and the
    mistakes of all rules are two running sums.

    Args:
        points: the candidates for t, increasing, fixed without the data. Over an *infinite* domain no private
            learner exists at any sample size (Bun, Nissim, Stemmer, Vadhan 2015): a grid has to be chosen,
            and the examples' own values are not one, since which of them is offered tells who is there.
    """

    points: NDArray[np.float64]

    def __init__(self, points: ArrayLike) -> None:
        object.__setattr__(self, "points", _sorted_points(points, "points"))

    def __repr__(self) -> str:
        return f"thresholds({len(self.points)} points from {self.points[0]:g} to {self.points[-1]:g})"

    def __len__(self) -> int:
        return len(self.points) + 1

    def __getitem__(self, index: int, /) -> Hypothesis:
        place = range(len(self))[index]
        # As a float64 of its own: a Python float would be rounded to the width of narrow features.
        edge = self.points[place] if place < len(self.points) else None

        def hypothesis(features: Any) -> ArrayLike:
            rows = numbers_of(features, 1)
            return rows >= edge if edge is not None else np.zeros(len(rows), np.bool_)

        return Rule("never" if edge is None else f"x ≥ {edge:g}", hypothesis)

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Rule i says 1 to whoever has more than i points at or below them."""
        below = np.searchsorted(self.points, numbers_of(features, 1), side="right")
        ones = np.bincount(below[labels], minlength=len(self))
        zeros = np.bincount(below[~labels], minlength=len(self))
        missed = np.cumsum(ones)
        return np.asarray(missed + (zeros.sum() - np.cumsum(zeros)), np.int64)


def _codes(features: Any, bits: int) -> NDArray[np.int64]:
    """Rows of bits as whole numbers, the first column the highest bit."""
    rows = numbers_of(features, 2)
    if rows.shape[1] != bits:
        raise InvalidValue(f"Features of this class must have {bits} columns.")
    if not bool(np.all((rows == 0) | (rows == 1))):
        raise InvalidValue("Features of this class must be 0 or 1: recode them before learning.")
    return np.asarray(rows.astype(np.int64) @ (1 << np.arange(bits - 1, -1, -1, dtype=np.int64)))


def _signed_histogram(features: Any, labels: NDArray[np.bool_], bits: int) -> NDArray[np.int64]:
    """For every pattern of bits: how many more of its examples are labelled 0 than 1."""
    codes = _codes(features, bits)
    zeros = np.bincount(codes[~labels], minlength=1 << bits)
    return np.asarray(zeros - np.bincount(codes[labels], minlength=1 << bits), np.int64)


@dataclass(frozen=True, slots=True)
class parities:  # noqa: N801
    """The 2**bits parities of a row of bits: is the number of ones among chosen columns odd?

    Hypothesis s takes the columns of the binary digits of s, the first column the highest. Their mistakes
    come from one fast Walsh–Hadamard transform in whole numbers.

    Args:
        bits: the columns of a row, at most 24.
    """

    bits: int

    def __post_init__(self) -> None:
        if as_integer(self.bits, "bits") > _PARITY_BITS:
            raise InvalidParameter(f"bits must be at most {_PARITY_BITS}: the table has 2**bits entries.")

    def __len__(self) -> int:
        return 1 << self.bits

    def __getitem__(self, index: int, /) -> Hypothesis:
        chosen = range(len(self))[index]
        odd = [f"x{column}" for column in range(self.bits) if chosen >> (self.bits - 1 - column) & 1]
        return Rule(
            f"{' + '.join(odd)} is odd" if odd else "never",
            lambda features: np.bitwise_count(_codes(features, self.bits) & chosen) % 2 == 1,
        )

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Right less wrong is Σ (−1)^(label + ⟨s, x⟩), the transform of the signed histogram."""
        table = _signed_histogram(features, labels, self.bits)
        for level in range(self.bits):
            pairs = table.reshape(-1, 2, 1 << level)
            table = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        return np.asarray((len(labels) - table.reshape(-1)) // 2, np.int64)


@dataclass(frozen=True, slots=True)
class conjunctions:  # noqa: N801
    """The 3**bits conjunctions of literals: each column must be 1, must be 0, or does not matter.

    The digits of a hypothesis in base 3, the first column the highest, say which: 0 any, 1 must be 1, 2 must
    be 0.

    Args:
        bits: the columns of a row, at most 14.
    """

    bits: int

    def __post_init__(self) -> None:
        most = _CONJUNCTION_BITS
        if as_integer(self.bits, "bits") > most:
            raise InvalidParameter(f"bits must be at most {most}: the table has 3**bits entries.")

    def __len__(self) -> int:
        return cast(int, 3**self.bits)

    def __getitem__(self, index: int, /) -> Hypothesis:
        place = range(len(self))[index]
        digits = [place // 3**column % 3 for column in reversed(range(self.bits))]
        ones = sum(1 << (self.bits - 1 - i) for i, digit in enumerate(digits) if digit == 1)
        zeros = sum(1 << (self.bits - 1 - i) for i, digit in enumerate(digits) if digit == 2)

        def hypothesis(features: Any) -> ArrayLike:
            codes = _codes(features, self.bits)
            return np.asarray((codes & (ones | zeros)) == ones)

        asked = [f"x{i} = {int(digit == 1)}" for i, digit in enumerate(digits) if digit]
        return Rule(" and ".join(asked) or "always", hypothesis)

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """All ones are missed but those that are met, and every zero that is met is a mistake."""
        table = _signed_histogram(features, labels, self.bits)
        done = 1
        for _ in range(self.bits):
            halves = table.reshape(done, 2, -1)
            table = np.stack([halves.sum(axis=1), halves[:, 1], halves[:, 0]], axis=1)
            done *= 3
        return np.asarray(np.count_nonzero(labels) + table.reshape(-1), np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class decision_stumps:  # noqa: N801
    """Rules on one column: "column j ≥ t", then "column j < t", for every public cut t of every column.

    Args:
        cuts: for each column its cuts, increasing, fixed without the data; an empty list leaves a column out.
    """

    cuts: tuple[NDArray[np.float64], ...]

    def __init__(self, cuts: Sequence[ArrayLike]) -> None:
        if not isinstance(cuts, Sequence | np.ndarray):
            raise InvalidParameter("cuts must list the cuts of each column.")
        found = tuple(
            np.zeros(0, np.float64)
            if isinstance(each, Sequence | np.ndarray) and len(each) == 0
            else _sorted_points(each, "cuts")
            for each in cuts
        )
        object.__setattr__(self, "cuts", found)

    def __repr__(self) -> str:
        return f"decision_stumps({len(self)} rules on {len(self.cuts)} columns)"

    def __len__(self) -> int:
        return 2 * sum(len(each) for each in self.cuts)

    def __getitem__(self, index: int, /) -> Hypothesis:
        place, below = divmod(range(len(self))[index], 2)
        column = 0
        while place >= len(self.cuts[column]):
            place -= len(self.cuts[column])
            column += 1
        edge = self.cuts[column][place]

        def hypothesis(features: Any) -> ArrayLike:
            values = numbers_of(features, 2)[:, column]
            return np.asarray(values < edge if below else values >= edge)

        return Rule(f"x{column} {'<' if below else '≥'} {edge:g}", hypothesis)

    def mistakes(self, features: Any, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The count of `thresholds` for each column; the opposite rule errs on all the others."""
        rows = numbers_of(features, 2)
        if rows.shape[1] != len(self.cuts):
            raise InvalidValue(f"Features of this class must have {len(self.cuts)} columns.")
        parts = [np.zeros((0, 2), np.int64)]
        for column, edges in enumerate(self.cuts):
            if len(edges):
                wrong = thresholds(edges).mistakes(rows[:, column], labels)[:-1]
                parts.append(np.stack([wrong, len(labels) - wrong], axis=1))
        return np.concatenate(parts).reshape(-1)
