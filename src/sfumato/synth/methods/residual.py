"""Marginals that were fixed beforehand, with the least noise that any linear measurement of them can have.

Each marginal is a sum of parts: what each set of its columns says beyond its own subsets. A part is measured
once for all marginals that hold it, and how noisy it may be follows from a closed form. No junction tree is
built and nothing is adapted, so that it goes on where there are hundreds of columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.synth._model.contrasts import MOST_CELLS, STEP, parts_of, scales, share_of_a_row, tables
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.residuals import residuals

__all__ = ["NUMBERS", "Parts", "Plan", "learn", "measured", "planned"]

Floats: TypeAlias = NDArray[np.float64]
Objective: TypeAlias = Literal["sum", "max"]

NUMBERS = 2**18
"""That are measured in one go, unless a single part has more."""

_PARTS = 2**50
_SPARE = 2.0**-30  # what is kept back of the whole, so that shares rounded in any way stay within it
_ROUNDS = 500
_CLOSE = 1e-3


class Plan(NamedTuple):
    """How much of the price each part gets.

    Attributes:
        domain: The columns.
        wanted: The marginals, each with its weight.
        shares: Of the price, by part; all together at most 1.
    """

    domain: Domain
    wanted: Mapping[Clique, float]
    shares: Mapping[Clique, Fraction]

    def variance(self, clique: Clique) -> float:
        """The variance of each count of a marginal, as a multiple of max_rows²/(2·rho); known beforehand."""
        return sum(
            _weight_in(self.domain, clique, part)
            * float(share_of_a_row(self.domain.shape(part)) ** 2 / self.shares[part])
            for part in parts_of(self.domain, clique)
        )


class Parts(NamedTuple):
    """Measured parts, from which every marginal that was planned follows, all of them consistent.

    Attributes:
        domain: The columns.
        values: The noisy contrasts of each part.
        sigmas: The standard deviation of the noise of each part's coordinates.
    """

    domain: Domain
    values: Mapping[Clique, Floats]
    sigmas: Mapping[Clique, float]

    def marginal(self, clique: Clique) -> Marginal:
        """The noisy counts of some columns: of a marginal that was planned, or of a part of one."""
        shape = self.domain.shape(clique)
        found, variance = np.zeros(shape), 0.0
        for part in parts_of(self.domain, clique):
            inside = tuple(self.domain.sizes[at] if at in part else 1 for at in clique)
            others = self.domain.cells(clique) / self.domain.cells(part)
            found += tables(self.values[part]).reshape(inside) / others
            row = float(share_of_a_row(self.domain.shape(part)))
            variance += _weight_in(self.domain, clique, part) * row * self.sigmas[part] ** 2
        return Marginal(clique, found, math.sqrt(variance))


def planned(domain: Domain, wanted: Mapping[Clique, float], objective: Objective = "sum") -> Plan:
    """The shares of the price with the least error.

    Args:
        domain: The columns.
        wanted: The marginals, each with a weight above 0.
        objective: "sum": of the variances of all counts, those of a marginal times its weight. "max": the
            largest variance of any count, times its marginal's weight; to within a thousandth.

    Raises:
        InvalidParameter: if no marginal is wanted, a weight is not above 0, or one has too many cells.

    With p a part's `share_of_a_row` and σ² the variance of its coordinates, in multiples of what the whole
    price buys for one count, the parts cost Σ p/σ² ≤ 1, and the objective is Σ v·σ² for a v that follows from
    the weights. By Cauchy and Schwarz that is least, (Σ √(pv))², where p/σ² is proportional to √(pv): Xiao,
    He, Zhang, Kifer 2023. It is also the least of all linear measurements (Li, Miklau 2013, the singular
    value bound, which marginals reach). For "max" weights are raised where the variance is large until the
    weighted mean, which nothing can be below, is as large as the largest.
    """
    if not wanted or not all(0 < weight < math.inf for weight in wanted.values()):
        raise InvalidParameter("Name the marginals that are wanted, each with a weight above 0.")
    if any(domain.cells(clique) > MOST_CELLS for clique in wanted):
        raise InvalidParameter(f"A marginal has at most {MOST_CELLS} cells: choose fewer columns together.")
    cliques = list(wanted)
    every = {part for clique in cliques for part in parts_of(domain, clique)}
    parts = sorted(every, key=lambda part: (len(part), part))
    number = {part: at for at, part in enumerate(parts)}
    pairs = [(at, part) for at, clique in enumerate(cliques) for part in parts_of(domain, clique)]
    mine = np.array([at for at, _ in pairs])
    theirs = np.array([number[part] for _, part in pairs])
    row = np.array([float(share_of_a_row(domain.shape(part))) for part in parts])
    inside = np.array([_weight_in(domain, cliques[at], part) for at, part in pairs]) * row[theirs]
    given = np.array([wanted[clique] for clique in cliques])
    if objective == "sum":
        given *= [domain.cells(clique) for clique in cliques]
        spent = np.sqrt(row * np.bincount(theirs, given[mine] * inside))
    else:
        inside *= given[mine]
        spent = _evened(mine, theirs, inside, row)
    counts = np.maximum(np.floor(spent / spent.sum() * (1 - _SPARE) * _PARTS), 1)
    shares = {part: Fraction(int(count), _PARTS) for part, count in zip(parts, counts, strict=True)}
    return Plan(domain, dict(wanted), shares)


def _evened(mine: NDArray[np.int64], theirs: NDArray[np.int64], inside: Floats, row: Floats) -> Floats:
    """What parts get of the price so that the largest variance is least."""
    weights = np.full(int(mine.max()) + 1, 1.0)
    for _ in range(_ROUNDS):
        weights /= weights.sum()
        spent = np.sqrt(row * np.bincount(theirs, weights[mine] * inside))
        spent /= spent.sum()
        variances = np.bincount(mine, inside * (row / spent)[theirs])
        if variances.max() <= (1 + _CLOSE) * (weights @ variances):
            break
        weights *= variances
    return spent


def _weight_in(domain: Domain, clique: Clique, part: Clique) -> float:
    """What a part's variance counts for in that of one of the clique's counts: it is spread over the rest."""
    return float(domain.cells(part) / domain.cells(clique)) ** 2


def measured(cells: Cells, meter: Meter, plan: Plan) -> Parts:
    """All parts of a plan, for the whole of what the meter has.

    Privacy:
        Claim: the answers cost what the meter says, Σ of the plan's shares, at most 1 in all. Proof: each is
        a `Total` with its sensitivity (`residuals`), asked for with the shares of its parts. ResidualPlanner
        draws noise for a whole marginal and charges only for its contrasts; rounding between the two would
        break that. Here the contrasts themselves get the noise, as coordinates in an orthonormal basis, so
        that the smaller price is the plain one of the Gaussian mechanism.
    """
    values, sigmas = dict[Clique, Floats](), dict[Clique, float]()
    for parts, reaches in _in_groups(plan):
        share = sum((plan.shares[part] for part in parts), Fraction(0))
        total = residuals(cells, parts, reaches)
        answers, sigma = meter.noisy(total, share), meter.sigma(total.sensitivity * total.step, share)
        start = 0
        for part, reach in zip(parts, reaches, strict=True):
            scale = scales(plan.domain.shape(part), reach)
            own = answers[start : start + scale.size].reshape(scale.shape)
            start += scale.size
            values[part], sigmas[part] = own / (scale * float(STEP)), sigma / reach
    return Parts(plan.domain, values, sigmas)


def _in_groups(plan: Plan) -> Iterator[tuple[list[Clique], list[float]]]:
    """Parts that are measured together, each with its reach: what its noise is divided by in the group.

    One law of noise for many parts is drawn faster than a law for each. Those of a group are not too many
    numbers, and no reach is below a quarter.
    """
    rows = {part: share_of_a_row(plan.domain.shape(part)) for part in plan.shares}
    needs = {part: math.sqrt(share / rows[part]) for part, share in plan.shares.items()}
    group, size = list[Clique](), 0
    for part in sorted(needs, key=lambda one: (-needs[one], one)):
        numbers = math.prod(n - 1 for n in plan.domain.shape(part))
        if group and (size + numbers > NUMBERS or 4 * needs[part] < needs[group[0]]):
            yield group, [needs[one] / needs[group[0]] for one in group]
            group, size = [], 0
        group.append(part)
        size += numbers
    yield group, [needs[one] / needs[group[0]] for one in group]


def learn(
    cells: Cells, meter: Meter, wanted: Mapping[Clique, float], *, objective: Objective = "sum"
) -> list[Marginal]:
    """The wanted marginals with noise, consistent with each other; their noise is not independent.

    Args:
        cells: The rows.
        meter: What was paid for; all of it is used.
        wanted: The marginals, each with a weight above 0.
        objective: As `planned` takes it.

    Raises:
        InvalidParameter: if no marginal is wanted, or a weight is not above 0.
    """
    found = measured(cells, meter, planned(cells.domain, wanted, objective))
    return [found.marginal(clique) for clique in wanted]
