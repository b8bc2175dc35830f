"""Routing games: road networks on which every trip chooses among its quickest paths."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.games.congestion import CongestionGame, Latency, tabulated
from sfumato.numeric.exact import as_integer

__all__ = ["Road", "braess", "grid_roads", "pigou", "routing_game"]

Road: TypeAlias = tuple[Hashable, Hashable]
"""A one-way road: from, to."""


def routing_game(
    roads: Mapping[Road, Latency],
    trips: Sequence[tuple[Hashable, Hashable]],
    *,
    players: int,
    paths: int = 4,
    scale: float | None = None,
) -> CongestionGame:
    """A game in which every player drives from one place to another over shared roads.

    Args:
        roads: One-way roads (from, to) with their latencies.
        trips: The pairs (origin, destination): the types.
        players: How many drive.
        paths: How many paths a trip may choose from, the quickest on empty roads.
        scale: What counts as a cost of 1; None: the longest path with everybody on it.

    Raises:
        InvalidParameter: if a trip has no path, or a latency is unusable.
    """
    as_integer(paths, "paths")
    if not trips:
        raise InvalidParameter("trips needs at least one pair of origin and destination.")
    count = as_integer(players, "players", least=2)
    pairs = [isinstance(pair, tuple) and len(pair) == 2 for pair in (*roads, *trips)]
    if not all(pairs):
        raise InvalidParameter("roads and trips must be pairs (from, to).")
    names = list(roads)
    empty = dict(zip(names, tabulated(names, roads, count)[:, 0].tolist(), strict=True))
    strategies = {}
    for trip in trips:
        routes = _quickest(empty, *trip, paths)
        if not routes:
            raise InvalidParameter(f"No path leads from {trip[0]!r} to {trip[1]!r}.")
        strategies[trip] = routes
    return CongestionGame(names, strategies, players=count, latency=roads, scale=scale)


def _quickest(empty: Mapping[Road, float], start: Hashable, end: Hashable, paths: int) -> list[list[Road]]:
    """The simple paths of least time on empty roads, best first, guided by the exact time still to go."""
    out: dict[Hashable, list[tuple[Hashable, float]]] = {}
    back: dict[Hashable, list[tuple[Hashable, float]]] = {}
    for (a, b), time in empty.items():
        out.setdefault(a, []).append((b, time))
        back.setdefault(b, []).append((a, time))
    left: dict[Hashable, float] = {}
    queue: list[tuple[float, int, Hashable]] = [(0.0, 0, end)]
    ticket = 0
    while queue:
        time, _, at = heapq.heappop(queue)
        if at in left:
            continue
        left[at] = time
        for before, more in back.get(at, ()):
            ticket += 1
            heapq.heappush(queue, (time + more, ticket, before))
    routes: list[list[Road]] = []
    if start == end or start not in left:
        return routes
    ways: list[tuple[float, int, float, tuple[Hashable, ...]]] = [(left[start], 0, 0.0, (start,))]
    while ways and len(routes) < paths:
        _, _, spent, way = heapq.heappop(ways)
        if way[-1] == end:
            routes.append(list(itertools.pairwise(way)))
            continue
        for after, more in out.get(way[-1], ()):
            if after in left and after not in way:
                ticket += 1
                # Among equals the latest first: deep before wide, so that ties do not fill the queue.
                heapq.heappush(ways, (spent + more + left[after], -ticket, spent + more, (*way, after)))
    return routes


def grid_roads(rows: int, columns: int, *, players: int) -> dict[Road, Latency]:
    """The roads of a town on a grid, both ways between neighbouring crossings (row, column).

    Every third street is a main street, quicker and wider: a block takes 1 minute and not 1.5 when empty, and
    1 more for every 30% of all players on it, and not 15%.
    """
    high, wide = as_integer(rows, "rows", least=2), as_integer(columns, "columns", least=2)
    count = as_integer(players, "players", least=2)
    roads: dict[Road, Latency] = {}
    for r in range(high):
        for c in range(wide):
            for down, right in ((0, 1), (1, 0)):
                if r + down < high and c + right < wide:
                    main = (r if right else c) % 3 == 0
                    law = (1 / (0.3 * count), 1.0) if main else (1 / (0.15 * count), 1.5)
                    here, there = (r, c), (r + down, c + right)
                    roads[here, there] = roads[there, here] = law
    return roads


def pigou(players: int, *, power: int = 1) -> CongestionGame:
    """Pigou's two roads: one always costs 1, the other the share of players on it to a power.

    All take the second, though for power 1 half of them there would cost everybody a quarter less in total.
    """
    count, exponent = as_integer(players, "players", least=2), as_integer(power, "power")
    return CongestionGame(
        ["wide", "narrow"],
        {"driver": [["wide"], ["narrow"]]},
        players=count,
        latency=[(0.0, 1.0), lambda x: (x / count) ** exponent],
    )


def braess(players: int, *, shortcut: bool = True) -> CongestionGame:
    """Braess's paradox: a free shortcut that makes everybody's way to work longer.

    Two paths of one congested road (the share of players on it) and one fixed road of 1; the shortcut joins
    the congested ones. Costs are in units of 2, the most that a path can cost.
    """
    count = as_integer(players, "players", least=2)
    busy, fixed = (1 / count, 0.0), (0.0, 1.0)
    roads: dict[Road, Latency] = {("s", "a"): busy, ("a", "t"): fixed, ("s", "b"): fixed, ("b", "t"): busy}
    if shortcut:
        roads["a", "b"] = (0.0, 0.0)
    return routing_game(roads, [("s", "t")], players=count, scale=2.0)
