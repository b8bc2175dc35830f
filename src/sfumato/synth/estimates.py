"""`Estimated`: what a synthetic table says to a question, with intervals where noisy counts give some."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidParameter
from sfumato.numeric.columns import from_list, from_numbers, kind_of
from sfumato.numeric.exact import Rational, as_fraction
from sfumato.plan.expressions.names import NotAList, in_sql
from sfumato.plan.expressions.tree import Call, Expression, Literal, names_of
from sfumato.render import between, definitions, html_table, key, shown, text_table
from sfumato.synth._asked.figures import Figure
from sfumato.synth._asked.question import Question, connected, read
from sfumato.synth._asked.weights import Weights, weights_of

if TYPE_CHECKING:
    from sfumato.plan.questions.nodes import AggregateCall
    from sfumato.sql.text.parameters import Values
    from sfumato.synth.checked import SynthCheck
    from sfumato.synth.columns.fine import Fine
    from sfumato.synth.released import Released

__all__ = ["Estimated", "Parts", "estimated"]

_CONFIDENCE = 0.95
_WIDTH = 80


class Estimated(NotAList):
    """The answer of a synthetic table to a question: all of it follows from what is paid for.

    An interval holds what the question gives for the rows that the fit read, numbers held within their
    declared bounds, as often as its confidence says, for each number by itself and whatever the rows are. It
    follows from noisy counts alone. Where these do not cover the columns asked about there is none: nobody
    knows how far off the model is there, unless that was bought (`sf.synth.check`), and a figure of `report`
    may not say it, since it is not paid for. Of a text whose values the fit found, the value that stands for
    all others, such as `others`, means these in a question too.

    Attributes:
        table: Keys and estimates, as the model has them.
        estimands: What each column estimates, in words.
        notes: Where the intervals of each column come from, or why there are none.
    """

    _not_a_list = (
        'The estimates are in a table: e.table["n"], e.to_pandas()["n"], or e.estimate of a single one.'
    )

    def __init__(
        self,
        question: Question,
        figures: Mapping[str, Sequence[Figure]],
        *,
        rows: str,
        folded: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Made by `Synthesizer.estimate`.

        Args:
            question: What is asked.
            figures: The numbers of each column.
            rows: Which rows it is about, in words.
            folded: By column, the text that the question names and that stands for all that were not found.
        """
        self._question, self._figures, self._rows, self._folded = question, figures, rows, folded
        self.estimands = {name: question.estimands[name] for name in figures}
        self.notes = {name: _together(own) for name, own in figures.items()}
        self.table = self._shown({name: [(name, [f.value for f in own])] for name, own in figures.items()})

    def interval(self, confidence: Rational = _CONFIDENCE) -> pa.Table:
        """The same rows with the two ends of each estimate's interval, `name_low` and `name_high`.

        Args:
            confidence: How often each interval holds, by itself. Both ends are NULL where there is none.
        """
        found = dict[str, list[tuple[str, list[float]]]]()
        for name, ends in self._ends(confidence).items():
            found[name] = [
                (f"{name}_{end}", [pair[at] for pair in ends]) for at, end in enumerate(("low", "high"))
            ]
        return self._shown(found)

    def error(self, confidence: Rational = _CONFIDENCE) -> pa.Table:
        """The same rows with half-widths instead of estimates: each is this close with this confidence."""
        ends = self._ends(confidence)
        halves = {
            name: [
                max(high - one.value, one.value - low)
                for one, (low, high) in zip(own, ends[name], strict=True)
            ]
            for name, own in self._figures.items()
        }
        return self._shown({name: [(name, own)] for name, own in halves.items()})

    @property
    def estimate(self) -> float:
        """The number, if the answer is a single one.

        Raises:
            InvalidParameter: if there are several.
        """
        return self._single.value

    @property
    def low(self) -> float | None:
        """The lower end of its interval, which holds 95 % of the time; None: there is none."""
        ends = self._single.ends(_CONFIDENCE)
        return None if ends is None else ends[0]

    @property
    def high(self) -> float | None:
        """The upper end."""
        ends = self._single.ends(_CONFIDENCE)
        return None if ends is None else ends[1]

    def to_arrow(self, *, errors: bool = False, confidence: Rational = _CONFIDENCE) -> pa.Table:
        """The table; with `errors`, the ends of its interval after each estimate: `name_low`, `name_high`."""
        if not errors:
            return self.table
        ends = self.interval(confidence)
        columns = dict[str, Any]()
        for name in self.table.column_names:
            columns[name] = self.table[name]
            columns |= {
                f"{name}_{end}": ends[f"{name}_{end}"] for end in ("low", "high") if name in self._figures
            }
        return pa.table(columns)

    def to_pandas(self, *, errors: bool = False, confidence: Rational = _CONFIDENCE) -> Any:
        """The same as a pandas data frame."""
        return self.to_arrow(errors=errors, confidence=confidence).to_pandas()

    @property
    def _single(self) -> Figure:
        every = [figure for own in self._figures.values() for figure in own]
        if len(every) != 1:
            raise InvalidParameter("The answer has several numbers: read table and interval().")
        return every[0]

    def _ends(self, confidence: Rational) -> dict[str, list[tuple[float, float]]]:
        level = float(as_fraction(confidence, "confidence"))
        nothing = (math.nan, math.nan)
        return {name: [one.ends(level) or nothing for one in own] for name, own in self._figures.items()}

    def _shown(self, numbers: Mapping[str, list[tuple[str, list[float]]]]) -> pa.Table:
        """A table with the keys, and some columns of numbers in the place of each aggregate."""
        asked, columns = self._question, dict[str, pa.Array]()
        for name in asked.names:
            if name in asked.keys:
                values = [group.values[asked.keys[name]] for group in asked.groups]
                columns[name] = from_list(values, kind_of(values[0]) if values else pa.string())
            for head, own in numbers.get(name, []):
                columns[head] = from_numbers(np.array(own, float), np.isnan(own))
        return pa.table(columns)

    def _texts(self) -> dict[str, list[str]]:
        """The columns as text; beside each of the estimates its interval, if any has one."""
        often = f"{100 * _CONFIDENCE:g}%"
        error, ends = self.error(), self._ends(_CONFIDENCE)
        found = dict[str, list[str]]()
        for name in self.table.column_names:
            values = self.table[name].to_pylist()
            if name not in self._figures:
                found[name] = ["NULL" if value is None else key(value) for value in values]
                continue
            halves = error[name].to_pylist()
            found[name] = [shown(*pair) for pair in zip(values, halves, strict=True)]
            intervals = [
                between(*pair, value, half)
                for pair, value, half in zip(ends[name], values, halves, strict=True)
            ]
            if any(intervals):
                found[often if len(self._figures) == 1 else f"{name}, {often}"] = intervals
        return found

    def _footer(self) -> list[str]:
        notes = list(dict.fromkeys(self.notes.values()))
        said = [
            f"{note[0].upper()}{note[1:]}."
            if len(notes) == 1
            else f"{', '.join(name for name in self.notes if self.notes[name] == note)}: {note}."
            for note in notes
        ]
        said += [
            f"As a value of {in_sql(name)}, {text!r} is all texts that the fit did not find."
            for name, text in self._folded.items()
        ]
        said.append(f"It is about {self._rows}.")
        if any(figure.is_by_check for own in self._figures.values() for figure in own):
            said.append("Intervals by a check are about the rows that the check read.")
        return said

    def __str__(self) -> str:
        heads = [*definitions(self.estimands, _WIDTH), ""]
        table = text_table(self._texts(), keys=tuple(self._question.keys))
        return "\n".join((*heads, table, *(textwrap.fill(line, _WIDTH) for line in self._footer())))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(self._texts(), caption="\n".join(self._footer()), phrases=self.estimands)


def estimated(
    sql: str,
    *,
    table: str,
    columns: Sequence[Fine],
    released: Released,
    rows: str,
    parameters: Values = None,
    check: SynthCheck | None = None,
) -> Estimated:
    """What a synthetic table says to a question.

    Args:
        sql: As `question.read` takes it.
        table: What the table is called.
        columns: Those of it.
        released: The noisy counts and the model.
        rows: Which rows were read, in words.
        parameters: Values for `?`, `$1` and `$name`.
        check: How far off the model was found to be, if that was bought.

    Raises:
        QueryRefused: for a question that is not supported, with what would work.
        InvalidParameter: if it has too many cells, or the check is of another model.
    """
    if check is not None and check.model != released.digest:
        raise InvalidParameter(
            "This check is of another synthetic table: check this one with sf.synth.check."
        )
    question = read(sql, table, columns, parameters)
    parts = Parts(columns)
    figures = {
        name: [
            Figure(
                released,
                columns,
                parts.of((*question.conditions, *group.conditions), aggregate),
                is_mean=aggregate.function == "mean",
                bought=check,
            )
            for group in question.groups
        ]
        for name, aggregate in question.aggregates.items()
    }
    return Estimated(question, figures, rows=rows, folded=_folded(question, columns))


def _folded(question: Question, columns: Sequence[Fine]) -> dict[str, str]:
    """The texts that a question names and that stand for all others of a column, by column."""
    asked = [
        *question.conditions,
        *(condition for group in question.groups for condition in group.conditions),
        *(call.argument for call in question.aggregates.values() if call.argument is not None),
    ]
    named = {name for expression in asked for name in names_of(expression)}
    texts = {text for expression in asked for text in _texts(expression)}
    own = (column for column in columns if column.folds and column.name in named)
    return {column.name: column.values[-1] for column in own if column.values and column.values[-1] in texts}


def _texts(expression: Expression) -> Iterator[Any]:
    """All constants in an expression that are texts."""
    if isinstance(expression, Literal):
        if isinstance(expression.value, str):
            yield expression.value
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _texts(argument)


class Parts:
    """What rows count for, by parts of questions: groups of one question share most of them."""

    def __init__(self, columns: Sequence[Fine]) -> None:
        self._columns = columns
        self._known = dict[Any, Weights]()

    def of(self, conditions: Sequence[Expression], aggregate: AggregateCall) -> list[Weights]:
        """Those of one aggregate over one group; the last one has its value."""
        *others, last = connected(conditions, aggregate.argument)
        as_one = aggregate.function == "count"
        found = [self._weights(own, None, as_one=True) for own in others]
        return [*found, self._weights(last, aggregate.argument, as_one=as_one)]

    def _weights(
        self, conditions: tuple[Expression, ...], value: Expression | None, *, as_one: bool
    ) -> Weights:
        asked = conditions, value, as_one
        if asked not in self._known:
            self._known[asked] = weights_of(conditions, value, self._columns, as_one=as_one)
        return self._known[asked]


def _together(figures: Sequence[Figure]) -> str:
    """What is to be said of all numbers of a column; a note that goes on as another one does says it all."""
    notes = list(dict.fromkeys(figure.note for figure in figures))
    longest = [note for note in notes if not any(other != note and other.startswith(note) for other in notes)]
    return "; ".join(longest)
