"""Planted bugs in the reading of joins, subqueries, unions, choices and grids: each form has some.

Most are changes of the finished statement, so that they say what goes wrong in it and not where. What is not
here because nothing about privacy rests on it:

* Facts of an old column kept for a new one of the same name: the clamp is made from the same facts, and holds
  whatever the column has. A claim that keeps them while the clamp does not is here.
* Units of a left join that are compared, but lead to rows of nobody: rows without a unit count nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from query_mutants import MUTANTS, Mutant, Patch
from sfumato.engines import ranking
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import Digest
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions import sensitivity as claims
from sfumato.plan.questions.bounding import Bounding, boundings
from sfumato.plan.questions.bounding._lemmas import Vector
from sfumato.plan.questions.bounding.grouped import Grouped
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.sensitivity import Sensitivity
from sfumato.plan.questions.sources import Joined
from sfumato.schema import PrivacyUnit
from sfumato.session import reading as readings
from sfumato.session import vault as vaults
from sfumato.sql.write import choice, sources
from sfumato.sql.write import lower as lowering
from sfumato.sql.write import parts as shared
from sfumato.sql.write.lower import UNITS
from sfumato.sql.write.pieces import count

__all__ = ["SHAPE_MUTANTS", "ShapeMutant"]


@dataclass(frozen=True, slots=True)
class ShapeMutant:
    """A planted bug and the forms of questions on which it must show."""

    mutant: Mutant
    forms: tuple[str, ...]


_lower, _rows, _united, _scan = lowering.lower, shared.Parts.rows, sources._united, sources._scan
_sensitivity, _sensitivity_in = claims.sensitivity, claims.sensitivity_in
_group_rank, _place = ranking.group_rank, ranking.place


def _statement(change: Callable[[exp.Expr], None], **options: Any) -> Mutant:
    """A change of the statement that is run."""

    def lower(measured: Measured, tables: Any, **more: Any) -> exp.Expr:
        made = _lower(measured, tables, **more)
        change(made)
        return made

    return Mutant(((vaults, "lower", lower),), **options)


# ── joins ──


def _strangers_meet(statement: exp.Expr) -> None:
    for each in list(statement.find_all(exp.EQ)):
        both = each.this, each.expression
        if all(isinstance(side, exp.Column) and side.name == UNIT_COLUMN for side in both):
            each.replace(exp.true())


def _all_partners(rows: exp.Expr, columns: Mapping[str, Any], keys: Any, _: Any) -> exp.Select:
    """The public rows as they are, keys that are there twice included."""
    made = [(f"j{i}", key.sql.copy()) for i, key in enumerate(keys)]
    made += [(f"c{i}", sources.column(name)) for i, name in enumerate(columns)]
    return sources.select(made, rows)


def _weighed_before(parts: Any, **options: Any) -> exp.Select:
    """The number of a unit's rows from the left side of a join alone."""
    found = _rows(parts, **options)
    joined = parts._measured.source
    if not isinstance(joined, Joined) or options.get("keys", True) or options.get("arguments", True):
        return found
    next(found.find_all(exp.Join)).pop()
    for each in found.find_all(exp.Select):
        each.set("expressions", [one for one in each.expressions if one.find(exp.Column).table != "r"])
        if each is not found:
            break
    found.set("where", None)
    return found


def _owned_by_pointer(source: Any, tables: Mapping[str, Any], dialect: Any) -> exp.Expr:
    """Each row of an order belongs to the order, not to the person."""
    found = _scan(source, tables, dialect)
    for each in found.find_all(exp.Alias):
        if each.alias == UNIT_COLUMN:
            here, _ = tables[source.table].unit.on[0]
            each.set("this", sources.column(here, "t0"))
    return found


# ── units' own rows ──


def _windows_of_all(statement: exp.Expr) -> None:
    for each in statement.find_all(exp.Window):
        by = [one for one in each.args.get("partition_by") or () if one.name != UNIT_COLUMN]
        each.set("partition_by", by)


def _groups_of_all(statement: exp.Expr) -> None:
    for each in list(statement.find_all(exp.Group)):
        left = [one for one in each.expressions if one.name != UNIT_COLUMN]
        if len(left) == len(each.expressions):
            continue
        select = each.parent
        each.set("expressions", left)
        if not left:
            select.set("group", None)  # type: ignore[union-attr]
        for one in select.expressions:  # type: ignore[union-attr]
            if one.alias == UNIT_COLUMN:
                one.set("this", exp.Min(this=one.this))


def _parts_apart(source: Any, tables: Mapping[str, Any], dialect: Any) -> exp.Query:
    """Each part of a union has units of its own."""
    found = _united(source, tables, dialect)
    parts = [found]
    while any(isinstance(each, exp.Union) for each in parts):
        parts = [
            side
            for each in parts
            for side in ((each.this, each.expression) if isinstance(each, exp.Union) else (each,))
        ]
    for i, part in enumerate(parts):
        for each in part.expressions:
            if each.alias == UNIT_COLUMN:
                known = exp.Is(this=each.this.copy(), expression=exp.Null()).not_()
                other = exp.Anonymous(this="hash", expressions=[exp.Literal.number(i), each.this])
                each.set("this", exp.Case(ifs=[exp.If(this=known, true=other)]))
    return found


# ── choices ──


def _limits(statement: exp.Expr) -> list[exp.LTE]:
    """Where the ranks of a unit's groups or values are compared with how many may count."""
    return [each for each in statement.find_all(exp.LTE) if each.this.name == "rank"]


def _no_limit(statement: exp.Expr) -> None:
    for each in _limits(statement):
        each.replace(exp.true())


def _one_more(statement: exp.Expr) -> None:
    for each in _limits(statement):
        each.set("expression", exp.Literal.number(int(each.expression.name) + 1))


def _as_they_come(statement: exp.Expr) -> None:
    for each in statement.find_all(exp.Window):
        if isinstance(each.this, exp.DenseRank):
            each.set("this", exp.RowNumber())
            each.set("order", None)


def _of_all_units(statement: exp.Expr) -> None:
    """Ranks among the groups of everybody."""
    for each in statement.find_all(exp.Window):
        if isinstance(each.this, exp.DenseRank):
            each.set("partition_by", [])


def _rows_for_units(statement: exp.Expr) -> None:
    """The number of rows of a group where that of its units is meant."""
    for each in statement.expressions:
        if each.alias == UNITS:
            inner = statement.args["from_"].this.this
            inner.select(sources.column("n"), copy=False)
            each.set("this", exp.Sum(this=sources.column("n")))


def _unheld(total: exp.Expr, lower: int, upper: int) -> exp.Expr:
    del lower, upper
    return total


def _no_ranks(name: str) -> Callable[[exp.Expr], None]:
    """The ranks of a prepared table under that name are not compared with any limit."""

    def change(statement: exp.Expr) -> None:
        for each in list(statement.find_all(exp.LTE)):
            if each.this.name == name:
                each.replace(exp.true())

    return change


def _groups_among_all(keys: Sequence[str], salt: str, digest: Digest, *names: str) -> str:
    return _group_rank(keys, salt, digest, *names).replace(f'PARTITION BY "{UNIT_COLUMN}" ', "")


def _places_among_all(keys: Sequence[str], *names: str) -> str:
    return _place(keys, *names).replace(f'"{UNIT_COLUMN}", ', "")


def _places_as_they_come(keys: Sequence[str], *names: str) -> str:
    return _place(keys, *names).split(" ORDER BY ")[0] + ")"


# ── claims ──


_OLD = {"amount": (0, 1), "qty": (0, 1), "age": (0, 110), "income": (-1, 1), "price": (0, 1), "count": (0, 5)}


def _one_row(_: Bounding, vector: Vector) -> tuple[int, int]:
    return vector.measurement.ends


def _halved(way: Bounding) -> Mutant:
    """Half of what a way of bounding claims."""
    honest = type(way).sensitivity

    def half(self: Bounding, vector: Vector) -> Sensitivity:
        claim = honest(self, vector)
        return Sensitivity(claim.l1 // 2, claim.l2_squared // 4)

    return _patched((type(way), "sensitivity", half))


def _old_bounds(measurement: Measurement, unit: PrivacyUnit, **options: Any) -> Sensitivity:
    """The claim of a sum from what was declared for a column of that name."""
    argument = measurement.argument
    if measurement.kind == "sum" and isinstance(argument, Column) and argument.name in _OLD:
        low, high = (end << max(measurement.bits, 0) for end in _OLD[argument.name])
        measurement = replace(measurement, lower=low, upper=high)
    return _sensitivity(measurement, unit, **options)


def _one_level(measurement: Measurement, measured: Measured, unit: PrivacyUnit) -> Sensitivity:
    return _sensitivity_in(measurement, replace(measured, levels=()), unit)


def _never_together(measurement: Measurement, measured: Measured, unit: PrivacyUnit) -> Sensitivity:
    """The claim for groups that are apart, where several of a unit's can be on one line."""
    if not (measured.levels and measured.is_open):
        return _sensitivity_in(measurement, measured, unit)
    found = _sensitivity_in(measurement, replace(measured, levels=()), unit)
    count = len(measured.levels)
    return Sensitivity(found.l1 * count, found.l2_squared * count)


def _on_every_line(shelf: Any, group: tuple[Any, ...]) -> list[int]:
    """A group counts on its own line and on those of other keys beside it."""
    return [
        own[values]
        for level, own in shelf.items()
        for length in range(len(level) + 1)
        if (values := tuple(group[key] for key in level[:length])) in own
    ]


def _one_value(measurement: Measurement, unit: PrivacyUnit, **options: Any) -> Sensitivity:
    found = _sensitivity(measurement, unit, **options)
    return Sensitivity(1, 1) if measurement.kind == "values" else found


_ASKING = {"reweight": "public inner"}
"""A form that asks for a way of bounding, where that is not called the same."""


def _also(name: str, *forms: str) -> ShapeMutant:
    """A planted bug of single tables, on these forms."""
    return ShapeMutant(replace(MUTANTS[name], about=""), forms)


def _patched(*patches: Patch, **options: Any) -> Mutant:
    return Mutant(patches, **options)


SHAPE_MUTANTS: dict[str, ShapeMutant] = {
    "units of a join not compared": ShapeMutant(
        _statement(_strangers_meet), ("units inner", "units left")
    ),
    "public rows not unique": ShapeMutant(
        _patched((sources, "_at_most_one", _all_partners)), ("public, rows as units",)
    ),
    "weights from before the join": ShapeMutant(
        _patched((shared.Parts, "rows", _weighed_before), about="GROUP BY"), ("units inner",)
    ),
    "rows owned by what they point to": ShapeMutant(
        _patched((sources, "_scan", _owned_by_pointer)), ("via",)
    ),
    "windows over everybody": ShapeMutant(_statement(_windows_of_all), ("window",)),
    "groups of everybody": ShapeMutant(_statement(_groups_of_all), ("per unit", "per unit and key")),
    "parts of a union apart": ShapeMutant(_patched((sources, "_united", _parts_apart)), ("union",)),
    "groups not limited": ShapeMutant(_statement(_no_limit), ("choose", "open keys", "google")),
    "one group more": ShapeMutant(_statement(_one_more), ("choose", "open keys")),
    "groups as they come": ShapeMutant(_statement(_as_they_come), ("choose",)),
    "ranks among the groups of everybody": ShapeMutant(_statement(_of_all_units), ("choose",)),
    "rows counted for units": ShapeMutant(_statement(_rows_for_units), ("open keys",)),
    "totals not held": ShapeMutant(_patched((choice, "clamped", _unheld)), ("google",)),
    "values not limited": ShapeMutant(_statement(_no_limit), ("distinct",)),
    "one value claimed": ShapeMutant(_patched((claims, "sensitivity", _one_value)), ("distinct",)),
    "ranks of a prepared table not read": ShapeMutant(_statement(_no_ranks(RANK_COLUMN)), ("prepared",)),
    "ranks of groups not read": ShapeMutant(_statement(_no_ranks(GROUP_COLUMN)), ("grouped",)),
    "places in groups not read": ShapeMutant(_statement(_no_ranks(PLACE_COLUMN)), ("grouped",)),
    "ranks of groups among those of everybody": ShapeMutant(
        _patched((ranking, "group_rank", _groups_among_all)), ("grouped",)
    ),
    "places among everybody": ShapeMutant(_patched((ranking, "place", _places_among_all)), ("grouped",)),
    "places as they come": ShapeMutant(_patched((ranking, "place", _places_as_they_come)), ("grouped",)),
    "rows counted for units of a prepared table": ShapeMutant(
        _patched((shared.Parts, "units", lambda _: count())), ("grouped",)
    ),
    "one row a group claimed": ShapeMutant(_patched((Grouped, "ends", _one_row)), ("grouped",)),
    **{
        f"half of {name} claimed": ShapeMutant(_halved(way), (_ASKING.get(name, name),))
        for name, way in boundings().items()
    },
    "levels claimed as one": ShapeMutant(_patched((claims, "sensitivity_in", _one_level)), ("levels",)),
    "open levels claimed as one": ShapeMutant(
        _patched((claims, "sensitivity_in", _one_level)), ("open levels",)
    ),
    "groups on one line claimed apart": ShapeMutant(
        _patched((claims, "sensitivity_in", _never_together)), ("open levels",)
    ),
    "groups on two lines": ShapeMutant(_patched((readings, "places_in", _on_every_line)), ("open levels",)),
    "groups of open levels not limited": ShapeMutant(_statement(_no_limit), ("open levels",)),
    "old bounds claimed": ShapeMutant(_patched((claims, "sensitivity", _old_bounds)), ("redefined",)),
    "rows not weighed": _also(
        "rows not weighed", "public inner", "public left", "subquery", "with", "quantiles", "auto bounds"
    ),
    "clamp one unit too wide": _also("clamp one unit too wide", "parameters", "moments"),
}  # fmt: skip
