"""Rounds of play from a noisy public board, many runs at once, and what they leave to regret."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.games.congestion import CongestionGame
from sfumato.mechanisms import DiscreteGaussian

__all__ = [
    "RARE",
    "Played",
    "Reach",
    "answers",
    "certificate",
    "play",
    "posted_spread",
    "reach_of",
    "regrets",
    "stationary",
    "temptations",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_FLOOR = 1e-12  # of a probability: a chain that surely moves has one stationary law
_RATES = 16  # step sizes that the certificate may choose from
RARE = 1e-6  # the chance that noise exceeds what the learner is prepared for; privacy does not depend on it


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What happened in some independent runs of the same rounds.

    Attributes:
        board: The noisy loads that were posted: run, round, resource. The only public thing.
        weights: With which probability each type played each of its strategies: run, round, type, strategy.
            A function of the board.
        actions: What each player drew: run, round, player. Private.
        loads: The true loads: run, round, resource. Private.
    """

    board: Integers
    weights: Floats
    actions: NDArray[np.int16]
    loads: Integers


def play(
    game: CongestionGame, index: Integers, *, rounds: int, noise: DiscreteGaussian, runs: int = 1
) -> Played:
    """Let everybody learn from the board alone.

    Each type runs the swap-regret learner of Blum and Mansour 2007: one copy of exponential weights for each
    strategy a, which is charged the posted costs times the probability of a; the copies' weights are the rows
    of a Markov chain whose stationary law is played. Players of one type see the same board, so they share
    the weights and only draw with coins of their own. The step size √(4·K·ln K / (Γ² + Σ spread²)) follows
    the spreads of the costs posted so far (Γ is `posted_spread`, the most they can be).
    """
    valid = game.home >= 0
    home, sizes = np.where(valid, game.home, 0), valid.sum(axis=1)
    most = posted_spread(game, noise.sigma, rounds=rounds)
    tune = np.where(most > 0, 4 * sizes * np.log(sizes), 0.0)
    tally = np.zeros((runs, *home.shape, home.shape[1]))
    seen = np.broadcast_to(np.where(most > 0, most**2, 1.0), (runs, len(home))).copy()
    shape = (runs, rounds)
    board = np.empty((*shape, len(game.resources)), np.int64)
    loads = np.empty_like(board)
    weights = np.empty((*shape, *home.shape))
    actions = np.empty((*shape, len(index)), np.int16)
    for t in range(rounds):
        rate = np.sqrt(tune / seen)[:, :, None, None]
        now = stationary(-rate * tally, valid)
        drawn = _draw(now, index, sizes)
        loads[:, t] = game.loads(home[index, drawn])
        board[:, t] = noise.release(loads[:, t])
        weights[:, t], actions[:, t] = now, drawn
        costs = posted(game, board[:, t])[:, home]
        low = np.where(valid, costs, np.inf).min(axis=2, keepdims=True)
        above = np.where(valid, costs - low, 0.0)
        tally += now[..., None] * above[:, :, None, :]
        seen += above.max(axis=2) ** 2
    return Played(board, weights, actions, loads)


def posted(game: CongestionGame, board: Integers) -> Floats:
    """What each strategy costs by the board.

    Straight lines go on beyond 0 and n, so that noise does not bend them and averages out over rounds; other
    latencies are only known in between.
    """
    if not game.affine:
        return game.costs(board)
    rest = game.tables[:, 0]
    slope = (game.tables[:, -1] - rest) / game.players
    costs: Floats = (board * slope + rest) @ game.uses.T
    return costs


def posted_spread(game: CongestionGame, sigma: float, *, rounds: int) -> Floats:
    """For each type the most by which two posted costs differ in any round, but for a chance of `RARE`."""
    reach = reach_of(game)
    if not game.affine:
        return reach.spread
    tail = math.log(2 * float((reach.size**2).sum()) * rounds / RARE)
    spread: Floats = np.where(reach.spread > 0, reach.spread + sigma * np.sqrt(2 * reach.steep * tail), 0.0)
    return spread


def stationary(logits: Floats, valid: NDArray[np.bool_]) -> Floats:
    """The stationary laws of the chains whose rows are the softmax of `logits` over valid places."""
    masked = np.where(valid[..., None, :], logits, -np.inf)
    rows = np.exp(masked - masked.max(axis=-1, keepdims=True))
    rows = np.where(valid[..., None, :], np.maximum(rows, _FLOOR), 0.0)
    rows /= rows.sum(axis=-1, keepdims=True)
    size = rows.shape[-1]
    # p(I − Q + J) = 1 with J all ones has exactly the stationary law as its solution.
    system = np.swapaxes(np.eye(size) - rows + 1.0, -1, -2)
    law = np.linalg.solve(system, np.ones((*system.shape[:-1], 1)))[..., 0]
    law = np.where(valid, np.maximum(law, 0.0), 0.0)
    weights: Floats = law / law.sum(axis=-1, keepdims=True)
    return weights


def _draw(weights: Floats, index: Integers, sizes: Integers) -> Integers:
    """An action for each player of each run. Its law matters to regret alone, so floats are good enough."""
    coins = random.integers(2**53, (len(weights), len(index))) * 2.0**-53
    steps = np.cumsum(weights, axis=-1)[:, :, :-1]
    drawn = np.zeros(coins.shape, np.int64)
    for k in range(steps.shape[-1]):
        drawn += coins >= steps[:, index, k]
    return np.minimum(drawn, sizes[index] - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """What noise, presence and choice can do at most, for each type; see `PrivateAdvice.promised_alpha`.

    Attributes:
        size: K, the number of strategies.
        spread: Γ, the most by which the costs of two strategies can differ.
        differ: m, the most resources in which two strategies differ.
        steep: v, the most of Σ slope² over the resources in which two differ.
        presence: κ, the most of Σ slope over them.
        own: The most that one player's presence adds to the cost of any strategy of any type.
    """

    size: Floats
    spread: Floats
    differ: Floats
    steep: Floats
    presence: Floats
    own: float


def reach_of(game: CongestionGame) -> Reach:
    """The constants of a game, from its public tables."""
    slope = game.steepest()
    empty, full = game.tables[:, 0], game.tables[:, -1]
    figures = []
    for here, there in game.rivals():
        leave, enter = here * (1 - there), there * (1 - here)
        apart = leave + enter
        spread = (leave @ full - enter @ empty).max()
        figures.append(
            (
                math.isqrt(len(here)),
                spread,
                apart.sum(axis=1).max(),
                (apart @ slope**2).max(),
                (apart @ slope).max(),
            )
        )
    size, spread, differ, steep, presence = np.array(figures, dtype=np.float64).T
    return Reach(size, spread, differ, steep, presence, float((game.uses @ slope).max()))


def regrets(game: CongestionGame, index: Integers, actions: NDArray[np.int16], loads: Integers) -> Floats:
    """For each player the mean gain of the best swap of the own actions, on the true loads of all rounds."""
    rounds, places = len(loads), np.arange(len(game.resources))
    stay = game.tables[places, loads]
    join = game.tables[places, np.minimum(loads + 1, game.players)]
    gained = np.zeros(game.players)
    for g, row in enumerate(game.home):
        members = np.flatnonzero(index == g)
        mine = game.uses[row[row >= 0]]
        if not len(members):
            continue
        chosen = actions[:, members].T
        for a, here in enumerate(mine):
            other = join @ mine.T - (join - stay) @ (here * mine).T
            gains = (stay @ here)[:, None] - other
            gains[:, a] = 0.0  # staying gains nothing, whatever floats make of it
            gained[members] += ((chosen == a).astype(np.float64) @ gains).max(axis=1).clip(0.0)
    return np.minimum(gained / rounds, 1.0)  # costs lie in 0 … 1


def temptations(game: CongestionGame, weights: Floats, loads: Integers) -> Floats:
    """For each type, the mean gain of hearing another type's advice and answering it in the best way.

    `temptations[g, h]` is for a player of type g with the advice of type h; g = h is the swap regret of the
    type's own weights.
    """
    valid = game.home >= 0
    rounds = len(loads)
    costs = game.costs(loads)
    heard = weights.reshape(rounds, -1).T
    gained = np.empty((len(game.home), len(game.home)))
    for g, row in enumerate(game.home):
        mine = costs[:, row[valid[g]]]
        paid = (weights[:, g, : mine.shape[1]] * mine).sum()
        answered = (heard @ mine).min(axis=1).reshape(game.home.shape).sum(axis=1)
        gained[g] = (paid - answered) / rounds
    return gained


def answers(game: CongestionGame, played: Played, *, player: int, reported: int, truth: int) -> Floats:
    """What a player of type `truth` pays for answering each advice by each own strategy: run, advice, answer.

    In the mean of all rounds, counting those in which the advice was given; the player, who reported type
    `reported`, is on the road once, with the answer and not with the advice.
    """
    mine = game.uses[game.home[truth][game.home[truth] >= 0]]
    heard = played.actions[:, :, player]
    alone = (played.loads - game.uses[game.home[reported, heard]] + 1).astype(np.int64)
    costs = game.tables[np.arange(len(game.resources)), np.minimum(alone, game.players)] @ mine.T
    said = heard[..., None] == np.arange(game.home.shape[1])
    paid: Floats = np.einsum("rta,rtb->rab", said.astype(np.float64), costs) / heard.shape[1]
    return paid


def certificate(game: CongestionGame, played: Played, *, failure: float) -> Floats:
    """For each type a bound on what choice, against the posted costs, leaves any player to regret.

    The regret of a type's weights is known exactly. A player's own draws differ from it by a martingale:
    given the noise and what others draw, each step lies in an interval twice as wide as the costs spread, so
    that Azuma's inequality holds with the spreads that were seen, for a step size from a fixed list. With
    probability 1 − failure for all players, swaps and step sizes at once; computed from the board alone.
    """
    reach = reach_of(game)
    costs, weights = posted(game, played.board[0]), played.weights[0]
    rounds = len(costs)
    bounds = np.zeros(len(game.home))
    for g, row in enumerate(game.home):
        size = int((row >= 0).sum())
        if size == 1 or not reach.spread[g]:
            continue
        mine, law = costs[:, row[:size]], weights[:, g, :size]
        worth = law.T @ mine
        regret = (np.diagonal(worth) - worth.min(axis=1)).sum()
        width = float(((np.ptp(mine, axis=1) + reach.presence[g]) ** 2).sum())
        tail = math.log(game.players * _RATES / failure) + size * math.log(size)
        rates = 2.0 ** np.arange(_RATES) / reach.spread[g]
        bounds[g] = (regret + (rates * width / 2 + tail / rates).min()) / rounds
    return bounds
