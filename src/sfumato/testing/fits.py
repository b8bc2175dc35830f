"""A kit for fits: on neighbouring tables, with the same noisy answers, each question keeps its claim."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from sfumato.fits.meter import Meter, Total
from sfumato.fits.searching import Sought
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import Rational, as_fraction

if TYPE_CHECKING:
    from sfumato.learn._core.records import Records
    from sfumato.learn._core.rows import Rows
    from sfumato.learn.base import PrivateEstimator
    from sfumato.learn.examples import Example
    from sfumato.mechanisms.base import Side
    from sfumato.synth.fit_examples import SynthFit
    from sfumato.synth.linked_examples import LinkedFit

    Given: TypeAlias = Rows | Records

__all__ = ["check_answers", "check_fit", "check_lone", "check_noise", "check_pair", "check_synth"]

Forge: TypeAlias = Callable[[Total, float], NDArray[np.float64]]
Pick: TypeAlias = Callable[[int], int]
Run: TypeAlias = Callable[[Meter], Mapping[str, Any]]
Shown: TypeAlias = dict[str, float]
Said: TypeAlias = NDArray[np.float64] | int | Shown

_FALSE_ALARM = 1e-9


class _Choice(NamedTuple):
    """A question for the best of several."""

    scores: tuple[int, ...]
    sensitivity: Fraction


class _Search(NamedTuple):
    """A question for the values that enough units have."""

    counts: Mapping[str, int]
    most: int
    sensitivity: Fraction
    risk: Fraction


class _Recording(Meter):
    """A meter that remembers what it was asked, and answers with noise or with what it is told."""

    def __init__(
        self,
        honest: Meter,
        told: Sequence[Said] | None = None,
        forge: Forge | None = None,
        pick: Pick | None = None,
    ) -> None:
        super().__init__(honest.rho, honest._take, exchange=honest._moves == 2, risk=honest.risk)
        self._forge, self._pick = forge, pick
        self.asked: list[tuple[Total | _Choice | _Search, Fraction]] = []
        self.answers: list[Said] = []
        self._told = told

    def noisy(self, total: Total, share: Rational) -> NDArray[np.float64]:
        self.asked.append((total, as_fraction(share, "share")))
        answer = super().noisy(total, share)
        if self._forge is not None:
            answer = self._forge(total, self.sigma(total.sensitivity * total.step, share))
        elif self._told is not None:
            told = self._told_here()
            assert isinstance(told, np.ndarray), "what is asked for depends on the data"
            assert told.shape == answer.shape, "the shape of a question depends on the data"
            answer = told
        self.answers.append(answer)
        return answer.copy()

    def chosen(
        self, scores: Sequence[int] | NDArray[np.integer[Any]], sensitivity: Rational, share: Rational
    ) -> int:
        found = _Choice(tuple(map(int, scores)), as_fraction(sensitivity, "sensitivity"))
        self.asked.append((found, as_fraction(share, "share")))
        answer = super().chosen(scores, sensitivity, share)
        if self._pick is not None:
            answer = self._pick(len(found.scores))
        elif self._told is not None:
            told = self._told_here()
            assert isinstance(told, int), "what is asked for depends on the data"
            answer = told
        self.answers.append(answer)
        return answer

    def shown(self, sought: Sought, share: Rational, risk: Rational) -> Shown:
        counts = dict(zip(sought.values, sought.counts.tolist(), strict=True))
        found = _Search(counts, sought.most, sought.sensitivity, as_fraction(risk, "risk"))
        self.asked.append((found, as_fraction(share, "share")))
        answer = super().shown(sought, share, risk)
        if self._forge is not None:  # noise may say anything of what several units have
            several = [value for value, count in counts.items() if count > 1]
            total = Total(np.array([counts[value] for value in several], np.int64), Fraction(1), Fraction(1))
            said = self._forge(total, self.sigma(sought.sensitivity, share)).tolist()
            answer = {value: number for value, number in zip(several, said, strict=True) if number > 0}
        elif self._told is not None:
            told = self._told_here()
            assert isinstance(told, dict), "what is asked for depends on the data"
            answer = told
        self.answers.append(answer)
        return dict(answer)

    def _told_here(self) -> Said:
        place = len(self.asked) - 1
        assert self._told is not None
        assert place < len(self._told), "the number of questions depends on the data"
        return self._told[place]


def check_fit(example: Example) -> None:
    """Holds a model's example to its claim.

    Raises:
        AssertionError: with what does not hold.
    """
    model, left = example.rows("left")
    other, right = example.rows("right")
    check_pair(model, left, other, right)
    check_pair(other, right, model, left)
    check_noise(lambda meter: model._released(left, meter)[1], model._price(), exchange=left.exchange)


def check_synth(
    example: SynthFit | LinkedFit, *, forge: Forge | None = None, pick: Pick | None = None
) -> None:
    """Holds a fit of a synthetic table, or of two, to its claim; answers and choices as for `check_pair`.

    Raises:
        AssertionError: with what does not hold.
    """
    paid, exchange, risk = example.loss, example.plan.wanted.exchange, example.risk

    def run(side: Side) -> Run:
        return lambda meter: example.released(side, meter).to_arrays()

    given: dict[str, Any] = {"exchange": exchange, "forge": forge, "pick": pick, "risk": risk}
    check_answers(run("left"), run("right"), paid, **given)
    check_answers(run("right"), run("left"), paid, **given)
    if forge is None:
        check_noise(run("left"), paid, exchange=exchange, least=100, risk=risk)


def check_lone(search: Callable[[], Collection[str]], lone: Collection[str], risk: float) -> None:
    """Holds a search to its risk: what one unit alone has is shown no more often than that.

    Args:
        search: What is shown of a table, each time with noise of its own.
        lone: What one unit of it alone has.
        risk: How often any of it may be shown; large enough to be seen.

    Raises:
        AssertionError: if it is shown more often; at a false-alarm rate of 1e-9.
    """
    many = int(60 / risk)
    seen = sum(not set(lone).isdisjoint(search()) for _ in range(many))
    assert binom.sf(seen - 1, many, risk) > _FALSE_ALARM, f"{seen} of {many} searches show what one unit has"


def check_noise(
    run: Run,
    paid: GaussianLoss,
    *,
    exchange: bool = False,
    least: int = 250,
    risk: Fraction = Fraction(0),
) -> None:
    """Holds the noise of a fit's answers to what is paid for it: as many fits as give `least` numbers.

    Args:
        run: From a meter to all that is released of a table.
        paid: For the whole.
        exchange: Whether neighbours have one unit exchanged.
        least: How many numbers are looked at.
        risk: What was paid for searches.

    Raises:
        AssertionError: if there is less or more; at a false-alarm rate of 1e-9.
    """
    off = list[float]()
    while len(off) < least:
        meter = _Recording(Meter.alone(paid, exchange=exchange, risk=risk))
        run(meter)
        for (total, share), answer in zip(meter.asked, meter.answers, strict=True):
            if not isinstance(total, Total) or not isinstance(answer, np.ndarray):
                continue
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
    pick: Pick | None = None,
) -> None:
    """A fit on one table, then on its neighbour with the same noisy answers.

    Args:
        model: An unfitted model.
        left: Its rows.
        other: The same model.
        right: The rows of a neighbour: one unit more or less, or another one where they are exchanged.
        forge: From exact sums and the size of their noise to the answers; None: the sums with noise. Noise
            has no bounds, so that the claim must hold whatever the answers are.
        pick: From the number of candidates to the one that is chosen; None: by their scores.

    Raises:
        AssertionError: with what does not hold (`check_answers`).
    """
    designs = list[Any]()

    def run(fitted: PrivateEstimator, rows: Given) -> Run:
        def learned(meter: Meter) -> Mapping[str, Any]:
            design, released = fitted._released(rows, meter)
            designs.append(design.to_dict())
            return released

        return learned

    paid, exchange = model._price(), left.exchange
    check_answers(run(model, left), run(other, right), paid, exchange=exchange, forge=forge, pick=pick)
    assert designs[0] == designs[1], "bounds depend on the data beyond the noisy answers"


def check_answers(
    mine: Run,
    theirs: Run,
    paid: GaussianLoss,
    *,
    exchange: bool = False,
    forge: Forge | None = None,
    pick: Pick | None = None,
    risk: Fraction = Fraction(0),
) -> None:
    """All that is asked of a meter for one table, then for its neighbour with the same answers.

    Args:
        mine: From a meter to all that is released of one table, by name.
        theirs: The same for a neighbour.
        paid: For the whole.
        exchange: Whether neighbours have one unit exchanged.
        forge: As for `check_pair`.
        pick: Likewise.
        risk: What was paid for searches.

    What adaptive composition asks for: given the same answers so far, the next question has the same price
    and a claimed sensitivity that the two tables keep, and what is made of all answers is the same. The
    shares that were asked for add up to at most the whole.

    Raises:
        AssertionError: with what does not hold.
    """
    first = _Recording(Meter.alone(paid, exchange=exchange, risk=risk), forge=forge, pick=pick)
    released = mine(first)
    second = _Recording(Meter.alone(paid, exchange=exchange, risk=risk), first.answers)
    again = theirs(second)
    assert len(first.asked) == len(second.asked), "the number of questions depends on the data"
    assert sum((share for _, share in first.asked), Fraction(0)) <= 1, "more than the price is spent"
    risks = [asked.risk for asked, _ in first.asked if isinstance(asked, _Search)]
    assert sum(risks, Fraction(0)) <= risk, "more is risked than was paid for"
    for place, ((asked, share), (other, same)) in enumerate(zip(first.asked, second.asked, strict=True)):
        assert share == same, f"the price of question {place} depends on the data"
        assert asked.sensitivity == other.sensitivity, f"the claim of question {place} depends on the data"
        if isinstance(asked, _Search) and isinstance(other, _Search):
            answer = first.answers[place]
            assert isinstance(answer, dict)
            _check_search(asked, other, answer)
        moved = _moved(asked, other, place)
        assert moved <= (asked.sensitivity * first._moves) ** 2, (
            f"question {place} moves by {float(moved) ** 0.5:.6g}, and claims {float(asked.sensitivity):.6g}"
        )
    _same(released, again)


def _check_search(mine: _Search, theirs: _Search, shown: Shown) -> None:
    """What only one of two tables has is a single unit's, within its claim, and is not shown."""
    assert mine.most == theirs.most, "how many values a unit has depends on the data"
    assert mine.risk == theirs.risk, "the risk of a search depends on the data"
    for own, other in ((mine.counts, theirs.counts), (theirs.counts, mine.counts)):
        lone = [count for value, count in own.items() if value not in other]
        assert len(lone) <= mine.most, f"a unit has {len(lone)} values, and {mine.most} are claimed"
        assert max(lone, default=1) == 1, "a unit counts several times for a value"
    both = mine.counts.keys() & theirs.counts.keys()
    assert shown.keys() <= both, "what one unit alone has is shown"


def _moved(mine: Total | _Choice | _Search, theirs: Total | _Choice | _Search, place: int) -> int:
    """The square of how far a question moves: all of a sum together, or the score that moves most."""
    if isinstance(mine, _Search) and isinstance(theirs, _Search):
        both = mine.counts.keys() & theirs.counts.keys()
        return sum((mine.counts[value] - theirs.counts[value]) ** 2 for value in both)
    if isinstance(mine, _Choice) and isinstance(theirs, _Choice):
        assert len(mine.scores) == len(theirs.scores), f"the candidates of {place} depend on the data"
        return max((a - b) ** 2 for a, b in zip(mine.scores, theirs.scores, strict=True))
    assert isinstance(mine, Total), f"what question {place} asks for depends on the data"
    assert isinstance(theirs, Total), f"what question {place} asks for depends on the data"
    assert mine.step == theirs.step, f"the grid of question {place} depends on the data"
    pairs = zip(np.ravel(mine.values), np.ravel(theirs.values), strict=True)
    return sum((int(a) - int(b)) ** 2 for a, b in pairs)


def _same(learned: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    assert set(learned) == set(again), "what is released depends on the data"
    for name in learned:
        mine, theirs = np.asarray(learned[name]), np.asarray(again[name])
        assert mine.shape == theirs.shape, f"the shape of {name} depends on the data"
        assert _equal(mine, theirs), f"{name} depends on the data beyond the noisy answers"


def _equal(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    return bool(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"))
