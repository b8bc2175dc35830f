"""Advice as it was given, and what is known about it: by all, and by the steward."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.games._rounds import Played, certificate, reach_of
from sfumato.games.congestion import CongestionGame
from sfumato.loss import ConcentratedLoss
from sfumato.numeric.exact import Rational, probability

__all__ = ["UP", "Advice", "noise_term"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

UP = 1 + 1e-9  # regrets and their bounds are sums of floats: a bound is widened by more than they err


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Advice:
    """One strategy for each player, drawn from an approximate correlated equilibrium.

    Tell each player the own strategy and nothing else. `billboard`, `weights`, `certified` and `loss` may be
    published; what is marked steward-only is computed from the types, and no noise protects it.

    Attributes:
        game: The game.
        strategies: For each player the number of a strategy in the list of the own type. For that player
            alone: it depends on the own type.
        billboard: The noisy loads: round, resource. What everybody's advice was computed from. Public, but
            keep it until all have moved: whoever knows it and the round may do better than the advice.
        weights: With which probability each type played each strategy in each round. From the billboard.
        loss: What the billboard cost, which is the price of the advice under joint privacy.
        round: The round whose strategies are advised.
        loads: The true loads in that round. Steward-only.
        regret: For each player the most to gain on average by swapping the advice, exactly, over all rounds
            with their true loads. Steward-only.
        mean_cost: What a player who follows pays on average, over all rounds. Steward-only.
        temptation: The most to gain by pretending to be of another type and answering its advice in the best
            way, if that moved nobody else. Steward-only.
    """

    game: CongestionGame
    strategies: Integers
    billboard: Integers
    weights: Floats
    loss: ConcentratedLoss
    round: int
    loads: Integers
    regret: Floats
    mean_cost: float
    temptation: float
    _influence: float
    _noise: float
    _played: Played

    def __repr__(self) -> str:
        return f"Advice(for {self.game!r}, drawn from {len(self.billboard)} rounds)"

    @property
    def alpha(self) -> float:
        """The largest regret: the advice is an α-approximate correlated equilibrium. Steward-only."""
        return float(self.regret.max())

    @property
    def incentive(self) -> float:
        """The most that any player gains by misreporting and disobeying together. Steward-only.

        A player who reports another type changes what the others do by at most the total variation distance
        of the loss, and hears advice for that type. So the gain is at most the larger of `alpha` and
        `temptation`, and twice what one's own presence adds to a cost, and that distance. Following Kearns,
        Pai, Roth and Ullman 2014; the proof is in `PrivateAdvice`. It holds for expectations over everything
        random, of which `alpha` and `temptation` are one run.
        """
        return max(self.alpha, self.temptation) + 2 * reach_of(self.game).own + self._influence

    def resources(self, player: int, types: Sequence[Hashable]) -> tuple[Hashable, ...]:
        """What a player is advised to use, given all types; for that player alone."""
        at = self.game.player(player)
        kind = int(self.game.index(types)[at])
        return self.game.strategies[kind][int(self.strategies[at])]

    def certified(self, confidence: Rational = "0.95") -> float:
        """A bound on `alpha` that holds with this probability, computed from the billboard alone: free.

        The regret of each type's weights against the *posted* costs is known exactly. Coins, noise and one's
        own presence add what `PrivateAdvice.promised_alpha` says, with the spreads that were seen instead of
        the largest possible.
        """
        failure = float(1 - probability(confidence, "confidence"))
        reach = reach_of(self.game)
        chosen = certificate(self.game, self._played, failure=failure / 2)
        rounds = len(self.billboard)
        slack = noise_term(self.game, self._noise, rounds=rounds, failure=failure / 2) + 2 * reach.presence
        return min(1.0, float(np.minimum(chosen + slack, reach.spread).max()) * UP)


def noise_term(game: CongestionGame, sigma: float, *, rounds: int, failure: float) -> Floats:
    """For each type what noise adds to any player's regret, in the mean of all rounds."""
    reach = reach_of(game)
    tail = math.log(max(game.players, len(game.types)) / failure)
    if game.affine:
        terms = (tail + reach.size * np.log(reach.size)) / rounds
    else:
        terms = np.log(reach.size) + reach.differ * math.log(2) + tail / rounds
    term: Floats = sigma * np.sqrt(2 * reach.steep * terms)
    return term
