"""A quote as a value: what an answer costs, how far off it will be, and why, in figures and in words."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms import AdaptiveSelection
from sfumato.numeric.exact import Rational, probability
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.bundle import fingerprint_of
from sfumato.plan.prices.columns import form_of
from sfumato.plan.prices.extras import PricedExtra
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.price import AnyNoise
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.prices.selecting import Selection
from sfumato.plan.prices.split import Mechanics
from sfumato.plan.prices.target import Target
from sfumato.plan.prices.terms import Terms
from sfumato.plan.prices.words import exact, figure, keys_in_words
from sfumato.plan.questions.nodes import Measured, Report
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.spread import Spread
from sfumato.render import definitions, html_table, text_table

__all__ = ["ColumnQuote", "MeasurementQuote", "Quote"]

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class ColumnQuote:
    """What can be said about a result column beforehand.

    Attributes:
        name: The column.
        half_width: The half-width of its error bar where that does not depend on the data; 0 for keys.
        expected: About what it will be where it does, from the declared size of the table.
        told: The same in words.
        public: Whether it has no noise at all, like a key.
        estimand: What it estimates, in one phrase; empty for keys.
        cut: Whether limits may leave something out of that: then bars are for the noise alone.
    """

    name: str
    half_width: float | None
    expected: float | None
    told: str
    public: bool = False
    estimand: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class MeasurementQuote:
    """What is measured, in words, with its share of the price and its noise."""

    told: str
    share: float
    noise: str
    half_width: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Quote:
    """What an answer costs and how far off it will be. Making one spends nothing.

    Attributes:
        plan: What is asked.
        epsilon: The price, exact.
        delta: Its other half; 0 where the noise is pure.
        mechanism: "laplace" or "gaussian".
        mechanisms: What draws each measurement's noise, on its integers.
        units: What one integer of each measurement is worth in natural units.
        noises: The laws of the noise in natural units.
        loss: What the ledger debits.
        confidence: At which half-widths are shown.
        columns: What can be said about each result column.
        measurements: What is measured, in words.
        why: Why this noise was chosen.
        extras: The questions beside the main one, each with its price.
        selections: What selects the groups, where they are not public; on several levels, one for each rank
            of them (`plan.questions.others.searched_of`).
        notes: What is estimated, and on what the figures rest.
        first: What is paid on top of `epsilon`, before, for something that is bought and kept.
        first_for: What that is.
        target: The error that was asked for in place of a price.
        unnamed: Which of its terms nobody named: "delta", "mechanism".
        delta_told: Where a delta that nobody named comes from, in a phrase.
        standing: What the ledger has to say: `record`, an answer that is there; `left`, that it does not fit.
        terms: On which terms it was made: with the plan they make it again, wherever that is.
    """

    plan: Plan
    epsilon: Fraction
    delta: Fraction
    mechanism: Mechanics
    mechanisms: tuple[AnyNoise, ...]
    units: tuple[Fraction, ...]
    noises: tuple[Noise, ...]
    loss: PrivacyLoss
    confidence: Fraction
    columns: tuple[ColumnQuote, ...]
    measurements: tuple[MeasurementQuote, ...]
    why: str
    notes: tuple[str, ...]
    extras: tuple[PricedExtra, ...] = ()
    selections: tuple[Selection, ...] = ()
    first: Fraction = Fraction(0)
    first_for: str = "bounds"
    target: Target | None = None
    unnamed: tuple[str, ...] = ()
    delta_told: str = ""
    standing: tuple[tuple[str, str], ...] = ()
    terms: Terms = field(default=Terms(), compare=False)

    @property
    def report(self) -> Report:
        """What is shown."""
        return self.plan.report

    @property
    def rows(self) -> Rows:
        """What is read, and whose it is."""
        return self.plan.rows

    @property
    def recipe(self) -> Recipe:
        """What is measured, and how the aggregates follow."""
        return self.plan.recipe

    @property
    def fingerprint(self) -> str:
        """A digest of all that is asked: of the main question alone where there is no other."""
        return fingerprint_of(self.recipe.questions)

    @property
    def selection(self) -> Selection | None:
        """What selects the groups, on several levels those of the widest; None where they are public."""
        return self.selections[0] if self.selections else None

    @property
    def spread(self) -> Spread | None:
        """How units weigh in the first round, where groups are found by weight."""
        found = self.selection
        return Spread(found.steps) if isinstance(found, AdaptiveSelection) else None

    @property
    def selection_price(self) -> tuple[Fraction, Fraction] | None:
        """Epsilon and delta of all that selects groups; None where they are public."""
        if not self.selections:
            return None
        nothing = Fraction(0)
        epsilons, deltas = zip(
            *((selection.epsilon, selection.delta) for selection in self.selections), strict=True
        )
        return sum(epsilons, nothing), sum(deltas, nothing)

    @property
    def measured(self) -> Measured:
        """The part of the plan that reads data."""
        return self.recipe.measured

    def error(self, confidence: Rational | None = None) -> dict[str, float | None]:
        """The half-width of each result column, 0 for keys; None where it depends on the data.

        It is None, too, where a limit is still to be chosen by a profile that is not bought yet.
        """
        level = self.confidence if confidence is None else probability(confidence, "confidence")
        forms = (form_of(column, self.recipe.aggregates) for column in self.report.columns)
        return {
            form.name: None if column.half_width is None else form.width(self.noises, level)
            for form, column in zip(forms, self.columns, strict=True)
        }

    def is_reached_by(self, noises: Sequence[Noise]) -> bool:
        """Whether measurements with this noise are as accurate as the error that was asked for."""
        target = self.target
        if target is None:
            return False
        forms = (form_of(column, self.recipe.aggregates) for column in self.report.columns)
        wanted = [(form, float(target.widths[form.name])) for form in forms if form.name in target.widths]
        widths = [(form.width(noises, target.confidence, target.rows), most) for form, most in wanted]
        return all(width is not None and width <= most for width, most in widths)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = _WIDTH, spell: Callable[[str], str] = str) -> str:
        """The quote as lines of at most `width`; `spell` writes symbols out, where a stream needs that."""
        by_default = [("delta", self._by_default)] if self.delta_told else []
        facts = [("price", self._price()), *by_default, *self.standing, ("noise", self.why)]
        facts.append(("groups", keys_in_words(self.measured.keys, self.measured.groups)))
        lines = [line for name, text in facts for line in _wrapped(f"{name:8}", spell(text), width)]
        if self.estimands:
            lines += ["", *definitions(self.estimands, width, spell)]
        tables = (
            text_table(table, width=width, spell=spell)
            for table in (self._measured_table(), self._error_table())
            if any(table.values())
        )
        notes = [line for note in self.notes for line in _wrapped("- ", spell(note), width)]
        return "\n".join(["\n".join(lines), *("\n" + table for table in tables), "", *notes]).rstrip()

    def _repr_html_(self) -> str:
        standing = "".join(f"{text} " for _, text in self.standing)
        delta = f"Delta is {self._by_default} " if self.delta_told else ""
        caption = f"{self._price()}. {delta}{standing}{self.why} {' '.join(self.notes)}"
        errors = self._error_table()
        errors["estimates"] = [self.estimands.get(name, "") for name in errors["column"]]
        return html_table(self._measured_table()) + html_table(errors, caption=caption)

    @property
    def estimands(self) -> dict[str, str]:
        """What each column estimates, in one phrase; keys estimate nothing."""
        return {column.name: column.estimand for column in self.columns if column.estimand}

    @property
    def _by_default(self) -> str:
        return f"{self.delta_told}: none was asked for."

    def _price(self) -> str:
        """All that is paid, and for what."""
        whole = f"epsilon {exact(self.epsilon + self.first)}"
        whole += f", delta {exact(self.delta)}" if self.delta else " (pure, delta 0)"
        parts = f": {exact(self.first)} for {self.first_for}, once, and {exact(self.epsilon)} for the answer"
        return whole + parts if self.first else whole

    def _measured_table(self) -> dict[str, list[str]]:
        return {
            "measured in each group": [measurement.told for measurement in self.measurements],
            "share": [f"{measurement.share:.0%}" for measurement in self.measurements],
            "noise": [measurement.noise for measurement in self.measurements],
            "error": [
                "depends on the data"
                if measurement.half_width is None
                else f"± {figure(measurement.half_width)}"
                for measurement in self.measurements
            ],
        }

    def _error_table(self) -> dict[str, list[str]]:
        noisy = [column for column in self.columns if not column.public]
        bars = "± noise" if any(column.cut for column in noisy) else "error"
        return {
            "column": [column.name for column in noisy],
            f"{bars} at {float(self.confidence):.6g} confidence": [column.told for column in noisy],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the price and its parts, errors by column (None: it depends on the data), notes."""
        return {
            "table": self.measured.table,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "epsilon_for_bounds": float(self.first),
            "epsilon_exact": str(self.epsilon),
            "delta_exact": str(self.delta),
            "delta_by_default": self.delta_told or None,
            "mechanism": self.mechanism,
            "why": self.why,
            "groups": self.measured.groups,
            "confidence": float(self.confidence),
            "measurements": [
                {
                    "measured": measurement.told,
                    "share": measurement.share,
                    "noise": measurement.noise,
                    "error": measurement.half_width,
                }
                for measurement in self.measurements
            ],
            "columns": [
                {
                    "name": column.name,
                    "error": column.half_width,
                    "expected_error": column.expected,
                    "told": column.told,
                    "estimand": column.estimand,
                    "cut": column.cut,
                }
                for column in self.columns
            ],
            "notes": list(self.notes),
            "standing": dict(self.standing),
            "fingerprint": self.fingerprint,
        }


def _wrapped(start: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=start, subsequent_indent=" " * len(start))
