"""Counts on levels of places beside independent cells and the plain hierarchy, at one price.

The population is made up: 4 states, 40 counties, 1,000 tracts of very different sizes, most of them small, 18
ages × 2 sexes; one tract in fifty is a college and one a prison. *Independent cells* pay for the cells of
tracts alone and add them up, as they are or none below 0. The *plain hierarchy* pays alike for the cells of
every level and takes their least-squares estimate. Errors are mean absolute ones: of the cells, and of all
tables of a level (totals, by age, by sex, cells), each table counting alike.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from benchmarks.harness import Report, once, seconds
from sfumato.fits.meter import Meter, price
from sfumato.synth._levels import counting
from sfumato.synth._levels.alike import Alike, alike
from sfumato.synth._levels.counting import counted
from sfumato.synth._levels.grid import Grid
from sfumato.synth._levels.linear import best
from sfumato.synth._levels.measuring import Design, design_of
from sfumato.synth._levels.totals import public_totals
from sfumato.synth._levels.tree import Tree, tree_of
from sfumato.synth._private.places import Places

STATES, COUNTIES, TRACTS, AGES = 4, 40, 1_000, 18
EPSILONS = ("0.1", "1", "10")
DELTA = "1e-9"
REPEATS = 30
OURS, CELLS, CLIPPED, PLAIN = "sfumato", "independent", "independent, ≥ 0", "plain hierarchy"

Levels = list[NDArray[Any]]


@cache
def population(seed: int = 0) -> tuple[dict[str, list[Any]], NDArray[np.int64]]:
    """The places, and the true counts of tracts by age and sex."""
    draw = sf.random.simulation(seed)
    state = np.sort(np.concatenate([np.arange(STATES), draw.integers(0, STATES, COUNTIES - STATES)]))
    weights = draw.dirichlet(np.ones(COUNTIES))
    county = np.sort(
        np.concatenate([np.arange(COUNTIES), draw.choice(COUNTIES, TRACTS - COUNTIES, p=weights)])
    )
    sizes = np.exp(draw.normal(5.3, 1.3, TRACTS))
    usual = np.exp(-np.arange(AGES) / 9)[:, None] * np.ones(2)
    older = np.exp(draw.normal(0, 0.35, TRACTS)[:, None] * np.linspace(-1, 1, AGES))
    shares = usual * older[:, :, None] * np.exp(0.03 * draw.standard_normal((TRACTS, AGES, 2)))
    shares /= shares.sum(axis=(1, 2), keepdims=True)
    for tract in range(7, TRACTS, 50):  # colleges
        shares[tract] *= 0.2
        shares[tract, 3:5] += 0.2
    for tract in range(23, TRACTS, 50):  # prisons
        shares[tract] *= 0.1
        shares[tract, 4:9, 1] += 0.18
    places = {"state": state[county].tolist(), "county": county.tolist(), "tract": list(range(TRACTS))}
    return places, draw.poisson(sizes[:, None, None] * shares).astype(np.int64)


def added_up(tree: Tree, cells: NDArray[Any]) -> Levels:
    levels = [cells]
    for level in reversed(range(len(tree) - 1)):
        levels.insert(0, tree.added_up(level, levels[0]))
    return levels


def errors(grid: Grid, true: Levels, found: Levels) -> NDArray[np.float64]:
    """Of each level: the mean over all its tables, and that of the cells."""
    each = [
        [np.abs(grid.marginal(one, part) - grid.marginal(other, part)).mean() for part in grid.parts]
        for one, other in zip(true, found, strict=True)
    ]
    return np.array([[np.mean(tables), tables[-1]] for tables in each])


def contenders(design: Design, places: Places, epsilon: str) -> dict[str, Levels]:
    """What each releases for the price."""
    tree, grid, paid = design.tree, design.grid, price(epsilon, DELTA)
    last, full = len(tree) - 1, grid.parts[-1]
    cells = np.rint(Meter.alone(paid).noisy(places.total(last, full), 1)).reshape(-1, *grid.sizes)
    even = {(level, full): Fraction(1, len(tree)) for level in range(len(tree))}
    plain = Design(tree, grid, design.public, even)
    found = best(tree, grid, _known(plain, places, paid))
    return {
        OURS: counted(tree, grid, _known(design, places, paid), design.public),
        CELLS: added_up(tree, cells),
        CLIPPED: added_up(tree, np.maximum(cells, 0)),
        PLAIN: [grid.joined(known.parts, tree.sizes(level)) for level, known in enumerate(found)],
    }


def _known(design: Design, places: Places, paid: Any) -> Any:
    released = design.measured(places, Meter.alone(paid))
    return design.known(design.levels(released, design.sigmas(paid.rho, Fraction(1))))


def error(report: Report) -> None:
    """Mean absolute errors by level, at three prices."""
    listed, counts = population()
    tree, grid = tree_of(list(listed), listed), Grid(("age", "sex"), counts.shape[1:])
    counts = counts[[path[-1] for path in tree.paths[-1]]]
    places, true = Places(tree, grid, counts, Fraction(1)), added_up(tree, counts)
    design = design_of(tree, grid, public_totals(tree, None), None)
    for epsilon in EPSILONS:
        report.heading(
            f"Mean absolute error at epsilon {epsilon}, delta {DELTA}: all tables of a level | its cells",
            *tree.names,
        )
        runs: dict[str, list[NDArray[np.float64]]] = {}
        for _ in range(REPEATS):
            for who, found in contenders(design, places, epsilon).items():
                runs.setdefault(who, []).append(errors(grid, true, found))
        mean = {who: np.mean(each, axis=0) for who, each in runs.items()}
        for who, table in mean.items():
            cells = [f"{tables:.3g} | {cell:.3g}" for tables, cell in table]
            report.row(
                f"epsilon {epsilon}",
                who,
                *cells,
                levels=list(tree.names),
                all_tables=table[:, 0].tolist(),
                cells=table[:, 1].tolist(),
                repeats=REPEATS,
            )
        for other in (CELLS, CLIPPED, PLAIN):
            worst = float((mean[OURS][:, 0] / mean[other][:, 0]).max())
            report.figure(f"tables, worst level, over {other}, ε {epsilon}", worst, "<", 1)
        for other in (CELLS, CLIPPED, PLAIN):
            ratio = float(mean[OURS][-1, 1] / mean[other][-1, 1])
            report.figure(f"cells of tracts over {other}, ε {epsilon}", ratio, "<", 1)


def unlike(report: Report) -> None:
    """What it costs the colleges and prisons that cells lean towards those of the county."""
    listed, counts = population()
    tree, grid = tree_of(list(listed), listed), Grid(("age", "sex"), counts.shape[1:])
    ids = np.array([path[-1] for path in tree.paths[-1]])
    counts, odd = counts[ids], np.isin(ids % 50, (7, 23))
    places = Places(tree, grid, counts, Fraction(1))
    design = design_of(tree, grid, public_totals(tree, None), None)

    def upright(*known: Any) -> Alike:
        found = alike(*known)
        return Alike(found.table, found.weights * 1e-9)

    report.heading("Mean absolute error of the cells of tracts", "odd ones", "others")
    for epsilon in EPSILONS:
        errors: dict[str, list[tuple[float, float]]] = {}
        for _ in range(REPEATS // 3):
            known = _known(design, places, price(epsilon, DELTA))
            for who, lean in ((OURS, alike), ("without leaning", upright)):
                with mock.patch.object(counting, "alike", lean):
                    off = np.abs(counted(tree, grid, known, design.public)[-1] - counts)
                errors.setdefault(who, []).append((off[odd].mean(), off[~odd].mean()))
        for who, each in errors.items():
            unusual, others = np.mean(each, axis=0)
            cells = (f"{unusual:.3g}", f"{others:.3g}")
            report.row(f"epsilon {epsilon}", who, *cells, unusual=float(unusual), others=float(others))


def whole(report: Report) -> None:
    """A release on a session, from rows to rows."""
    listed, counts = population()
    at = np.repeat(np.arange(counts.size), counts.reshape(-1))
    tract, age, sex = np.unravel_index(at, counts.shape)
    people = pa.table({"tract": tract, "age": 5 * age, "sex": pa.array(["F", "M"]).take(pa.array(sex))})
    table = sf.PrivateTable(
        "people",
        source=people,
        unit=sf.PrivacyUnit.row(),
        schema={"tract": sf.Int(0, TRACTS - 1), "age": sf.Int(0, 5 * AGES - 1), "sex": sf.Enum("F", "M")},
    )
    report.heading(
        f"A release of {people.num_rows:,} rows on a session, {counts.size:,} cells", "wall", "cpu"
    )
    with sf.Session(table, budget=sf.Budget(20, "1e-6", "gaussian")) as session:
        for epsilon in EPSILONS:

            def release(epsilon: str = epsilon) -> pa.Table:
                found = sf.synth.levels(
                    session,
                    "people",
                    geography=list(listed),
                    places=listed,
                    by=[sf.col("age") // 5, "sex"],
                    epsilon=epsilon,
                    delta=DELTA,
                )
                return found.microdata()

            timing = once(release)
            report.row(f"epsilon {epsilon}", OURS, seconds(timing.wall), seconds(timing.cpu), timing=timing)
            report.figure(
                f"seconds of a release, ε {epsilon}", timing.wall, "<", 30, unit=" s", cpu=timing.cpu
            )


PARTS = (error, unlike, whole)
