"""Means, correlations and main directions of a survey: one noisy matrix says them all."""

from __future__ import annotations

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato import learn

BOUNDS = {"sleep": (3, 12), "coffee": (0, 10), "work": (0, 80), "stress": (0, 10)}


def survey(count: int, seed: int = 1) -> pd.DataFrame:
    """Made-up answers: long hours bring stress and coffee, and take sleep."""
    draw = sf.random.simulation(seed)
    work = np.clip(draw.normal(40, 10, count), 0, 80)
    stress = np.clip(5 + 0.1 * (work - 40) + draw.normal(0, 1.5, count), 0, 10)
    sleep = np.clip(7.5 - 0.3 * (stress - 5) + draw.normal(0, 0.8, count), 3, 12)
    coffee = np.clip(2.5 + 0.4 * (stress - 5) + draw.normal(0, 1, count), 0, 10)
    return pd.DataFrame({"sleep": sleep, "coffee": coffee, "work": work, "stress": stress}).round(1)


def main(count: int = 10_000) -> None:
    """The matrix at three prices, means with intervals, and the directions."""
    X = survey(count)
    truth = X.corr().loc["stress"]
    print(f"{count:,} answers. How stress goes with the others:\n")
    print("  epsilon " + "".join(f"{name:>9}" for name in BOUNDS))
    print("     none " + "".join(f"{truth[name]:9.2f}" for name in BOUNDS))
    for epsilon in (10, 1, 0.1):
        model = learn.Moments(epsilon=epsilon, delta=1e-6, bounds=BOUNDS).fit(X)
        print(f"  {epsilon:>7} " + "".join(f"{value:9.2f}" for value in model.correlation_[-1]))
    print("\nA correlation is 0 beside a column whose spread the noise hides.")
    print("Means of the last one, each where it is with 95 %:\n")
    for name, mean, (low, high) in zip(BOUNDS, model.mean_, model.mean_interval(), strict=True):
        print(f"  {name:<8} {mean:6.2f}   from {low:6.2f} to {high:6.2f}")
    directions = learn.PCA(epsilon=1, delta=1e-6, bounds=BOUNDS).fit(X)
    shares = ", ".join(f"{share:.0%}" for share in directions.explained_variance_ratio_)
    print(f"\nMain directions at epsilon 1 hold {shares} of the spread,")
    print(
        f"most of it hours at work; {directions.clear_components_} of {len(BOUNDS)} stand out of the noise."
    )


if __name__ == "__main__":
    main()
