"""Finite, public classes of hypotheses, each of which counts the mistakes of all its members at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._rule import Rule
from sfumato.numeric.exact import as_integer
from sfumato.numeric.private_values import table_of, truths_of

__all__ = [
    "Hypothesis",
    "HypothesisClass",
    "Predictor",
    "class_of",
    "conjunctions",
    "decision_stumps",
    "labels_of",
    "parities",
    "thresholds",
]

Truths: TypeAlias = NDArray[np.bool_]

Hypothesis: TypeAlias = Callable[[Any], ArrayLike]
"""A rule for a batch of examples: features in, a label of 0 or 1 for each row out."""

# Predictions of many hypotheses for a block of rows are held at once; no more than this many.
_CELLS = 2**24
# The tables of these classes have 2**bits and 3**bits whole numbers of 8 bytes.
_PARITY_BITS, _CONJUNCTION_BITS = 24, 14
_SHAPE = (
    "A hypothesis must answer with one label for each row it was shown (a class that predicts: with one row "
    "of labels for each hypothesis)."
)


@runtime_checkable
class HypothesisClass(Protocol):
    """A class of hypotheses with a count of its own; write one for a class too large to list."""

    def __len__(self) -> int:
        """How many hypotheses there are."""

    def __getitem__(self, index: int, /) -> Hypothesis:
        """One of them."""

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """How many of the examples each hypothesis gets wrong."""


@runtime_checkable
class Predictor(Protocol):
    """A class of hypotheses that answers for many rows at once: `predict(features)` → (hypotheses, rows)."""

    def __len__(self) -> int:
        """How many hypotheses there are."""

    def predict(self, features: Any, /) -> ArrayLike:
        """A row of labels for each hypothesis."""


def class_of(hypotheses: object, columns: int | None = None) -> HypothesisClass:
    """The class that a caller meant: a ready one, an object with `predict`, or a sequence of callables.

    Args:
        hypotheses: the class.
        columns: how many numbers a row of a list has, for rules of one's own; None: each row is one number.

    Raises:
        InvalidParameter: if it is not one of these, or empty.
    """
    if isinstance(hypotheses, HypothesisClass):
        chosen: HypothesisClass = hypotheses
    elif isinstance(hypotheses, Predictor):
        chosen = _Predicted(hypotheses, columns)
    elif isinstance(hypotheses, Sequence) and all(callable(hypothesis) for hypothesis in hypotheses):
        chosen = _Listed(tuple(hypotheses), columns)
    else:
        raise InvalidParameter(
            "hypotheses must be a sequence of callables, or an object with a length and predict(features): "
            "thresholds, parities, conjunctions and decision_stumps make some."
        )
    if len(chosen) == 0:
        raise InvalidParameter("The class of hypotheses is empty: give at least one to choose from.")
    return chosen


def labels_of(labels: Any) -> tuple[Truths, Truths]:
    """Labels as truth values, and which of them are known; each by itself.

    Raises:
        InvalidValue: if they are not a flat column, or of a declared type without numbers.
    """
    return truths_of(
        labels,
        flat="Labels must be a flat array with one label for each example.",
        other="Labels must be 0 or 1: recode them before learning.",
    )


def _rows_of(features: Any, columns: int | None) -> tuple[NDArray[Any], Truths]:
    """Features as rows of numbers, each by itself, and which rows are complete.

    Args:
        features: an array, which keeps its type, or rows of any other kind, which become float64.
        columns: how many numbers a row has; None: one, or whatever an array has.

    Raises:
        InvalidValue: by the declared type and shape alone, without showing a value.
    """
    shape = "a flat array" if columns is None else f"a table of {columns} columns, one row for each example"
    rows = table_of(
        features,
        columns,
        flat=f"Features of this class must be {shape}.",
        other="Features must be numbers: encode text and categories first.",
    )
    gaps = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, np.bool_)
    return rows, np.asarray(~gaps.any(axis=tuple(range(1, rows.ndim))))


def _line_of(features: Any) -> tuple[NDArray[Any], Truths]:
    """Features that are one number each, and which of them are there.

    Raises:
        InvalidValue: by the declared type and shape alone.
    """
    rows, complete = _rows_of(features, None)
    if rows.ndim != 1:
        raise InvalidValue("Features of this class must be a flat array.")
    return rows, complete


def _answers(given: Any, rows: int, hypotheses: int | None) -> tuple[Truths, Truths]:
    """Predictions as truth values of the right shape, and which of them are labels at all."""
    try:
        table = table_of(given, None if hypotheses is None else rows, flat=_SHAPE, other=_SHAPE)
    except InvalidValue:
        raise InvalidParameter(_SHAPE) from None
    if table.shape != ((rows,) if hypotheses is None else (hypotheses, rows)):
        raise InvalidParameter(_SHAPE)
    return table == 1, (table == 0) | (table == 1)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A sequence of callables."""

    hypotheses: tuple[Hypothesis, ...]
    columns: int | None = None

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, index: int, /) -> Hypothesis:
        return self.hypotheses[index]

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """One callable at a time, over all complete rows; what is not a label is a mistake."""
        rows, complete = _rows_of(features, self.columns)
        rows, labels = rows[complete], labels[complete]
        rows.flags.writeable = False  # no rule may change what the next one sees
        counts = np.empty(len(self), np.int64)
        for place, hypothesis in enumerate(self.hypotheses):
            said, known = _answers(hypothesis(rows), len(labels), None)
            counts[place] = np.count_nonzero((said != labels) | ~known)
        return counts


@dataclass(frozen=True, slots=True)
class _Predicted:
    """An object with `predict`, asked for a block of rows at a time."""

    predictor: Predictor
    columns: int | None = None

    def __len__(self) -> int:
        return len(self.predictor)

    def __getitem__(self, index: int, /) -> Hypothesis:
        def one(features: Any) -> ArrayLike:
            rows, _ = _rows_of(features, self.columns)
            return np.concatenate([said[index] for said, _ in self._blocks(rows)] or [np.zeros(0, np.bool_)])

        return one

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """Blocks of complete rows, so that memory stays bounded; what is not a label is a mistake."""
        rows, complete = _rows_of(features, self.columns)
        rows, labels = rows[complete], labels[complete]
        total, start = np.zeros(len(self), np.int64), 0
        for said, known in self._blocks(rows):
            here = labels[start : start + said.shape[1]]
            total += np.count_nonzero((said != here) | ~known, axis=1)
            start += len(here)
        return total

    def _blocks(self, rows: NDArray[Any]) -> Iterator[tuple[Truths, Truths]]:
        size = max(1, _CELLS // len(self))
        for start in range(0, len(rows), size):
            block = rows[start : start + size].copy()
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

    Millions of points and examples are fine: every example is placed among the points once, and the
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
            rows, _ = _line_of(features)
            return rows >= edge if edge is not None else np.zeros(len(rows), np.bool_)

        return Rule("never" if edge is None else f"x ≥ {edge:g}", hypothesis)

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """Rule i says 1 to whoever has more than i points at or below them."""
        rows, complete = _line_of(features)
        below, labels = np.searchsorted(self.points, rows[complete], side="right"), labels[complete]
        ones = np.bincount(below[labels], minlength=len(self))
        zeros = np.bincount(below[~labels], minlength=len(self))
        missed = np.cumsum(ones)
        return np.asarray(missed + (zeros.sum() - np.cumsum(zeros)), np.int64)


def _codes(features: Any, bits: int) -> tuple[NDArray[np.int64], Truths]:
    """Rows of bits as whole numbers, the first column the highest bit, and which rows are made of bits."""
    rows, _ = _rows_of(features, bits)
    ones = rows == 1
    return ones.astype(np.int64) @ (1 << np.arange(bits - 1, -1, -1, dtype=np.int64)), np.all(
        ones | (rows == 0), axis=1
    )


def _signed_histogram(features: Any, labels: Truths, bits: int) -> tuple[NDArray[np.int64], Truths]:
    """For every pattern of bits: how many more of its examples are labelled 0 than 1; and the labels used."""
    codes, complete = _codes(features, bits)
    codes, labels = codes[complete], labels[complete]
    zeros = np.bincount(codes[~labels], minlength=1 << bits)
    return np.asarray(zeros - np.bincount(codes[labels], minlength=1 << bits), np.int64), labels


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
            lambda features: np.bitwise_count(_codes(features, self.bits)[0] & chosen) % 2 == 1,
        )

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """Right less wrong is Σ (−1)^(label + ⟨s, x⟩), the transform of the signed histogram."""
        table, labels = _signed_histogram(features, labels, self.bits)
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
            codes, _ = _codes(features, self.bits)
            return np.asarray((codes & (ones | zeros)) == ones)

        asked = [f"x{i} = {int(digit == 1)}" for i, digit in enumerate(digits) if digit]
        return Rule(" and ".join(asked) or "always", hypothesis)

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """All ones are missed but those that are met, and every zero that is met is a mistake."""
        table, labels = _signed_histogram(features, labels, self.bits)
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
        arrays = tuple(
            np.zeros(0, np.float64)
            if isinstance(points, Sequence | np.ndarray) and len(points) == 0
            else _sorted_points(points, "cuts")
            for points in cuts
        )
        object.__setattr__(self, "cuts", arrays)

    def __repr__(self) -> str:
        return f"decision_stumps({len(self)} rules on {len(self.cuts)} columns)"

    def __len__(self) -> int:
        return 2 * sum(len(points) for points in self.cuts)

    def __getitem__(self, index: int, /) -> Hypothesis:
        place, below = divmod(range(len(self))[index], 2)
        column = 0
        while place >= len(self.cuts[column]):
            place -= len(self.cuts[column])
            column += 1
        edge = self.cuts[column][place]

        def hypothesis(features: Any) -> ArrayLike:
            values = _rows_of(features, len(self.cuts))[0][:, column]
            return np.asarray(values < edge if below else values >= edge)

        return Rule(f"x{column} {'<' if below else '≥'} {edge:g}", hypothesis)

    def mistakes(self, features: Any, labels: Truths) -> NDArray[np.int64]:
        """The count of `thresholds` for each column; the opposite rule errs on all the others."""
        rows, complete = _rows_of(features, len(self.cuts))
        rows, labels = rows[complete], labels[complete]
        parts = [np.zeros((0, 2), np.int64)]
        for column, edges in enumerate(self.cuts):
            if len(edges):
                wrong = thresholds(edges).mistakes(rows[:, column], labels)[:-1]
                parts.append(np.stack([wrong, len(labels) - wrong], axis=1))
        return np.concatenate(parts).reshape(-1)
