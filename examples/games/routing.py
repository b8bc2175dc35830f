"""A town of 10,000 drivers, advised without anybody learning who goes where.

    python examples/games/routing.py [picture.png]

Everybody reports where they live and work. All get a route, drawn from an approximate correlated
equilibrium: hardly anybody gains by ignoring it. It was computed from noisy traffic counts alone, so
that what the others are told says next to nothing about one driver's trip.
"""

import sys

import numpy as np

from sfumato.games.equilibrium import PrivateAdvice, measured_gain
from sfumato.games.normal import NormalForm, best_correlated, nash
from sfumato.games.routing import grid_roads, routing_game
from sfumato.plots import against_bound
from sfumato.random import simulation

SIDE = 6
_FROM = ((0, 0), (5, 0), (2, 0), (0, 2), (1, 1), (4, 1))
_TO = ((5, 5), (0, 5), (3, 5), (5, 3), (4, 4), (1, 4))
TRIPS = [*zip(_FROM, _TO, strict=True), *zip(_TO, _FROM, strict=True)]
EPSILON, DELTA = 1, "1e-6"


def town(drivers):
    """The town, and a made-up trip for every driver: a quarter goes from one corner to the other."""
    game = routing_game(grid_roads(SIDE, SIDE, players=drivers), TRIPS, players=drivers, paths=5)
    drawn = simulation(1).choice(len(TRIPS), size=drivers, p=[0.25, *[0.75 / 11] * 11])
    return game, [TRIPS[i] for i in drawn]


def chicken():
    game = NormalForm([[[6, 2], [7, 0]], [[6, 7], [2, 0]]], high=7)
    mixed = max(point.welfare for point in nash(game) if not point.pure)
    print("Two drivers at a crossing (the game of chicken): together they get")
    print(f"{best_correlated(game).welfare:.2f} with good advice, and {mixed:.2f} when each draws alone.\n")


def show_town(game, types, rounds):
    minutes = game.scale
    mechanism = PrivateAdvice(game, epsilon=EPSILON, delta=DELTA, rounds=rounds)
    advice = mechanism.advise(types)
    nearest = [[types.count(trip)] + [0] * (game.home.shape[1] - 1) for trip in game.types]
    print(f"A town of {game.players:,} drivers, {len(game.resources)} roads and {len(game.types)} trips.")
    print(f"One driver moves another's way by {game.largeness() * minutes * 60:.2f} seconds at most.")
    print(f"Advice for epsilon {EPSILON}, delta {DELTA}: {rounds} noisy counts a road, "
          f"± {mechanism.sigma:.0f} cars each.\n")  # fmt: skip
    print("minutes a driver, on average")
    for name, cost in (
        ("all take the shortest way", game.mean_cost(np.array(nearest))),
        ("the private advice", advice.mean_cost),
        ("selfish drivers, all told", game.mean_cost(game.settle(types))),
        ("the best a dictator could do", game.mean_cost(game.settle(types, social=True))),
    ):
        print(f"  {name:30} {cost * minutes:6.2f}")
    print("\nminutes to gain by ignoring the advice")
    print(f"  the average driver             {advice.regret.mean() * minutes:6.2f}   (steward-only)")
    print(f"  the most tempted               {advice.alpha * minutes:6.2f}   (steward-only)")
    print(f"  certified from the billboard   {advice.certified() * minutes:6.2f}   (public, free)")
    print(f"  promised beforehand            {mechanism.promised_alpha() * minutes:6.2f}   (loose)")
    return advice


def show_liars(game, types, rounds, runs):
    mechanism = PrivateAdvice(game, epsilon=EPSILON, delta=DELTA, rounds=rounds)
    bound = mechanism.advise(types).incentive
    print(f"\nminutes to gain by lying about the trip (never more than {bound * game.scale:.1f})")
    for player, report in ((0, TRIPS[2]), (1, TRIPS[7])):
        gain = measured_gain(mechanism, types, player=player, report=report, runs=runs)
        print(f"  driver {player}, who says {report}: {gain.mean * game.scale:+.2f}"
              f" ± {gain.half_width * game.scale:.2f}")  # fmt: skip


def curve(game, types, all_rounds):
    print(f"\na cost of 1 is {game.scale:.0f} minutes")
    print("rounds   regret: mean   worst   certified   promised")
    rows = []
    for rounds in all_rounds:
        mechanism = PrivateAdvice(game, epsilon=EPSILON, delta=DELTA, rounds=rounds)
        advice = mechanism.advise(types)
        rows.append((advice.regret.mean(), advice.alpha, advice.certified(), mechanism.promised_alpha()))
        print(f"{rounds:6} {rows[-1][0]:14.4f} {rows[-1][1]:7.4f} {rows[-1][2]:11.4f} {rows[-1][3]:10.4f}")
    return list(zip(*rows, strict=True))


def sizes(all_drivers, rounds):
    print("\ndrivers  largeness   regret: worst   certified")
    for drivers in all_drivers:
        game, types = town(drivers)
        advice = PrivateAdvice(game, epsilon=EPSILON, delta=DELTA, rounds=rounds).advise(types)
        print(f"{drivers:7,} {game.largeness():10.1e} {advice.alpha:15.4f} {advice.certified():11.4f}")


def main(picture=None, *, drivers=10_000, rounds=(10, 30, 100, 300, 1000), runs=6):
    chicken()
    game, types = town(drivers)
    show_town(game, types, rounds[-2])
    show_liars(game, types, rounds[1], runs)
    sizes((drivers // 100, drivers // 10, drivers), rounds[-2])
    mean, worst, certified, promised = curve(game, types, rounds)
    if picture is None:
        print("\nFor a picture, give a path: python examples/games/routing.py regret.png")
        return
    against_bound(
        rounds,
        {"the most tempted driver": worst, "the average driver": mean},
        {"certified from the billboard": certified, "promised beforehand": promised},
        of="rounds of noisy counts, all for one price",
        value="gain by ignoring the advice",
        logarithmic="xy",
        title="Advice that hardly anybody gains by ignoring",
        note=f"{drivers:,} drivers on a grid, epsilon {EPSILON}, delta {DELTA}; "
        "1 is the longest way with all on it.",
        path=picture,
    )
    print(f"\nThe picture is in {picture}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
