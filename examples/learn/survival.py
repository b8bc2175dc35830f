"""Two treatments: survival with bands, medians, log-rank, a hazard ratio. Give a path for a picture."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from sfumato import random
from sfumato.learn import CoxRegression, KaplanMeier

SIZE, HORIZON = 4000, 10


def patients(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Invented patients: their arm, how many years they were seen, and whether they died then."""
    chance = random.simulation(seed)
    arm = np.where(chance.random(SIZE) < 0.5, "old", "new")
    death = chance.exponential(np.where(arm == "old", 5.0, 7.0))
    end = chance.uniform(2, 15, SIZE)
    return arm, np.minimum(death, end), death <= end


def main(path: str | None = None) -> None:
    arm, years, died = patients(19)
    curves = KaplanMeier(epsilon=1, delta="1e-6", horizon=HORIZON, bins=20, groups=["old", "new"])
    curves.fit(arm, (years, died))
    print(f"{SIZE} patients, one release for epsilon 1 and delta 1e-6.\n")
    print(f"   {'years':>5} {'old':>6} {'95 % band':>15} {'new':>6} {'95 % band':>15}")
    old, new = (curves.band(0.95, group=name) for name in ("old", "new"))
    for at in range(3, len(old.times), 4):
        shown = "".join(
            f" {band.survival[at]:6.3f} {f'{band.low[at]:.3f} to {band.high[at]:.3f}':>15}"
            for band in (old, new)
        )
        print(f"   {old.times[at]:5.1f}{shown}")
    for name in ("old", "new"):
        low, high = curves.median_interval(0.95, group=name)
        print(f"\nHalf of the {name} arm live longer than {low:g} to {high:g} years.", end="")
    test = curves.logrank()
    print(f"\n\nThe log-rank test, at no further cost: {test.statistic:.1f}, p = {test.p_value:.2g}.")
    model = CoxRegression(epsilon=1, delta="1e-6", bounds={"arm": ["old", "new"]}, horizon=HORIZON, bins=20)
    ratio = model.fit(pa.table({"arm": arm}), (years, died)).hazard_ratios_[1]
    print(f"Cox's model, for another epsilon 1: {ratio:.2f} times the hazard in the new arm; 5/7 is true.")
    if path:
        curves.plot(0.95, path=path)
        print(f"The curves are in {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
