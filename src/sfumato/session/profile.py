"""A profile of how many rows units have, bought once for a table and kept for all later questions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.ledger import Budget, Memo, Right
from sfumato.loss import GaussianLoss, PrivacyLoss, compose
from sfumato.plan.expressions.facts import domain_of, facts_of
from sfumato.plan.expressions.tree import Expression, to_wire
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.estimands import estimands
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.price import AnyNoise, instruments, whole_price
from sfumato.plan.prices.split import Mechanics
from sfumato.plan.prices.terms import Terms
from sfumato.plan.prices.words import exact
from sfumato.plan.questions.bounding.base import several
from sfumato.plan.questions.declared import Declared
from sfumato.plan.questions.nodes import Measured, Scan
from sfumato.plan.questions.profile import Profile, profile_question, profiled
from sfumato.plan.questions.relations import Rows, rows_of
from sfumato.purchase import Forecast, Purchase, is_no_dearer, on_record
from sfumato.samplers.wholes import Wholes
from sfumato.schema import PrivateTable
from sfumato.session.intervals import Known
from sfumato.session.limiting import chosen_limit
from sfumato.session.payload import Answer

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.session import Session

__all__ = [
    "SHARE",
    "Limits",
    "buy_profile",
    "known_groups",
    "known_profile",
    "limits_of",
    "profile_purchase",
]

Keys: TypeAlias = tuple[Expression, ...]

SHARE = Fraction(1, 5)
"""The part of a price that goes into a profile, where a question buys one."""

_COARSER = 5  # times less than a question would pay: such a profile is bought anew
_UNITS = Fraction(1, 4)  # of a profile's price: the numbers of units; the rest is for their rows


@dataclass(frozen=True, slots=True)
class Limits:
    """A plan with the limits that a profile chose for it, and the terms with what is left of their price.

    Attributes:
        plan: What is asked.
        terms: On which terms.
        profile: What is known about rows of units; None: nothing.
        asked: The price that was asked for, where a part of it is for a profile or was when it was bought.
        first: What a profile would take of it, where one is to be bought.
        told: What was chosen, in words.
        table: Whose profile it is; None: of none.
        counted: What of the reader's limit it counts now, since somebody else has paid: unit → amount.
        spent: What was paid for the profile now.
    """

    plan: Plan
    terms: Terms
    profile: Known | None = None
    asked: Fraction | None = None
    first: Fraction = Fraction(0)
    told: tuple[str, ...] = ()
    table: PrivateTable | None = None
    counted: Mapping[str, Fraction] = field(default_factory=dict)
    spent: Fraction = Fraction(0)

    def foreseen(self, session: Session, due: Forecast) -> Plan | None:
        """The plan once the profile is bought, which is expected; None: a new profile will decide on it."""
        assert self.table is not None
        found = due.expect(profile_purchase(session, self.table, self.first))
        if found is not None:
            profile = _profile(self.table.unit.ceiling, found.answer)
            return _limited(session, self.plan, self.terms, self.table, profile)[0]
        return None if _chooses(self.plan, self.table) else self.plan

    def left_open(self, quote: Quote) -> Quote:
        """The quote without the errors that follow from a limit which is still to be chosen."""
        if not self.first or self.table is None or not _chooses(self.plan, self.table):
            return quote
        rows = f"as many rows of each {self.plan.rows.owner} counted as the profile chooses"
        columns = tuple(
            column
            if column.public or phrase is None
            else replace(
                column,
                half_width=None,
                expected=None,
                told="known once the profile is bought",
                estimand=f"{phrase.what}, {rows}" if column.cut else column.estimand,
            )
            for column, phrase in zip(quote.columns, estimands(quote.plan), strict=True)
        )
        measurements = tuple(
            replace(each, noise="by the limit", half_width=None) for each in quote.measurements
        )
        fixed = f"Each {self.plan.rows.owner} counts as at most"  # a number that is not known yet
        notes = tuple(note for note in quote.notes if not note.startswith(fixed))
        return replace(quote, columns=columns, measurements=measurements, notes=notes)

    def bought(self, session: Session) -> Limits:
        """The same once the profile is bought."""
        assert self.table is not None
        bought = session.buy(profile_purchase(session, self.table, self.first))
        profile = _profile(self.table.unit.ceiling, bought.answer)
        plan, chosen = _limited(session, self.plan, self.terms, self.table, profile)
        what = f"a profile of how many rows each {self.plan.rows.owner} has"
        kept = f"The profile of how many rows each {self.plan.rows.owner} has is kept for later questions."
        if bought.free:
            figures = ", ".join(f"{unit} {exact(part)}" for unit, part in bought.counted.items() if part)
            kept = f"There was {what} on record" + (
                f": {figures} counts toward your limit." if figures else "."
            )
        return replace(
            self,
            plan=plan,
            profile=profile,
            first=Fraction(0),
            told=(*chosen, kept),
            counted=bought.counted,
            spent=Fraction(0) if bought.free else self.first,
        )


def limits_of(session: Session, plan: Plan, terms: Terms) -> Limits:
    """The limits of a question by the profile of its table, if there is one or one is to be bought.

    A question that buys one has the rest of its price for itself; later ones have all of theirs. The limit is
    chosen for that rest by all of them, so that the same question at the same price is the same again.

    Raises:
        InvalidParameter: if one is to be bought, and an error is given in place of a price.
    """
    table = _table_of(session, plan.rows)
    if table is None or terms.profile is False:
        return Limits(plan, terms)
    if table.profile:
        declared = Declared.of(dict(table.profile))
        limited, told = _limited(session, plan, terms, table, declared)
        known = f"How many rows each {plan.rows.owner} has is declared: no profile is bought."
        return Limits(limited, terms, declared, told=(*told, known), table=table)
    wanted = table.unit.auto if terms.profile is None else terms.profile
    least = Fraction(0)
    if wanted and terms.epsilon is not None:
        least = terms.epsilon * SHARE / _COARSER  # one that cost much less says too little for this price
    profile = known_profile(session, table, least)
    if profile is None and not wanted:
        return Limits(plan, terms)
    if terms.epsilon is None:
        if profile is None and terms.error is not None:
            unknown = (
                f"How far off answers about {table.name} are is known once there is a profile of how many "
                "rows its units have: ask for an epsilon first, or give "
            )
            raise InvalidParameter(f"{unknown}profile=False.").in_shell(f"{unknown}--no-profile.")
        limited, told = _limited(session, plan, terms, table, profile)
        return Limits(limited, terms, profile, told=told, table=table)
    rest = replace(terms, epsilon=terms.epsilon * (1 - SHARE))
    if profile is None and session.dataset_with(table).budget.each is not None:
        raise QueryRefused(
            f"A profile is of all rows of {table.name}, and its budget is for "
            f"{session.dataset_with(table).budget.span}: it cannot be bought; nothing was spent.",
            "Declare max_rows or the profile, or ask with profile=False.",
        )
    if profile is None:
        first = (
            f"A profile of how many rows each {plan.rows.owner} has would be bought first, once for all "
            "questions about the table; limits that are left to it are chosen then, and errors follow."
        )
        price = terms.epsilon * SHARE
        others = _counts(session, profile_purchase(session, table, price))
        return Limits(plan, rest, None, terms.epsilon, price, (first, *others), table)
    limited, told = _limited(session, plan, rest, table, profile)
    # The first that was good enough goes on choosing limits; intervals have the best.
    best = known_profile(session, table)
    return Limits(limited, terms, best, terms.epsilon, told=told, table=table)


def _limited(
    session: Session, plan: Plan, terms: Terms, table: PrivateTable, profile: Known | None
) -> tuple[Plan, tuple[str, ...]]:
    """The plan with the limit that the profile chooses, where the declaration and the question leave it."""
    if profile is None or not _chooses(plan, table):
        return plan, ()
    limit = chosen_limit(plan, terms, profile, session.dataset_with(table).budget)
    if limit is None:
        return plan, ()
    for rung in sorted((rung for rung in profile.rungs if rung <= limit), reverse=True):
        limited = plan.asking(limits=(None, rung))
        if not _adds_up(limited):
            continue
        return limited, _told(limited, rung)
    return plan, ()


def _told(plan: Plan, rung: int) -> tuple[str, ...]:
    """Which limit the profile has chosen; nothing where units are counted, each once, whatever it is."""
    recipe = None if plan.unbounded else plan.recipe
    if recipe is not None and not (recipe.measured.keys or recipe.extras):
        kinds = {measurement.kind for measurement in recipe.measured.measurements}
        if kinds == {"units"}:
            return ()
    count = "counts" if rung == 1 else "count"
    owner = plan.rows.owner
    told = f"At most {several(rung, 'row')} of each {owner} {count}, chosen by the profile"
    if (
        rung == 1
        and recipe is not None
        and any("not rows" in str(phrase or "") for phrase in estimands(plan))
    ):
        told += f": so COUNT(*) counts each {owner} once, not its rows"
    return (f"{told}.",)


def _adds_up(plan: Plan) -> bool:
    """Whether so many rows of one unit can be added up exactly, by their public bounds."""
    if plan.unbounded:
        return True  # bounds that are bought follow
    try:
        return bool(plan.recipe)
    except QueryRefused:
        return False


def _chooses(plan: Plan, table: PrivateTable) -> bool:
    """Whether a limit is left to the profile."""
    return table.unit.auto and plan.report.child.limits == (None, None)


def _counts(session: Session, wanted: Purchase[Answer]) -> tuple[str, ...]:
    """What to say of a profile that somebody else has bought and that would be taken."""
    if not session.ledger.is_open(wanted.dataset):
        return ()
    found = on_record(session.ledger, wanted)
    price = {} if found is None else found.receipt.price or {}
    figures = ", ".join(f"{unit} {exact(part)}" for unit, part in price.items() if part)
    return (f"Somebody else has bought one: {figures} would count toward your limit.",) if figures else ()


def _table_of(session: Session, rows: Rows) -> PrivateTable | None:
    """The table whose profile tells what limits cut of these rows; None: none does, or nothing is cut."""
    if rows.unit.column is None:
        return None
    name = profiled(rows.source)
    return None if name is None else session.tables[name]


def known_profile(
    session: Session, table: PrivateTable, least: Fraction = Fraction(0), keys: Keys = ()
) -> Profile | None:
    """A profile of a table that was bought before; free.

    Args:
        session: Whose ledger may have it.
        table: Whose rows it is about.
        least: What it must have cost; one that the steward gave to all serves nevertheless, as its price is
            the steward's choice. Of several the first is taken: a better one that is bought later must not
            make old questions new ones. Without, the least noisy.
        keys: Of which groups; none: of rows.
    """
    dataset = session.dataset_with(table).name
    if not session.ledger.is_open(dataset):
        return None  # who may no longer ask sees nothing of what was bought before
    question, ceiling = _question(session, table, keys)
    kept = session.ledger.recall(dataset, question.fingerprint)
    answers = [(receipt.number, Answer.from_bytes(payload)) for receipt, payload in kept]
    if not answers:
        return None
    if not least:
        best = max((answer for _, answer in answers), key=lambda answer: answer.epsilon)
        return _profile(ceiling, best, keys)
    given = session.ledger.given(dataset)
    good = [answer for number, answer in answers if answer.epsilon >= least or number in given]
    return _profile(ceiling, good[-1], keys) if good else None  # the newest come first


def known_groups(session: Session, quote: Quote) -> Profile | None:
    """The profile of the groups of a question, if one was bought and says how many are cut; free."""
    measured = quote.measured
    table = session.tables[measured.table]
    if measured.unit.column is None or measured.source is not None or not measured.keys or measured.levels:
        return None
    units = any(measurement.kind == "units" for measurement in measured.measurements)
    if not measured.bounding.few_groups and not units:
        return None
    found = known_profile(session, table, keys=tuple(key.expression for key in measured.keys))
    if found is None or (found.ceiling < table.unit.ceiling and found.ceiling < (measured.groups or 0)):
        return None  # no list of theirs is longer than the ladder that it would be held against
    return found


def buy_profile(session: Session, table: PrivateTable, epsilon: Fraction, keys: Keys = ()) -> Known:
    """The profile that is declared; else one for this price, or one of no less that the ledger has."""
    if table.profile and not keys:
        return Declared.of(dict(table.profile))
    bought = session.buy(profile_purchase(session, table, epsilon, keys)).answer
    return _profile(_question(session, table, keys)[1], bought, keys)


def _question(session: Session, table: PrivateTable, keys: Keys = ()) -> tuple[Measured, int]:
    """What a table's profile measures, and the end of its ladder; worked out once for a session.

    In no more groups can a unit be than there are, where that is public, nor in more than it has rows.
    """
    by = tuple(sorted(set(keys), key=lambda key: json.dumps(to_wire(key), sort_keys=True)))
    if (table.name, by) not in session.profiled:
        rows, ceiling = rows_of(Scan(table.name), session.tables), table.unit.ceiling
        lists = [domain_of(facts_of(key, rows.columns)) for key in by]
        if by and None not in lists:
            ceiling = max(1, min(ceiling, math.prod(len(values or ()) for values in lists)))
        session.profiled[table.name, by] = (profile_question(rows, ceiling, by), ceiling)
    return session.profiled[table.name, by]


def _profile(ceiling: int, answer: Answer, keys: Keys = ()) -> Profile:
    units, weighted = answer.noisy
    return Profile.of(ceiling, units, weighted, answer.noises, "groups" if keys else "rows")


def profile_purchase(
    session: Session, table: PrivateTable, epsilon: Fraction, keys: Keys = ()
) -> Purchase[Answer]:
    """A noisy profile; of several on record that cost as much the least noisy.

    Privacy:
        Claim: carries the loss of its noise. A unit is in one cell (`plan.questions.profile`), so that both
        measurements have the sensitivities of a histogram, of 1 and of 2**30; each has its part of ε, and
        what is made of their noisy answers is post-processing. Under accountants that add up ρ the noise is
        Gaussian, of the ρ of ε and a hundredth of the budget's δ: the parts of ρ add up (`GaussianLoss`).
    """
    question, _ = _question(session, table, keys)
    dataset = session.dataset_with(table)
    law, delta = _noise_for(dataset.budget)
    whole = whole_price(law, epsilon, delta)
    portions = (whole * _UNITS, whole * (1 - _UNITS))
    tools = instruments(question)
    mechanisms: tuple[AnyNoise, ...] = tuple(
        tool.mechanism(law, portion) for tool, portion in zip(tools, portions, strict=True)
    )
    loss: PrivacyLoss
    if law == "gaussian":
        loss = GaussianLoss(whole, (epsilon, delta))
    else:
        loss = compose([mechanism.loss for mechanism in mechanisms])
    noises = tuple(Noise.of(mechanism) for mechanism in mechanisms)

    def answer(right: Right) -> Answer:
        read = session.vault.read((question,), right).columns
        noisy = tuple(_drawn(values, mechanism) for values, mechanism in zip(read, mechanisms, strict=True))
        del read
        return Answer(noisy, noises, epsilon, delta, law)

    return Purchase(
        dataset=dataset.name,
        loss=loss,
        fingerprint=question.fingerprint,
        memo=Memo(
            "profile",
            f"how many {'groups' if keys else 'rows'} units of {table.name} have",
            epsilon,
            delta,
            law,
            table.name,
        ),
        answer=answer,
        write=Answer.to_bytes,
        read_back=Answer.from_bytes,
        choose=lambda kept: max(
            (bought for bought in kept if bought.answer.epsilon >= epsilon),
            key=lambda bought: bought.answer.epsilon,
            default=None,
        ),
        check=lambda: session.vault.check((question,)),
        takes=lambda paid: is_no_dearer(dataset.budget, paid, loss),
    )


def _noise_for(budget: Budget) -> tuple[Mechanics, Fraction]:
    """The law that a budget is charged least for, and the delta that calibrates it."""
    if budget.accountant == "basic" or not budget.delta:
        return "laplace", Fraction(0)
    return "gaussian", budget.hundredth


def _drawn(values: NDArray[Any], mechanism: AnyNoise) -> NDArray[Any]:
    return mechanism.release_whole(Wholes.in_array(values)).astype(np.float64)
