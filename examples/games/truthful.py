"""What is a lie worth? Five ways to build one library, put to the checker."""

from __future__ import annotations

import textwrap

import numpy as np

from sfumato.games.facility import FacilityLocation
from sfumato.games.mixture import TruthfulMixture
from sfumato.games.truthful import gain, promised_gain, textbook_gain

STREET = [0.0, 1.0, 5.0, 6.0]
NEIGHBOURS = 3


def at_the_mean(reports, _agent, truth):
    return 1 - abs(float(np.mean(reports)) - truth) / 6


def at_the_median(reports, _agent, truth):
    return 1 - abs(float(np.median(reports)) - truth) / 6


def main() -> None:
    print(f"{NEIGHBOURS} neighbours on a street say where they live; one library is built.")
    print("A neighbour is worth 1 at its door and 0 at the far end. Who gains by lying?")
    print()
    private = FacilityLocation(epsilon=1, sites=STREET)
    mixed = TruthfulMixture(private)
    light = TruthfulMixture(private, weight=mixed.weight / 2)
    ways = {
        # A member may take a loss for the other: the gain is that of the luckier one.
        "at the mean": (at_the_mean, "no", None),
        "at the median": (at_the_median, "no", None),
        "privately, ε = 1": (private.payoff, "yes", promised_gain(private.loss)),
        "… and mixed": (mixed.payoff, "yes", mixed.promise()),
        "… at half the weight": (light.payoff, "yes", light.promise()),
    }
    print(f"{'built':<22}{'private':>8}{'a liar gains':>15}{'promised':>11}{'a pair gains':>15}")
    for name, (payoff, hidden, promise) in ways.items():
        alone = gain(payoff, types=STREET, players=NEIGHBOURS, anonymous=True)
        pair = gain(payoff, types=STREET, players=NEIGHBOURS, anonymous=True, coalition=2)
        told = "" if promise is None else f"{promise:.4f}"
        print(f"{name:<22}{hidden:>8}{alone.value:>15.4f}{told:>11}{pair.value:>15.4f}")
    print()
    worst = gain(private.payoff, types=STREET, players=NEIGHBOURS, anonymous=True, loss=private.loss)
    print("The private choice, in the checker's words:")
    print(textwrap.fill(str(worst), 78, initial_indent="  ", subsequent_indent="  "))
    print(f"  Its worst lie: {worst.profile} live there, number {worst.agents[0]} says {worst.lie[0]:g}.")
    print(f"  The textbook's bound is 2ε = {textbook_gain(1):g}; total variation gives", end=" ")
    print(f"{promised_gain(private.loss):.4f}.")
    print(f"  But the costliest lie costs {worst.cost:.4f} only: privacy makes every report")
    print("  nearly as good as the truth, not the truth best.")
    print()
    print(f"The mixture draws blindly with probability {float(mixed.weight):.3f}, and then sends")
    print("everybody to the open place that is best for what they said. Now every lie")
    print("costs, for any number of neighbours; half that weight would not do. The")
    print("theorem is about lying alone: of a pair that agrees, one may still gain.")


if __name__ == "__main__":
    main()
