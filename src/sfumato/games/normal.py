"""Small games as tables of payoffs: how large, which equilibria, and what good advice adds."""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

__all__ = ["Correlated", "Nash", "NormalForm", "best_correlated", "incentive", "nash"]

Floats: TypeAlias = NDArray[np.float64]

_CLOSE = 1e-9  # what counts as no gain, in units of the range that payoffs really have
_MOST_SUPPORTS = 13_000  # pairs of supports to try: all of eight actions against eight


@dataclass(frozen=True, slots=True, init=False, eq=False)
class NormalForm:
    """A game of a few players, each with a few actions.

    ```python
    chicken = NormalForm([[[6, 2], [7, 0]], [[6, 7], [2, 0]]], high=7)
    ```

    Attributes:
        payoffs: `payoffs[i][a_0, a_1, …]` is what player i gets when player j does a_j.
        low: The least that anybody may get.
        high: The most that anybody may get.
    """

    payoffs: Floats
    low: float
    high: float

    def __init__(self, payoffs: ArrayLike, *, low: float = 0.0, high: float = 1.0) -> None:
        """Check the table.

        Raises:
            InvalidParameter: for no players, players without actions, or payoffs outside low … high.
        """
        try:
            table = np.array(payoffs, dtype=np.float64)
            low, high = float(low), float(high)
        except (TypeError, ValueError):
            raise InvalidParameter(
                "payoffs needs tables of numbers, all of one shape, and low and high one number each."
            ) from None
        if table.ndim < 2 or table.shape[0] != table.ndim - 1 or table.shape[0] < 1:
            raise InvalidParameter(
                "payoffs needs one table a player, each with one axis a player: (n, actions of the first, …)."
            )
        if 0 in table.shape:
            raise InvalidParameter("Every player needs at least one action.")
        if not (low < high and math.isfinite(high - low)):
            raise InvalidParameter("low must be below high, both finite: they declare the range of payoffs.")
        if not np.all((table >= low) & (table <= high)):
            raise InvalidParameter(
                f"A payoff lies outside the declared range {low:g} to {high:g}; declare low and high."
            )
        table.setflags(write=False)
        object.__setattr__(self, "payoffs", table)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def players(self) -> int:
        """How many play."""
        return int(self.payoffs.shape[0])

    @property
    def actions(self) -> tuple[int, ...]:
        """How many actions each player has."""
        return tuple(self.payoffs.shape[1:])

    def largeness(self) -> float:
        """Δ: the most that one player's change of action moves the payoff of another, over all profiles.

        Along the axis of j the largest difference is maximum minus minimum, so no pair has to be tried.
        """
        widest = 0.0
        for j in range(self.players):
            others = np.delete(self.payoffs, j, axis=0)
            if others.size:
                widest = max(widest, float(np.ptp(others, axis=j + 1).max()))
        return widest


@dataclass(frozen=True, slots=True)
class Nash:
    """An equilibrium in which every player randomises independently.

    Attributes:
        strategies: The probabilities of each player's actions.
        payoffs: What each player expects.
    """

    strategies: tuple[tuple[float, ...], ...]
    payoffs: tuple[float, ...]

    @property
    def pure(self) -> bool:
        """Whether no player randomises."""
        return all(max(strategy) == 1.0 for strategy in self.strategies)

    @property
    def welfare(self) -> float:
        """What all together expect."""
        return sum(self.payoffs)

    def __str__(self) -> str:
        """What each player does and expects."""
        told = "; ".join(
            f"player {place} plays {', '.join(f'{chance:.4g}' for chance in strategy)} for {payoff:.4g}"
            for place, (strategy, payoff) in enumerate(zip(self.strategies, self.payoffs, strict=True), 1)
        )
        return f"{'Pure' if self.pure else 'Mixed'} equilibrium: {told}."


@dataclass(frozen=True, slots=True, eq=False)
class Correlated:
    """A law of advice that nobody gains by disobeying.

    Attributes:
        distribution: The probability of each profile of advice.
        payoffs: What each player expects.
    """

    distribution: Floats
    payoffs: tuple[float, ...]

    @property
    def welfare(self) -> float:
        """What all together expect."""
        return sum(self.payoffs)

    def __str__(self) -> str:
        """What each player expects."""
        told = ", ".join(f"{payoff:.4g}" for payoff in self.payoffs)
        profiles = int((self.distribution > 0).sum())
        return f"Advice over {profiles} profiles of actions: players expect {told}."


def nash(game: NormalForm) -> tuple[Nash, ...]:
    """The Nash equilibria: all pure ones and, for two players, the mixed ones of equal supports.

    Equal supports are all there are in nondegenerate games of two players (Nisan, Roughgarden, Tardos,
    Vazirani 2007, Alg. 3.4); in degenerate ones a continuum may be left out.

    Raises:
        InvalidParameter: for two players with more pairs of supports than 8 actions each have, where
            enumeration would not end.
    """
    tables = game.payoffs
    best = np.ones(game.actions, dtype=bool)
    for i in range(game.players):
        best &= tables[i] >= tables[i].max(axis=i, keepdims=True)
    equilibria = [
        _told(game, [_pure(size, at) for size, at in zip(game.actions, place, strict=True)])
        for place in np.argwhere(best).tolist()
    ]
    if game.players == 2:
        if math.comb(sum(game.actions), min(game.actions)) > _MOST_SUPPORTS:
            raise InvalidParameter(
                "Mixed equilibria are enumerated for up to 8 actions each (or fewer of one and more of the "
                "other): leave out actions that nobody would take."
            )
        equilibria += _mixed(game)
    return tuple(equilibria)


def _pure(size: int, at: int) -> Floats:
    out = np.zeros(size)
    out[at] = 1.0
    return out


def _told(game: NormalForm, strategies: list[Floats]) -> Nash:
    payoffs = []
    for table in game.payoffs:
        value: Floats = table
        for strategy in strategies:
            value = np.tensordot(strategy, value, axes=(0, 0))
        payoffs.append(float(value))
    return Nash(tuple(tuple(strategy.tolist()) for strategy in strategies), tuple(payoffs))


def _plain(game: NormalForm) -> Floats:
    """The payoffs with each player's own shifted and scaled to 0 … 1, which changes no equilibrium.

    Solvers call a millionth nothing: in the units of the caller that may be everything.
    """
    rest = tuple(range(1, game.payoffs.ndim))
    least = game.payoffs.min(axis=rest, keepdims=True)
    width = game.payoffs.max(axis=rest, keepdims=True) - least
    plain: Floats = (game.payoffs - least) / np.where(width > 0, width, 1.0)
    return plain


def _mixed(game: NormalForm) -> list[Nash]:
    rows, columns = _plain(game)
    equilibria = []
    for size in range(2, min(game.actions) + 1):
        for mine in itertools.combinations(range(game.actions[0]), size):
            for yours in itertools.combinations(range(game.actions[1]), size):
                at = np.ix_(mine, yours)
                you, me = _indifferent(rows[at]), _indifferent(columns[at].T)
                if you is None or me is None:
                    continue
                x, y = np.zeros(game.actions[0]), np.zeros(game.actions[1])
                x[list(mine)], y[list(yours)] = me, you
                mine_is_best = (rows @ y).max() <= x @ rows @ y + _CLOSE
                if mine_is_best and (x @ columns).max() <= x @ columns @ y + _CLOSE:
                    equilibria.append(_told(game, [x, y]))
    return equilibria


def _indifferent(table: Floats) -> Floats | None:
    """The positive mixture of columns that makes all rows equally good, if there is exactly one."""
    size = len(table)
    system = np.zeros((size + 1, size + 1))
    system[:size, :size], system[:size, size], system[size, :size] = table, -1.0, 1.0
    if np.linalg.matrix_rank(system) <= size:
        return None
    mixture: Floats = np.linalg.solve(system, np.append(np.zeros(size), 1.0))[:size]
    return mixture if mixture.min() > _CLOSE else None


def best_correlated(game: NormalForm) -> Correlated:
    """The correlated equilibrium with the largest total payoff, by linear programming.

    A law of profiles is a correlated equilibrium if for every player and every advice no other action is
    better, given the advice (Aumann 1974): linear in the law. Every Nash equilibrium is one, so this is never
    worse than the best of those.
    """
    from scipy.optimize import linprog

    size = int(np.prod(game.actions))
    total = game.payoffs.sum(axis=0)
    rows, plain = [], _plain(game)
    for i, count in enumerate(game.actions):
        table = plain[i]
        for told in range(count):
            for done in range(count):
                if told != done:
                    gain = np.zeros(game.actions)
                    at: list[slice | int] = [slice(None)] * game.players
                    at[i] = told
                    gain[tuple(at)] = np.take(table, done, axis=i) - np.take(table, told, axis=i)
                    rows.append(gain.ravel())
    answer = linprog(
        ((total.max() - total) / (float(np.ptp(total)) or 1.0)).ravel(),
        A_ub=np.array(rows) if rows else None,
        b_ub=np.zeros(len(rows)) if rows else None,
        A_eq=np.ones((1, size)),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    law = np.maximum(np.asarray(answer.x, dtype=np.float64), 0.0).reshape(game.actions)
    law /= law.sum()
    return Correlated(law, tuple(float((law * table).sum()) for table in game.payoffs))


def incentive(game: NormalForm, distribution: ArrayLike) -> float:
    """The most that any player expects to gain by swapping advice for other actions.

    For a player it is the sum over advice of the gain of the best answer to it: 0 exactly for correlated
    equilibria, at most α for α-approximate ones.

    Raises:
        InvalidParameter: if `distribution` is not a law over the profiles of the game.
    """
    try:
        law = np.asarray(distribution, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("distribution must be probabilities that add up to 1.") from None
    if law.shape != game.actions:
        raise InvalidParameter(f"distribution needs one probability a profile: shape {game.actions}.")
    if not (np.all(law >= 0) and abs(law.sum() - 1.0) <= 1e-6):
        raise InvalidParameter("distribution must be probabilities that add up to 1.")
    most = 0.0
    for i, count in enumerate(game.actions):
        table = np.moveaxis(game.payoffs[i], i, 0).reshape(count, -1)
        shares = np.moveaxis(law, i, 0).reshape(count, -1)
        worth = shares @ table.T  # worth[told, done]
        most = max(most, float((worth.max(axis=1) - np.diagonal(worth)).sum()))
    return most
