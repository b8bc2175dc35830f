"""Types, profiles, coalitions and joint lies as tuples of indices, read from what a caller wrote."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = [
    "Indices",
    "all_of",
    "coalitions",
    "how_many",
    "profile_of",
    "random_deviations",
    "range_of",
    "refuse_too_many",
    "sizes",
    "told",
    "types_of",
]

Indices: TypeAlias = tuple[int, ...]

# A count that nobody waits for, and sizes from which on it need not be spelt out.
_COUNTLESS, _LARGE = 10**15, 64


def types_of(types: Sequence[Any]) -> list[Any]:
    """The type space as a list of distinct types; rows of an array become tuples."""
    try:
        space = _rows(types)
    except TypeError:
        raise InvalidParameter("types must list the types that a player may have.") from None
    if not space:
        raise InvalidParameter("The type space is empty: list the types that a player may have.")
    if any(a == b for a, b in itertools.combinations(space, 2)):
        raise InvalidParameter("A type is listed twice: list each type once.")
    if len(space) == 1:
        raise InvalidParameter("With a single type there is nothing to lie about: list at least two.")
    return space


def _rows(listed: Sequence[Any]) -> list[Any]:
    """What was listed, with rows of arrays and lists as tuples, so that they compare."""
    rows = listed.tolist() if isinstance(listed, np.ndarray) else list(listed)
    plain = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
    return [tuple(row) if isinstance(row, list) else row for row in plain]


def range_of(utilities: tuple[float, float]) -> tuple[float, float]:
    """The declared range of utilities, as floats."""
    try:
        low, high = (float(utility) for utility in utilities)
    except (TypeError, ValueError):
        raise InvalidParameter("utilities must be a pair of numbers, such as (0, 1).") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidParameter("utilities must be a finite, increasing pair, such as (0, 1).")
    return low, high


def sizes(players: int, coalition: int) -> tuple[int, int]:
    """The number of players and of liars."""
    n, k = as_integer(players, "players"), as_integer(coalition, "coalition")
    if k > n:
        raise InvalidParameter(f"A coalition of {k} does not fit into {n} players: lower coalition.")
    return n, k


def profile_of(profile: Sequence[Any], space: list[Any], players: int) -> Indices:
    """One true profile as indices of types."""
    try:
        rows = _rows(profile)
    except TypeError:
        rows = []
    if len(rows) != players:
        raise InvalidParameter(f"Every profile must hold one type for each of the {players} players.")
    try:
        return tuple(space.index(row) for row in rows)
    except ValueError:
        raise InvalidParameter(
            "A profile holds a type that is not in the type space: add it to types."
        ) from None


def how_many(kinds: int, n: int, k: int, listed: list[Indices] | None, anonymous: bool) -> int:
    """How many deviations there are (at most, if anonymous)."""
    if k > _LARGE or (n > _LARGE**2 and listed is None and not anonymous):
        return _COUNTLESS
    groups = math.comb(n, k)
    if anonymous:
        groups = min(groups, math.comb(kinds + k - 1, k))
    if listed is not None:
        profiles = len(listed)
    else:
        profiles = math.comb(kinds + n - 1, n) if anonymous else kinds**n
    return int(profiles * groups * (kinds**k - 1))


def refuse_too_many(count: int, most: int) -> None:
    """Say how many deviations there are, and what to do, if they are too many."""
    if count > most:
        shown = f"{count:,}" if count < _COUNTLESS else "more than 1e15"
        raise InvalidParameter(
            f"There are {shown} deviations to check, more than most={most:,}: use fewer types or players, "
            "pick profiles=, say anonymous=True if only the multiset of the others matters, or raise most."
        )


def coalitions(profile: Indices, k: int, anonymous: bool) -> Iterator[Indices]:
    """Who lies together: all groups, or one for each multiset of true types."""
    if not anonymous:
        yield from itertools.combinations(range(len(profile)), k)
        return
    # The first of each type represent the rest: groups are counted in types, however many players there are.
    members: dict[int, list[int]] = {}
    for i, kind in enumerate(profile):
        members.setdefault(kind, []).append(i)
    for kinds in itertools.combinations_with_replacement(members, k):
        wanted = Counter(kinds)
        if all(count <= len(members[kind]) for kind, count in wanted.items()):
            yield tuple(sorted(i for kind, count in wanted.items() for i in members[kind][:count]))


def told(profile: Indices, agents: Indices, lie: Indices) -> Indices:
    """The reports when `agents` tell `lie` and all others the truth."""
    reports = list(profile)
    for i, report in zip(agents, lie, strict=True):
        reports[i] = report
    return tuple(reports)


def all_of(profiles: list[Indices], kinds: int, k: int) -> Iterator[tuple[Indices, Indices, Indices]]:
    """Every deviation from every listed profile."""
    for profile in profiles:
        for agents in itertools.combinations(range(len(profile)), k):
            for lie in itertools.product(range(kinds), repeat=k):
                if lie != tuple(profile[i] for i in agents):
                    yield profile, agents, lie


def random_deviations(
    kinds: int, n: int, k: int, trials: int, seed: int | None
) -> list[tuple[Indices, Indices, Indices]]:
    """Uniform profiles with a uniform coalition that tells a uniform lie."""
    generator, tried = random.simulation(seed), []
    for _ in range(trials):
        profile = tuple(int(i) for i in generator.integers(kinds, size=n))
        agents = tuple(sorted(int(i) for i in generator.choice(n, size=k, replace=False)))
        own = tuple(profile[i] for i in agents)
        lie = own
        while lie == own:
            lie = tuple(int(i) for i in generator.integers(kinds, size=k))
        tried.append((profile, agents, lie))
    return tried
