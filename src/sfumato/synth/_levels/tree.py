"""`Tree`: the public places of a release, level by level, each within one of the level above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

__all__ = ["ALL", "Path", "Tree", "first_of", "tree_of"]

Integers: TypeAlias = NDArray[np.int64]
Path: TypeAlias = tuple[Any, ...]
"""A place: its own value and those of the places that it lies in, from the top."""

ALL = "all"
"""What the one place above all others is called, as a level."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Places on levels; those of one level are in the order of those that they lie in.

    Attributes:
        names: Of the levels, from the top; the first is `ALL`.
        paths: The places of each level.
        parents: For each place of a level, the number of that on the level above in which it lies, in
            ascending order; none on the first level.
    """

    names: tuple[str, ...]
    paths: tuple[tuple[Path, ...], ...]
    parents: tuple[Integers, ...]

    def __len__(self) -> int:
        return len(self.names)

    def sizes(self, level: int) -> int:
        """How many places a level has."""
        return len(self.paths[level])

    def added_up(self, level: int, below: NDArray[Any]) -> NDArray[Any]:
        """What the places of the next level add up to, along the first axis."""
        return np.add.reduceat(below, first_of(self.parents[level + 1], self.sizes(level)), axis=0)

    def level(self, name: str) -> int:
        """The number of a level.

        Raises:
            InvalidParameter: if there is none of that name.
        """
        if name not in self.names:
            raise InvalidParameter(
                f"There is no level {str(name)[:60]!r}. Levels: {', '.join(map(str, self.names))}."
            )
        return self.names.index(name)

    def place(self, level: int, value: Any) -> int:
        """The number of a place, by its value or, where several have it, by its path.

        Raises:
            InvalidParameter: if there is none, or there are several.
        """
        paths = self.paths[level]
        same = [at for at, path in enumerate(paths) if path == value or (path and path[-1] == value)]
        if len(same) == 1:
            return same[0]
        said = f"{self.names[level]} {str(value)[:60]!r}"
        if same:
            raise InvalidParameter(f"There are several places {said}: name it with those above, as a tuple.")
        raise InvalidParameter(f"There is no place {said}.")


def first_of(parents: Integers, groups: int) -> Integers:
    """The first place of each group, where places are in the order of their groups and none is empty."""
    return np.searchsorted(parents, np.arange(groups))


def tree_of(names: Sequence[str], places: Any) -> Tree:
    """The tree of places that are listed.

    Args:
        names: Of the levels, from the top.
        places: A column of values for each level, one row for each place of the last: a frame, or a
            dictionary of lists; or for each level but the first a dictionary from its places to those above.
            With one level alone, a list of its places.

    Raises:
        InvalidParameter: if names repeat, something is missing, or a place lies in two others.
    """
    listed = _names(names)
    rows = _rows(listed, places)
    if not rows:
        raise InvalidParameter(f"List the places of {listed[-1]}: there are none.")
    if len({row[-1] for row in rows}) < len(rows):
        raise InvalidParameter(f"Each {listed[-1]} must be listed once, in one place of each level above.")
    paths: list[tuple[Path, ...]] = [((),)]
    parents = [np.zeros(0, np.int64)]
    for depth in range(1, len(listed) + 1):
        above = {path: at for at, path in enumerate(paths[-1])}
        own = sorted(dict.fromkeys(row[:depth] for row in rows), key=lambda path: above[path[:-1]])
        paths.append(tuple(own))
        parents.append(np.array([above[path[:-1]] for path in own], np.int64))
    return Tree((ALL, *listed), tuple(paths), tuple(parents))


def _names(names: Sequence[str]) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise InvalidParameter('Name the levels of places from the top: geography=["state", "county"].')
    if ALL in listed or len(set(listed)) < len(listed):
        raise InvalidParameter(f"Levels need different names, and {ALL!r} is the one above all of them.")
    return listed


def _rows(names: tuple[str, ...], places: Any) -> list[Path]:
    """A path for each place of the last level."""
    given = places.to_pydict() if hasattr(places, "to_pydict") else places
    given = given.to_dict("list") if hasattr(given, "iterrows") else given
    given = given.to_dict(as_series=False) if hasattr(given, "lazy") else given
    if isinstance(given, Mapping):
        if missing := [name for name in names if name not in given]:
            if missing != [names[0]] or not all(isinstance(given[name], Mapping) for name in names[1:]):
                raise InvalidParameter(f"places has no column {missing[0][:60]!r}.")
            return _climbed(names, given)
        if all(isinstance(given[name], Mapping) for name in names[1:]) and len(names) > 1:
            return _climbed(names, given)
        columns = [list(given[name]) for name in names]
        if len({len(column) for column in columns}) > 1:
            raise InvalidParameter("The columns of places must be of one length.")
        rows = list(zip(*columns, strict=True))
    elif len(names) == 1 and isinstance(given, Sequence) and not isinstance(given, str):
        rows = [(value,) for value in given]
    else:
        raise InvalidParameter(
            "places takes a row for each of the smallest places with a column for each level: "
            '{"state": [...], "county": [...]}, or a frame.'
        )
    if any(value is None for row in rows for value in row):
        raise InvalidParameter("Each place needs a value on every level.")
    return rows


def _climbed(names: tuple[str, ...], above: Mapping[str, Mapping[Any, Any]]) -> list[Path]:
    """The paths of the last level's places, by going up from each."""
    rows = []
    for value in above[names[-1]]:
        path = [value]
        for name in reversed(names[1:]):
            if path[0] not in above[name]:
                raise InvalidParameter(f"places[{name!r}] does not say where {str(path[0])[:60]!r} lies.")
            path.insert(0, above[name][path[0]])
        rows.append(tuple(path))
    return rows
