"""Heights: averages by sex, and what the declared bounds do to them.

Bounds must be known before anybody looks at the data: from a textbook of anatomy, not from `min` and `max`.
Bounds that are too wide cost noise. Bounds that are too narrow hold tall people to less than they are, and
the average moves: an error bar is about the noise, and does not show it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf

BOUNDS = {"known beforehand": (140, 210), "far too wide": (0, 1_000), "too narrow": (160, 175)}


def people(count: int = 5_000, seed: int = 4) -> pa.Table:
    """Made-up people: centimetres, to the millimetre."""
    draw = sf.random.simulation(seed)
    woman = draw.random(count) < 0.5
    height = np.where(woman, draw.normal(165, 7, count), draw.normal(178, 7.5, count)).round(1)
    return pa.table({"sex": np.where(woman, "F", "M"), "height": height})


def average(rows: pa.Table, low: int, high: int, epsilon: str = "1/2") -> sf.session.Release:
    """The average height by sex, with the heights held to these bounds."""
    table = sf.PrivateTable(
        "people",
        source=rows,
        unit=sf.PrivacyUnit.row(),
        schema={
            "sex": sf.Enum("F", "M", nullable=False),
            "height": sf.Float(low, high, nullable=False),
        },
    )
    with sf.Session(table, budget=sf.Budget(epsilon), ledger=None) as session:
        return session.sql("SELECT sex, AVG(height) AS mean FROM people GROUP BY sex").release(
            epsilon=epsilon
        )


def main(count: int = 5_000) -> None:
    rows = people(count)
    print(f"{count:,} people at epsilon 1/2. Average height in centimetres:\n")
    print(f"{'bounds':<28} {'women':>14} {'men':>14}")
    for name, (low, high) in BOUNDS.items():
        answer = average(rows, low, high)
        means, errors = answer.table["mean"].to_pylist(), answer.error(0.95)["mean"].to_pylist()
        shown = [f"{mean:.1f} ± {error:.2f}" for mean, error in zip(means, errors, strict=True)]
        print(f"{f'{name}, {low} to {high}':<28} {shown[0]:>14} {shown[1]:>14}")
    true = rows.group_by("sex").aggregate([("height", "mean")]).sort_by("sex")["height_mean"].to_pylist()
    print(f"{'the truth, for the steward':<28} {true[0]:>14.1f} {true[1]:>14.1f}")


if __name__ == "__main__":
    main()
