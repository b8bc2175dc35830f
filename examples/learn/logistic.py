"""Logistic regression: who pays a loan back, learned at three prices, and the odds read off.

Run it with a path as first argument to keep the model: python examples/learn/logistic.py model.json
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import sfumato as sf
from sfumato import learn

BOUNDS = {"age": (18, 90), "income": (0, 200), "owns": ["no", "yes"]}


def applicants(count: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    """Made-up applicants: age, income in thousands, whether they own a home; and whether they paid back."""
    draw = sf.random.simulation(seed)
    age, income = draw.integers(18, 91, count), np.minimum(draw.gamma(3, 20, count), 200).round(1)
    owns = draw.random(count) < 0.4
    margin = 0.03 * (income - 60) + 0.02 * (age - 50) + 0.8 * owns
    paid = draw.random(count) < 1 / (1 + np.exp(-margin))
    table = pd.DataFrame({"age": age, "income": income, "owns": np.where(owns, "yes", "no")})
    return table, np.where(paid, "paid", "failed")


def main(path: str | None = None, count: int = 20_000) -> None:
    """The fit at three prices beside one without noise, the odds, and the model in a file."""
    (X, y), (test_X, test_y) = applicants(count, 1), applicants(5_000, 2)
    numbers = [frame.assign(owns=frame["owns"] == "yes").to_numpy(float) for frame in (X, test_X)]
    plain = LogisticRegression(max_iter=1000).fit(numbers[0], y).score(numbers[1], test_y)
    print(f"{count:,} applicants; right about 5,000 others:\n")
    print(f"  without noise   {plain:.1%}")
    for epsilon in (0.05, 0.2, 1):
        model = learn.LogisticRegression(
            epsilon=epsilon, delta=1e-6, bounds=BOUNDS, classes=["failed", "paid"]
        ).fit(X, y)
        print(f"  epsilon {epsilon:<4}    {model.score(test_X, test_y):.1%}")
    weight = dict(zip(model.coefficient_names_, model.coef_[0], strict=True))
    richer, owning = np.exp(10 * weight["income"]), np.exp(weight["owns=yes"] - weight["owns=no"])
    print(f"\nTen thousand more income: odds × {richer:.2f} (made with × 1.35)")
    print(f"Owning a home:            odds × {owning:.2f} (made with × 2.23)")
    if path is not None:
        learn.save(model, path)
        epsilon, _ = learn.load(path).loss.approximate
        print(f"\nKept, and read back: epsilon {float(epsilon):g} for all that the file holds.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
