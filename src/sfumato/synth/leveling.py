"""Counts by attributes on levels of places: whole, not negative, the same sums on every level, for one price.

```python
release = sf.synth.levels(
    session, "people", geography=["state", "county"], places=counties, by=["age", "sex"], epsilon=1
)
release.table("county")
release.microdata()
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.kept import Kept
from sfumato.fits.meter import price
from sfumato.fits.paying import priced
from sfumato.synth._levels.asking import COUNT, LOWER, UPPER, Asked, asked
from sfumato.synth._levels.counting import counted
from sfumato.synth._levels.examples import examples
from sfumato.synth._levels.grid import Part
from sfumato.synth._levels.linear import Known, best, entry_variance
from sfumato.synth._levels.measuring import Design, design_of
from sfumato.synth._levels.paying import LevelsQuote, conditional, purchase, quoted
from sfumato.synth._levels.totals import public_totals
from sfumato.synth._levels.tree import ALL

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.loss import GaussianLoss
    from sfumato.numeric.exact import Rational
    from sfumato.plan.builder import Selection
    from sfumato.plan.questions.terms import Col
    from sfumato.purchase import Bought
    from sfumato.schema import Keys
    from sfumato.session.session import Session

    By: TypeAlias = Sequence[str | Col | Keys] | str | Col | Keys

__all__ = ["LevelCounts", "LevelsQuote", "examples", "levels", "quote_levels"]


def levels(
    session: Session,
    rows: str | Selection[Any],
    *,
    geography: Sequence[str],
    places: Any,
    by: By,
    epsilon: Rational,
    delta: Rational | None = None,
    invariants: Mapping[str, Any] | None = None,
    shares: Mapping[str, Any] | None = None,
) -> LevelCounts:
    """Counts of a table by attributes, for every place of every level, paid for once before anything is read.

    On each level, and for all places together, the table over all attributes and every marginal of it are
    measured with Gaussian noise. Their best linear estimate is then made whole and non-negative from the top
    down, so that the counts of places add up to those above. The same release again is free.

    Args:
        session: Whose table is counted.
        rows: The table's name, or `session.table(…).filter(…)`.
        geography: The levels from the top; the last is the column that says where a row belongs.
        places: Which places there are, public: one row for each of the smallest with a column for each level
            (a frame, or a dictionary of lists), the name of a public table of the session, or for each level
            but the first a dictionary from its places to those above. Rows elsewhere are not counted.
        by: The attributes: columns with declared values, `Keys`, or expressions such as `sf.col("age") // 5`.
        epsilon: The price of all of it.
        delta: Likewise; what the budget spares for a question unless it is given.
        invariants: Totals that are public and kept exactly, by level and place; of "all", one number. They
            are declared, never read from the table, and the guarantee is conditional on them.
        shares: Weights of levels, where the rule of `design_of` does not suit; a level left out is not
            measured.

    Privacy:
        Claim: all that it gives is (epsilon, delta)-private for the table's privacy unit, conditional on the
        declared invariants: if they are facts of the table, whatever they tell is not covered. Proof: the
        counts are seen through marginals with noise of one `Meter` alone (`Design.measured`), whose shares
        add up to at most the price; all else follows from the noisy ones and public facts.

    Raises:
        InvalidParameter: for declarations that are missing or contradict each other; nothing was read.
        QueryRefused: for what cannot be counted; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent or read.
    """
    question, design = _designed(session, rows, geography, places, by, invariants, shares)
    paid, spare = priced(session, question.question.table, epsilon, delta)
    wanted = purchase(question, design, paid, spare)
    return LevelCounts(question, design, session.buy(wanted))


def quote_levels(
    session: Session,
    rows: str | Selection[Any],
    *,
    geography: Sequence[str],
    places: Any,
    by: By,
    epsilon: Rational,
    delta: Rational | None = None,
    invariants: Mapping[str, Any] | None = None,
    shares: Mapping[str, Any] | None = None,
) -> LevelsQuote:
    """What `levels` would cost with these arguments, and how far off it would be: free, reads nothing."""
    question, design = _designed(session, rows, geography, places, by, invariants, shares)
    paid, spare = priced(session, question.question.table, epsilon, delta)
    return quoted(question, design, purchase(question, design, paid, spare), paid, spare)


def _designed(
    session: Session,
    rows: str | Selection[Any],
    geography: Sequence[str],
    places: Any,
    by: By,
    invariants: Mapping[str, Any] | None,
    shares: Mapping[str, Any] | None,
) -> tuple[Asked, Design]:
    question = asked(session, rows, geography, places, by)
    public = public_totals(question.tree, invariants)
    return question, design_of(question.tree, question.grid, public, shares)


class LevelCounts:
    """Released counts on levels: whole numbers from 0 that add up on every level.

    Attributes:
        receipt: Of the debit that paid for them.
        free: Whether they were paid for before.
        loss: What they cost.
    """

    receipt: Receipt
    free: bool
    loss: GaussianLoss

    def __init__(self, question: Asked, design: Design, bought: Bought[Kept]) -> None:
        self._tree, self._grid, self._values = question.tree, question.grid, question.values
        self._design, self._table = design, question.question.table
        self.receipt, self.free = bought.receipt, bought.free
        self.loss = price(bought.answer.epsilon, bought.answer.delta)
        noisy = design.levels(bought.answer.learned, design.sigmas(self.loss.rho, question.sensitivity))
        self._known = design.known(noisy)

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, from the top: "all" is the one place above them."""
        return self._tree.names

    @property
    def given(self) -> str:
        """What the guarantee is conditional on, as a sentence; empty: nothing."""
        return conditional(self._design.public.words(self._tree))

    def table(
        self, level: str = ALL, by: Sequence[str] | None = None, *, confidence: float = 0.95
    ) -> pa.Table:
        """The counts of a level: places, attributes, `count`, and an interval from `lower` to `upper`.

        The interval holds the true count of the rows that are counted with this probability: it is that of
        the best linear estimate, whose noise is normal with a variance that is known, cut off at 0. The count
        itself was made whole, non-negative and consistent after that, and may lie outside.

        Args:
            level: Its name; "all" for all places together.
            by: Some of the attributes, in any order; all of them unless they are named.
            confidence: Of each interval by itself.

        Raises:
            InvalidParameter: for an unknown level or attribute.
        """
        at, part = self._tree.level(level), self._part(by)
        if not 0 < confidence < 1:
            raise InvalidParameter("confidence lies between 0 and 1.")
        known = self._best[at]
        estimate = self._grid.marginal(self._grid.joined(known.parts, self._tree.sizes(at)), part)
        spread = np.sqrt(np.maximum(entry_variance(self._grid, known, part), 0.0))
        wide = NormalDist().inv_cdf((1 + confidence) / 2) * (1 + 1e-9)
        half = np.broadcast_to((spread * wide).reshape(-1, *(1,) * len(self._grid.sizes)), estimate.shape)
        exact = half == 0
        lower = np.where(exact, np.rint(estimate), np.maximum(0.0, estimate - half))
        upper = np.where(exact, np.rint(estimate), np.maximum(0.0, estimate + half))
        counts = self._grid.marginal(self._counts[at], part)
        columns = self._labels(at, part)
        columns |= {COUNT: counts.reshape(-1), LOWER: lower.reshape(-1), UPPER: upper.reshape(-1)}
        return pa.table(columns)

    def microdata(self) -> pa.Table:
        """One row for each person that is counted: all levels of places, and all attributes.

        Its counts are those of `table`, on every level. Nothing in a row but these columns is anybody's.
        """
        last = len(self._tree) - 1
        labels = pa.table(self._labels(last, self._part(None)))
        return labels.take(pa.array(np.repeat(np.arange(labels.num_rows), self._counts[last].reshape(-1))))

    def __repr__(self) -> str:
        places = ", ".join(f"{self._tree.sizes(at):,} {name}" for at, name in enumerate(self.levels) if at)
        counted = " × ".join(self._grid.names) or "rows"
        said = f"Counts of {self._table}, {counted} on levels: {places}."
        return " ".join(filter(None, (said, self.given)))

    @cached_property
    def _counts(self) -> list[NDArray[np.int64]]:
        return counted(self._tree, self._grid, self._known, self._design.public)

    @cached_property
    def _best(self) -> list[Known]:
        return best(self._tree, self._grid, self._known)

    def _part(self, by: Sequence[str] | None) -> Part:
        names = self._grid.names
        wanted = names if by is None else (by,) if isinstance(by, str) else tuple(by)
        if unknown := [name for name in wanted if name not in names]:
            raise InvalidParameter(
                f"There is no attribute {str(unknown[0])[:60]!r}. Attributes: {', '.join(names)}."
            )
        return tuple(at for at, name in enumerate(names) if name in wanted)

    def _labels(self, level: int, part: Part) -> dict[str, pa.Array]:
        """The columns that say which count is whose: places first, then attributes."""
        paths = self._tree.paths[level]
        sizes = [len(paths), *(self._grid.sizes[at] for at in part)]
        places = np.indices(sizes).reshape(len(sizes), -1)
        above = {name: [path[at] for path in paths] for at, name in enumerate(self.levels[1 : level + 1])}
        columns = {name: pa.array(values).take(pa.array(places[0])) for name, values in above.items()}
        for at, rank in zip(part, places[1:], strict=True):
            columns[self._grid.names[at]] = pa.array(list(self._values[at])).take(pa.array(rank))
        return columns
