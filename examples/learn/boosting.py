"""Boosted steps: who falls ill, where both ends of a scale are risky and no straight line follows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sfumato as sf
from sfumato import learn

BOUNDS = {"age": (18, 90), "weight": (15, 45)}


def patients(count: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Made-up patients: risk rises with age, and with a body-mass index far from 25 on either side."""
    draw = sf.random.simulation(seed)
    age, weight = draw.integers(18, 91, count), np.clip(draw.normal(26, 6, count), 15, 45).round(1)
    margin = 0.05 * (age - 55) + 0.05 * (weight - 25) ** 2 - 1.5
    ill = draw.random(count) < 1 / (1 + np.exp(-margin))
    return pd.DataFrame({"age": age, "weight": weight}), ill.astype(int)


def main(count: int = 20_000) -> None:
    """Boosting beside a straight line, at three prices."""
    (X, y), (test_X, test_y) = patients(count, 1), patients(5_000, 2)
    print(f"{count:,} patients; right about 5,000 others:\n")
    print("  epsilon   straight line   boosted")
    for epsilon in (0.1, 1, 10):
        scores = [
            kind(epsilon=epsilon, delta=1e-6, bounds=BOUNDS, classes=[0, 1]).fit(X, y).score(test_X, test_y)
            for kind in (learn.LogisticRegression, learn.GradientBoostingClassifier)
        ]
        print(f"  {epsilon:>7}   {scores[0]:>13.1%}   {scores[1]:>7.1%}")
    print("\nBoth ends of the scale are risky: only steps over bins can say so.")


if __name__ == "__main__":
    main()
