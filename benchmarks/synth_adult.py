"""The Adult census table in cells, as published comparisons of synthesizers have it, and scores of tables.

48,842 rows of 15 columns, numbers in 32 bins; four fifths to learn from, the rest to test on. The table is
not part of this repository: it is looked for in `$ADULT`, then in `shared/data/adult` beside the checkout.
"""

from __future__ import annotations

import csv
import itertools
import json
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.anonymity import _folder

TARGET = "income>50K"
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


class Adult(NamedTuple):
    """Rows as cells, to learn from and to test on."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def table(self) -> pa.Table:
        """What is learned from, as a table."""
        return pa.table({name: self.train[:, at] for at, name in enumerate(self.names)})


@cache
def adult() -> Adult | None:
    """The table, or None where it is not at hand."""
    folder = _folder()
    if folder is None or not (folder / "clean_adult.csv").is_file():
        return None
    domain = json.loads((folder / "clean_adult-domain.json").read_text())
    with (folder / "clean_adult.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    cells = np.array([[int(row[name]) for name in domain] for row in rows])
    order = np.random.default_rng(0).permutation(len(cells))
    cut = int(0.8 * len(cells))
    return Adult(tuple(domain), tuple(domain.values()), cells[order[:cut]], cells[order[cut:]])


def counts(cells: NDArray[np.int64], sizes: tuple[int, ...], clique: tuple[int, ...]) -> NDArray[np.int64]:
    """How many rows are in each cell of some columns."""
    place = np.ravel_multi_index([cells[:, at] for at in clique], [sizes[at] for at in clique])
    return np.bincount(place, minlength=int(np.prod([sizes[at] for at in clique])))


def variation(data: Adult, cells: NDArray[np.int64], columns: int = 2) -> float:
    """The mean total variation between the marginals of rows and those that were learned from."""
    found = []
    for clique in itertools.combinations(range(len(data.sizes)), columns):
        ours, theirs = (counts(rows, data.sizes, clique) for rows in (cells, data.train))
        found.append(np.abs(ours / len(cells) - theirs / len(data.train)).sum() / 2)
    return float(np.mean(found))


def area(data: Adult, cells: NDArray[np.int64]) -> float:
    """The AUC, on the test rows, of boosted trees that learned from these."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    at = data.names.index(TARGET)
    labels = cells[:, at]
    if len(np.unique(labels)) < 2:
        return 0.5
    with threadpool_limits(1):  # threads that wait for a busy processor take longer than one that works
        model = HistGradientBoostingClassifier(random_state=0).fit(np.delete(cells, at, axis=1), labels)
        chances = model.predict_proba(np.delete(data.test, at, axis=1))[:, 1]
    return float(roc_auc_score(data.test[:, at], chances))
