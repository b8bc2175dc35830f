"""A private answer as a value: numbers, error bars, receipt. Reading it again costs nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MissingExtra
from sfumato.mechanisms import GaussianSelection, PartitionSelection
from sfumato.numeric.columns import from_list, from_numbers, kind_of, locked
from sfumato.numeric.exact import Rational
from sfumato.plan.answers.estimate import Estimates, estimate
from sfumato.plan.answers.outside import Outside, Selected, outside_of
from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.expressions.names import NotAList
from sfumato.plan.intervals.noise import risk_of
from sfumato.plan.prices.estimands import cuts
from sfumato.plan.prices.extras import PricedExtra
from sfumato.plan.prices.touched import PricedTouched, Share
from sfumato.plan.questions.nodes import Key
from sfumato.purchase import summed
from sfumato.render import definitions, html_table, shown, text_table
from sfumato.session.intervals import Intervals, Known, left_out
from sfumato.session.nothing import few_groups, missing_groups, why_nothing
from sfumato.session.picture import draw
from sfumato.session.shown import Shown

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.plan.prices.quoting import Quote
    from sfumato.plan.questions.profile import Profile
    from sfumato.session.payload import Answer
    from sfumato.session.unreadable import Unread

__all__ = ["Release"]

_CONFIDENCE = 0.95
_WIDTH = 80


class Release(NotAList):
    """What was released. Everything here is post-processing of the private answer.

    Attributes:
        quote: What was asked and at which price it would be answered.
        receipt: What paid for it.
        free: Whether it was answered again from the ledger, at no cost.
        counted: What of the reader's limit it counts, with a profile and bounds that were taken for it, the
            first time that they read what somebody else paid for: unit → amount.
        bounds: The bounds that were bought for it, now or before, in words.
        profile: What is known about how many rows units have; None: nothing.
        first: What was paid before the answer, for things that are kept: what → epsilon.
        groups: What is known about how many groups of the question units are in; None: nothing.
        unread: What is known about cells that could not be read, and left rows out; None: nothing.
        signed: Whether the values are differences between two answers, each of which limits may have cut.
    """

    _not_a_list = 'The released rows are in a table: r.table["n"], r.to_pandas()["n"], len(r.table).'

    def __init__(
        self,
        quote: Quote,
        answer: Answer,
        receipt: Receipt,
        *,
        free: bool,
        bounds: tuple[str, ...] = (),
        profile: Known | None = None,
        groups: Profile | None = None,
        unread: Unread | None = None,
        counted: Mapping[str, Fraction] | None = None,
        besides: Mapping[str, Fraction] | None = None,
        first: Mapping[str, Fraction] | None = None,
        signed: bool = False,
    ) -> None:
        self.quote, self.receipt, self.free, self.signed = quote, receipt, free, signed
        self.bounds = tuple(
            dict.fromkeys((*bounds, *few_groups(quote), *missing_groups(quote, answer.groups)))
        )
        self.profile, self.groups, self.unread = profile, groups, unread
        self._own: Mapping[str, Fraction] = counted or {}
        self.first: Mapping[str, Fraction] = first or {}
        self.counted: Mapping[str, Fraction] = summed(self._own, besides or {})
        self._answer = answer

    @property
    def state(self) -> str:
        """Of a table that grows, the state that was read; empty where it has none."""
        return self.receipt.purpose.state

    @cached_property
    def _estimates(self) -> Estimates:
        return self._estimated(self._answer)

    def _estimated(self, answer: Answer) -> Estimates:
        recipe = self.quote.recipe
        outside: dict[int, Outside] = {
            place: outside_of(priced, arrays)
            for place, (priced, arrays) in enumerate(self._extras)
            if not isinstance(priced, PricedTouched)
        }
        asked = self.quote.selection
        if answer.groups is not None and asked is not None:
            # Those of several levels have sums of their own, those found by weight no numbers of units.
            if answer.units is not None and answer.selection and not recipe.measured.levels:
                epsilon, delta = answer.selection
                law = GaussianSelection if answer.gaussian else PartitionSelection
                selection = law(epsilon, delta, groups=asked.groups, exchange=asked.exchange)
                outside[-1] = Selected(selection, answer.units)
            recipe = recipe.over(answer.groups)
        known = cuts(self.quote.plan, () if self.unread is None else self.unread.by)
        most = left_out(self.quote, self.profile, self.groups, self.unread)
        if self.signed:
            known, most = tuple(cut.of_difference for cut in known), None
        return estimate(
            recipe,
            self.quote.report,
            answer.noises,
            answer.noisy,
            outside,
            known,
            most,
        )

    def with_profile(self, profile: Known | None) -> Release:
        """The same where so much is known about how many rows units have."""
        other = copy(self)
        other.__dict__.pop("_estimates", None)
        other.profile = profile
        return other

    def take_over(self, other: Release) -> None:
        """Take what was computed for another one of the same answer, quote and knowledge; else nothing."""
        of = [(one.quote, one._answer, one.profile, one.groups, one.unread) for one in (self, other)]
        if all(mine is theirs for mine, theirs in zip(*of, strict=True)):
            self.__dict__ |= {
                name: other.__dict__[name] for name in ("_estimates", "table") if name in other.__dict__
            }

    def with_quote(self, quote: Quote) -> Release:
        """The same where a quote of the same question says something else of its columns."""
        other = copy(self)
        other.quote = quote
        return other

    @property
    def _intervals(self) -> Intervals:
        return Intervals(self.quote, self._estimates, self.profile, self.groups, self.unread)

    @property
    def _extras(self) -> list[tuple[PricedExtra, tuple[Any, ...]]]:
        """What was released beside the main question, with the price at which it was drawn."""
        pairs = zip(self.quote.extras, self._answer.extras, strict=True)
        return [(asked.extra.priced(price), arrays) for asked, (price, arrays) in pairs]

    @cached_property
    def table(self) -> pa.Table:
        """Keys and released values; later releases of the same answer may have the very same."""
        columns = self._with_bars({name: self._column(name) for name in self._estimates.columns})
        return pa.table({name: locked(column) for name, column in columns.items()})

    def _with_bars(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns, with those between them that were asked for as ends of intervals."""
        listed = list(columns.items())
        for bar in self.quote.report.bars:
            ends = (
                self._estimates.interval(bar.column, bar.level)
                if bar.column in self._estimates.intervals
                else (np.full(len(self._estimates.rows), np.nan),) * 2
            )
            listed.insert(bar.position, (bar.name, _numbers(ends[int(bar.upper)])))
        return dict(listed)

    def error(self, confidence: Rational = _CONFIDENCE) -> pa.Table:
        """The same rows with half-widths instead of values: each value is this close with this confidence.

        The interval is for the noise: it says how far the released number is from what the same query would
        give without noise (clamped and weighted as the quote says).
        """
        noisy = self._estimates.intervals
        return pa.table(
            {
                name: _numbers(self._estimates.half_width(name, confidence))
                if name in noisy
                else self._column(name)
                for name in self._estimates.columns
            }
        )

    def interval(self, confidence: Rational = _CONFIDENCE, kind: str = "covering") -> pa.Table:
        """The same rows with the two ends of each value's interval, `name_low` and `name_high`.

        Args:
            confidence: With which each interval holds, by itself.
            kind: `covering`: it holds the value over all rows that belong to a unit, pass the condition and
                have a reported key (numbers held within their bounds), whatever limits left out: an end is
                infinite where nothing is known on that side. `fitted`: the same where the tail of the profile
                goes on as it is seen to, which `assumes` says in words and the table's metadata too: narrower
                where few units have very many rows. `noise`: it holds what the same query would give without
                noise, limits and all.

        Raises:
            InvalidParameter: for another kind; or `fitted` where no profile shows enough of its tail.
        """
        ends = self._intervals.ends(kind)
        columns: dict[str, pa.Array] = {}
        for name in self._estimates.columns:
            if name in self._estimates.intervals:
                low, high = ends(name, confidence)
                columns |= {f"{name}_low": _numbers(low), f"{name}_high": _numbers(high)}
            else:
                columns[name] = self._column(name)
        return self._saying(pa.table(columns), kind)

    def _saying(self, table: pa.Table, kind: str) -> pa.Table:
        """The table, with what its intervals assume if they do."""
        said = self._intervals.assumes(kind)
        return table.replace_schema_metadata({"assumes": said}) if said else table

    @property
    def assumes(self) -> str:
        """What intervals of `kind="fitted"` assume, in words; empty where nothing is cut.

        Raises:
            InvalidParameter: where there are none.
        """
        return self._intervals.assumes()

    def _column(self, name: str) -> pa.Array:
        key = self._estimates.keys.get(name)
        if key is not None:
            kind, array = self._kind(self.quote.report.child.keys[key.place]), key.array
            return array if array is not None and array.type == kind else from_list(key.listed, kind)
        values = self._estimates.columns[name]
        if values.dtype == object:
            return from_list(values.tolist(), pa.string())
        return from_numbers(values.data, np.ma.getmaskarray(values))

    def _kind(self, key: Key) -> pa.DataType:
        """The type of a key, which is public, whatever rows are left."""
        if key.values:
            return kind_of(key.values[0])
        kinds = {"integer": pa.int64(), "date": pa.date32(), "boolean": pa.bool_(), "float": pa.float64()}
        kinds |= {"timestamp": pa.timestamp("s"), "time": pa.time32("s")}
        return kinds.get(str(facts_of(key.expression, self.quote.rows.columns).kind), pa.string())

    def touched(self, confidence: Rational = _CONFIDENCE) -> Share | None:
        """The share of units that clamps, weights or the choice of groups touched, if it was asked for."""
        for priced, arrays in self._extras:
            if isinstance(priced, PricedTouched):
                return priced.share(int(arrays[0][0]), int(arrays[1][0]), risk_of(confidence))
        return None

    @property
    def epsilon(self) -> Any:
        """What the answer cost when it was paid for, exactly."""
        return self._answer.epsilon

    def to_arrow(
        self, *, errors: bool = False, confidence: Rational = _CONFIDENCE, kind: str = "covering"
    ) -> pa.Table:
        """The table; with `errors`, after each number the half-width of its noise and its interval.

        The columns are `name_error`, `name_low` and `name_high`, with `_` added where a name is taken; `kind`
        is that of `interval`.
        """
        if not errors:
            return self.table
        interval = self._intervals.ends(kind)
        columns: dict[str, Any] = {}
        for name in self.table.column_names:
            columns[name] = self.table[name]
            if name in self._estimates.intervals:
                low, high = interval(name, confidence)
                half = self._estimates.half_width(name, confidence)
                for mark, ends in (("error", half), ("low", low), ("high", high)):
                    columns[self._free(f"{name}_{mark}", columns)] = _numbers(ends)
        return self._saying(pa.table(columns), kind)

    def _free(self, name: str, taken: Collection[str]) -> str:
        while name in self.table.column_names or name in taken:
            name += "_"
        return name

    def to_pandas(
        self, *, errors: bool = False, confidence: Rational = _CONFIDENCE, kind: str = "covering"
    ) -> Any:
        """The table as a pandas data frame; with `errors` as `to_arrow` has it.

        What its intervals assume, if they do, is in `attrs["assumes"]`.
        """
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise MissingExtra(
                "pandas is not installed: pip install pandas, or use .table (Arrow)."
            ) from None
        frame = self.to_arrow(errors=errors, confidence=confidence, kind=kind).to_pandas()
        said = self._intervals.assumes(kind) if errors else ""
        frame.attrs |= {"assumes": said} if said else {}
        return frame

    def to_polars(
        self, *, errors: bool = False, confidence: Rational = _CONFIDENCE, kind: str = "covering"
    ) -> Any:
        """The table as a Polars data frame; with `errors` as `to_arrow` has it."""
        try:
            import polars
        except ImportError:
            raise MissingExtra(
                "Polars is not installed: pip install polars, or use .table (Arrow)."
            ) from None
        return polars.from_arrow(self.to_arrow(errors=errors, confidence=confidence, kind=kind))

    def plot(
        self,
        path: str | Path | None = None,
        *,
        column: str | Sequence[str] | None = None,
        confidence: float = 0.95,
    ) -> Any:
        """A picture of the released columns with their error bars; it draws itself in a notebook.

        Categories are bars, the greatest first unless the question has an order; days, months and years are a
        line; several columns are panels.

        Args:
            path: Where to write it, .png or .svg; nowhere by default.
            column: Which column, or columns; by default all that have error bars.
            confidence: Of the error bars.

        Raises:
            InvalidParameter: if there is no such column, or it was not released with an error bar.
        """
        return draw(self, path, column, confidence, self._estimates.cut)

    @property
    def estimands(self) -> dict[str, str]:
        """What each column estimates, in one phrase; keys estimate nothing."""
        return self.quote.estimands

    def shown(self, confidence: Rational = _CONFIDENCE, *, most: int | None = None) -> Shown:
        """The columns as text, with heads, bars and what is known of all rows; so many rows at most."""
        limits = self.quote.measured.unit.column is not None
        within = self._intervals.within
        return Shown(self.table, self._estimates, self.estimands, confidence, within, limits, most)

    def _footer(self) -> str:
        often = self.nothing or f"{self.shown().holds}."
        share = self.touched()
        cut = "" if share is None else f"Of the units, {share} were clamped or cut."
        return "\n".join(filter(None, (often, self.paid, cut, *self.bounds)))

    @property
    def paid(self) -> str:
        """What was paid, and for what, in a sentence: `Paid epsilon 0.3: 0.06 for the profile, …`."""
        parts = [f"{shown(float(part))} for {what}" for what, part in self.first.items() if part]
        receipt = f"(receipt {self.receipt.number}){self.reading}."
        if self.free:
            before = f"Paid epsilon {', '.join(parts)}. " if parts else ""
            return f"{before}Answered again from the ledger, free {receipt}"
        whole = f"epsilon {shown(float(self._answer.epsilon + sum(self.first.values(), Fraction(0))))}"
        if self._answer.delta:
            whole += f", delta {shown(float(self._answer.delta))}"
        if parts:
            whole += f": {', '.join(parts)}, {shown(float(self._answer.epsilon))} for the answer"
        return f"Paid {whole} {receipt}"

    @property
    def reading(self) -> str:
        """What reading somebody else's answer counts, to go on with a sentence; empty where nothing does."""
        if not self._own:
            return ""
        figures = ", ".join(f"{unit} {shown(float(part))}" for unit, part in self._own.items() if part)
        return f", which somebody else paid for: {figures} counts toward your limit"

    @property
    def nothing(self) -> str:
        """Why there is no row, in a sentence; empty where there is one."""
        groups = self._answer.groups
        return "" if self.table.num_rows else why_nothing(self.quote, None if groups is None else len(groups))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [textwrap.fill(line, _WIDTH) for line in self._footer().splitlines()]
        seen = self.shown()
        heads = [*definitions(seen.definitions, _WIDTH), ""]
        tables = (text_table(columns, keys=seen.keys) for columns in seen.tables)
        return "\n".join((*heads, "\n\n".join(tables), *lines))

    def _repr_html_(self) -> str:
        seen = self.shown()
        phrases = {seen.head(name): phrase for name, phrase in seen.definitions.items()}
        *others, last = seen.tables
        tables = [*(html_table(columns, phrases=phrases) for columns in others)]
        return "".join((*tables, html_table(last, caption=self._footer(), phrases=phrases)))


def _numbers(values: Any) -> pa.Array:
    plain = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
    return from_numbers(plain, np.isnan(plain))  # no value, no error bar
