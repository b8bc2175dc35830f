"""The price of a question and its expected error: pure, free, and worked out before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import assert_never

from sfumato.errors import InvalidParameter, NotCertified, QueryRefused
from sfumato.plan.expressions.written import is_conditional
from sfumato.plan.prices.bundle import NOTHING, Bundle, loss_of
from sfumato.plan.prices.columns import Form, form_of
from sfumato.plan.prices.estimands import estimands
from sfumato.plan.prices.extras import PricedQuantiles, QuantileSet
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.price import Priced, instrument, price, whole_price
from sfumato.plan.prices.quote import ColumnQuote, MeasurementQuote, Quote
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.prices.split import Mechanics, importance, shares
from sfumato.plan.prices.target import cheapest, wanted
from sfumato.plan.prices.terms import Terms
from sfumato.plan.prices.words import (
    count_notes,
    exact,
    figure,
    measurement_in_words,
    noise_in_words,
    selection_note,
    selections_in_words,
    spoken,
    unit_notes,
)
from sfumato.plan.questions.aggregates import Part
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import Rows

__all__ = ["ColumnQuote", "MeasurementQuote", "Quote", "make_quote"]

_MARGIN = 1e-9  # better by less is a tie, and a tie goes to the pure price


def make_quote(plan: Plan, terms: Terms, *, why: str | None = None, adds: bool = True) -> Quote:
    """What answering a question would cost and how far off the answer would be.

    Args:
        plan: The question.
        terms: With a price, or with an error: then the least epsilon that reaches it is found, to six digits.
            Gaussian noise is considered where their delta is positive; the quote's own is 0 if Laplace noise
            was chosen. How units are bounded is up to the plan.
        why: In one sentence, why a mechanism was forced; by default that it was asked for.
        adds: Whether the budget that pays adds up pure prices, rather than composing them more tightly.

    Raises:
        InvalidParameter: for unknown columns in the error, both or none of price and error.
        QueryRefused: if something has no bounds, or an error is asked for that depends on the data.
    """
    if (terms.epsilon is None) == (terms.error is None):
        both = "" if terms.epsilon is None else "; not both"
        raise InvalidParameter(f'Give a price, epsilon=0.5, or the error you want, error={{"n": 50}}{both}.')
    report, read, recipe = plan.report, plan.rows, plan.recipe
    level, available = terms.confidence, terms.available
    laws = _allowed(terms.mechanism, available)
    forms = [form_of(column, recipe.aggregates) for column in report.columns]
    # How many of the rows pass a condition is private, whatever the declared size.
    whole = read.size is not None and report.child.predicate is None
    groups = recipe.measured.groups
    rows = read.size / groups if whole and read.size is not None and groups else None
    bundle, target = Bundle.of(recipe, once=terms.once, steps=terms.steps), None
    if terms.epsilon is not None:
        cost = terms.epsilon
        if bundle.main:
            options = _feasible(
                lambda law: _at_price(recipe, law, cost * bundle.main, bundle.main_delta(law, available)),
                laws,
            )
            chosen, reason = _by_error(options, recipe, level, finds=bool(bundle.selection))
        else:
            chosen, reason = NOTHING, "As said below: no sums are measured."
    else:
        assert terms.error is not None
        bundle.refuse_target()
        target = wanted(terms.error, forms, level, None if report.child.keys else rows)
        options = _feasible(
            lambda law: cheapest(
                recipe.measured, forms, target, law, delta=available, shares=_shares(recipe, law)
            ),
            laws,
        )
        chosen, reason = _by_price(options)
        cost = chosen.epsilon
    if terms.mechanism is not None:
        reason = why if why is not None else f"{terms.mechanism.capitalize()}, as asked for."
    told = _told(plan, chosen, forms=forms, rows=rows, confidence=level, why=reason)
    if not bundle.is_plain:
        bundle.refuse_without_delta(available, named=terms.delta is not None)
        told = _bundled(told, bundle, chosen, cost, available, adds=adds)
    named = {"delta": terms.delta is not None, "mechanism": terms.mechanism is not None and why is None}
    return replace(
        told,
        target=target,
        terms=terms,
        unnamed=tuple(term for term in named if not named[term]),
        delta_told=terms.spare_told if told.delta and terms.delta is None else "",
    )


def _allowed(mechanism: Mechanics | None, delta: Fraction) -> list[Mechanics]:
    if mechanism == "gaussian" and not delta:
        raise InvalidParameter(
            "Gaussian noise needs a delta above 0: give delta=1e-6, or take Laplace noise."
        )
    laws: list[Mechanics] = ["laplace", "gaussian"] if delta else ["laplace"]
    return [law for law in laws if mechanism in (None, law)]


def _feasible(make: Callable[[Mechanics], Priced], laws: Sequence[Mechanics]) -> list[Priced]:
    """What can be drawn of the laws that may be; the reason of the first where none can."""
    options, reasons = [], []
    for law in laws:
        try:
            options.append(make(law))
        except (InvalidParameter, NotCertified, QueryRefused) as reason:
            reasons.append(reason)
    if not options:
        raise reasons[0]
    return options


def _shares(recipe: Recipe, law: Mechanics) -> tuple[Fraction, ...]:
    measured = recipe.measured
    # An aggregate that is asked for twice does not count twice.
    asked = dict.fromkeys(zip(recipe.estimators, recipe.yardsticks, strict=True))
    parts = [Part(measured.measurements, estimator) for estimator, _ in asked]
    yardsticks = [yardstick for _, yardstick in asked]
    costs = importance(
        parts, yardsticks, lambda measurement: instrument(measurement, measured).size(law), law
    )
    return shares([costs[measurement] for measurement in measured.measurements], law)


def _at_price(recipe: Recipe, law: Mechanics, epsilon: Fraction, delta: Fraction) -> Priced:
    whole = whole_price(law, epsilon, delta)
    portions = [whole * share for share in _shares(recipe, law)]
    return price(recipe.measured, law, epsilon=epsilon, delta=delta, portions=portions)


def _by_error(
    options: Sequence[Priced], recipe: Recipe, confidence: Fraction, *, finds: bool
) -> tuple[Priced, str]:
    """The noise with the smaller error, on average over the aggregates (in ratios); ties are pure.

    Where groups are found beside it, `finds`, it is said that pure noise leaves the delta to them.
    """
    first = options[0]
    if len(options) == 1:
        return first, _only(first)
    laplace, gaussian = (_typical(option, recipe, confidence) for option in options)
    if gaussian < laplace - _MARGIN:
        ratio = math.exp(gaussian - laplace)
        return options[1], f"Gaussian: its error is about {ratio:.0%} of what Laplace noise would give."
    ratio = math.exp(laplace - gaussian)
    delta = "the delta is for finding groups alone" if finds else "it uses no delta"
    return first, f"Laplace: its error is about {ratio:.0%} of what Gaussian noise would give; {delta}."


def _typical(priced: Priced, recipe: Recipe, confidence: Fraction) -> float:
    """The mean logarithm of the aggregates' half-widths, but for what is the same for all noise."""
    # As if all noise were continuous, and several Laplace ones together as wide as one (they are a bit less).
    unit = math.log(_half_width(priced.law, confidence))  # apart: beside tiny factors it would be 0
    logs = []
    for estimator in recipe.estimators:
        if not estimator.parts:  # public
            continue
        terms = zip(estimator.parts, estimator.gradients(), strict=True)
        wide = math.hypot(*(gradient * priced.noises[index].scale for index, gradient in terms))
        logs.append(unit + math.log(wide))
    return math.fsum(logs) / max(1, len(logs))


_FLAT = 1e-6  # so little of the middle that the density is flat there, to 12 digits


def _half_width(law: Mechanics, confidence: Fraction) -> float:
    """What noise of scale 1 stays within with this probability; near enough to compare two laws."""
    within, risk = float(confidence), float(1 - confidence)  # of the two, the smaller one keeps its digits
    match law:
        case "laplace":
            return -math.log(risk) if risk < 0.5 else -math.log1p(-within)
        case "gaussian":
            if within < _FLAT:
                return within * math.sqrt(math.pi / 2)
            return -NormalDist().inv_cdf(risk / 2)  # SciPy would take longer to load than the quote takes
        case unknown:
            assert_never(unknown)


def _by_price(options: Sequence[Priced]) -> tuple[Priced, str]:
    chosen = min(options, key=lambda option: option.epsilon)  # the first of equals is Laplace
    if len(options) == 1:
        return chosen, _only(chosen)
    other = next(option for option in options if option is not chosen)
    return chosen, (
        f"{chosen.law.capitalize()}: the least price for this error; {other.law.capitalize()} noise would "
        f"take epsilon {exact(other.epsilon)}."
    )


def _only(priced: Priced) -> str:
    if priced.law == "gaussian":
        return "Gaussian: at this price no other noise can be drawn."
    return "Laplace: a pure price, with no delta."


def _told(
    plan: Plan,
    priced: Priced,
    *,
    forms: Sequence[Form],
    rows: float | None,
    confidence: Fraction,
    why: str,
) -> Quote:
    measured, unit = plan.recipe.measured, spoken(plan.rows.unit, plan.rows)
    columns = tuple(
        replace(
            _column(form, priced, confidence, rows),
            estimand=str(what or ""),
            cut=what is not None and what.cut,
        )
        for form, what in zip(forms, estimands(plan), strict=True)
    )
    whole = whole_price(priced.law, priced.epsilon, priced.delta)
    measurements = tuple(
        MeasurementQuote(
            measurement_in_words(measurement, unit),
            float(portion / whole),
            noise_in_words(noise),
            noise.quantile(confidence),
        )
        for measurement, portion, noise in zip(
            measured.measurements, priced.portions, priced.noises, strict=True
        )
    )
    return Quote(
        plan=plan,
        epsilon=priced.epsilon,
        delta=priced.delta,
        mechanism=priced.law,
        mechanisms=priced.mechanisms,
        units=priced.units,
        noises=priced.noises,
        loss=priced.loss,
        confidence=confidence,
        columns=columns,
        measurements=measurements,
        why=why,
        notes=_notes(plan.rows, plan.recipe, columns, steps=plan.report.child.counted),
    )


def _bundled(
    quote: Quote, bundle: Bundle, main: Priced, epsilon: Fraction, delta: Fraction, *, adds: bool
) -> Quote:
    """The quote with what is asked beside the main question."""
    extras, selections = bundle.priced_extras(epsilon, adds=adds), bundle.selected(main.law, epsilon, delta)
    lines = [
        replace(measurement, share=measurement.share * float(bundle.main))
        for measurement in quote.measurements
    ]
    for extra, share in zip(extras, bundle.extras, strict=True):
        what, noise = extra.told
        lines.append(MeasurementQuote(what, float(share), noise, None))
    notes = list(quote.notes)
    if selections:
        for chosen, what in zip(selections, selections_in_words(quote.measured), strict=True):
            part, noise = float(chosen.epsilon / epsilon), f"kept above {chosen.threshold:.5g}"
            lines.append(MeasurementQuote(what, part, noise, chosen.error(quote.confidence)))
        notes.append(selection_note(selections, quote.measured))
    quantiles = [extra for extra in extras if isinstance(extra, PricedQuantiles)]
    if quantiles:
        notes.append("Quantiles are selected among public cells; noisy counts around these give their bars.")
    notes += dict.fromkeys(note for extra in quantiles for note in extra.notes)
    return replace(
        quote,
        epsilon=epsilon,
        delta=main.delta + sum((selection.delta for selection in selections), Fraction(0)),
        loss=loss_of(main, extras, selections),
        measurements=tuple(lines),
        notes=tuple(notes),
        extras=extras,
        selections=selections,
    )


def _would_help(columns: Sequence[ColumnQuote], measured: Measured) -> bool:
    """Whether a declared size would let an error be estimated: that of an average over public groups."""
    sums = any(measurement.kind == "sum" for measurement in measured.measurements)
    return sums and not measured.is_open and any(column.half_width is None for column in columns)


def _column(form: Form, priced: Priced, confidence: Fraction, rows: float | None) -> ColumnQuote:
    width = form.width(priced.noises, confidence)
    if width is not None:
        told = "public" if form.public else f"± {figure(width)}"
        return ColumnQuote(form.name, width, None, told, form.public)
    expected = form.width(priced.noises, confidence, rows)
    told = "depends on the data"
    if expected is not None and rows is not None:
        told += f": about ± {figure(expected)} in groups of {rows:,.0f}"
    return ColumnQuote(form.name, None, expected, told)


def _may_be_missing(measurement: Measurement) -> bool:
    """Whether rows are counted that have a value, and not those that a condition holds for."""
    argument = measurement.argument
    return measurement.kind == "present" and not (argument is not None and is_conditional(argument))


def _notes(read: Rows, recipe: Recipe, columns: Sequence[ColumnQuote], *, steps: bool) -> tuple[str, ...]:
    measured = recipe.measured
    kinds = {measurement.kind for measurement in measured.measurements}
    notes = unit_notes(
        read,
        spoken(measured.unit, read),
        bounding=measured.bounding,
        keyed=bool(measured.keys),
        rows=bool(kinds - {"units"}) or any(isinstance(extra, QuantileSet) for extra in recipe.extras),
        units="units" in kinds,
        steps=steps,
    )
    if any(isinstance(extra, QuantileSet) for extra in recipe.extras):
        notes += measured.bounding.quantile_notes(measured.unit)
    if measured.levels:
        notes.append(
            "Levels are made to agree afterwards: the bars of the answer reach from the agreed value to the "
            "far end of what was measured, and can be wider than those above."
        )
    if measured.keys and not measured.is_open:
        notes.append(
            "Every listed key is reported, empty ones too; rows with another key or none are left out."
        )
    if "rows" in kinds and any(map(_may_be_missing, measured.measurements)):
        notes.append(
            "What may be missing is counted apart from the rows, for a share of the price: have columns "
            "declared as not nullable where nothing is ever missing."
        )
    if read.count is not None:
        notes += count_notes(read.count, recipe.estimators, measured)
    if any(column.expected is not None for column in columns):
        notes.append(
            f"Expected errors take the declared size, {read.size:,}, as rows spread evenly over the groups."
        )
    elif (
        read.is_plain and read.size is None and measured.predicate is None and _would_help(columns, measured)
    ):
        notes.append("A declared size of the table would let errors that depend on the data be estimated.")
    return tuple(notes)
