"""Advice for thousands of players that none gains by disobeying, and that hides what each one wants."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.games._advice import UP, Advice, noise_term
from sfumato.games._rounds import RARE, answers, play, posted_spread, reach_of, regrets, temptations
from sfumato.games.congestion import CongestionGame
from sfumato.games.examples import Example
from sfumato.loss import ConcentratedLoss
from sfumato.mechanisms import DiscreteGaussian
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer, float_up, positive, probability

__all__ = ["Advice", "Gain", "PrivateAdvice", "correlated_advice", "examples", "measured_gain"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_MOST_DRAWS = 2**25  # actions held at once by simulations
_MOST_CELLS = 2**32  # actions, loads and weights that one advice may hold


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

    def advise(self, types: Sequence[Hashable]) -> Advice:
        """Advice for everybody.

        Args:
            types: Each player's type, by name. Private.

        Raises:
            InvalidValue: for another number of players, or an unknown type; outside the claim.
        """
        game = self.game
        index = game.index(types)
        if self.rounds * (game.players + 2 * len(game.resources) + game.home.size) > _MOST_CELLS:
            raise InvalidParameter("rounds × players is beyond 2**32 cells: ask for fewer rounds.")
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

    def play(self, reports: Sequence[Hashable], agent: int, truth: Hashable, count: int) -> Floats:
        """The utility 1 − cost of one player in `count` fresh runs, each the mean over the round drawn.

        Others report as given and follow. A player who reports the truth follows too; a liar answers each
        advice in the way that was best over all of these runs, which flatters the liar. The runs of a liar
        thus share one answer: in `sampled_gain` the upper bound holds, the lower one may come out too high.
        Not private: for simulations, such as a check of truthfulness.

        Args:
            reports: What each player reports.
            agent: The player.
            truth: The type that this player really has.
            count: How many runs.

        Raises:
            InvalidValue: for an unknown type.
        """
        game, index = self.game, self.game.index(reports)
        actual = int(game.index([truth] * game.players)[0])
        reported = int(index[game.player(agent)])
        runs = as_integer(count, "count")
        most = max(1, _MOST_DRAWS // (self.rounds * game.players))
        tables = np.concatenate(
            [
                answers(
                    game,
                    play(game, index, rounds=self.rounds, noise=self._noise, runs=min(most, runs - done)),
                    player=agent,
                    reported=reported,
                    truth=actual,
                )
                for done in range(0, runs, most)
            ]
        )
        if reported == actual:
            answer = np.minimum(
                np.arange(tables.shape[1]), tables.shape[2] - 1
            )  # beyond its last: never told
        else:
            answer = tables.mean(axis=0).argmin(axis=1)
        payoffs: Floats = 1.0 - tables[:, np.arange(tables.shape[1]), answer].sum(axis=1)
        return payoffs

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
            return min(1.0, float(reach.spread.max()) * UP)
        swaps = reach.size * np.log(reach.size)
        most = posted_spread(self.game, self.sigma, rounds=rounds)
        learning = most * np.sqrt(swaps * (rounds + 1)) / rounds
        tail = math.log(2 * self.game.players / failure)
        coins = reach.spread * np.sqrt(2 * (tail + swaps) / rounds)
        noise = noise_term(self.game, self.sigma, rounds=rounds, failure=failure / 2)
        total = learning + coins + noise + 2 * reach.presence
        return min(1.0, float(np.minimum(total, reach.spread).max()) * UP)


def correlated_advice(
    game: CongestionGame,
    types: Sequence[Hashable],
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
        InvalidValue: for another number of players, or an unknown type; outside the claim.
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

    def __str__(self) -> str:
        return f"A gain of {self.mean:.4g} ± {self.half_width:.2g}, 95% of the time"


def measured_gain(
    mechanism: PrivateAdvice,
    types: Sequence[Hashable],
    *,
    player: int,
    report: Hashable,
    runs: int = 16,
) -> Gain:
    """What one player gained by reporting another type and answering the advice in the best way.

    Runs the mechanism again with the truth and with the lie. The answer to each advice is the best in
    hindsight over all runs, which flatters the liar. For the steward: it reads all types.
    """
    from scipy.special import stdtrit

    count = as_integer(runs, "runs", least=2)
    mechanism.game.index(types)  # refuses another number of players
    told, at = list(types), mechanism.game.player(player)
    truth, told[at] = told[at], report
    honest = mechanism.play(types, player, truth, count)
    lying = mechanism.play(told, player, truth, count)
    error = math.sqrt((float(honest.var(ddof=1)) + float(lying.var(ddof=1))) / count)
    return Gain(float(lying.mean() - honest.mean()), float(stdtrit(count - 1, 0.975)) * error)


def others_view(
    name: str, left: Sequence[Hashable], right: Sequence[Hashable], *, epsilon: Rational = 4
) -> Example:
    """The board and what the others are told, for two types of the first of three players on two roads."""
    roads = {"left": [["left"]], "right": [["right"]], "any": [["left"], ["right"]]}
    game = CongestionGame(["left", "right"], roads, players=3, latency=[(1 / 3, 0.0), (1 / 3, 0.0)])
    mechanism = PrivateAdvice(game, epsilon=epsilon, delta="0.01", rounds=3)

    def draw(side: Side, count: int) -> Integers:
        index = game.index(left if side == "left" else right)
        seen = play(game, index, rounds=mechanism.rounds, noise=mechanism._noise, runs=count)
        at = random.integers(mechanism.rounds, count)
        advice = seen.actions[np.arange(count), at, 1:]
        return np.concatenate([seen.board.reshape(count, -1), at[:, None], advice], axis=1)

    return Example(name, mechanism.loss, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        others_view("advice: one road or the other", ("left", "left", "right"), ("right", "left", "right")),
        others_view(
            "advice: others who learn from the board", ("left", "any", "any"), ("right", "any", "any")
        ),
    )
