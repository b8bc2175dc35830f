"""`tables`: a model of two linked tables, paid from a session's ledger; `quote_tables`: its price, free."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter
from sfumato.fits.paying import ON_RECORD, gaussian_purchase, note_of, priced
from sfumato.ledger import Memo
from sfumato.numeric.exact import Rational, show
from sfumato.session.rows_wanted import Plain, Texts
from sfumato.synth._model.domain import Domain
from sfumato.synth._private.densities import scales_of
from sfumato.synth._private.families import Families
from sfumato.synth._private.texts import complete
from sfumato.synth.columns.coarse import Coarse, affordable, as_it_is, coarse
from sfumato.synth.columns.scales import Scales
from sfumato.synth.linked_tables import LinkedReleased, SyntheticTables
from sfumato.synth.linking import LinkedPlan, linked_plan
from sfumato.synth.methods.base import Told, silent
from sfumato.synth.released import Released

if TYPE_CHECKING:
    from sfumato.fits.kept import Kept
    from sfumato.ledger import Right
    from sfumato.ledger.spare import Spare
    from sfumato.loss import GaussianLoss
    from sfumato.purchase import Purchase
    from sfumato.session import Session
    from sfumato.session.reading import RowsRead

__all__ = ["TablesQuote", "linked_released", "quote_tables", "tables"]

_NUMBERS, _DENSITIES, _CHILDLESS = Fraction(3, 100), Fraction(6, 100), Fraction(8, 100)
_LATER = Fraction(1, 4)  # about what later counts of all columns take, whatever the method
_WIDTH = 80
_MEMORY = 64


def tables(
    session: Session,
    names: Sequence[str],
    *,
    epsilon: Rational,
    delta: Rational | None = None,
    method: str = "auto",
    columns: Mapping[str, Sequence[str]] | None = None,
    workload: Any = None,
    memory: int = _MEMORY,
    told: Told = silent,
) -> SyntheticTables:
    """Model two private tables, the second of which points to rows of the first.

    ```python
    clinic = sf.synth.tables(session, ["patients", "visits"], epsilon=1, delta=1e-9)
    clinic.sample(1000)["visits"]
    ```

    Parents are modelled together with how many children they have and with what a child of theirs is like.
    The whole of it is one purchase: nothing is read before it is paid, and the same fit again is free.

    Args:
        session: Whose ledger pays.
        names: Of the two tables, in any order. One has a row for each unit; the unit of the other is via it,
            or named by the same column, with `max_rows` children at most.
        epsilon: What the whole fit costs.
        delta: Likewise; None: what the budget spares for a question.
        method: "auto", or one of `sf.synth.METHODS`.
        columns: By table, those to model; None: all that are declared but the keys.
        workload: Sets of columns whose counts matter, such as ("patients.age", "visits.cost"), or a
            dictionary of them with weights; None: all pairs.
        memory: How many megabytes the model may take while it is made.
        told: Called with the part of the price that is spent, as it is.

    Raises:
        InvalidParameter: for declarations that are missing or too large; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent or read.

    Privacy:
        Claim: everything that is held and drawn is (epsilon, delta)-private for tables that differ by one
        unit: a parent with all of its children. Proof: `linked_released`. Conditions: the declared columns
        and limits, the method, the workload and all other parameters are public.
    """
    plan, wanted, _ = _wanted(session, names, epsilon, delta, method, columns, workload, memory, told)
    bought = session.buy(wanted)
    return SyntheticTables(
        link=plan.link,
        method=plan.method.name,
        epsilon=bought.answer.epsilon,
        delta=bought.answer.delta,
        released=LinkedReleased.from_arrays(plan.link, bought.answer.learned),
        receipt=bought.receipt,
    )


def quote_tables(
    session: Session,
    names: Sequence[str],
    *,
    epsilon: Rational,
    delta: Rational | None = None,
    method: str = "auto",
    columns: Mapping[str, Sequence[str]] | None = None,
    workload: Any = None,
    memory: int = _MEMORY,
) -> TablesQuote:
    """What `tables` with the same arguments would cost, and whether it is on record: free, reads nothing."""
    plan, wanted, spare = _wanted(session, names, epsilon, delta, method, columns, workload, memory, silent)
    assert wanted.memo.epsilon is not None
    assert wanted.memo.delta is not None
    return TablesQuote(
        parent=plan.link.parent,
        child=plan.link.child,
        columns=tuple(column.name for column in (*plan.link.parents, *plan.link.children)),
        method=plan.method.name,
        epsilon=wanted.memo.epsilon,
        delta=wanted.memo.delta,
        loss=wanted.loss,  # type: ignore[arg-type]
        max_rows=plan.link.most,
        note=note_of(session, wanted),
        delta_told="" if spare is None else spare.told,
    )


@dataclass(frozen=True, slots=True, repr=False)
class TablesQuote:
    """What a fit of two tables will cost, before it is paid; making one is free and reads nothing.

    Attributes:
        parent: The table with one row for each unit.
        child: The table whose rows point to them.
        columns: The columns that are modelled.
        method: How it is chosen what is measured.
        epsilon: The price.
        delta: Its other half.
        loss: What the ledger is charged.
        max_rows: How many children of a parent are read, at most.
        note: What the ledger says: that it is on record, or more than what is left; else empty.
        delta_told: Where delta comes from, if nobody named it.
    """

    parent: str
    child: str
    columns: tuple[str, ...]
    method: str
    epsilon: Fraction
    delta: Fraction
    loss: GaussianLoss
    max_rows: int
    note: str
    delta_told: str = ""

    @property
    def on_record(self) -> bool:
        """Whether the same was paid before, so that it is free."""
        return self.note.startswith(ON_RECORD)

    def __str__(self) -> str:
        """Such as `Synthetic patients with their visits, 9 columns, adaptive: epsilon 1, …`."""
        told = f" ({self.delta_told})" if self.delta_told else ""
        said = (
            f"Synthetic {self.parent} with their {self.child}, {len(self.columns)} columns, {self.method}: "
            f"epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}{told} for the whole fit. "
            f"At most {self.max_rows} {self.child} of each of the {self.parent} are read; {self.child} that "
            f"point to none of the {self.parent} are left out."
        )
        return textwrap.fill(" ".join(part for part in (said, self.note) if part), _WIDTH)

    def __repr__(self) -> str:
        return str(self)


def _wanted(
    session: Session,
    names: Sequence[str],
    epsilon: Rational,
    delta: Rational | None,
    method: str,
    columns: Any,
    workload: Any,
    memory: int,
    told: Told,
) -> tuple[LinkedPlan, Purchase[Kept], Spare | None]:
    plan = linked_plan(session, names, method=method, columns=columns, workload=workload, memory=memory)
    paid, spare = priced(session, plan.link.parent, epsilon, delta)

    def learn(right: Right, meter: Meter) -> tuple[Mapping[str, NDArray[Any]], Mapping[str, Any]]:
        return linked_released(plan, plan.taken.read(right), meter, told).to_arrays(), {}

    link = plan.link
    wanted = gaussian_purchase(
        session,
        paid,
        memo=Memo(
            "synth",
            f"synthetic tables, {plan.method.name}: {link.parent} with their {link.child}",
            table=link.parent,
        ),
        facts=plan.facts,
        reads=(plan.taken.fingerprint,),
        check=plan.taken.check,
        learn=learn,
        exchange=plan.wanted.exchange,
        spare=spare,
    )
    return plan, wanted, spare


def linked_released(plan: LinkedPlan, read: RowsRead, meter: Meter, told: Told = silent) -> LinkedReleased:
    """What a fit releases of joined rows.

    Parents without children are one model. Parents with children are the other one, of a parent, the number
    of its children and one of them: each of k children weighs a k-th of the parent, so that a unit counts
    once, however many children it has.

    Args:
        plan: What is fitted.
        read: The private rows: parents beside each of their children, or alone.
        meter: Noise for the whole price.
        told: Called with the part of the price that is spent.

    Privacy:
        Claim: that of the meter: shares add up to 1. Proof: `Families` gives counts that a unit moves by at
        most 1 each; coarse cells follow from noisy counts, and a unit's cells from its own rows and them.
        Source: the number of children is limited where rows are read, at most `max_rows` of each unit.
    """
    link = plan.link
    many = len(link.parents)
    families = _families(plan, read)
    numbers = meter.noisy(families.numbers(), _NUMBERS)
    share = 1 - _NUMBERS
    limits = [link.bins(column) for column in link.columns]
    wide = [place for place, column in enumerate(link.columns) if column.size > limits[place]]
    cuts, later = [as_it_is(column) for column in link.columns], meter.sigma(1, _LATER / len(limits))
    if many in wide:
        scales = Scales(link.most, (numbers[1:],), meter.sigma(1, _NUMBERS))
        cuts[many] = coarse(link.number, scales, affordable(scales, later, limits[many]))
        wide.remove(many)
    if wide:
        share -= _DENSITIES
        each = _DENSITIES / len(wide)
        whole = Domain(_names(plan), tuple(column.size for column in link.columns))
        parents = families.every(Domain(whole.names[:many], whole.sizes[:many]))
        joined = families.joined(whole, [cut.place for cut in map(as_it_is, link.columns)])
        for place in wide:
            column, cells = link.columns[place], parents if place < many else joined
            scales = scales_of(cells, meter, place, column, each)
            bins = affordable(scales, later, limits[place]) if column.is_ordered else limits[place]
            cuts[place] = coarse(column, scales, bins)
    share -= _CHILDLESS
    places = [cut.place for cut in cuts]
    first = _domain(plan, cuts[:many])
    without = plan.method.learn(
        families.childless(first, places[:many]), meter.part(_CHILDLESS), plan.childless, silent
    )
    every = _domain(plan, cuts)
    some = plan.method.learn(families.joined(every, places), meter.part(share), plan.wishes, told)
    return LinkedReleased(
        Released(every, tuple(cuts), some, numbers, {}),
        Released(first, tuple(cuts[:many]), without, numbers[:1], {}),
    )


def _families(plan: LinkedPlan, read: RowsRead) -> Families:
    link = plan.link
    many, columns = len(link.parents), (*link.parents, *link.children)
    read = complete(link.parents, read)
    codes, has_child = list[NDArray[Any]](), ~read.missing[len(columns)]
    for place, column in enumerate(columns):
        values, missing, texts = read.columns[place], read.missing[place], read.texts.get(place)
        codes.append(column.codes(values, missing, texts))
        if place >= many and not column.nullable:
            has_child &= ~missing
            if isinstance(column.way, Texts | Plain):
                has_child &= column.places_of(values, texts) >= 0
    assert read.units is not None
    return Families(
        read.units,
        codes[:many],
        codes[many:],
        has_child,
        most=link.most,
        exchange=plan.wanted.exchange,
    )


def _names(plan: LinkedPlan) -> tuple[str, ...]:
    return tuple(column.name for column in plan.link.columns)


def _domain(plan: LinkedPlan, cuts: Sequence[Coarse]) -> Domain:
    return Domain(_names(plan)[: len(cuts)], tuple(cut.size for cut in cuts))
