"""Where rules leave room: cells of their columns, and values that keep to several rules at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.synth._rules.rules import Rule
from sfumato.synth._rules.values import Points

__all__ = ["MOST_TRIED", "TooMuch", "check_number", "check_steps", "combined", "groups_of", "merged", "room"]

Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]

MOST_TRIED = 2**24
"""How many combinations of values one rule is tried at, at most."""

_MOST_RULES, _MOST_STEPS = 500, 2**28
_AT_ONCE = 2**20
_LOOKS = (2**16, 2**20, 2**24)  # combinations that are looked through for each further column


class TooMuch(InvalidParameter):
    """There are more constraints than can be tried in a reasonable time."""


def check_number(rules: Sequence[object]) -> None:
    """Refuse more rules than are kept.

    Raises:
        TooMuch: if there are more.
    """
    if len(rules) > _MOST_RULES:
        raise TooMuch(f"There are {len(rules):,} constraints, and at most {_MOST_RULES:,} are kept.")


def check_steps(rules: Sequence[Rule], points: Mapping[str, Points]) -> None:
    """Refuse rules that take too long to try at all combinations of their columns' values.

    Columns that rules tie together are also joined one by one, for each of them.

    Raises:
        TooMuch: if they do.
    """
    steps = sum(rule.steps * math.prod(len(points[name].cells) for name in rule.names) for rule in rules)
    steps += sum(len(names) ** 2 * _LOOKS[0] for names, _ in groups_of(rules))
    if steps > _MOST_STEPS:
        raise TooMuch(
            f"It would take {steps:,} steps to try the constraints at all values of their columns, and at "
            f"most {_MOST_STEPS:,} are made: declare fewer constraints, or fewer values."
        )


def room(rule: Rule, points: Mapping[str, Points]) -> Bools:
    """For each combination of fine cells of a rule's columns, whether it can hold there.

    Where a cell holds many numbers and the rule is not plain, it is taken as if it could.
    """
    own = [points[name] for name in rule.names]
    shape = tuple(len(some.cells) for some in own)
    found = np.empty(math.prod(shape), bool)
    for start in range(0, len(found), _AT_ONCE):
        flat = np.arange(start, min(start + _AT_ONCE, len(found)))
        places = np.unravel_index(flat, shape)
        found[flat] = _holds([rule], rule.names, points, places)
    table = found.reshape(shape)
    for axis, some in enumerate(own):
        starts = np.searchsorted(some.cells, np.arange(some.cells[-1] + 1))
        table = np.logical_or.reduceat(table, starts, axis=axis)
    if not rule.plain:
        for axis, some in enumerate(own):
            if not some.single:
                many = np.bincount(some.cells) > 1
                table = table | many.reshape([-1 if at == axis else 1 for at in range(len(own))])
    return np.asarray(table, bool)


def merged(table: Bools, places: Sequence[Whole]) -> Bools:
    """A table of fine cells as one of coarse cells: whether any fine one of each is True."""
    for axis, place in enumerate(places):
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(place.max() + 1))
        table = np.logical_or.reduceat(np.take(table, order, axis=axis), starts, axis=axis)
    return table


def groups_of(rules: Iterable[Rule]) -> Iterator[tuple[tuple[str, ...], list[Rule]]]:
    """Rules that share columns, directly or through others, with all of their columns."""
    groups = list[tuple[list[str], list[Rule]]]()
    for rule in rules:
        touched = [group for group in groups if set(group[0]) & set(rule.names)]
        names = [name for group in touched for name in group[0]]
        joined = [*names, *(name for name in rule.names if name not in names)]
        groups = [group for group in groups if group not in touched]
        groups.append((joined, [*(held for group in touched for held in group[1]), rule]))
    for names, held in groups:
        yield tuple(names), held


def combined(
    names: Sequence[str], rules: Sequence[Rule], points: Mapping[str, Points], among: Mapping[str, Whole]
) -> list[Whole]:
    """Combinations of points of columns that keep to all rules: the places of each column's, none if empty.

    Columns are joined one by one. Where there are many combinations, evenly spread ones are kept, and more of
    them if none is right: each that is given is, and one that could be is missed only then.

    Args:
        names: The columns.
        rules: About no others.
        points: Of each column.
        among: The places of the points that each column may have.
    """
    for most in _LOOKS:
        found, is_whole = _joined(names, rules, points, among, most)
        if is_whole or len(found[0]):
            break
    return found


def _joined(
    names: Sequence[str],
    rules: Sequence[Rule],
    points: Mapping[str, Points],
    among: Mapping[str, Whole],
    looks: int,
) -> tuple[list[Whole], bool]:
    """Combinations as `combined` gives them, and whether these are all there are."""
    found, known, is_whole = list[Whole](), list[str](), True
    for name in names:
        own = among[name]
        many = len(found[0]) if found else 1
        most = max(looks // max(len(own), 1), 1)
        if many > most:
            is_whole = False
            kept = np.linspace(0, many - 1, most).astype(np.int64)
            found, many = [column[kept] for column in found], most
        found = [np.repeat(column, len(own)) for column in found] + [np.tile(own, many)]
        known.append(name)
        due = [rule for rule in rules if name in rule.names and set(rule.names) <= set(known)]
        good = np.empty(len(found[0]), bool)
        for start in range(0, len(good), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            good[part] = _holds(due, known, points, [column[part] for column in found])
        found = [column[good] for column in found]
    return found, is_whole


def _holds(
    rules: Sequence[Rule], names: Sequence[str], points: Mapping[str, Points], places: Sequence[Whole]
) -> Bools:
    """Whether combinations of points keep to all rules."""
    needed = {name for rule in rules for name in rule.names}
    values = {
        name: points[name].values[place] for name, place in zip(names, places, strict=True) if name in needed
    }
    found = np.ones(len(places[0]), bool)
    for rule in rules:
        found &= rule.holds(values)
    return found
