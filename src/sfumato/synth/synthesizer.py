"""`Synthesizer`: a model of a private table that anyone may have, and rows out of it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer, show
from sfumato.random import Simulation, simulation
from sfumato.synth.answers import marginal_table
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.ids import Id, with_ids
from sfumato.synth.constraints import Constraints
from sfumato.synth.released import Released, knowing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.engines.base import Source
    from sfumato.fits.kept import Kept
    from sfumato.ledger import Receipt
    from sfumato.purchase import Bought
    from sfumato.synth.checked import SynthCheck
    from sfumato.synth.estimates import Estimated
    from sfumato.synth.planning import SynthPlan
    from sfumato.synth.report import Report

__all__ = ["Synthesizer"]

_MOST_ROWS = 10**9
_WIDTH = 80
_PANELS = 24


class Synthesizer:
    """A model of a private table: rows that look like its own can be drawn from it, as often as one likes.

    Attributes:
        table: Whose rows were modelled.
        columns: The columns, as cells; public.
        method: How it was chosen what was measured.
        epsilon: What the fit cost.
        delta: Its other half.
        receipt: Of the debit that paid for it; None: it was read from a file.
        released: All noisy counts, and the model that follows from them.
        unit: The name of the column that says whose a row is, which is made anew; empty: there is none.
        constraints: What holds in every row that is drawn.
        ids: Columns that name rows, which were not read and are made anew.
        asked: The rows that were read, as they were asked for, and the parameters of their text: what `check`
            holds the model against. None: a file says no more than that they were a part of the table.
    """

    def __init__(
        self,
        *,
        table: str,
        columns: tuple[Fine, ...],
        method: str,
        epsilon: Fraction,
        delta: Fraction,
        released: Released,
        unit: str,
        receipt: Receipt | None,
        constraints: Constraints | None = None,
        ids: Sequence[Id] = (),
        asked: tuple[Any, Any] | None = None,
    ) -> None:
        """Made by `fit` and `load`."""
        self.table, self.columns, self.method = table, columns, method
        self.epsilon, self.delta = epsilon, delta
        self.released, self.unit, self.receipt = released, unit, receipt
        self.constraints = Constraints(columns) if constraints is None else constraints
        self.ids, self.asked = tuple(ids), asked

    @classmethod
    def of(cls, plan: SynthPlan, bought: Bought[Kept]) -> Synthesizer:
        """What was bought."""
        names = tuple(column.name for column in plan.columns)
        released = Released.from_arrays(names, bought.answer.learned)
        columns = knowing(plan.columns, released.found)
        return cls(
            table=plan.wanted.table,
            columns=columns,
            method=plan.method.name,
            epsilon=bought.answer.epsilon,
            delta=bought.answer.delta,
            released=released,
            unit=plan.unit,
            receipt=bought.receipt,
            constraints=Constraints(columns, plan.constraints.rules, plan.constraints.totals),
            ids=plan.ids,
            asked=plan.asked,
        )

    @property
    def rows(self) -> float:
        """About how many rows the table has, by the noisy counts; the true number is private."""
        return self.released.learned.model.total

    @property
    def converged(self) -> bool:
        """Whether the model is as close to the noisy counts as it can be."""
        return self.released.learned.converged

    def sample(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw rows: free, as often as you like, since the model is paid for.

        Args:
            n: How many; None: about as many as the table has, by a noisy count.
            seed: The same rows for the same seed; None: other ones each time.

        Raises:
            InvalidParameter: if n is below 0 or beyond a billion.
        """
        many = round(self.rows) if n is None else as_integer(n, "n", least=0)
        if many > _MOST_ROWS:
            raise InvalidParameter("n is a number of rows, at most a billion.")
        rng = simulation(seed)
        model = self.released.learned.model
        codes = self.constraints.totals.kept(model, model.rows(many, rng), rng)
        found = dict[str, pa.Array]()
        if self.unit:
            found[self.unit] = pa.array(_ids(many, self.released.sizes, rng), pa.int64())
        drawn = pa.table(found | self.constraints.drawn(self.released.cuts, codes, rng))
        return with_ids(drawn, self.ids, after=len(found))

    def marginal(self, columns: Sequence[str], *, level: float = 0.95) -> pa.Table:
        """How many rows have each combination of values of some columns, by the model: no row is drawn.

        Args:
            columns: Their names. Numbers that are held in bins come as texts such as "17 to 24".
            level: How often an interval holds the count over the rows that were read.

        Returns:
            The columns, `count`, and the ends `low` and `high` of an interval, which follows from the noisy
            counts of these columns alone; both are NULL where the columns were not measured together, since
            nobody knows how far off the model is there. Beside columns of these names they are `count_2` and
            so on.

        Raises:
            InvalidParameter: if there is no such column, or they have too many cells together.
        """
        return marginal_table(self.released, self.columns, _listed(columns), level)

    def estimate(self, sql: str, *, parameters: Any = None, check: SynthCheck | None = None) -> Estimated:
        """Answer a question by the model, with intervals that follow from the noisy counts: free.

        ```python
        people.estimate("SELECT sex, COUNT(*) AS n, AVG(income) AS income FROM people GROUP BY sex")
        ```

        Args:
            sql: COUNT, SUM and AVG over rows that satisfy WHERE, by GROUP BY.
            parameters: Values for its `?`, `$1` and `$name`.
            check: What `sf.synth.check(…, workload=[columns])` gave for one set of columns: how far off the
                model is there, for questions about columns that were not measured together.

        Returns:
            `table` with the estimates, `interval()`, and in `notes` where intervals come from; of a single
            number `estimate`, `low` and `high`. There is no interval where columns were not measured
            together, nor checked.

        Raises:
            QueryRefused: for another question, with what would work.
            InvalidParameter: if its columns have too many cells together.

        Privacy:
            Post-processing of what the fit released; no row is read.
        """
        from sfumato.synth.estimates import estimated

        most = len(self.released.sizes)
        rows = "the rows that were read"
        if self.unit:
            rows += f", at most {most} of each {self.unit}"
        return estimated(
            sql,
            table=self.table,
            columns=self.columns,
            released=self.released,
            rows=rows,
            parameters=parameters,
            check=check,
        )

    def picture(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """How many rows the model gives each value or bin of each column, the first 24 of them.

        Args:
            path: Where to write it, .png or .svg; None: nowhere.
        """
        from sfumato.plots import column_counts

        found = dict[str, tuple[list[object], list[float]]]()
        spans = dict[str, list[tuple[float, float] | None]]()
        for column, cut in zip(self.columns[:_PANELS], self.released.cuts, strict=False):
            told = self.marginal([column.name])
            found[column.name] = told[column.name].to_pylist(), told.column(1).to_pylist()
            if column.is_ordered:
                spans[column.name] = cut.spans(column)
        return column_counts(
            found,
            spans=spans,
            dates=[column.name for column in self.columns if column.kind in ("date", "timestamp")],
            title=f"A synthetic {self.table}: rows by column",
            note=f"By the model, epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}. "
            "Of numbers and dates, areas are rows.",
            path=path,
        )

    def report(
        self,
        real: Source,
        *,
        holdout: Source | None = None,
        targets: str | Sequence[str] = (),
        by: str | Sequence[str] = (),
        seed: int = 0,
    ) -> Report:
        """How true the synthetic table is and what it gives away, beside the real one: for the steward alone.

        It reads the truth and nothing pays for it, so no figure of it may be shown to anyone else.

        Args:
            real: The rows that it was made from: an Arrow, pandas or Polars table.
            holdout: Rows of other people of the same kind, on which models and attacks are tested; None:
                none are.
            targets: Columns that models are to tell from all others.
            by: Columns whose values make groups.
            seed: Of all choices.
        """
        from sfumato.synth._report.marginals import Measured
        from sfumato.synth.report import fidelity

        return fidelity(
            real,
            self.sample(seed=seed),
            self.columns,
            holdout=holdout,
            targets=targets,
            by=by,
            epsilon=self.epsilon,
            delta=self.delta,
            measured=Measured(self.released.cuts, tuple(self.released.learned.marginals)),
            seed=seed,
            about=f"A synthetic {self.table}",
        )

    def __repr__(self) -> str:
        many = len(self.released.learned.marginals)
        said = (
            f"A synthetic {self.table}: {len(self.columns)} columns, about {self.rows:,.0f} rows; {many} "
            f"sets of noisy counts ({self.method}), epsilon {show(self.epsilon)}, "
            f"delta {float(self.delta):.4g}."
        )
        if not self.converged:
            said += " The model did not come as close to the counts as it could: give it more memory."
        return textwrap.fill(said, _WIDTH)


def _listed(columns: Sequence[str]) -> list[str]:
    listed = [columns] if isinstance(columns, str) else list(columns)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidParameter("Name columns, each of them once: marginal(['age', 'sex']).")
    return listed


def _ids(many: int, sizes: NDArray[np.float64], rng: Simulation) -> NDArray[np.int64]:
    """New numbers for whose each row is, with about as many rows each as units have."""
    weight = np.maximum(sizes, 0.0)
    if len(weight) == 1 or not weight.sum() > 0:
        return np.arange(1, many + 1)
    each = float(weight @ np.arange(1, len(weight) + 1)) / float(weight.sum())
    drawn = np.zeros(0, np.int64)
    while drawn.sum() < many:
        more = max(int((many - drawn.sum()) / each) + 16, 16)
        drawn = np.append(drawn, rng.choice(len(weight), more, p=weight / weight.sum()) + 1)
    ids = np.repeat(np.arange(1, len(drawn) + 1), drawn)[:many]
    return np.asarray(rng.permutation(ids), np.int64)
