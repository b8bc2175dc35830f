"""Bins from noisy cells: whatever the noise, they are bins; what stands out has one of its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.learn._core.declared import Category, number
from sfumato.learn._core.design import UNIT, whole
from sfumato.learn._shapes.bins import (
    MOST_BINS,
    bought_cuts,
    cells_for,
    cells_of,
    codes_of,
    declared_cuts,
    merged,
    own_edges,
)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_noise_there_are_bins(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.choice([1, 2, 5, 16, 17, 300, 4096]))
    sigma = float(10 ** rng.uniform(-3, 5))
    weights = rng.pareto(0.5, size) * rng.integers(0, 2, size) * 10 ** rng.uniform(-2, 4)
    noisy = weights + rng.normal(0, sigma, size)
    begins = merged(noisy, sigma, max(noisy.sum(), sigma))
    assert begins[0] == 0
    assert begins == sorted(set(begins))
    assert begins[-1] < size
    assert len(begins) <= MOST_BINS


def test_what_stands_out_has_a_bin_of_its_own():
    noisy = np.full(1000, 3.0)
    noisy[200] = 500
    begins = merged(noisy, 2.0, 3500)
    assert {200, 201} <= set(begins)
    assert 20 < len(begins) < 130


def test_noise_alone_makes_few_bins():
    noisy = np.random.default_rng(0).normal(0, 10, 4096)
    assert len(merged(noisy, 10.0, 40.0)) < 30


@pytest.mark.parametrize("span", [1, 2, 9, 73, 4000])
@pytest.mark.parametrize("cells", [16, 300, 4096])
def test_whole_numbers_keep_to_their_own_cells(span, cells):
    column = number("age", 17, 17 + span)
    found = cells_of(column, cells)
    assert len(found.cuts) < cells or (len(found.cuts) + 1 == cells and span >= cells)
    if span < cells:
        codes = codes_of(found.cuts)[whole(np.arange(17, 18 + span), column)]
        assert codes.tolist() == [at * found.parts for at in range(span + 1)]
        weights = np.zeros(len(found.cuts) + 1)
        weights[codes] = 50.0
        cuts = bought_cuts(found, weights, 0.1, weights.sum())
        edges = own_edges(column, cuts)
        assert np.allclose(edges % 1, 0.5, atol=2 * span / UNIT)


def test_numbers_between_whole_ones_are_kept():
    column = number("x", -4, 4)
    found = cells_of(column, 1000)
    cuts = bought_cuts(found, np.full(len(found.cuts) + 1, 30.0), 1.0, 30_000)
    assert len(cuts) > 80


def test_more_noise_means_fewer_cells():
    counts = [cells_for(1000, sigma) for sigma in (0.1, 1.0, 10.0, 1e9)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (4096, 16)


def test_declared_edges_are_where_bins_begin():
    column = number("x", Fraction(-1), Fraction(3))
    cuts, none = declared_cuts({"x": [0.0, 1.5, -7.0, 9.0]}, [column, Category("c", ("a",))])
    assert none is None
    codes = codes_of(cuts)[whole(np.array([-1, -0.01, 0.0, 1.49, 1.5, 3.0]), column)]
    assert codes.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.allclose(own_edges(column, cuts), [0, 1.5], atol=4 / UNIT)
