"""The total so far, after every spend, at a cost that does not grow with the number of spends.

A bank of contours is laid out once, for one delta: their nodes scale with where they cross the real axis,
so that a few of them serve all totals. A spend adds its logarithm to every node; a question reads the one
contour whose Chernoff bound is best. The certificate is that of `contour`; where it is too wide, the
question goes to `compose`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.numeric import compose
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.contour import Contour, assembled, inverted, right_alias
from sfumato.numeric.laws.base import Complexes, Floats, Law, Term
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.profile import Profile
from sfumato.numeric.laws.pure import DOUBLE, PURE
from sfumato.numeric.rounding import U

__all__ = ["Running"]

_CROSSINGS = 2.0 ** np.arange(-4.0, 13.0)
_NODES = 72
_TOLERANCE = 1e-9
_REMEMBERED = 64


@lru_cache(maxsize=16)
def _bank(log_delta: float) -> tuple[Floats, Complexes]:
    """The steps of the contours, small enough for the left aliases, and their nodes, one row a contour."""
    steps: Floats = 2 * math.pi * _CROSSINGS / -(log_delta + math.log(_TOLERANCE))
    nodes = _CROSSINGS[:, None] + 1j * steps[:, None] * np.arange(_NODES)
    return steps, nodes


class Running:
    """The epsilon of everything added so far, at one delta fixed at the start; one direction of it.

    Privacy:
        `epsilon().upper` is never below the epsilon of the composed terms (the theorem of `contour`), for
        terms fixed in advance: it is a figure to show, not a gate for terms chosen along the way.
    """

    __slots__ = (
        "_adds",
        "_answer",
        "_counts",
        "_decay",
        "_delta",
        "_errors",
        "_known",
        "_logs",
        "_mu2",
        "_nodes",
        "_opaque",
        "_steps",
        "_top",
        "_total",
    )

    def __init__(self, delta: float) -> None:
        if not 0.0 < delta < 1.0:
            raise InvalidParameter(f"delta must lie strictly between 0 and 1, not {delta:g}.")
        self._delta = delta
        self._steps, self._nodes = _bank(math.log(delta))
        self._total = np.zeros(self._nodes.size, dtype=np.complex128)
        self._errors = np.zeros(self._nodes.size)
        self._decay = np.zeros(len(_CROSSINGS))
        self._mu2 = self._top = self._logs = 0.0
        self._adds = 0
        self._counts: dict[tuple[Law, tuple[float, ...]], int] = {}
        self._known: dict[tuple[Law, tuple[float, ...]], tuple[Complexes, Floats, Floats]] = {}
        self._opaque = False
        self._answer: Bracket | None = Bracket(0.0, 0.0)

    def add(self, term: Term) -> None:
        """Count one more term."""
        key = (term.law, term.parameters)
        self._counts[key] = self._counts.get(key, 0) + term.count
        self._answer = None
        mass = term.law.infinity(term.parameters)
        self._adds += 1
        self._logs += term.count * math.log1p(-min(mass, 1 - U))
        self._top = (self._top + term.count * term.law.support(term.parameters)[1]) * (1 + 4 * U)
        if term.law is GAUSSIAN:
            # Gaussian losses add up to a Gaussian loss: nothing is evaluated before a question.
            self._mu2 += term.count * term.parameters[0] ** 2
        elif isinstance(term.law, Profile):
            self._opaque = True
        else:
            values, errors, decay = self._evaluate(term)
            self._total += values * term.count
            # The term's own error, the product with the count, and the rounding of this very addition.
            self._errors += errors * term.count + U * (2 * np.abs(values) * term.count + np.abs(self._total))
            self._decay += decay * term.count

    def _evaluate(self, term: Term) -> tuple[Complexes, Floats, Floats]:
        """Moments on all nodes, their errors, and the decay beyond each contour; remembered for repeats."""
        key = (term.law, term.parameters)
        values = self._known.pop(key, None)
        if values is None:
            values = self._compute(term)
        self._known[key] = values
        if len(self._known) > _REMEMBERED:
            self._known.pop(next(iter(self._known)))
        return values

    def _compute(self, term: Term) -> tuple[Complexes, Floats, Floats]:
        lines = len(_CROSSINGS)
        if term.law.effort(0.0, term.row) > 1:
            # Each node is a whole integral, longer the further right: those contours are left out.
            lines = int(np.searchsorted(_CROSSINGS, 40.0))
        z, row = self._nodes[:lines].ravel(), term.row
        values = np.zeros(self._nodes.size, dtype=np.complex128)
        errors = np.full(self._nodes.size, np.inf)
        decay = np.zeros(len(_CROSSINGS))
        logs = term.law.log_mgf(z, row)[:, 0]
        # A zero of M met exactly: any small number is as good, since its error is absolute.
        values[: z.size] = np.where(np.isfinite(logs), logs, -745.0)
        errors[: z.size] = term.law.mgf_error(z, row, np.ones(1))
        edges = self._steps[:lines] * _NODES
        decay[:lines] = term.law.log_decay(_CROSSINGS[:lines], edges, row)[:, 0]
        return values, errors, decay

    @property
    def terms(self) -> tuple[Term, ...]:
        """Everything added so far, equal terms merged."""
        return tuple(Term(law, parameters, count) for (law, parameters), count in self._counts.items())

    def epsilon(self) -> Bracket:
        """The total so far.

        Raises:
            NotCertified: if no method can bracket it.
        """
        if self._answer is None:
            bracket = None if self._opaque or self._simple else self._read()
            if bracket is None or not bracket.meets():
                bracket = compose.epsilon([self.terms], self._delta)
            self._answer = bracket
        return self._answer

    @property
    def _simple(self) -> bool:
        """Whether a closed form answers: one event, or events of one kind that adds up."""
        ((law, _), count), *others = self._counts.items()
        return not others and (count == 1 or law in (GAUSSIAN, PURE, DOUBLE))

    @property
    def _slip(self) -> float:
        """The relative error of sums that were added up one spend at a time."""
        return (64 + 4 * self._adds) * U

    def _read(self) -> Bracket | None:
        """The bracket of the best contour, or None where there is none."""
        mass = -math.expm1(self._logs)
        least, most = mass * (1 - self._slip), mass * (1 + self._slip)
        spare = (self._delta - most) * (1 - 2 * U)
        if spare <= 0:
            return None
        c = _CROSSINGS
        real = self._total[::_NODES].real + 0.5 * self._mu2 * c * (c + 1)
        real = np.where(np.isfinite(self._errors[::_NODES]), real, np.inf)
        chernoff = (real - np.log(c) - np.log1p(c) - math.log(spare)) / c
        best = int(np.argmin(chernoff))
        # Just right of the best crossing heavy tails may alias; the next contour to the left is better
        # then.
        for index in (best, best - 1):
            if 0 < index < len(c) - 2:
                path = self._path(index, real, float(chernoff[best]), spare)
                if path is not None:
                    break
        else:
            return None
        bracket = inverted(path, spare, max(float(chernoff[index]), 0.0))
        if bracket is None or least == most:
            return bracket
        looser = inverted(path, (self._delta - least) * (1 + 2 * U), bracket.upper)
        return Bracket(looser.lower if looser is not None else 0.0, bracket.upper)

    def _path(self, index: int, real: Floats, epsilon: float, delta: float) -> Contour | None:
        """One contour of the bank, if its right aliases and its rounding are small."""
        c, step = float(_CROSSINGS[index]), float(self._steps[index])
        half = 0.5 * self._mu2
        far = _CROSSINGS[index + 1 :]
        slip = self._errors[::_NODES][index + 1 :] + self._slip * np.abs(real[index + 1 :])
        usable = slip < 0.1
        if not usable.any():
            return None
        far_log = real[index + 1 :] + 2 * slip + far * np.log(far) - (far + 1) * np.log1p(far) + 1e-12
        bounds = far[usable], far_log[usable]
        here = slice(index * _NODES, (index + 1) * _NODES)
        z = self._nodes[index]
        gauss = half * z * (z + 1)
        errors = self._errors[here] + self._slip * (np.abs(gauss) + np.abs(self._total[here]))
        alias = right_alias(c, step, max(epsilon - 3 / c, 0.0), *bounds, self._top)
        if errors[0] > 1e-4 or alias > 1e-7 * delta:
            return None
        rest = (float(self._decay[index]) - half * (step * _NODES) ** 2) * (1 - self._slip)
        moved = np.expm1(np.minimum(errors, 1.0))
        return assembled(c, step, self._total[here] + gauss, moved, min(rest, 0.0), bounds, self._top)
