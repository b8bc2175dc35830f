"""Three columns that depend on each other only together: which synthetic table keeps that?

Run it with a path as first argument to get the picture: python examples/synth/together.py together.png
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import sfumato as sf

EPSILON, DELTA = 1, 1e-9
DOSES, COLUMNS = 6, ["morning", "evening", "better"]
SCHEMA = {
    "morning": sf.Int(0, DOSES - 1, nullable=False),
    "evening": sf.Int(0, DOSES - 1, nullable=False),
    "better": sf.Bool(nullable=False),
    "home": sf.Enum("city", "country", "island", nullable=False),
    "age": sf.Enum("under 40", "40 to 64", "65 and over", nullable=False),
    "sex": sf.Enum("F", "M", nullable=False),
    "smokes": sf.Bool(nullable=False),
}
TRIPLES = list(itertools.combinations(SCHEMA, 3))
WAYS = {  # method and workload
    "MST": ("mst", None),
    "adaptive, all pairs": ("adaptive", None),
    "adaptive, all triples": ("adaptive", TRIPLES),
}


def counts(rows: dict[str, Sequence[int]], weights: Sequence[float] | None = None) -> NDArray[np.float64]:
    """How many rows have each pair of doses, and got better or not."""
    places = [np.asarray(rows[name], dtype=np.int64) for name in COLUMNS]
    table = np.zeros((DOSES, DOSES, 2))
    np.add.at(table, tuple(places), 1.0 if weights is None else np.asarray(weights))
    return table


def modelled(session: sf.Session, method: str, workload: list[tuple[str, ...]] | None) -> NDArray[np.float64]:
    """The same by the model of a fit."""
    made = sf.synth.fit(session, epsilon=EPSILON, delta=DELTA, method=method, workload=workload)
    told = made.marginal(COLUMNS).to_pydict()
    return counts(told, told["count"])


def variation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The total variation between two tables of counts."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def tables(rows: int = 20_000) -> dict[str, NDArray[np.float64]]:
    """The counts of the real table and of each way to model it; each fit costs epsilon 1."""
    real = sf.lab.trial(rows)
    private = sf.PrivateTable("trial", source=real, unit=sf.PrivacyUnit.row(), schema=SCHEMA)
    with sf.Session(private, budget=sf.Budget(epsilon=4, delta=1e-6)) as session:
        made = {name: modelled(session, *way) for name, way in WAYS.items()}
    return {"real": counts(real.to_pydict()), **made}


def main(path: str | None = None) -> None:
    """Print how far each is from the real table, and draw them."""
    found = tables()
    real, names = found["real"], dict[str, NDArray[np.float64]]()
    for name, table in found.items():
        with np.errstate(invalid="ignore"):
            names[name] = table[:, :, 1] / table.sum(axis=2)
        if name != "real":
            print(f"{name:<22} total variation of the three columns: {variation(real, table):.3f}")
    if path is None:
        print("\n(Give a path, such as together.png, to get this as a picture.)")
        return
    sf.plots.share_maps(
        names,
        rows=range(DOSES),
        columns=range(DOSES),
        down="tablets in the morning",
        across="tablets in the evening",
        title="Five tablets a day help: three columns that depend on each other only together",
        note="Percent of patients who got better. Real: a made-up trial of 20,000. The others: models with "
        f"epsilon {EPSILON}, delta {DELTA:g}. No pair of columns shows what helps, so whoever measures pairs "
        "alone misses it; a workload of triples has it measured.",
        path=path,
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
