"""Advice for thousands of players that none gains by disobeying, and that hides what each one wants."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.games._rounds import (
    RARE,
    Played,
    certificate,
    play,
    posted_spread,
    reach_of,
    regrets,
    temptations,
)
from sfumato.games.congestion import CongestionGame
from sfumato.games.examples import Example
from sfumato.loss import ConcentratedLoss
from sfumato.mechanisms import DiscreteGaussian
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer, float_up, positive, probability

__all__ = ["EXAMPLES", "Advice", "Gain", "PrivateAdvice", "correlated_advice", "measured_gain"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


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

    def resources(self, player: int, types: Sequence[Hashable] | Integers) -> tuple[Hashable, ...]:
        """What a player is advised to use, given all types; for that player alone."""
        kind = int(self.game.index(types)[player])
        return self.game.strategies[kind][int(self.strategies[player])]

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
        slack = _noise_term(self.game, self._noise, rounds=rounds, failure=failure / 2) + 2 * reach.presence
        return float(np.minimum(chosen + slack, reach.spread).max())


@dataclass(frozen=True, slots=True, init=False, eq=False)
class PrivateAdvice:
    """Computes advice for a congestion game from everybody's type, under joint differential privacy.

    ```python
    mechanism = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=200)
    advice = mechanism.advise(types)
    ```

    Attributes:
        game: The game, public.
        rounds: T, how many noisy loads are posted.
        loss: The price of all rounds together.

    Privacy:
        Claim: `advise` is jointly private with `loss` under *exchange* of one player's type (the number of
        players is public): for every player i, all that the others are told, together with the whole
        billboard and the drawn round, has this loss in the type of i. What i is told depends on the type of
        i, as it must. Proof: fix all players' coins. Given the board so far, the others' actions do not
        depend on the type of i, so that true loads differ by one strategy against another: by at most
        `game.distance()` = D in squared L2 distance, as integers. So a round is D/(2σ²)-zCDP (Canonne,
        Kamath, Steinke 2020) and T rounds, each a function of the board so far, are ρ = T·D/(2σ²)-zCDP (Bun,
        Steinke 2016, Lemma 2.3, adaptive). Mixing over coins does not raise it (quasi-convexity of Rényi
        divergences). The advice of another player is a function of the board, that player's type and coins,
        and the drawn round (the billboard lemma: Hsu, Huang, Roth, Roughgarden, Wu 2014). How a player
        chooses, and in which arithmetic, is immaterial to it.

        Claim about lying: if the others report truly and follow, a player of type g who reports h and answers
        the advice a by f(a) gains at most tv + max(α, τ(g, h)) + 2·own in expectation. tv is the total
        variation distance of `loss`, τ the regret of g against answering, on the true run, the advice for h
        in the best way (`Advice.temptation` is its maximum), own what one's presence adds to a cost. Proof:
        with own coins fixed, the utility of (h, f) is a function in [0, 1] of the others' actions, the board
        and the round; their law under report h is within tv of that under the true report, under which
        the gain is τ up to own presence, once in what is paid and once in what would be. If f ignores the
        advice, external regret ≤ swap regret ≤ α takes the place of τ.
    """

    game: CongestionGame
    rounds: int
    loss: ConcentratedLoss
    _noise: DiscreteGaussian

    def __init__(self, game: CongestionGame, *, epsilon: Rational, delta: Rational, rounds: int) -> None:
        """Fix the noise so that all rounds together cost (epsilon, delta).

        Raises:
            InvalidParameter: for unusable numbers, or a game without a choice.
        """
        count = as_integer(rounds, "rounds")
        point = positive(epsilon, "epsilon"), probability(delta, "delta")
        moved = game.distance()
        if not moved:
            raise InvalidParameter("All types have one and the same strategy: there is nothing to advise.")
        # The noise that pays for one release of T times the squared distance pays for T of the distance.
        whole = DiscreteGaussian(*point, squared_sensitivity=moved * count)
        object.__setattr__(self, "game", game)
        object.__setattr__(self, "rounds", count)
        object.__setattr__(self, "loss", ConcentratedLoss(whole.rho, point=point))
        object.__setattr__(self, "_noise", DiscreteGaussian(rho=whole.rho / count, squared_sensitivity=moved))

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on each load, in players."""
        return self._noise.sigma

    @property
    def influence(self) -> float:
        """The most by which one report moves the law of what all others see, in total variation.

        The better of δ(0) and √(ρ/2) (Pinsker; ρ-zCDP bounds the Kullback–Leibler divergence by ρ).
        """
        rho: Fraction = self.loss.concentrated[0]
        pinsker = math.nextafter(math.sqrt(float_up(rho / 2)), math.inf)
        return min(self.loss.delta(0), pinsker, 1.0)

    def advise(self, types: Sequence[Hashable] | Integers) -> Advice:
        """Advice for everybody.

        Args:
            types: Each player's type, by name. Private.

        Raises:
            InvalidValue: for another number of players, or an unknown type.
        """
        game = self.game
        index = game.index(types)
        played = play(game, index, rounds=self.rounds, noise=self._noise)
        chosen = random.integers(self.rounds)
        loads = played.loads[0]
        paid = game.tables[np.arange(len(game.resources)), loads] * loads
        return Advice(
            game=game,
            strategies=played.actions[0, chosen].astype(np.int64),
            billboard=played.board[0],
            weights=played.weights[0],
            loss=self.loss,
            round=chosen,
            loads=loads[chosen],
            regret=regrets(game, index, played.actions[0], loads),
            mean_cost=float(paid.sum() / (game.players * self.rounds)),
            temptation=float(temptations(game, played.weights[0], loads).max()),
            _influence=self.influence,
            _noise=self.sigma,
            _played=played,
        )

    def promised_alpha(self, confidence: Rational = "0.95") -> float:
        """An α that `Advice.alpha` stays below with this probability, known before anything is read.

        For a type with K strategies whose costs differ by at most Γ, and β = 1 − confidence, the sum of:

        - learning, Γ'·√(K·ln K·(T + 1))/T, where Γ' bounds what is posted: K copies of exponential weights
          with falling step sizes η_t regret K·ln K/η_T + Σ η_t·spread_t²/8 together, since the squares of
          probabilities add up to at most 1;
        - coins, Γ·√(2·(ln(2n/β) + K·ln K)/T): Azuma's inequality for n players and K^K swaps;
        - noise: posted differences of cost are off by Σ ±slope·Z over the resources in which two strategies
          differ. Let v be the most of Σ slope² over them. For straight lines the sum over rounds is
          sub-Gaussian, so its mean is at most σ·√(2v·(ln(2n/β) + K·ln K)/T). Otherwise only absolute values
          can be added, with m resources: σ·√(2v·(ln K + m·ln 2 + ln(2n/β)/T));
        - presence, 2κ: a player's draw is independent of the loads without that player only. That a swap
          brings one's own load along makes it no better, since costs do not fall.

        Never more than Γ. It is loose: several times what is measured, since costs at equilibrium differ
        far less than Γ. `Advice.certified` is tighter.
        """
        failure = float(1 - probability(confidence, "confidence")) - RARE
        reach, rounds = reach_of(self.game), self.rounds
        if failure <= 0:
            return float(reach.spread.max())
        swaps = reach.size * np.log(reach.size)
        most = posted_spread(self.game, self.sigma, rounds=rounds)
        learning = most * np.sqrt(swaps * (rounds + 1)) / rounds
        tail = math.log(2 * self.game.players / failure)
        coins = reach.spread * np.sqrt(2 * (tail + swaps) / rounds)
        noise = _noise_term(self.game, self.sigma, rounds=rounds, failure=failure / 2)
        return float(np.minimum(learning + coins + noise + 2 * reach.presence, reach.spread).max())


def _noise_term(game: CongestionGame, sigma: float, *, rounds: int, failure: float) -> Floats:
    """For each type what noise adds to any player's regret, in the mean of all rounds."""
    reach = reach_of(game)
    tail = math.log(max(game.players, len(game.types)) / failure)
    if game.affine:
        terms = (tail + reach.size * np.log(reach.size)) / rounds
    else:
        terms = np.log(reach.size) + reach.differ * math.log(2) + tail / rounds
    found: Floats = sigma * np.sqrt(2 * reach.steep * terms)
    return found


def correlated_advice(
    game: CongestionGame,
    types: Sequence[Hashable] | Integers,
    *,
    epsilon: Rational,
    delta: Rational,
    rounds: int,
) -> Advice:
    """Jointly private advice that nobody gains much by disobeying.

    Args:
        game: The game, public.
        types: Each player's type, private.
        epsilon: Together with `delta`, the price of all rounds.
        delta: Strictly between 0 and 1.
        rounds: How often loads are posted: more learn longer, under more noise each.

    Privacy:
        That of `PrivateAdvice`: joint privacy under exchange of one type.

    Raises:
        InvalidParameter: for unusable numbers.
        InvalidValue: for another number of players, or an unknown type.
    """
    return PrivateAdvice(game, epsilon=epsilon, delta=delta, rounds=rounds).advise(types)


@dataclass(frozen=True, slots=True)
class Gain:
    """What a lie was seen to bring. Steward-only.

    Attributes:
        mean: The gain in utility, which is at most 1.
        half_width: Of an approximate interval of 95% around it (Student's t).
    """

    mean: float
    half_width: float


def measured_gain(
    mechanism: PrivateAdvice,
    types: Sequence[Hashable] | Integers,
    *,
    player: int,
    report: Hashable,
    runs: int = 16,
) -> Gain:
    """What one player gained by reporting another type and answering the advice in the best way.

    Runs the mechanism anew with the truth and with the lie. The answer to each advice is the best in
    hindsight over all runs, which flatters the liar. For the steward: it reads all types.
    """
    from scipy.special import stdtrit

    count = as_integer(runs, "runs", least=2)
    game = mechanism.game
    index = game.index(types)
    if report not in game.types:
        raise InvalidParameter("report must be one of the game's types.")
    told = index.copy()
    told[player] = game.types.index(report)
    mine = game.uses[game.home[index[player]][game.home[index[player]] >= 0]]
    paid = []
    for given in (index, told):
        seen = play(game, given, rounds=mechanism.rounds, noise=mechanism._noise, runs=count)
        heard = seen.actions[:, :, player]
        present = game.uses[game.home[given[player], heard]]
        alone = (seen.loads - present + 1).astype(np.int64)
        costs = game.tables[np.arange(len(game.resources)), alone] @ mine.T  # run, round, own strategy
        said = heard[..., None] == np.arange(game.home.shape[1])
        table = np.einsum("rta,rtb->rab", said.astype(np.float64), costs) / mechanism.rounds
        if given is index:
            paid.append(np.einsum("raa->r", table[:, : len(mine)]))
        else:
            best = table.mean(axis=0).argmin(axis=1)
            paid.append(table[:, np.arange(len(best)), best].sum(axis=1))
    error = math.sqrt(sum(float(each.var(ddof=1)) for each in paid) / count)
    return Gain(float(paid[0].mean() - paid[1].mean()), float(stdtrit(count - 1, 0.975)) * error)


def _others_view(name: str, left: Sequence[Hashable], right: Sequence[Hashable]) -> Example:
    """The board and what the others are told, for two types of the first of three players on two roads."""
    roads = {"left": [["left"]], "right": [["right"]], "any": [["left"], ["right"]]}
    game = CongestionGame(["left", "right"], roads, players=3, latency=[(1 / 3, 0.0), (1 / 3, 0.0)])
    mechanism = PrivateAdvice(game, epsilon=4, delta="0.01", rounds=3)

    def draw(side: Side, count: int) -> Integers:
        index = game.index(left if side == "left" else right)
        seen = play(game, index, rounds=mechanism.rounds, noise=mechanism._noise, runs=count)
        at = random.integers(mechanism.rounds, count)
        advice = seen.actions[np.arange(count), at, 1:]
        return np.concatenate([seen.board.reshape(count, -1), at[:, None], advice], axis=1)

    return Example(name, mechanism.loss, draw)


EXAMPLES = (
    _others_view("advice: one road or the other", ("left", "left", "right"), ("right", "left", "right")),
    _others_view("advice: others who learn from the board", ("left", "any", "any"), ("right", "any", "any")),
)
