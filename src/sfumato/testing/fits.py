"""A kit for models: on neighbouring tables, with the same noisy answers, each question keeps its claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato.fits.meter import Meter, Total
from sfumato.numeric.exact import Rational, as_fraction

if TYPE_CHECKING:
    from sfumato.learn._core.records import Records
    from sfumato.learn._core.rows import Rows
    from sfumato.learn.base import Learned, PrivateEstimator
    from sfumato.learn.examples import Example

    Given: TypeAlias = Rows | Records
    Forge: TypeAlias = Callable[[Total, float], NDArray[np.float64]]

__all__ = ["check_fit", "check_noise", "check_pair"]

_FALSE_ALARM = 1e-9


class _Recording(Meter):
    """A meter that remembers what it was asked, and answers with noise or with what it is told."""

    def __init__(
        self,
        honest: Meter,
        told: Sequence[NDArray[np.float64]] | None = None,
        forge: Forge | None = None,
    ) -> None:
        super().__init__(honest.rho, honest._take, exchange=honest._moves == 2)
        self._forge = forge
        self.asked: list[tuple[Total, Fraction]] = []
        self.answers: list[NDArray[np.float64]] = []
        self._told = told

    def noisy(self, total: Total, share: Rational) -> NDArray[np.float64]:
        self.asked.append((total, as_fraction(share, "share")))
        honest = super().noisy(total, share)
        if self._forge is not None:
            answer = self._forge(total, self.sigma(total.sensitivity * total.step, share))
        elif self._told is None:
            answer = honest
        else:
            place = len(self.asked) - 1
            assert place < len(self._told), "the number of questions depends on the data"
            answer = self._told[place]
            assert answer.shape == honest.shape, "the shape of a question depends on the data"
        self.answers.append(answer)
        return answer.copy()


def check_fit(example: Example) -> None:
    """Holds a model's example to its claim.

    Raises:
        AssertionError: with what does not hold.
    """
    model, left = example.rows("left")
    other, right = example.rows("right")
    check_pair(model, left, other, right)
    check_pair(other, right, model, left)
    check_noise(model, left)


def check_noise(model: PrivateEstimator, rows: Rows | Records, *, least: int = 250) -> None:
    """Holds the noise of a fit's answers to what is paid for it: as many fits as give `least` numbers.

    Raises:
        AssertionError: if there is less or more; at a false-alarm rate of 1e-9.
    """
    off = list[float]()
    while len(off) < least:
        meter = _Recording(_alone(model, rows))
        model._released(rows, meter)
        for (total, share), answer in zip(meter.asked, meter.answers, strict=True):
            sigma = meter.sigma(total.sensitivity * total.step, share)
            exact = np.ravel(total.values).astype(np.float64) * float(total.step)
            off += ((np.ravel(answer) - exact) / sigma).tolist()
    squares, count = float(np.sum(np.square(off))), len(off)
    low, high = chi2.ppf(_FALSE_ALARM / 2, count), chi2.isf(_FALSE_ALARM / 2, count)
    assert low <= squares <= high, f"the noise has {squares / count:.3g} of the variance that is paid for"


def check_pair(
    model: PrivateEstimator,
    left: Given,
    other: PrivateEstimator,
    right: Given,
    *,
    forge: Forge | None = None,
) -> None:
    """A fit on one table, then on its neighbour with the same noisy answers.

    Args:
        model: An unfitted model.
        left: Its rows.
        other: The same model.
        right: The rows of a neighbour: one unit more or less, or another one where they are exchanged.
        forge: From exact sums and the size of their noise to the answers; None: the sums with noise. Noise
            has no bounds, so that the claim must hold whatever the answers are.

    What adaptive composition asks for: given the same answers so far, the next question has the same price
    and a claimed sensitivity that the two tables keep, and what is made of all answers is the same. The
    shares that were asked for add up to at most the whole.

    Raises:
        AssertionError: with what does not hold.
    """
    first = _Recording(_alone(model, left), forge=forge)
    design, learned = model._released(left, first)
    second = _Recording(_alone(other, right), first.answers)
    same_design, again = other._released(right, second)
    assert len(first.asked) == len(second.asked), "the number of questions depends on the data"
    assert sum((share for _, share in first.asked), Fraction(0)) <= 1, "more than the price is spent"
    for place, ((mine, share), (theirs, same)) in enumerate(zip(first.asked, second.asked, strict=True)):
        assert share == same, f"the price of question {place} depends on the data"
        assert mine.sensitivity == theirs.sensitivity, f"the claim of question {place} depends on the data"
        assert mine.step == theirs.step, f"the grid of question {place} depends on the data"
        moved = sum(
            (int(a) - int(b)) ** 2
            for a, b in zip(np.ravel(mine.values), np.ravel(theirs.values), strict=True)
        )
        assert moved <= (mine.sensitivity * first._moves) ** 2, (
            f"question {place} moves by {float(moved) ** 0.5:.6g}, and claims {float(mine.sensitivity):.6g}"
        )
    assert design.to_dict() == same_design.to_dict(), "bounds depend on the data beyond the noisy answers"
    _same(learned, again)


def _alone(model: PrivateEstimator, rows: Given) -> Meter:
    return Meter.alone(model._price(), exchange=rows.exchange)


def _same(learned: Learned, again: Learned) -> None:
    assert set(learned) == set(again), "what is released depends on the data"
    for name in learned:
        mine, theirs = np.asarray(learned[name]), np.asarray(again[name])
        assert mine.shape == theirs.shape, f"the shape of {name} depends on the data"
        assert _equal(mine, theirs), f"{name} depends on the data beyond the noisy answers"


def _equal(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    return bool(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"))
