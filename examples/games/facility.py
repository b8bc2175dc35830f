"""Two clinics for a town: private, then exactly truthful, and what each costs as the town grows.

Run it with a path to get the picture: python examples/games/facility.py welfare.png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from sfumato import plots, random
from sfumato.games.facility import FacilityLocation
from sfumato.games.mixture import TruthfulMixture, balanced_mixture

SITES = [(x, y) for x in (0.0, 4.0, 9.0) for y in (0.0, 3.0, 7.0)]
CONFIDENCE = 0.95
CROWDS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)


def town(players: int) -> np.ndarray:
    """Two villages of different size, and some farms; made up, the same every time."""
    rng = random.simulation(players)
    villages = np.array([(1.0, 1.0), (8.0, 6.0)])
    homes = villages[(rng.random(players) < 0.4).astype(int)] + rng.normal(0, 1.2, (players, 2))
    farms = rng.random(players) < 0.2
    homes[farms] = rng.random((int(farms.sum()), 2)) * (9, 7)
    return homes


def spent(mixture: TruthfulMixture, homes: np.ndarray, draws: int) -> float:
    """The mean utility of a truthful player, over draws."""
    game = mixture.private
    kinds, total = game.indices(homes), 0.0
    for _ in range(draws):
        placed = mixture.select(homes)
        opened = [int(np.flatnonzero((game.sites == site).all(axis=1))[0]) for site in placed.sites]
        total += float(game.near[:, opened].max(axis=1)[kinds].mean()) / 2**20
    return total / draws


def main(arguments: Sequence[str] = (), *, draws: int = 100, crowds: Sequence[int] = CROWDS) -> None:
    print("Two of nine sites open; a player is worth 1 next door, 0 across the map.")
    print("The private choice has ε = 1. The mixture sets its own, at most 1, and is")
    print("exactly truthful: nobody does better than by telling the truth.")
    print()
    print(f"{'players':>8}{'best':>9}{'private':>10}{'promised':>10}{'mixture':>10}{'promised':>10}", end="")
    print(f"{'epsilon':>10}{'weight':>9}")
    best, free, bound, mixed, kept = [], [], [], [], []
    private = FacilityLocation(1, SITES, facilities=2)
    plain = TruthfulMixture(private, weight=0)
    for players in crowds:
        homes = private.snap(town(players))
        best.append(float(private.welfare(homes).max()) / players)
        free.append(spent(plain, homes, draws))
        bound.append(max(0.0, best[-1] - private.guarantee(CONFIDENCE) / players))
        mixture = balanced_mixture(players, SITES, facilities=2, confidence=CONFIDENCE)
        mixed.append(spent(mixture, homes, draws))
        lost = mixture.welfare_lost + mixture.private.guarantee(CONFIDENCE) / players
        kept.append(max(0.0, best[-1] - lost))
        row = f"{players:>8}{best[-1]:>9.3f}{free[-1]:>10.3f}{bound[-1]:>10.3f}{mixed[-1]:>10.3f}"
        print(f"{row}{kept[-1]:>10.3f}{float(mixture.private.epsilon):>10.3f}{float(mixture.weight):>9.3f}")
    print()
    print("Both close in on the best as the town grows: a guarantee costs a fixed number")
    print("of neighbours, and the punishing draw that pays for truth becomes rare.")
    if len(arguments) > 1:
        plots.against_bound(
            crowds,
            {"private choice, ε = 1": free, "truthful mixture": mixed},
            {"private choice, promised": bound, "mixture, promised": kept},
            of="players",
            value="average utility of a player",
            optimum=best,
            logarithmic="x",
            title="Two clinics: what privacy and truth cost a town",
            note=f"Means of {draws} draws; promises hold for 95 % of the private choices, and on average "
            "over the coin of the mixture.",
            path=arguments[1],
        )
        print(f"The picture is in {arguments[1]}.")
    else:
        print("Give a path, such as welfare.png, to get the picture.")


if __name__ == "__main__":
    main(sys.argv)
