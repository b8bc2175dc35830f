"""Where customers live: clusters found without showing where any of them does."""

from __future__ import annotations

import numpy as np

import sfumato as sf
from sfumato import learn

TOWNS = np.array([[2.0, 3.0], [7.0, 8.0], [8.0, 2.0], [3.0, 7.5]])


def customers(size: int = 5_000, seed: int = 1) -> np.ndarray:
    """Made-up places on a map of 10 by 10, around four towns."""
    draw = sf.random.simulation(seed)
    return np.clip(TOWNS[draw.integers(0, len(TOWNS), size)] + draw.normal(0, 0.6, (size, 2)), 0, 10)


def distance(places: np.ndarray, centres: np.ndarray) -> float:
    """How far from the nearest centre customers live, on average."""
    return float(np.min([np.hypot(*(places - centre).T) for centre in centres], axis=0).mean())


def main(size: int = 5_000) -> None:
    """Finds depots at several prices."""
    places = customers(size)
    print(f"towns: {distance(places, TOWNS):.2f} km from a customer on average")
    for epsilon in ("0.1", "1", "10"):
        model = learn.KMeans(epsilon, "1e-6", bounds=(0, 10), n_clusters=len(TOWNS)).fit(places)
        print(f"epsilon {epsilon}: {distance(places, model.cluster_centers_):.2f} km")


if __name__ == "__main__":
    main()
