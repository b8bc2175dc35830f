"""Phones that learn together: what is promised against the public, and what against the server."""

from __future__ import annotations

import textwrap

import numpy as np

import sfumato as sf
from sfumato import learn


def phones(many: int = 2_000, each: int = 5, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Made-up rows of many phones: three numbers and a label each, and whose they are."""
    draw = sf.random.simulation(seed)
    rows = draw.uniform(-1, 1, (many * each, 3))
    chance = 1 / (1 + np.exp(-rows @ np.array([4.0, -3.0, 1.0])))
    return rows, (draw.random(len(rows)) < chance).astype(int), np.repeat(np.arange(many), each)


def main(many: int = 2_000) -> None:
    """Learns with a server that is trusted, and with one that is not."""
    rows, labels, whose = phones(many)
    own = {"local_epsilon": 4, "local_delta": "1e-6", "enrolled": many}
    for name, given in (("a trusted server", {}), ("phones add noise themselves", own)):
        model = learn.FederatedAveraging(1, "1e-6", bounds=(-1, 1), classes=[0, 1], rounds=8, **given)
        model.fit(rows, labels, units=whose)
        print(f"{name}: {model.score(rows, labels):.1%} right")
        for side, promise in model.account().items():
            print(f"  {side}: epsilon {promise.epsilon:.3g}")
            print(textwrap.indent(textwrap.fill(f"seen by {promise.seen}", 70), "    "))


if __name__ == "__main__":
    main()
