"""Linear regression: rents by size and distance, and what a report says of the few flats on the island."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sfumato as sf
from sfumato import learn

BOUNDS = {"size": (10, 200), "distance": (0, 30), "island": (0, 1)}


def flats(count: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Made-up flats: 12 a square metre, 15 less a kilometre, 300 more on the island; and their rents."""
    draw = sf.random.simulation(seed)
    size = np.clip(draw.gamma(8, 9, count), 10, 200).round()
    distance = (30 * draw.random(count)).round(1)
    island = (draw.random(count) < 0.03) * 1.0
    rent = 250 + 12 * size - 15 * distance + 300 * island + draw.normal(0, 120, count)
    return pd.DataFrame({"size": size, "distance": distance, "island": island}), np.clip(rent, 0, 3000)


def main(count: int = 20_000) -> None:
    """Weights at three prices, and the report of the smallest by group."""
    (X, y), (test_X, test_y) = flats(count, 1), flats(4_000, 2)
    print(f"{count:,} flats. Rent is 12 × square metres − 15 × kilometres + 300 on the island:\n")
    print("  epsilon    size   distance   island     R²")
    for epsilon in (10, 1, 0.1):
        model = learn.LinearRegression(
            epsilon=epsilon, delta=1e-6, bounds=BOUNDS, target_bounds=(0, 3000)
        ).fit(X, y)
        size, distance, island = model.coef_
        score = model.score(test_X, test_y)
        print(f"  {epsilon:>7}  {size:6.2f}   {distance:8.2f}   {island:6.1f}   {score:.3f}")
    home = np.where(test_X["island"] == 1, "island", "mainland")
    print("\nThe last one, held against the truth of flats that are public:\n")
    print(learn.report(model, test_X, test_y, groups={"on": home}, plain=True, trained=(X, y)))


if __name__ == "__main__":
    main()
