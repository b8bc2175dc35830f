"""A pipeline: bins that are bought, then a model over them, for one price that both share."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sfumato as sf
from sfumato import learn

BOUNDS = {"age": (18, 90), "income": (0, 1_000_000)}


def voters(count: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Made-up voters: the middle-aged vote most, and so do those who earn around 40,000."""
    draw = sf.random.simulation(seed)
    age = draw.integers(18, 91, count)
    income = np.clip(draw.lognormal(np.log(40_000), 0.6, count), 0, 1_000_000).round(-2)
    margin = 1.5 - (age - 54) ** 2 / 300 - 2 * np.abs(np.log(np.maximum(income, 1) / 40_000))
    voted = draw.random(count) < 1 / (1 + np.exp(-margin))
    return pd.DataFrame({"age": age, "income": income}), voted.astype(int)


def model() -> learn.LogisticRegression:
    """The last step; it has no price of its own."""
    return learn.LogisticRegression(classes=[0, 1])


def main(count: int = 20_000) -> None:
    """Three ways to the same model: as it is, scaled, and over bins."""
    (X, y), (test_X, test_y) = voters(count, 1), voters(5_000, 2)
    ways = {
        "as it is": [("model", model())],
        "scaled": [("scale", learn.StandardScaler()), ("model", model())],
        "equal widths": [("bins", learn.KBinsDiscretizer(n_bins=12, strategy="uniform")), ("model", model())],
        "equal counts": [("bins", learn.KBinsDiscretizer(n_bins=12)), ("model", model())],
    }
    print(f"{count:,} voters for epsilon 1; right about 5,000 others:\n")
    for name, steps in ways.items():
        pipe = learn.Pipeline(steps, epsilon=1, delta=1e-6, bounds=BOUNDS)
        print(f"  {name:<13} {pipe.fit(X, y).score(test_X, test_y):.1%}")
    print("\nHow the last one's price was split; it was the same before the fit:\n")
    print(pipe.split_)
    ages, incomes = pipe["bins"].bin_edges_
    print(
        f"\nIncomes are declared up to {incomes[-1]:,.0f}; half of the bins bought end by {incomes[6]:,.0f},"
    )
    print(f"the middle one of the ages at {ages[6]:.0f}.")


if __name__ == "__main__":
    main()
