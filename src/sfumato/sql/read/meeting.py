"""How the rows of the same people meet: the advice where a join does not say."""

from __future__ import annotations

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import in_sql
from sfumato.sql.read.relation import Relation
from sfumato.sql.refusals import refuse

__all__ = ["strangers"]


def strangers(left: Relation, right: Relation) -> QueryRefused:
    """The refusal of a join in which people's rows would meet those of others."""
    if not (left.units and right.units):
        lacking = right if left.units else left
        return refuse(
            "Private rows are joined on the privacy unit, which one side does not select.",
            f"Select {lacking.unit_name} in the subquery, and compare it in ON.",
        )
    return refuse(
        "Without the privacy unit in ON, people's rows would meet the rows of others.",
        _meeting(left, right),
    )


def _meeting(left: Relation, right: Relation) -> str:
    """How rows of the same people meet: by a declared pointer, or the units, perhaps of a third table."""
    example = " = ".join(side.own_units[0].written for side in (left, right) if side.own_units)
    for one, other in ((left, right), (right, left)):
        if one.private.unit.table == other.private.name:
            example = _following(one, other)
            break
        if not one.own_units:
            above = one.known[str(one.private.unit.table)].name
            pairs = (f"{_spelt(one, here)} = {above}.{in_sql(there)}" for here, there in one.private.unit.on)
            return f"First JOIN {above} ON {' AND '.join(pairs)}; then join the other table with {above}."
    return f"Write ON {example}, with further conditions if you like."


def _following(one: Relation, other: Relation) -> str:
    return " AND ".join(f"{_spelt(one, a)} = {_spelt(other, b)}" for a, b in one.private.unit.on)


def _spelt(relation: Relation, column: str) -> str:
    """A column of one side as the query has to write it."""
    matches = [named for named in relation.columns if named.name.lower() == column.lower()]
    return matches[0].written if matches else in_sql(column)
