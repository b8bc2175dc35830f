"""What can be learned from a synthetic table: models trained on it, tested on real rows, by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import MissingExtra
from sfumato.numeric.estimates import UNKNOWN, Estimate, paired, share
from sfumato.synth._report.yardstick import Codes, Group
from sfumato.synth.columns.fine import Fine

__all__ = ["EVERYBODY", "Task", "tasks_of"]

Floats: TypeAlias = NDArray[np.float64]

EVERYBODY = "everybody"
_MOST_VALUES = 255  # that boosted trees take as categories
_MOST_ROWS = 100_000  # that a model is trained on
_SHARED = 10_000  # rows from which several threads pay: they wait for each other, and spin as they do
_LEAST = 2  # of either class, for the area under a curve


@dataclass(frozen=True, slots=True)
class Task:
    """One column told from all others, in one group of test rows.

    Attributes:
        target: The column.
        group: Such as `sex=F`; or everybody.
        rows: How many test rows there are.
        figure: `AUC` of two classes, `accuracy` of more, `R²` of a number.
        synthetic: Of a model that was trained on the synthetic rows.
        real: Of one that was trained on real rows.
        lost: How much less the first has; on the same test rows.

    Intervals are about other test rows, for the two models as they were trained.
    """

    target: str
    group: str
    rows: int
    figure: str
    synthetic: Estimate
    real: Estimate
    lost: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "target": self.target,
            "group": self.group,
            "rows": self.rows,
            "figure": self.figure,
            "synthetic": self.synthetic.to_dict(),
            "real": self.real.to_dict(),
            "lost": self.lost.to_dict(),
        }


def tasks_of(
    columns: Sequence[Fine],
    target: int,
    synthetic: Sequence[Codes],
    real: Sequence[Codes],
    test: Sequence[Codes],
    groups: Sequence[Group],
    *,
    confidence: float,
    seed: int,
) -> list[Task]:
    """How well one column is told from the others, by boosted trees: everybody, then each group.

    Test rows in which it is missing are left out, and so are such rows of the training.

    Args:
        columns: All columns.
        target: The place of the one to tell.
        synthetic: The fine cells of the synthetic rows.
        real: Of real rows to train on.
        test: Of other real rows.
        groups: Of several tables, the test rows last.
        confidence: Of each interval by itself.
        seed: Of the training.

    Raises:
        MissingExtra: without scikit-learn.
    """
    column = columns[target]
    known = test[target] < column.known
    truth = test[target][known]
    asked = [codes[known] for codes in test]
    told = [_told(columns, target, rows, asked, seed) for rows in (synthetic, real)]
    lines = [(EVERYBODY, np.ones(len(truth), bool))]
    lines += [(group.name, group.parts[-1][known]) for group in groups if group.column != target]
    compare = _numbers if column.is_ordered else _classes
    found = list[Task]()
    for name, inside in lines:
        if inside.any():
            synthetic_told, real_told = (answers[inside] for answers in told)
            figures = compare(truth[inside], synthetic_told, real_told, confidence)
            found.append(Task(column.name, name, int(inside.sum()), *figures))
    return found


def _told(
    columns: Sequence[Fine], target: int, rows: Sequence[Codes], asked: Sequence[Codes], seed: int
) -> Floats:
    """What a model that was trained on some rows says of others: chances of each class, or a number."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingExtra(
            "Training on synthetic rows needs scikit-learn: pip install 'sfumato[learn]'."
        ) from None
    column, places = columns[target], [at for at in range(len(columns)) if at != target]
    kept = np.flatnonzero(rows[target] < column.known)[:_MOST_ROWS]
    labels = rows[target][kept]
    if not len(labels) or not places or (labels == labels[0]).all():
        return _constant(column, labels, len(asked[target]))
    features, questions = (
        np.column_stack([_feature(columns[at], table[at]) for at in places])
        for table in ([codes[kept] for codes in rows], asked)
    )
    names = [not columns[at].is_ordered and columns[at].size <= _MOST_VALUES for at in places]
    with threadpool_limits(1 if len(labels) < _SHARED else None, user_api="openmp"):
        if column.is_ordered:
            model = HistGradientBoostingRegressor(categorical_features=names, random_state=seed)
            return np.asarray(model.fit(features, labels.astype(np.float64)).predict(questions))
        classifier = HistGradientBoostingClassifier(categorical_features=names, random_state=seed)
        classifier.fit(features, labels)
        chances = np.zeros((len(questions), column.known))
        chances[:, classifier.classes_] = classifier.predict_proba(questions)
        return chances


def _feature(column: Fine, codes: Codes) -> Floats:
    """Cells as a model takes them: what is missing is NaN."""
    return np.where(codes < column.known, codes.astype(np.float64), np.nan)


def _constant(column: Fine, labels: Codes, many: int) -> Floats:
    """What is said of anybody where there is nothing to learn."""
    if column.is_ordered:
        return np.full(many, float(labels.mean()) if len(labels) else (column.known - 1) / 2)
    chances = np.bincount(labels, minlength=column.known) + 1e-9
    return np.tile(chances / chances.sum(), (many, 1))


def _classes(
    truth: Codes, synthetic: Floats, real: Floats, confidence: float
) -> tuple[str, Estimate, Estimate, Estimate]:
    if synthetic.shape[1] == 2:
        return ("AUC", *areas(truth == 1, synthetic[:, 1], real[:, 1], confidence))
    ours, theirs = (chances.argmax(axis=1) == truth for chances in (synthetic, real))
    many = len(truth)
    return (
        "accuracy",
        share(int(ours.sum()), many, confidence),
        share(int(theirs.sum()), many, confidence),
        paired(int((theirs & ~ours).sum()), int((ours & ~theirs).sum()), many, confidence),
    )


def areas(
    truth: NDArray[np.bool_], one: Floats, other: Floats, confidence: float
) -> tuple[Estimate, Estimate, Estimate]:
    """The areas under the curves of two scores, and how much more the second has.

    Intervals by DeLong, DeLong and Clarke-Pearson (1988): normal, and good for some ten rows of either class.
    """
    if min(truth.sum(), (~truth).sum()) < _LEAST:
        return UNKNOWN, UNKNOWN, UNKNOWN
    parts = [_placements(truth, scores) for scores in (one, other)]
    found = [_by_parts(*part, confidence) for part in parts]
    lost = _by_parts(parts[1][0] - parts[0][0], parts[1][1] - parts[0][1], confidence)
    held = [Estimate(area, max(0.0, low), min(1.0, high)) for area, low, high in found]
    return held[0], held[1], lost


def _placements(truth: NDArray[np.bool_], scores: Floats) -> tuple[Floats, Floats]:
    """For each row of a class the share of the other class that it is on the right side of, ties for half."""
    from scipy.stats import rankdata

    up, down = scores[truth], scores[~truth]
    whole = rankdata(np.concatenate([up, down]))
    above = (whole[: len(up)] - rankdata(up)) / len(down)
    below = 1 - (whole[len(up) :] - rankdata(down)) / len(up)
    return np.asarray(above), np.asarray(below)


def _by_parts(above: Floats, below: Floats, confidence: float) -> Estimate:
    from scipy.stats import norm

    value = float(above.mean())
    half = float(norm.ppf((1 + confidence) / 2)) * math.sqrt(
        above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below)
    )
    return Estimate(value, value - half, value + half)


def _numbers(
    truth: Codes, synthetic: Floats, real: Floats, confidence: float
) -> tuple[str, Estimate, Estimate, Estimate]:
    """R² of both, and the difference: to first order, by Student's distribution."""
    from scipy.stats import t

    values = truth.astype(np.float64)
    around = (values - values.mean()) ** 2
    whole = float(around.mean())
    if len(values) < 2 or whole <= 0:
        return "R²", UNKNOWN, UNKNOWN, UNKNOWN
    wrong = [(values - told) ** 2 for told in (synthetic, real)]
    left = [float(squares.mean()) / whole for squares in wrong]
    terms = [(squares - part * around) / whole for squares, part in zip(wrong, left, strict=True)]
    factor = float(t.ppf((1 + confidence) / 2, len(values) - 1)) / math.sqrt(len(values))

    def estimate(value: float, term: Floats) -> Estimate:
        half = factor * float(term.std(ddof=1))
        return Estimate(value, value - half, value + half)

    return (
        "R²",
        estimate(1 - left[0], terms[0]),
        estimate(1 - left[1], terms[1]),
        estimate(left[0] - left[1], terms[0] - terms[1]),
    )
