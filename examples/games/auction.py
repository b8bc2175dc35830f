"""One price for everybody, chosen privately: three buyers, then many. Give a path for a picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from sfumato import plots, random
from sfumato.games.auction import PriceAuction, optimal_grid_step, price_grid

EPSILON, TOP, TICK = 0.5, 100, "0.001"
SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)


def three_buyers() -> None:
    bids = [1.00, 1.01, 3.01]
    print("Three buyers bid 1.00, 1.01 and 3.01 for a song. What should it cost?")
    for price in (1.00, 1.01, 1.02, 3.01, 3.02):
        print(f"   at {price:.2f} it earns {price * sum(bid >= price for bid in bids):.2f}")
    print("A cent too much costs everything: noise on bids is not a way to privacy.\n")
    auction = PriceAuction(1, price_grid(top="3.01", step="0.01"))
    expected = float(auction.law(bids) @ auction.revenue(bids))
    print(f"A price chosen privately (epsilon 1) earns {expected:.2f} on average. As a promise:")
    print(auction.promise(3))
    print("Three buyers are too few to hide in. A market is not:\n")


def values(size: int) -> np.ndarray:
    """What the good is worth to each buyer: about 20, to some much more."""
    return np.minimum(random.simulation(size).lognormal(3.0, 0.7, size), TOP).round(3)


def noisy_bids(bids: np.ndarray, auction: PriceAuction, rounds: int = 20) -> float:
    """The mean revenue of the price that is best for bids with Laplace noise of the same epsilon each."""
    chance, total = random.simulation(1), 0.0
    revenue = auction.revenue(bids)
    for _ in range(rounds):
        noisy = bids + chance.laplace(scale=TOP / EPSILON, size=len(bids))
        total += revenue[np.argmax(auction.revenue(np.clip(noisy, 0, None)))]
    return total / rounds


def market(sizes: Sequence[int], path: str | None) -> None:
    print(f"   {'buyers':>8} {'best price':>12} {'private':>9} {'promised':>9} {'noisy bids':>11}")
    shares: dict[str, list[float]] = {name: [] for name in ("private", "promised", "noisy", "low", "high")}
    for size in sizes:
        bids = values(size)
        step = optimal_grid_step(size, TOP, EPSILON, tick=TICK)
        auction = PriceAuction(EPSILON, price_grid(top=TOP, step=step, tick=TICK))
        optimum, law, revenue = auction.optimum(bids), auction.law(bids), auction.revenue(bids)
        promise = auction.promise(size, optimum=round(optimum, 3))
        order = np.argsort(revenue)
        chances = np.cumsum(law[order])
        low, high = (revenue[order[np.searchsorted(chances, q)]] for q in (0.05, 0.95))
        of_best = {
            "private": float(law @ revenue) / optimum,
            "promised": np.nan if promise.vacuous else promise.least / optimum,
            "noisy": noisy_bids(bids, auction) / optimum,
            "low": low / optimum,
            "high": high / optimum,
        }
        for name, share in of_best.items():
            shares[name].append(share)
        said = "nothing" if promise.vacuous else f"{of_best['promised']:.1%}"
        print(
            f"   {size:>8,} {optimum:>12,.0f} {of_best['private']:>9.1%} {said:>9} {of_best['noisy']:>11.1%}"
        )
    print(f"\nepsilon {EPSILON:g}, prices up to {TOP}; shares of what the best single price earns.")
    print("What is lost to privacy grows with the logarithm of the market, not with it.")
    if path is None:
        print("For a picture, give a path: python examples/games/auction.py revenue.png")
        return
    plots.against_bound(
        sizes,
        {
            "private price (mean, 5 % to 95 %)": shares["private"],
            "best price for noisy bids": shares["noisy"],
        },
        {"promised with 95 %": shares["promised"]},
        of="buyers",
        value="share of the best single price's revenue",
        spread=(shares["low"], shares["high"]),
        optimum=[1.0] * len(sizes),
        logarithmic="x",
        title="Revenue of a private price",
        note=f"epsilon {EPSILON:g}, prices up to {TOP}, the step balanced; a vacuous promise is left out",
        path=path,
    )
    print(f"The picture is in {path}.")


def main(arguments: Sequence[str] = (), sizes: Sequence[int] = SIZES) -> None:
    three_buyers()
    market(sizes, arguments[0] if arguments else None)


if __name__ == "__main__":
    main(sys.argv[1:])
