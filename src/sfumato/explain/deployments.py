"""Published deployments of differential privacy, and where an epsilon stands among those of its own kind."""

from __future__ import annotations

import html
import json
import os
import textwrap
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.explain.figures import given
from sfumato.numeric.exact import Rational, decimal_up, delta_of, positive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KINDS", "UNITS_DIFFER", "Comparison", "Deployment", "compare", "deployments", "source"]

UNITS_DIFFER = (
    "An epsilon is a price per unit: 1 for all that a person ever did promises far more than 1 for one day "
    "or one event of theirs, and noise added on a device is not noise added to a total. Compare only within "
    "one kind of unit and one model, and even there mind δ, and how often the price is paid again."
)

KINDS: dict[str, str] = {
    "person": "all data of a person, an account or a device",
    "person and period": "what a person, an account or a device did in a day, a month, …",
    "record": "one event, row, trip or other single record",
    "organisation": "a business establishment",
    "not stated": "not stated",
}
"""The kinds of unit by which deployments are grouped, and what each protects."""

_SYNONYMS = {
    "user": "person",
    "individual": "person",
    "patient": "person",
    "account": "person",
    "device": "person",
    "user-day": "person and period",
    "user-month": "person and period",
    "row": "record",
    "event": "record",
    "visit": "record",
    "business": "organisation",
    "establishment": "organisation",
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """One published deployment, with its parameters as stated.

    Attributes:
        name: what was released.
        curator: by whom.
        published: when first, as a date.
        product: what kind of thing: summary statistics, a model, synthetic data.
        variant: the notion of privacy that is claimed.
        model: "central", "local" or "varies".
        unit: the unit of privacy as stated, if it is.
        kind: the kind of that unit, a key of `KINDS`.
        epsilon: the stated ε, if any.
        delta: the stated δ as text, if any: one is a formula.
        rho: the stated ρ of concentrated privacy, if any.
    """

    name: str
    curator: str
    published: str
    product: str
    variant: str
    model: str
    unit: str | None
    kind: str
    epsilon: float | None
    delta: str | None
    rho: float | None

    @property
    def stated(self) -> str:
        """The stated parameters in one line."""
        known = (("ε", self.epsilon), ("δ", self.delta), ("ρ", self.rho))
        return ", ".join(f"{name} = {_shown(value)}" for name, value in known if value is not None)

    def __str__(self) -> str:
        return f"{self.name} ({self.curator}, {self.published[:4]}): {self.stated}"


def _shown(value: float | str) -> str:
    return given(value) if isinstance(value, float) else value


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    text = resources.files("sfumato.explain").joinpath("deployments.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def source() -> str:
    """Where the parameters of the deployments come from."""
    return str(_table()["source"])


@lru_cache(maxsize=1)
def deployments() -> tuple[Deployment, ...]:
    """The published deployments that the package knows, by name."""
    return tuple(Deployment(**_read(row)) for row in _table()["deployments"])


def _read(row: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: None if row[name] is None else float(row[name]) for name in ("epsilon", "rho")}
    return row | numbers


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where an epsilon stands among published deployments with the same kind of unit and the same model.

    Attributes:
        epsilon: the ε in question.
        delta: the δ in question.
        kind: the kind of its unit, a key of `KINDS`.
        model: "central" or "local".
        near: deployments of the same kind and model that state an ε, smallest first.
        otherwise: those of the same kind and model that state ρ instead of ε.
        apart: all others; their ε is a price for something else.
    """

    epsilon: float
    delta: float
    kind: str
    model: str
    near: tuple[Deployment, ...]
    otherwise: tuple[Deployment, ...]
    apart: tuple[Deployment, ...]

    @property
    def smaller(self) -> int:
        """How many of the near ones state a smaller ε."""
        return sum(one.epsilon is not None and one.epsilon < self.epsilon for one in self.near)

    @property
    def larger(self) -> int:
        """How many of the near ones state a larger ε."""
        return sum(one.epsilon is not None and one.epsilon > self.epsilon for one in self.near)

    @property
    def summary(self) -> str:
        """One sentence on where it stands."""
        what = f"ε = {given(self.epsilon)}" + (f", δ = {given(self.delta)}" if self.delta else "")
        mine = f"{what} for {KINDS[self.kind]}, {self.model} model"
        if not self.near:
            return f"{mine}: no published deployment here states an ε for the same."
        same = len(self.near) - self.smaller - self.larger
        return (
            f"{mine}. Among {len(self.near)} published deployments that state an ε for the same kind of "
            f"unit: smaller {self.smaller}, the same {same}, larger {self.larger}."
        )

    def __str__(self) -> str:
        lines = [textwrap.fill(self.summary, 80), ""]
        rows = [(one.epsilon or 0.0, 0, _short(one)) for one in self.near]
        rows.append((self.epsilon, 1, "◂ here"))
        lines += [
            f"{given(epsilon):>9}  {text}" for epsilon, _, text in sorted(rows, key=lambda row: row[:2])
        ]
        if self.otherwise:
            lines += ["", "Stated in ρ (concentrated privacy), another scale:"]
            lines += [f"{given(one.rho or 0.0):>9}  {_short(one)}" for one in self.otherwise]
        lines += ["", textwrap.fill(self.warning, 80), "", textwrap.fill(source(), 80)]
        return "\n".join(lines)

    @property
    def warning(self) -> str:
        """That epsilons of other units do not compare, and how many are therefore left out."""
        return f"{len(self.apart)} others have another unit or model and are left out. {UNITS_DIFFER}"

    def _repr_html_(self) -> str:
        def row(one: Deployment) -> str:
            cells = (one.stated, one.name, one.curator, one.published[:4], one.unit or "")
            return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"

        below = [one for one in self.near if (one.epsilon or 0.0) <= self.epsilon]
        mine = f"<tr><td><b>ε = {given(self.epsilon)}</b></td><td colspan='4'><b>here</b></td></tr>"
        body = "".join(map(row, below)) + mine + "".join(map(row, self.near[len(below) :]))
        head = "".join(f"<th>{name}</th>" for name in ("stated", "deployment", "by", "year", "unit"))
        return (
            f"<div><p>{html.escape(self.summary)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}"
            f"{''.join(map(row, self.otherwise))}</tbody></table><p><small>{html.escape(self.warning)}<br>"
            f"{html.escape(source())}</small></p></div>"
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """All deployments that state an ε on one axis, in blocks of one kind of unit and model each."""
        from sfumato.plots import deployments_chart

        own = _block(self.kind, self.model)
        stated = [one for one in (*self.near, *self.apart) if one.epsilon is not None]
        order = [own, *sorted({_block(one.kind, one.model) for one in stated} - {own})]
        stated.sort(key=lambda one: order.index(_block(one.kind, one.model)))
        return deployments_chart(
            [f"{one.name} ({one.curator})" for one in stated],
            [one.epsilon or 0.0 for one in stated],
            [_block(one.kind, one.model) for one in stated],
            here=(self.epsilon, own),
            title="Where this ε stands",
            note=source(),
            path=path,
        )


def _block(kind: str, model: str) -> str:
    return f"{kind}, {'central or local' if model == 'varies' else model}"


def _short(one: Deployment) -> str:
    """At most 69 columns; names are cut in the middle, because many begin alike."""
    delta = "" if one.delta is None else f", δ = {one.delta}"
    end = f" ({_cut(one.curator, 22)}, {one.published[:4]}{delta})"
    return _cut(one.name, 69 - len(end)) + end


def _cut(text: str, columns: int) -> str:
    if len(text) <= columns:
        return text
    tail = (columns - 1) // 2
    return f"{text[: columns - 1 - tail].rstrip()}…{text[-tail:].lstrip()}"


def compare(epsilon: Rational, delta: Rational, unit: str, *, model: str = "central") -> Comparison:
    """Where (ε, δ) stands among published deployments of the same kind of unit and model.

    Args:
        epsilon: the ε in question.
        delta: the δ in question; 0 for a pure guarantee.
        unit: what it protects: a key of `KINDS`, or a word such as "user", "row", "event", "user-day".
        model: "central" (noise is added to totals) or "local" (before data leaves a device).
    """
    kind = _SYNONYMS.get(unit, unit)
    if kind not in KINDS or kind == "not stated":
        known = ", ".join(repr(name) for name in KINDS if name != "not stated")
        raise InvalidParameter(f"unit must be one of {known}: epsilons of different units do not compare.")
    if model not in ("central", "local"):
        raise InvalidParameter("model must be 'central' or 'local'.")
    exact, aside = positive(epsilon, "epsilon"), delta_of(delta)
    alike = [one for one in deployments() if (one.kind, one.model) == (kind, model)]
    near = sorted((one for one in alike if one.epsilon is not None), key=lambda one: one.epsilon or 0.0)
    otherwise = sorted((one for one in alike if one.epsilon is None), key=lambda one: one.rho or 0.0)
    apart = tuple(one for one in deployments() if one not in alike)
    return Comparison(decimal_up(exact), decimal_up(aside), kind, model, tuple(near), tuple(otherwise), apart)
