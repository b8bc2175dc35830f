"""`mended`: rows that a model drew, changed so that columns have given totals exactly. All public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.random import Simulation
from sfumato.synth._model.beliefs import Floats
from sfumato.synth._model.model import Model

__all__ = ["mended", "shared_out"]

Whole: TypeAlias = NDArray[np.int64]

_GIVERS = 256  # rows with a value that too few rows have


def mended(model: Model, rows: NDArray[Any], totals: Mapping[int, Whole], rng: Simulation) -> NDArray[Any]:
    """Rows that a model with some totals drew, with exactly these totals, or in proportion to them.

    Of a value that too many rows have, those are given another one that are most likely to have it. Where
    none can have it beside its other values, rows become like others that do.

    Args:
        model: What drew the rows.
        rows: The cells of each row; they are changed in place.
        totals: For some columns, by their place, the number of rows in each cell.
        rng: Draws.
    """
    settled = list[int]()
    for place, counts in totals.items():
        wanted = shared_out(counts, len(rows))
        many = np.bincount(rows[:, place], minlength=len(wanted)) - wanted
        for value in np.flatnonzero(many < 0):
            for other in np.flatnonzero(many > 0):
                alike = np.flatnonzero(rows[:, place] == other)
                gain = _gain(model, rows[alike], place, int(value))
                alike, gain = alike[gain > -np.inf], gain[gain > -np.inf]
                # With Gumbel's luck added, the greatest are drawn as likely as they gain.
                luck = -np.log(-np.log(rng.random(len(gain)) + 1e-300))
                taken = alike[np.argsort(-(gain + luck))[: min(-many[value], many[other])]]
                rows[taken, place] = value
                many[value] += len(taken)
                many[other] -= len(taken)
        if many.any():
            _exchange(model, rows, place, wanted, settled, rng)
        settled.append(place)
    return rows


def _exchange(
    model: Model, rows: NDArray[Any], place: int, wanted: Whole, settled: Sequence[int], rng: Simulation
) -> None:
    """Make rows like other ones as whole rows, until a column has its totals or no exchange helps.

    A row may become like any that has the same values in the columns that are settled, so that these stay as
    they are. From a value that too many have it may take several exchanges to one that too few have: the
    shortest way is taken, as in a flow.
    """
    givers = np.concatenate([rows, *_rare(model, rows, place, wanted, rng)])
    alike = [np.unique(givers[:, settled], axis=0, return_inverse=True)[1].ravel(), givers[:, place]]
    group, value = alike[0], alike[1].astype(np.int64)
    there = np.zeros((int(group.max(initial=0)) + 1, len(wanted)), bool)
    there[group, value] = True
    own = np.arange(len(rows))
    many = np.bincount(rows[:, place], minlength=len(wanted)) - wanted
    while many.any():
        way = _way(there, group[own], value[own], many)
        if not way:
            return
        for among, one, other in way:
            here = np.flatnonzero((group[own] == among) & (value[own] == one))
            like = np.flatnonzero((group == among) & (value == other))
            row, giver = rng.choice(here), rng.choice(like)
            rows[row], own[row] = givers[giver], giver
        many[way[0][1]] -= 1
        many[way[-1][2]] += 1


def _rare(model: Model, rows: NDArray[Any], place: int, wanted: Whole, rng: Simulation) -> list[NDArray[Any]]:
    """Some rows of each value that too few have, as the model draws them."""
    found = list[NDArray[Any]]()
    for value in np.flatnonzero(np.bincount(rows[:, place], minlength=len(wanted)) < wanted):
        own = np.full(len(wanted), -np.inf)
        own[value] = 0.0
        before = model.potentials.get((place,), np.zeros(len(wanted)))
        only = Model(model.domain, model.total, {**model.potentials, (place,): before + own})
        if only.is_possible:
            found.append(only.rows(_GIVERS, rng))
    return found


def _way(there: NDArray[np.bool_], group: Whole, value: Whole, many: Whole) -> list[tuple[int, int, int]]:
    """Exchanges from a value that too many have to one that too few have: groups with both values."""
    held = np.zeros_like(there)
    held[group, value] = True
    turn = [int(one) for one in np.flatnonzero(many > 0)]
    before = dict.fromkeys(turn, (-1, -1))
    while turn:
        one = turn.pop(0)
        if many[one] < 0:
            way = list[tuple[int, int, int]]()
            while before[one][1] >= 0:
                among, last = before[one]
                way.insert(0, (among, last, one))
                one = last
            return way
        groups = np.flatnonzero(held[:, one])
        for other in np.flatnonzero(there[groups].any(axis=0)):
            if int(other) not in before:
                among = int(groups[np.argmax(there[groups, other])])
                before[int(other)] = among, one
                turn.append(int(other))
    return []


def shared_out(counts: Whole, rows: int) -> Whole:
    """Rows shared out in proportion to counts, in whole numbers: the largest remainders get one more."""
    exact = [int(count) * rows for count in counts]
    whole = sum(int(count) for count in counts)
    found = np.array([one // whole for one in exact], np.int64)
    remainders = np.array([one % whole for one in exact], object)
    found[np.argsort(-remainders, kind="stable")[: rows - int(found.sum())]] += 1
    return found


def _gain(model: Model, rows: NDArray[Any], place: int, new: int) -> Floats:
    """The logarithm of how much likelier rows are with another value in a column; -inf: impossible."""
    found = np.zeros(len(rows))
    for clique, potential in model.potentials.items():
        if place in clique:
            own = [rows[:, column] for column in clique]
            before = potential[tuple(own)]
            own[clique.index(place)] = np.full(len(rows), new)
            after = potential[tuple(own)]
            found += np.where(after > -np.inf, after - np.where(before > -np.inf, before, 0.0), -np.inf)
    return found
