"""Private PAC learning: one rule of a finite class, measured against the promise as examples grow.

Run it with a path as first argument to get the picture: python examples/games/pac.py curve.png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import sfumato as sf
from sfumato.games.models import RandomStopping
from sfumato.games.pac import PrivateLearner, error_promised, examples_needed, thresholds

EPSILON, BETA, CUTS, TRUE, NOISE = 0.2, 0.05, 65_536, 23_000, 0.1
SIZES = (100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600)


def people(n: int, draw: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Points of a public grid, labelled by "x ≥ 23,000", one label in ten flipped."""
    rows = draw.integers(0, CUTS, n)
    return rows, (rows >= TRUE) ^ (draw.random(n) < NOISE)


def measure(sizes: Sequence[int] = SIZES, repeats: int = 60, seed: int = 1) -> dict[str, NDArray[np.float64]]:
    """For each size the excess error of both learners: its mean and its 95th percentile, and the promises."""
    learner = PrivateLearner(EPSILON, thresholds(range(CUTS)))
    # What each rule costs in truth, above the best: grid points between it and the true cut are wrong.
    excess = (1 - 2 * NOISE) * np.abs(np.arange(CUTS + 1) - TRUE) / CUTS
    draw, rows = sf.random.simulation(seed), []
    for n in sizes:
        runs = []
        for _ in range(repeats):
            sample = people(n, draw)
            runs.append((excess[learner.select(*sample)], excess[np.argmin(learner.errors(*sample))]))
        private, plain = np.array(runs).T
        promises = [error_promised(CUTS + 1, n, beta=BETA, epsilon=price) for price in (EPSILON, None)]
        rows.append((private.mean(), np.quantile(private, 1 - BETA), np.quantile(plain, 1 - BETA), *promises))
    names = ("private mean", "private", "plain", "promise", "plain promise")
    return dict(zip(names, np.array(rows).T, strict=True))


def learning_curve(path: str | None, sizes: Sequence[int], repeats: int) -> None:
    """The table, and the picture of the same."""
    curves = measure(sizes, repeats)
    print(f"Learning a threshold among {CUTS + 1:,d}, ε = {EPSILON}: error above the best rule's,")
    print(f"{1 - BETA:.0%} of runs are below, against what is promised for any world.\n")
    print("examples   private   promised    without privacy   promised")
    for i, n in enumerate(sizes):
        left = f"{n:8,d}   {curves['private'][i]:7.5f}   {curves['promise'][i]:8.4f}"
        print(f"{left}    {curves['plain'][i]:15.5f}   {curves['plain promise'][i]:8.4f}")
    if path is None:
        print("\n(Give a path, such as curve.png, to get this as a picture.)")
        return
    sf.plots.against_bound(
        sizes,
        {"private learner, ε = 0.2": curves["private"], "best on the sample": curves["plain"]},
        {"promised, private": curves["promise"], "promised without privacy": curves["plain promise"]},
        of="examples",
        value="error above the best rule's, 95th percentile",
        logarithmic="xy",
        title="What privacy costs a learner, measured and promised",
        note=f"thresholds on {CUTS:,d} public points, one label in ten is wrong, {repeats} runs a size",
        path=path,
    )
    print("\nThe picture is in the file that you named.")


def sample_sizes() -> None:
    """How many examples are enough, with constants."""
    print("\nExamples that suffice for 0.05 above the best with 95 %, among 2²⁰ rules:")
    for price in (None, 1, 0.1, 0.01):
        for_any = examples_needed(2**20, alpha=0.05, beta=BETA, epsilon=price)
        perfect = examples_needed(2**20, alpha=0.05, beta=BETA, epsilon=price, realizable=True)
        name = "no privacy" if price is None else f"ε = {price}"
        print(f"  {name:<10}  {for_any:9,d}   ({perfect:,d} if some rule is never wrong)")


def tuning() -> None:
    """Hyper-parameters: the best of many runs is dearer than one."""
    print("\nTuning a model whose training costs ε = 0.5 a run:")
    print("  best of 10, claimed at the price of one   0.50   (a lie: it can cost 5.00)")
    for gamma in ("0.1", "0.01"):
        stopping = RandomStopping("0.5", gamma)
        runs, price = stopping.expected_runs, stopping.loss.epsilon(0)
        top = f"top {stopping.reached('0.9'):.0%} of runs with 90 %"
        print(f"  {runs:3.0f} runs on average, their number hidden    {price:.2f}   ({top})")


def main(path: str | None = None, sizes: Sequence[int] = SIZES, repeats: int = 60) -> None:
    """The curve, the sample sizes, and the price of tuning."""
    learning_curve(path, sizes, repeats)
    sample_sizes()
    tuning()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
