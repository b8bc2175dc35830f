"""Congestion games of thousands: what everybody pays depends on how many use the same roads."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import as_integer

__all__ = ["CongestionGame", "Latency", "tabulated"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Latency: TypeAlias = tuple[float, float] | Sequence[float] | Floats | Callable[[Floats], ArrayLike]
"""What a resource costs: (slope a player, cost at rest), a table for loads 0 … n, or a function of loads."""

_ROUNDING = 1e-9
_MOST_CELLS = 2**28


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class CongestionGame:
    """Players who each choose a set of resources; what a resource costs depends on how many use it.

    ```python
    game = CongestionGame(
        ["bridge", "ferry"],
        {"driver": [["bridge"], ["ferry"]], "cyclist": [["bridge"]]},
        players=100, latency={"bridge": (0.01, 0.0), "ferry": (0.0, 0.5)},
    )
    ```

    A *type* is a set of allowed strategies, such as the ways from one's home to one's work. Resources, types
    and their strategies, the number of players and the latencies are public; who is of which type is not.
    Whatever all do, nobody pays more than 1 (`scale` says what 1 is): 1 − cost is a utility in [0, 1].

    Attributes:
        resources: Their names.
        types: Names of the types.
        strategies: For each type its strategies, each a tuple of resources.
        players: How many play.
        tables: `tables[e, x]` is the cost of resource e under load x.
        uses: `uses[s, e]` is 1 where strategy s uses resource e, for the distinct strategies of all types.
        home: `home[g, k]` is the row in `uses` of the k-th strategy of type g, and −1 beyond its last.
        scale: What a cost of 1 is in the units in which latencies were given.
        affine: Whether every latency is a straight line, in which case `largeness` is exact.
    """

    resources: tuple[Hashable, ...]
    types: tuple[Hashable, ...]
    strategies: tuple[tuple[tuple[Hashable, ...], ...], ...]
    players: int
    tables: Floats
    uses: Floats
    home: Integers
    scale: float
    affine: bool

    def __init__(
        self,
        resources: Iterable[Hashable],
        strategies: Mapping[Any, Sequence[Iterable[Hashable]]],
        *,
        players: int,
        latency: Mapping[Any, Latency] | Sequence[Latency],
        scale: float | None = 1.0,
    ) -> None:
        """Check and tabulate the game.

        Args:
            resources: What can be used: names, all different.
            strategies: For each type the sets of resources that it may choose from.
            players: How many play, at least 2.
            latency: For each resource its cost at every load, not decreasing.
            scale: What counts as a cost of 1; None: the most that any strategy can cost.

        Raises:
            InvalidParameter: for an empty space of types or strategies, unknown resources, a latency that
                decreases or is negative, and a strategy that can cost more than the scale.
        """
        try:
            names = tuple(resources)
            place = {name: at for at, name in enumerate(names)}
        except TypeError:
            raise InvalidParameter("resources must list names, such as strings or pairs.") from None
        if not names or len(place) < len(names):
            raise InvalidParameter("resources needs at least one name, and all different.")
        count = as_integer(players, "players", least=2)
        if len(names) * (count + 1) > _MOST_CELLS:
            raise InvalidParameter("resources × players is beyond 2**28 cells: count players in groups.")
        lists = _strategies(strategies, place)
        rows: dict[tuple[int, ...], int] = {}
        home = np.full((len(lists), max(map(len, lists.values()))), -1, dtype=np.int64)
        for g, choices in enumerate(lists.values()):
            for k, chosen in enumerate(choices):
                home[g, k] = rows.setdefault(tuple(sorted(place[name] for name in chosen)), len(rows))
        uses = np.zeros((len(rows), len(names)))
        for chosen_places, row in rows.items():
            uses[row, list(chosen_places)] = 1.0
        tables = tabulated(names, latency, count)
        worst = float((uses @ tables[:, -1]).max())
        unit = worst if scale is None else _number(scale)
        if not (math.isfinite(unit) and unit > 0):
            raise InvalidParameter(
                "scale must be a positive number; with None, some strategy must cost something."
            )
        if worst > unit * (1 + _ROUNDING):
            raise InvalidParameter(
                f"A strategy can cost {worst / unit:.4g} when all use it, above the range of 1: "
                "give scale=None, or a scale of at least that in the units of the latencies."
            )
        tables = tables / unit
        for array in (tables, uses, home):
            array.setflags(write=False)
        for field, value in (
            ("resources", names),
            ("types", tuple(lists)),
            ("strategies", tuple(lists.values())),
            ("players", count),
            ("tables", tables),
            ("uses", uses),
            ("home", home),
            ("scale", unit),
            ("affine", _straight(tables)),
        ):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return (
            f"CongestionGame({self.players} players, {len(self.types)} types, {len(self.uses)} strategies, "
            f"{len(self.resources)} resources)"
        )

    def index(self, types: Sequence[Hashable]) -> Integers:
        """The place of each player's type in `types`.

        Raises:
            InvalidValue: for a number of players other than declared, or an unknown type; outside the claim
                of what is computed from types, each of which is looked up by itself.
        """
        if not hasattr(types, "__len__") or len(types) != self.players:
            raise InvalidValue(f"There must be one type for each of the {self.players} players.")
        place = {name: at for at, name in enumerate(self.types)}
        try:
            return np.fromiter((place[name] for name in types), np.int64, self.players)
        except (KeyError, TypeError):
            raise InvalidValue("A player's type is not one of the game's: declare its strategies.") from None

    def player(self, number: int) -> int:
        """The number of one player, from 0 on.

        Raises:
            InvalidParameter: for any other number.
        """
        if as_integer(number, "player", least=0) >= self.players:
            raise InvalidParameter(f"player must be one of the {self.players}, from 0 to {self.players - 1}.")
        return int(number)

    def loads(self, chosen: Integers) -> Integers:
        """How many use each resource, from the row in `uses` of each player's strategy (last axis)."""
        flat = chosen.reshape(-1, chosen.shape[-1])
        shift = np.arange(len(flat))[:, None] * len(self.uses)
        counts = np.bincount((flat + shift).ravel(), minlength=len(flat) * len(self.uses))
        loads = counts.reshape(len(flat), -1) @ self.uses  # whole numbers below 2**53: exact
        return loads.astype(np.int64).reshape(*chosen.shape[:-1], -1)

    def costs(self, loads: Integers) -> Floats:
        """What each strategy costs under these loads (resources on the last axis); loads are cut to 0 … n."""
        cut = np.clip(loads, 0, self.players)
        paid = self.tables[np.arange(len(self.resources)), cut]
        costs: Floats = paid @ self.uses.T
        return costs

    def steepest(self) -> Floats:
        """For each resource the most that one more user can add to its cost."""
        rises: Floats = np.diff(self.tables, axis=1).max(axis=1)
        return np.maximum(rises, 0.0)

    def largeness(self) -> float:
        """Δ: the most that anybody's cost moves when one *other* player changes strategy (or type).

        A player on a who sees another move from b to b' pays more on a ∩ b' and less on a ∩ b. With w_a(b)
        the sum over e in a ∩ b of the slope of e, that is max over a of (max w_a − min w_a) for straight
        lines, whatever the others do: exact (`affine`). Otherwise the steepest slope is taken for b', the
        flattest for b: an upper bound.
        """
        rises = np.diff(self.tables[:, 1:], axis=1)  # the player itself is there already
        more = (self.uses * rises.max(axis=1)) @ self.uses.T
        less = (self.uses * rises.min(axis=1)) @ self.uses.T
        return float(max(0.0, (more.max(axis=1) - less.min(axis=1)).max()))

    def distance(self) -> int:
        """The most resources in which two strategies differ, of whatever types: what one player can move."""
        return int(self._differences().max())

    def _differences(self) -> Floats:
        sizes = self.uses.sum(axis=1)
        apart: Floats = sizes[:, None] + sizes[None, :] - 2 * (self.uses @ self.uses.T)
        return apart

    def rivals(self) -> Iterator[tuple[Floats, Floats]]:
        """For each type, its strategies as rows of `uses`, against each other: (in a, in b), all pairs."""
        for row in self.home:
            mine = self.uses[row[row >= 0]]
            yield np.repeat(mine, len(mine), axis=0), np.tile(mine, (len(mine), 1))

    def settle(self, types: Sequence[Hashable], *, social: bool = False) -> Integers:
        """A pure Nash equilibrium by best responses; with `social`, a least total cost instead.

        Not private, and for the steward's comparisons only. Groups of players of one type move while that
        lowers Rosenthal's potential Σ_e Σ_{x ≤ load} c_e(x) (or the total cost), in steps that halve down to
        one player. A player who moves alone changes the potential by the change of the own cost (Rosenthal
        1973), so the end is an equilibrium. The end for the total cost is a local optimum, and the global
        one of the relaxation where load · c_e(load) is convex.

        Returns:
            How many of each type use each of its strategies, shape of `home`.
        """
        index = self.index(types)
        size = np.bincount(index, minlength=len(self.types))
        counts = np.zeros(self.home.shape, dtype=np.int64)
        counts[:, 0] = size
        heights = self.tables * np.arange(self.players + 1) if social else _sums(self.tables)
        loads = (counts[:, 0] @ self.uses[self.home[:, 0]]).astype(np.int64)
        step = 1 << max(0, int(size.max()).bit_length() - 1)
        while True:
            moved = sum(
                _moves(self, g, step, counts=counts, loads=loads, heights=heights)
                for g in range(len(self.types))
            )
            if step == 1 and not moved:
                return counts
            step = max(1, step // 2) if not moved else step

    def mean_cost(self, counts: Integers) -> float:
        """What a player pays on average, from counts of types and strategies such as `settle` gives."""
        valid = self.home >= 0
        loads = (counts[valid] @ self.uses[self.home[valid]]).astype(np.int64)
        return float((self.tables[np.arange(len(loads)), loads] * loads).sum() / self.players)


def _straight(tables: Floats) -> bool:
    rises = np.diff(tables, axis=1)
    return bool(np.all(np.ptp(rises, axis=1) <= _ROUNDING * rises.max(axis=1)))


def _sums(tables: Floats) -> Floats:
    sums = np.cumsum(tables, axis=1)
    above: Floats = sums - tables[:, :1]  # an empty resource weighs nothing
    return above


def _moves(
    game: CongestionGame, g: int, step: int, *, counts: Integers, loads: Integers, heights: Floats
) -> int:
    """Moves groups of `step` players of one type while the sum of heights falls; how often it did."""
    rows = game.home[g][game.home[g] >= 0]
    mine = game.uses[rows].astype(np.int64)
    places = np.arange(len(loads))
    moved = 0
    while True:
        sizes = np.minimum(counts[g, : len(rows)], step)
        shifted = loads + sizes[:, None, None] * (mine[None, :, :] - mine[:, None, :])
        gain = (heights[places, shifted] - heights[places, loads]).sum(axis=2)
        start, end = np.unravel_index(int(gain.argmin()), gain.shape)
        if gain[start, end] >= -1e-13 * step:
            return moved
        loads[:] = shifted[start, end]
        counts[g, start] -= sizes[start]
        counts[g, end] += sizes[start]
        moved += 1


def _strategies(
    strategies: Mapping[Any, Sequence[Iterable[Hashable]]], place: Mapping[Hashable, int]
) -> dict[Hashable, tuple[tuple[Hashable, ...], ...]]:
    if not strategies:
        raise InvalidParameter("strategies needs at least one type: the space of types is empty.")
    try:
        lists = {name: tuple(tuple(chosen) for chosen in choices) for name, choices in strategies.items()}
    except (AttributeError, TypeError):
        raise InvalidParameter(
            "strategies must give each type a list of strategies, each a list of resources."
        ) from None
    for name, choices in lists.items():
        if not choices or any(not chosen for chosen in choices):
            raise InvalidParameter(f"Type {name!r} needs at least one strategy, and no empty ones.")
        if any(resource not in place for chosen in choices for resource in chosen):
            raise InvalidParameter(f"A strategy of type {name!r} uses something that is not in resources.")
        if any(len(set(chosen)) < len(chosen) for chosen in choices) or len(
            set(map(frozenset, choices))
        ) < len(choices):
            raise InvalidParameter(f"Strategies of type {name!r} repeat a resource or each other.")
    return lists


def tabulated(
    names: Sequence[Hashable], latency: Mapping[Any, Latency] | Sequence[Latency], players: int
) -> Floats:
    """The cost of each resource (rows) at each load from 0 to `players` (columns), checked."""
    counted = hasattr(latency, "__len__") and len(latency) == len(names)
    if not counted or (isinstance(latency, Mapping) and set(latency) != set(names)):
        raise InvalidParameter("latency needs exactly one entry for each resource.")
    given = [latency[name] for name in names] if isinstance(latency, Mapping) else list(latency)
    loads = np.arange(players + 1, dtype=np.float64)
    tables = np.empty((len(names), players + 1))
    for row, (name, cost) in enumerate(zip(names, given, strict=True)):
        if callable(cost):
            values = _numbers(cost(loads))
            values = np.full(loads.shape, values.item()) if values.size == 1 else values
        elif isinstance(cost, tuple) and len(cost) == 2:
            values = _number(cost[0]) * loads + _number(cost[1])
        else:
            values = _numbers(cost)
        if values.shape != loads.shape:
            raise InvalidParameter(f"The latency of {name!r} needs a cost for each load from 0 to {players}.")
        if not np.all(np.isfinite(values)) or values[0] < 0:
            raise InvalidParameter(f"The latency of {name!r} must be finite and not negative.")
        if np.any(np.diff(values) < 0):
            raise InvalidParameter(f"The latency of {name!r} decreases: more users must not make it cheaper.")
        tables[row] = values
    return tables


def _number(given: Any) -> float:
    """A number as a float; NaN for anything else, which every check refuses."""
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _numbers(given: Any) -> Floats:
    """Numbers as floats; one NaN for anything else."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array(math.nan)
