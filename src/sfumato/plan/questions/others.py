"""The rows of ROLLUP, CUBE and GROUPING SETS where keys are not public: found groups, and "other keys" rows.

Groups are selected on each level that has such a key, so that one made of many small parts is found where its
parts are not. What is on each level follows from that public list alone:

```
selected (FR, Paris), (FR, Lyon), and (IT) by itself

level (country, city)     FR Lyon · FR Paris · FR other · IT other · other other
level (country)           FR · IT · other
level ()                  all rows
```
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.normal import conjunction
from sfumato.plan.expressions.tree import Expression, call, literal
from sfumato.plan.questions.nodes import Key, Measured

__all__ = [
    "Group",
    "Level",
    "Line",
    "Pick",
    "Shelf",
    "labels",
    "least_lines",
    "lines_of",
    "picks_of",
    "places_in",
    "questions_of",
    "searched_of",
    "shares_of",
    "shelf_of",
]

Group: TypeAlias = tuple[Any, ...]
"""One value for each key of a question, or of a level."""

Level: TypeAlias = tuple[int, ...]
"""The keys of a level, in the order of GROUP BY."""

Pick: TypeAlias = tuple[Any, ...]
"""A group that was selected: on which of the levels of `searched_of`, by its number among all of them, and
its values there."""

_EVERYTHING = "all rows"


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a level: a group that was found, or all the others beside those.

    Attributes:
        level: The keys of its level, in the order of GROUP BY.
        values: Those of the first of these keys. Where they are fewer than the keys, the line is about every
            group that begins like this and goes on like no other line of its level.
    """

    level: Level
    values: Group

    @property
    def is_other(self) -> bool:
        """Whether this is a row of other keys."""
        return len(self.values) < len(self.level)

    @property
    def above(self) -> Line:
        """The line that it is a part of on the level without the last key."""
        level = self.level[:-1]
        return Line(level, self.values[: len(level)])

    def shown(self, keys: int) -> Group:
        """A value for each key of the question; None where it has none."""
        values = dict(zip(self.level, self.values, strict=False))
        return tuple(values.get(key) for key in range(keys))


Shelf: TypeAlias = Mapping[Level, Mapping[Group, int]]
"""The place of the line of each level and its values."""


def searched_of(measured: Measured) -> tuple[tuple[Level, ...], ...]:
    """The levels on which groups are selected, all that have a key which is not public, by their rank.

    First those that no other contains, then those that only these contain, and so on. A level of all keys is
    the only one of the first rank.
    """
    left = [level for level in measured.levels if not _listed(measured.keys, level)]
    ranks: list[tuple[Level, ...]] = []
    while left:
        widest = tuple(level for level in left if not any(set(level) < set(other) for other in left))
        ranks.append(widest)
        left = [level for level in left if level not in widest]
    return tuple(ranks)


def shares_of(ranks: Sequence[Sequence[Level]]) -> tuple[Fraction, ...]:
    """The part of the selection's price that the levels of each rank have together; they add up to 1.

    A level has half of what one a rank above it has. Whatever is found there is found here as well, and a
    group here has the units of all its parts: what is left to find is large, and can do with less.
    """
    weights = [Fraction(len(rank), 2**place) for place, rank in enumerate(ranks)]
    return tuple(weight / sum(weights) for weight in weights)


def questions_of(measured: Measured) -> tuple[Measured, ...]:
    """What is read to find groups, one question a level; but for that of all keys, read with the sums.

    The same rows count as in the sums: those whose public keys, also the ones that a level leaves out, have
    listed values.
    """
    return tuple(
        replace(
            measured,
            predicate=_held(measured, level),
            keys=tuple(measured.keys[key] for key in level),
            levels=(),
            together=None,
            measurements=(),
        )
        for rank in searched_of(measured)
        for level in rank
        if len(level) < len(measured.keys)
    )


def _held(measured: Measured, level: Level) -> Expression | None:
    """The condition, and that the public keys which a level leaves out have listed values."""
    out = [key for place, key in enumerate(measured.keys) if place not in level and key.values]
    parts = [] if measured.predicate is None else [measured.predicate]
    parts += [call("in", key.expression, *map(literal, key.values or ())) for key in out]
    return conjunction(parts) if parts else None


def picks_of(measured: Measured, groups: Iterable[Group]) -> tuple[Pick, ...]:
    """All that groups of all keys are on the levels where groups are selected."""
    levels, every = itertools.chain(*searched_of(measured)), list(groups)
    return tuple(
        dict.fromkeys(
            (i, *(group[key] for key in level)) for i, level in enumerate(levels) for group in every
        )
    )


def lines_of(measured: Measured, selected: Sequence[Pick]) -> tuple[Line, ...]:
    """The rows of all levels of an open question: level by level, sorted by keys, other keys last.

    Values of leading keys that are public are all there, found or not, and need no others.

    Privacy:
        The lines are a function of the public list `selected` and of the question: whether anything is in a
        line plays no part. On each level every group that the statement can give is on at most one line.
    """
    searched = list(itertools.chain(*searched_of(measured)))
    rows = [dict(zip(searched[pick[0]], pick[1:], strict=True)) for pick in selected]
    lines: list[Line] = []
    for level in measured.levels:
        own: list[Line] = []
        for length in range(len(level) + 1):
            if length == len(level) or not _listed(measured.keys, level[: length + 1]):
                own += [Line(level, values) for values in _beginnings(measured, level[:length], rows)]
        ranks = [_ranks(measured.keys[key], (row[key] for row in rows if key in row)) for key in level]
        own.sort(key=lambda line: _place(line, ranks))
        lines += own
    return tuple(lines)


def least_lines(keys: Sequence[Key], levels: Iterable[Level], together: Sequence[Group] | None) -> int:
    """How many rows there are at least: those of public keys."""
    public = [tuple(itertools.takewhile(lambda key: keys[key].values is not None, level)) for level in levels]
    if together is not None:
        return sum(len(_existing(keys, level, together)) for level in public)
    return sum(math.prod(len(keys[key].values or ()) for key in level) for level in public)


def shelf_of(lines: Sequence[Line]) -> Shelf:
    """The place of each line."""
    shelf: dict[Level, dict[Group, int]] = {}
    for place, line in enumerate(lines):
        shelf.setdefault(line.level, {})[line.values] = place
    return shelf


def places_in(shelf: Shelf, group: Group) -> list[int]:
    """The line that a group is on, on each level: that of the longest beginning which has one."""
    places = []
    for level, own in shelf.items():
        values = tuple([group[key] for key in level])
        while values and values not in own:
            values = values[:-1]
        if values in own:
            places.append(own[values])
    return places


def labels(lines: Iterable[Line], names: Sequence[str]) -> list[str]:
    """What each line is about, in words: `country, city`, `country, other city`, or `all rows`.

    A key that is not mentioned is left out on that level; one that is "other" means all values that have
    no row of their own. Either has no value in its column, and NULL is a value like others elsewhere.
    """
    told = [in_sql(name) for name in names]
    texts = []
    for line in lines:
        known = len(line.values)
        words = [told[key] if i < known else f"other {told[key]}" for i, key in enumerate(line.level)]
        texts.append(", ".join(words) or _EVERYTHING)
    return texts


def _listed(keys: Sequence[Key], level: Iterable[int]) -> bool:
    """Whether all of these keys have public values."""
    return all(keys[key].values is not None for key in level)


def _beginnings(measured: Measured, level: Level, rows: Sequence[Mapping[int, Any]]) -> Iterable[Group]:
    """The beginnings that have a line of their own: all public ones, else those of the selected groups."""
    if not _listed(measured.keys, level):
        return dict.fromkeys(
            tuple(row[key] for key in level) for row in rows if all(key in row for key in level)
        )
    if measured.together is not None:
        return _existing(measured.keys, level, measured.together)
    return itertools.product(*(dict.fromkeys(measured.keys[key].values or ()) for key in level))


def _existing(keys: Sequence[Key], level: Level, together: Sequence[Group]) -> dict[Group, None]:
    """What these public keys have in the combinations that there are."""
    public = [place for place, key in enumerate(keys) if key.values is not None]
    places = [public.index(key) for key in level]
    return dict.fromkeys(tuple(row[place] for place in places) for row in together)


def _ranks(key: Key, seen: Iterable[Any]) -> dict[Any, int]:
    """The order of one key's values: as they are listed, or sorted with NULL last."""
    values = list(dict.fromkeys(seen if key.values is None else key.values))
    if key.values is None:
        values.sort(key=lambda value: (value is None, "" if value is None else value))
    return {value: place for place, value in enumerate(values)}


def _place(line: Line, ranks: Sequence[Mapping[Any, int]]) -> tuple[float, ...]:
    known = [rank.get(value, math.inf) for rank, value in zip(ranks, line.values, strict=False)]
    return (*known, *[math.inf] * (len(line.level) - len(known)))
