"""`fit`: a synthesizer of a session's table, paid from its ledger; `quote`: its price, free."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.fits.meter import Meter, Total, price
from sfumato.fits.paying import ON_RECORD, delta_of, gaussian_purchase, note_of, units_told
from sfumato.fits.searching import gate_of, search_price
from sfumato.ledger import Memo
from sfumato.numeric.exact import Rational, show
from sfumato.synth._model.domain import Domain
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.densities import scales_of
from sfumato.synth._private.texts import complete, found_texts, least_units
from sfumato.synth.columns.coarse import WIDE, affordable, as_it_is, coarse
from sfumato.synth.columns.scales import Scales
from sfumato.synth.methods.base import Learned, Told, silent
from sfumato.synth.planning import SynthPlan, planned
from sfumato.synth.released import Released, knowing
from sfumato.synth.synthesizer import Synthesizer

if TYPE_CHECKING:
    from sfumato.fits.kept import Kept
    from sfumato.ledger import Right
    from sfumato.ledger.spare import Spare
    from sfumato.loss import GaussianLoss, PrivacyLoss
    from sfumato.purchase import Purchase
    from sfumato.session import Session
    from sfumato.session.reading import RowsRead

__all__ = ["SynthQuote", "fit", "purchase_of", "quote", "released"]

_DENSITIES, _SIZES, _SEARCHES = Fraction(6, 100), Fraction(2, 100), Fraction(6, 100)
_LATER = Fraction(1, 4)  # about what later counts of all columns take, whatever the method
_WIDTH = 80
_MEMORY = 64


def fit(
    session: Session,
    table: Any = None,
    *,
    epsilon: Rational,
    delta: Rational | None = None,
    method: str = "auto",
    columns: Sequence[str] | None = None,
    ids: Sequence[str] = (),
    workload: Any = None,
    constraints: Any = None,
    memory: int = _MEMORY,
    parameters: Any = None,
    told: Told = silent,
) -> Synthesizer:
    """Model a private table, so that rows like its own can be drawn from the model.

    ```python
    people = sf.synth.fit(session, "people", epsilon=1, delta=1e-9)
    people.sample(1000)
    ```

    Which columns depend on each other is found out with noise, their counts are measured with noise, and a
    model that fits the noisy counts is made. The whole of it is one purchase: nothing is read before it is
    paid, and the same fit again is free.

    Args:
        session: Whose ledger pays.
        table: The name of a table, a SELECT of columns, or `session.table(…).filter(…)`; None: the only one.
        epsilon: What the whole fit costs.
        delta: Likewise; None: what the budget spares for a question.
        method: "auto", or one of `sf.synth.METHODS`.
        columns: Those to model; None: all that are declared but the one that says whose a row is.
        ids: Columns that only name rows, such as the number of an order: they are not read, and drawn rows
            are numbered anew.
        workload: Sets of columns whose counts matter, also as conditions that will be counted, such as
            "age BETWEEN 20 AND 29 AND sex = 'F'"; or a dictionary of them with weights; None: all pairs.
        constraints: What holds in every row that is drawn: conditions as SQL, such as "age >= 18" or
            "start <= end", `Determines` and `Never`; and `Totals`, which hold in all of them together. They
            are declared, not looked up in the table.
        memory: How many megabytes a fit may take beside the rows and what reads them.
        parameters: With a text, values for its `?`, `$1` and `$name`.
        told: Called with the part of the price that is spent, as it is.

    Raises:
        InvalidParameter: for declarations that are missing, too large or contradict each other; nothing was
            spent.
        QueryRefused: for a text that asks for something else than rows, or a constraint that is no condition;
            nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent or read.

    Privacy:
        Claim: everything that a synthesizer holds and draws is (epsilon, delta)-private for tables that
        differ by one unit of the session's table. Proof: rows are seen through `Cells.counts` and the sizes
        of units alone, which one `Meter` gives noise or chooses by, whose shares add up to at most the price;
        the rest is post-processing. Conditions: the declared columns, the constraints, the method, the
        workload and all other parameters are public.
    """
    plan = planned(
        session,
        table,
        method=method,
        columns=columns,
        ids=ids,
        workload=workload,
        memory=memory,
        parameters=parameters,
        constraints=constraints,
    )
    wanted, _ = purchase_of(session, table, plan, epsilon, delta, told)
    return Synthesizer.of(plan, session.buy(wanted))


def quote(
    session: Session,
    table: Any = None,
    *,
    epsilon: Rational,
    delta: Rational | None = None,
    method: str = "auto",
    columns: Sequence[str] | None = None,
    ids: Sequence[str] = (),
    workload: Any = None,
    constraints: Any = None,
    memory: int = _MEMORY,
    parameters: Any = None,
) -> SynthQuote:
    """What `fit` with the same arguments would cost, and whether it is on record: free, nothing is read."""
    plan = planned(
        session,
        table,
        method=method,
        columns=columns,
        ids=ids,
        workload=workload,
        memory=memory,
        parameters=parameters,
        constraints=constraints,
    )
    wanted, spare = purchase_of(session, table, plan, epsilon, delta)
    assert wanted.memo.epsilon is not None
    assert wanted.memo.delta is not None
    paid, risk = _price(wanted.memo.epsilon, wanted.memo.delta, searches=plan.searches)
    meter = Meter.alone(paid, exchange=plan.wanted.exchange, risk=risk)
    return SynthQuote(
        table=plan.wanted.table,
        columns=tuple(column.name for column in plan.columns),
        method=plan.method.name,
        epsilon=wanted.memo.epsilon,
        delta=wanted.memo.delta,
        loss=wanted.loss,
        max_rows=plan.wanted.max_rows if plan.wanted.has_units else None,
        note=note_of(session, wanted),
        delta_told="" if spare is None else spare.told,
        least_units=least_units(plan.columns, meter, plan.wanted.max_rows, _SEARCHES),
        is_auto=plan.wanted.has_units and session.tables[plan.wanted.table].unit.auto,
    )


@dataclass(frozen=True, slots=True, repr=False)
class SynthQuote:
    """What a fit will cost, before it is paid; making one is free and reads nothing.

    Attributes:
        table: Whose rows are modelled.
        columns: The columns that are.
        method: How it is chosen what is measured.
        epsilon: The price.
        delta: Its other half.
        loss: What the ledger is charged.
        max_rows: How many rows of a unit are read, at most; None: each row is a unit.
        note: What the ledger says: that it is on record, or more than what is left; else empty.
        delta_told: Where delta comes from, if nobody named it.
        least_units: About how many units must have a text that nobody listed for it to be shown; None: all
            values are declared.
        is_auto: Whether nobody said how many rows of a unit are read: a profile chooses for questions alone.
    """

    table: str
    columns: tuple[str, ...]
    method: str
    epsilon: Fraction
    delta: Fraction
    loss: PrivacyLoss
    max_rows: int | None
    note: str
    delta_told: str = ""
    least_units: float | None = None
    is_auto: bool = False

    @property
    def on_record(self) -> bool:
        """Whether the same was paid before, so that it is free."""
        return self.note.startswith(ON_RECORD)

    def __str__(self) -> str:
        """Such as `A synthetic people, 4 columns, adaptive: epsilon 1, delta 1e-09 for the whole fit`."""
        told = f" ({self.delta_told})" if self.delta_told else ""
        many = f"{len(self.columns)} column{'s' if len(self.columns) > 1 else ''}"
        cost = f"epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}{told}"
        said = f"A synthetic {self.table}, {many}, {self.method}: {cost} for the whole fit."
        rows, texts = units_told(self.max_rows), ""
        if self.is_auto:
            rows += ' (max_rows = "auto" is for questions: declare a number to read more.)'
        if self.least_units is not None:
            whose = "rows" if self.max_rows is None else "units"
            texts = f"Texts that nobody listed are shown from about {self.least_units:,.0f} {whose} on."
        return textwrap.fill(" ".join(part for part in (said, rows, texts, self.note) if part), _WIDTH)

    def __repr__(self) -> str:
        return str(self)


def purchase_of(
    session: Session,
    table: Any,
    plan: SynthPlan,
    epsilon: Rational,
    delta: Rational | None,
    told: Told = silent,
) -> tuple[Purchase[Kept], Spare | None]:
    """The one purchase of a fit, and where its delta comes from if nobody named it.

    Raises:
        InvalidParameter: if there is no delta, the price is invalid, or the budget takes no search for texts.
    """
    point, spare = delta_of(session, plan.wanted.table, delta)
    paid, risk = _price(epsilon, point, searches=plan.searches)
    if risk:
        _check_admitted(session, plan, gate_of(paid, risk).loss)

    def learn(right: Right, meter: Meter) -> tuple[Mapping[str, NDArray[Any]], Mapping[str, Any]]:
        return released(plan, plan.taken.read(right), meter, told).to_arrays(), {}

    said = table if isinstance(table, str) else plan.wanted.table
    wanted = gaussian_purchase(
        session,
        paid,
        memo=Memo("synth", f"synthetic table, {plan.method.name}: {said}", table=plan.wanted.table),
        facts=plan.facts,
        reads=(plan.taken.fingerprint,),
        check=plan.taken.check,
        learn=learn,
        exchange=plan.wanted.exchange,
        spare=spare,
        risk=risk,
        windows=session.windows_in(plan.taken.measured),
    )
    return wanted, spare


def _price(epsilon: Rational, delta: Rational, *, searches: bool) -> tuple[GaussianLoss, Fraction]:
    """What noise may cost, and the probability with which a search may show what one unit alone has."""
    if not searches:
        return price(epsilon, delta), Fraction(0)
    noise, rest, risk = search_price(epsilon, delta)
    return price(noise, rest), risk


def _check_admitted(session: Session, plan: SynthPlan, loss: PrivacyLoss) -> None:
    """Refuse a search that the budget does not take, whatever is left of it."""
    budget = session.dataset_with(session.tables[plan.wanted.table]).budget
    try:
        budget.filter().price(loss)
        takes = budget.accountant != "zcdp" or bool(budget.aside)
    except UnsupportedLoss:
        takes = False
    if takes:
        return
    names = ", ".join(repr(column.name[:60]) for column in plan.columns if column.is_open)
    raise InvalidParameter(
        f"Which texts are in {names} is found with a threshold, and a budget kept by {budget.accountant!r} "
        'has no delta for that: list the values, such as sf.Enum("a", "b"), leave the column out with '
        "columns=[…], or keep the budget by 'basic' or by 'zcdp' with aside=…."
    )


def released(plan: SynthPlan, read: RowsRead, meter: Meter, told: Told = silent) -> Released:
    """What a fit releases of rows.

    Args:
        plan: What is fitted.
        read: The private rows.
        meter: Noise for the whole price.
        told: Called with the part of the price that is spent.

    Privacy:
        Claim: that of the meter: shares add up to 1. Proof: fine counts, sizes of units and how many have a
        text have a proven sensitivity each; which texts have cells follows from what is shown of them, coarse
        cells from noisy counts, and a row's cells from that row and them.
    """
    share, read = Fraction(1), complete(plan.columns, read)
    most, exchange = plan.wanted.max_rows, plan.wanted.exchange
    found = dict[int, tuple[str, ...]]()
    if plan.searches:
        share -= _SEARCHES
        found = found_texts(plan.columns, read, meter, most, _SEARCHES)
    columns = knowing(plan.columns, found)
    codes = [
        column.codes(read.columns[place], read.missing[place], read.texts.get(place))
        for place, column in enumerate(columns)
    ]
    sizes: NDArray[np.float64] = np.ones(1)
    if plan.wanted.has_units:
        share -= _SIZES
        sizes = meter.noisy(unit_sizes(read, plan.wanted.max_rows), _SIZES)
    del read  # while the model is made, rows are in memory once: as cells
    wide = [place for place, column in enumerate(columns) if column.size > WIDE]
    cuts, fine = [as_it_is(column) for column in columns], dict[int, Scales]()
    if wide:
        share -= _DENSITIES
        domain = Domain(tuple(column.name for column in columns), tuple(column.size for column in columns))
        every, each = Cells(domain, codes, max_rows=most, exchange=exchange), _DENSITIES / len(wide)
        later = meter.sigma(most, _LATER / len(columns))
        for place in wide:
            column = columns[place]
            fine[place] = scales = scales_of(every, meter, place, column, each)
            bins = affordable(scales, later, WIDE) if column.is_ordered else WIDE
            cuts[place] = coarse(column, scales, bins, plan.constraints.allowed(place))
        del every
    cells = Cells(
        Domain(tuple(column.name for column in columns), tuple(cut.size for cut in cuts)),
        [cut.codes(code) for cut, code in zip(cuts, codes, strict=True)],
        max_rows=most,
        exchange=exchange,
    )
    del codes
    wishes = replace(plan.wishes, zeros=plan.constraints.zeros(cuts))
    learned = plan.method.learn(cells, meter.part(share), wishes, told)
    kept = plan.constraints.totals.raked(learned.model)
    learned = Learned(learned.marginals, kept, learned.converged, learned.parts)
    return Released(cells.domain, tuple(cuts), learned, sizes, fine, found)


def unit_sizes(read: RowsRead, most: int) -> Total:
    """How many units have 1 row, 2 rows, … up to the limit.

    Privacy:
        Claim: adding or removing a unit moves the counts by at most 1. Proof: it is counted once.
    """
    assert read.units is not None
    rows = np.bincount(read.units) if len(read.units) else np.zeros(0, np.int64)
    counts = np.bincount(np.clip(rows[rows > 0], 1, most) - 1, minlength=most)
    return Total(counts, Fraction(1), Fraction(1))
