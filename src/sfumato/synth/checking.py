"""`check`: how far a synthetic table is from the private one, bought with noise; `quote_check`: its price.

```python
people = sf.synth.fit(session, "people", epsilon=1, delta=1e-9)
checked = sf.synth.check(session, people, epsilon=0.1, delta=1e-9)
checked.error, checked.interval()
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.fits.paying import gaussian_purchase, note_of, priced
from sfumato.ledger import Memo
from sfumato.session import Session
from sfumato.session.rows_wanted import RowsTaken, RowsWanted, rows_wanted
from sfumato.synth._model.domain import Clique
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.misfits import WHOLE, Misfits, parts_of
from sfumato.synth._private.scores import UNIT
from sfumato.synth._private.texts import complete
from sfumato.synth.checked import CheckQuote, Noisy, SynthCheck, half_width
from sfumato.synth.columns.fine import Fine, fine
from sfumato.synth.examples import Example
from sfumato.synth.planning import workload_of
from sfumato.synth.synthesizer import Synthesizer

if TYPE_CHECKING:
    from sfumato.fits.kept import Kept
    from sfumato.ledger import Right
    from sfumato.ledger.spare import Spare
    from sfumato.loss import GaussianLoss
    from sfumato.numeric.exact import Rational
    from sfumato.purchase import Purchase
    from sfumato.session.reading import RowsRead

__all__ = ["CheckPlan", "chances_of", "check", "examples", "measured", "quote_check"]

Floats: TypeAlias = NDArray[np.float64]

_COUNTING, _MEAN, _COLUMNS = Fraction(1, 10), Fraction(5, 10), Fraction(4, 10)
_MOST_CELLS = 2**24  # of all sets together: 128 megabytes


def check(
    session: Session,
    synthesizer: Synthesizer,
    table: Any = None,
    *,
    epsilon: Rational,
    delta: Rational | None = None,
    workload: Any = None,
    parameters: Any = None,
) -> SynthCheck:
    """Buy how far a synthesizer's model is from a private table: a figure that anyone may have.

    `Synthesizer.report` says more, and is for the steward alone. Here the total variation between the model's
    counts and the table's is averaged over sets of columns, and given with noise for one price; the same
    check again is free.

    Args:
        session: Whose ledger pays.
        synthesizer: The model, from `fit` or `load`.
        table: The rows that it is held against, as `fit` takes them; None: those that it was fitted on.
        epsilon: What the check costs.
        delta: Likewise; None: what the budget spares for a question.
        workload: Sets of columns, or a dictionary of them with weights; None: all pairs.
        parameters: With a text, values for its `?`, `$1` and `$name`.

    Raises:
        InvalidParameter: if the table lacks columns of the model or declares them otherwise, the sets have
            too many cells, or nobody says which rows; nothing was spent.
        QueryRefused: for rows that cannot be read; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent or read.

    Privacy:
        Claim: the result is (epsilon, delta)-private for tables that differ by one unit. Proof: `measured`.
        Conditions: the synthesizer, the workload and all other parameters are public.
    """
    plan = _planned(session, synthesizer, table, workload, parameters)
    wanted, _, _ = _purchase(session, plan, epsilon, delta)
    bought = session.buy(wanted)
    learned = bought.answer.learned
    counting, one, each = learned["sigmas"].tolist()
    return SynthCheck(
        table=plan.wanted.table,
        sets=len(plan.cliques),
        rows=float(learned["rows"][0]),
        counting=counting,
        mean=Noisy(float(learned["mean"][0]), one, plan.rounded(plan.weights)),
        columns={
            name: Noisy(value, each, plan.rounded(weights))
            for (name, weights), value in zip(
                plan.by_column.items(), learned["columns"].tolist(), strict=True
            )
        },
        total=synthesizer.rows,
        model=synthesizer.released.digest,
        luck=plan.luck(max(float(learned["rows"][0]), 1.0)),
        epsilon=bought.answer.epsilon,
        delta=bought.answer.delta,
        receipt=bought.receipt,
    )


def quote_check(
    session: Session,
    synthesizer: Synthesizer,
    table: Any = None,
    *,
    epsilon: Rational,
    delta: Rational | None = None,
    workload: Any = None,
    parameters: Any = None,
) -> CheckQuote:
    """What `check` with the same arguments would cost, and how much it would tell: free, nothing is read."""
    plan = _planned(session, synthesizer, table, workload, parameters)
    wanted, paid, spare = _purchase(session, plan, epsilon, delta)
    assert paid.point is not None
    counting, one, _ = _sigmas(plan, Meter.alone(paid, exchange=plan.wanted.exchange))
    mean = Noisy(0.0, one, plan.rounded(plan.weights))
    return CheckQuote(
        table=plan.wanted.table,
        sets=len(plan.cliques),
        epsilon=paid.point[0],
        delta=paid.point[1],
        loss=paid,
        half_width=min(half_width(max(synthesizer.rows, 1.0), counting, mean, 0.95), 1.0),
        max_rows=plan.wanted.max_rows if plan.wanted.has_units else None,
        note=note_of(session, wanted, again="check"),
        delta_told="" if spare is None else spare.told,
    )


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What is public of a check before it is paid.

    Attributes:
        wanted: The rows.
        synthesizer: The model.
        cliques: The sets of columns that are compared.
        weights: How much each of them counts in the mean: they add up to `WHOLE`.
        chances: What the model gives each cell of each set, of 1 for all.
    """

    wanted: RowsWanted
    synthesizer: Synthesizer
    cliques: tuple[Clique, ...]
    weights: tuple[int, ...]
    chances: tuple[Floats, ...]

    @property
    def taken(self) -> RowsTaken:
        """The rows as a fit reads them."""
        columns = self.synthesizer.columns
        needed = [column.name for column in columns if not column.nullable]
        return self.wanted.taking({column.name: column.way for column in columns}, complete=needed)

    @property
    def by_column(self) -> Mapping[str, list[int]]:
        """For each column that is in a set, how much each set counts in its own mean."""
        found = dict[str, list[int]]()
        for place, column in enumerate(self.synthesizer.columns):
            own = [
                float(weight) if place in clique else 0.0
                for clique, weight in zip(self.cliques, self.weights, strict=True)
            ]
            if any(own):
                found[column.name] = parts_of(own)
        return found

    def rounded(self, weights: Sequence[int]) -> float:
        """What rounding can move a mean of misfits by, in rows: half a unit for each cell."""
        domain = self.synthesizer.released.domain
        sizes = [domain.cells(clique) for clique in self.cliques]
        return sum(size * weight for size, weight in zip(sizes, weights, strict=True)) / (2 * UNIT * WHOLE)

    def luck(self, rows: float) -> float:
        """About the mean total variation between the model and so many rows that are drawn from it."""
        off = [
            # The mean of |count − expected|, as if counts were normal; of rare cells, at most twice theirs.
            np.minimum(np.sqrt(chance * (1 - chance) * 2 / (np.pi * rows)), 2 * chance).sum() / 2
            for chance in self.chances
        ]
        return float(sum(part * weight for part, weight in zip(off, self.weights, strict=True)) / WHOLE)

    @property
    def facts(self) -> Any:
        """All that a check depends on but its rows and its price, as plain data."""
        return [
            self.synthesizer.released.digest,
            [column.to_dict() for column in self.synthesizer.columns],
            [[list(clique), weight] for clique, weight in zip(self.cliques, self.weights, strict=True)],
        ]


def chances_of(synthesizer: Synthesizer, cliques: Sequence[Clique]) -> tuple[Floats, ...]:
    """What a model gives each cell of some sets of columns, of 1 for all.

    Raises:
        InvalidParameter: if a table on the way has too many cells.
    """
    model = synthesizer.released.learned.model
    return tuple(model.marginal(clique) / model.total for clique in cliques)


def measured(plan: CheckPlan, read: RowsRead, meter: Meter) -> dict[str, NDArray[Any]]:
    """What a check releases of rows.

    Args:
        plan: What is checked.
        read: The private rows.
        meter: Noise for the whole price.

    Privacy:
        Claim: that of the meter: shares add up to 1. Proof: a row's cells follow from that row and the public
        model; the number of rows and the means of misfits have a proven sensitivity each (`Cells.counts`,
        `Misfits.means`). Expected counts are public chances times the noisy number, never the true one.
    """
    released, columns = plan.synthesizer.released, plan.synthesizer.columns
    read = complete(columns, read)
    codes = [
        cut.codes(column.codes(read.columns[place], read.missing[place], read.texts.get(place)))
        for place, (cut, column) in enumerate(zip(released.cuts, columns, strict=True))
    ]
    cells = Cells(released.domain, codes, max_rows=plan.wanted.max_rows, exchange=plan.wanted.exchange)
    rows = meter.noisy(cells.counts(()), _COUNTING)
    scale = max(float(rows[0]), 1.0)
    off = Misfits(cells, plan.cliques, [chance * scale for chance in plan.chances])
    return {
        "rows": rows,
        "mean": meter.noisy(off.means([plan.weights]), _MEAN),
        "columns": meter.noisy(off.means(list(plan.by_column.values())), _COLUMNS),
        "sigmas": np.array(_sigmas(plan, meter)),
    }


def _sigmas(plan: CheckPlan, meter: Meter) -> tuple[float, float, float]:
    """The noise of the number of rows, of the mean, and of each column's, in rows."""
    most, many = plan.wanted.max_rows, len(plan.by_column)
    return (
        meter.sigma(most, _COUNTING),
        meter.sigma(most, _MEAN),
        meter.sigma(most * math.sqrt(many), _COLUMNS),
    )


def _planned(
    session: Session, synthesizer: Synthesizer, rows: Any, workload: Any, parameters: Any
) -> CheckPlan:
    if not isinstance(session, Session) or not isinstance(synthesizer, Synthesizer):
        raise InvalidParameter("A check takes a session and a synthesizer: sf.synth.check(session, made, …).")
    if rows is None:
        rows, parameters = _fitted(session, synthesizer)
    wanted = rows_wanted(session, rows, parameters)
    for column in synthesizer.columns:
        if not _is_declared_so(column, fine(wanted.column(column.name))):
            raise InvalidParameter(
                f"Column {column.name[:60]!r} is declared otherwise than where the model was fitted: check "
                "it against a table with the same bounds and values."
            )
    domain = synthesizer.released.domain
    listed = workload_of(domain, synthesizer.columns, workload)
    if sum(domain.cells(clique) for clique, _ in listed) > _MOST_CELLS:
        raise InvalidParameter("The sets of columns have too many cells: name a workload of fewer.")
    cliques = tuple(clique for clique, _ in listed)
    weights = tuple(parts_of([weight for _, weight in listed]))
    # What the model cannot work out is refused here, before it is paid.
    return CheckPlan(wanted, synthesizer, cliques, weights, chances_of(synthesizer, cliques))


def _fitted(session: Session, synthesizer: Synthesizer) -> tuple[Any, Any]:
    """The rows that a model was fitted on, as they were asked for, and the parameters of their text."""
    table = synthesizer.table[:60]
    if synthesizer.table not in session.tables:
        raise InvalidParameter(
            f"The session has no table {table!r}, which the model is of: name the rows to hold it against."
        )
    if synthesizer.asked is None:
        raise InvalidParameter(
            f"The model is of a part of {table!r}, and its file does not say which: name the rows to hold it "
            "against, as the fit did."
        )
    return synthesizer.asked


def _purchase(
    session: Session, plan: CheckPlan, epsilon: Rational, delta: Rational | None
) -> tuple[Purchase[Kept], GaussianLoss, Spare | None]:
    paid, spare = priced(session, plan.wanted.table, epsilon, delta)

    def learn(right: Right, meter: Meter) -> tuple[Mapping[str, NDArray[Any]], Mapping[str, Any]]:
        return measured(plan, plan.taken.read(right), meter), {}

    wanted = gaussian_purchase(
        session,
        paid,
        memo=Memo("synth check", f"check of a synthetic {plan.wanted.table}", table=plan.wanted.table),
        facts=plan.facts,
        reads=(plan.taken.fingerprint,),
        check=plan.taken.check,
        learn=learn,
        exchange=plan.wanted.exchange,
        spare=spare,
        windows=session.windows_in(plan.taken.measured),
    )
    return wanted, paid, spare


def _is_declared_so(column: Fine, declared: Fine) -> bool:
    """Whether a model's column is what a table declares, but for the texts that the fit found."""
    return declared == (replace(column, values=None, steps=declared.steps) if column.folds else column)


def examples() -> tuple[Example, ...]:
    """Neighbours that move misfits as far as they can."""
    from sfumato.synth.check_examples import examples as listed

    return listed()
