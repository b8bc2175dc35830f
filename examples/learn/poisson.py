"""Counts: how many accidents drivers of a fleet have, by kilometres and by night shifts."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sfumato as sf
from sfumato import learn

BOUNDS = {"distance": (0, 80), "nights": (0, 15), "trained": (0, 1)}


def drivers(count: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Made-up drivers: 2 % more accidents a thousand kilometres, 10 % more a night, 30 % fewer if trained."""
    draw = sf.random.simulation(seed)
    distance = np.clip(draw.gamma(6, 6, count), 0, 80).round(1)
    nights, trained = draw.integers(0, 16, count), draw.integers(0, 2, count)
    rate = np.exp(-1.5 + np.log(1.02) * distance + np.log(1.1) * nights + np.log(0.7) * trained)
    return pd.DataFrame({"distance": distance, "nights": nights, "trained": trained}), draw.poisson(rate)


def main(count: int = 20_000) -> None:
    """What one more of each multiplies the expected number with, at three prices."""
    X, y = drivers(count, 2)
    print(f"{count:,} drivers, {y.sum():,} accidents. One more of each multiplies the rate by:\n")
    print("  epsilon   1,000 km    night   training")
    print("    truth      1.020    1.100      0.700")
    for epsilon in (10, 1, 0.1):
        model = learn.PoissonRegression(epsilon=epsilon, delta=1e-6, bounds=BOUNDS, target_bounds=(0, 20))
        distance, night, training = np.exp(model.fit(X, y).coef_)
        print(f"  {epsilon:>7}   {distance:8.3f}   {night:6.3f}   {training:8.3f}")
    rested = pd.DataFrame({"distance": [40.0], "nights": [0], "trained": [1]})
    tired = pd.DataFrame({"distance": [40.0], "nights": [12], "trained": [0]})
    few, many = model.predict(rested)[0], model.predict(tired)[0]
    print(f"\nBy the last one, a rested driver has {few:.2f} accidents, a tired one {many:.2f}.")


if __name__ == "__main__":
    main()
