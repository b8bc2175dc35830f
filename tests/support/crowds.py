"""Invented people, and the smallest private table: noisy counts over public cells, clamped, then sampled."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.random import simulation

ZIPS = [f"0{2100 + i}" for i in range(30)]
AGES = list(range(18, 91))
SEXES = ["f", "m"]
ILLS = ["none", "heart", "lung", "skin", "bone", "eye"]
DOMAINS: dict[str, list] = {"zip": ZIPS, "age": AGES, "sex": SEXES, "ill": ILLS}


def crowd(rows: int, seed: int, *, start: int = 0) -> pa.Table:
    """People with an id, a name, zip code, age, sex, an illness that comes with age, and an income."""
    draw = simulation(seed)
    age = draw.integers(18, 91, rows)
    old = draw.random(rows) < (age - 18) / 100
    ill = np.where(old, "heart", np.array(ILLS)[draw.integers(0, len(ILLS), rows)])
    return pa.table(
        {
            "id": np.arange(start, start + rows),
            "name": [f"person {i}" for i in range(start, start + rows)],
            "zip": np.array(ZIPS)[draw.integers(0, len(ZIPS), rows)],
            "age": age,
            "sex": np.array(SEXES)[draw.integers(0, 2, rows)],
            "ill": ill,
            "income": np.exp(draw.normal(10, 0.6, rows)).round(),
        }
    )


def marginal_table(
    table: pa.Table,
    domains: Mapping[str, Sequence],
    epsilon: float,
    *,
    together: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
) -> pa.Table:
    """A synthetic table at this epsilon: each group of columns counted over its public cells, then sampled.

    Privacy: adding or removing a row moves one cell of each group by one, so that the counts of a group are
    (epsilon / groups)-DP by `sf.Geometric` with sensitivity 1, and all of them epsilon-DP together. Clamping,
    the number of rows and sampling use the noisy counts alone.

    Args:
        table: One row a person.
        domains: The public values of each column.
        epsilon: For the whole table.
        together: Groups of columns that keep what they have to do with each other; by default each is alone.
        seed: Of the sampling, which is post-processing.
    """
    groups = [[name] for name in domains] if together is None else together
    draw, made, rows = simulation(seed), {}, None
    for group in groups:
        cells = list(itertools.product(*(domains[name] for name in group)))
        place = {cell: i for i, cell in enumerate(cells)}
        counts = np.zeros(len(cells), dtype=np.int64)
        for row in zip(*(table[name].to_pylist() for name in group), strict=True):
            if row in place:
                counts[place[row]] += 1
        noisy = sf.Geometric(epsilon=epsilon / len(groups), sensitivity=1).release(counts)
        kept = np.maximum(noisy, 0)
        rows = max(1, int(kept.sum())) if rows is None else rows
        shares = kept / kept.sum() if kept.sum() else np.full(len(cells), 1 / len(cells))
        chosen = draw.choice(len(cells), size=rows, p=shares)
        for at, name in enumerate(group):
            made[name] = [cells[i][at] for i in chosen]
    return pa.table(made)


def counted_table(table: pa.Table, domains: Mapping[str, Sequence], epsilon: float) -> pa.Table:
    """As many rows of each cell of all columns as its noisy count says: epsilon-DP, and no exacter."""
    names = list(domains)
    cells = list(itertools.product(*domains.values()))
    place = {cell: i for i, cell in enumerate(cells)}
    counts = np.zeros(len(cells), dtype=np.int64)
    for row in zip(*(table[name].to_pylist() for name in names), strict=True):
        counts[place[row]] += 1
    noisy = np.maximum(sf.Geometric(epsilon=epsilon, sensitivity=1).release(counts), 0)
    listed = [cells[i] for i in np.repeat(np.arange(len(cells)), noisy)]
    return pa.table({name: [cell[at] for cell in listed] for at, name in enumerate(names)})
