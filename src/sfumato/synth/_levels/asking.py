"""`Asked`: the counts of a session's table by place and attributes, as one question that is read once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.builder import Selection
from sfumato.plan.prices.bundle import fingerprint_of
from sfumato.plan.questions.aggregates.count import count
from sfumato.plan.questions.sensitivity import sensitivity_of_sums, step
from sfumato.plan.questions.terms import Col
from sfumato.schema import Keys, PublicTable
from sfumato.synth._levels.grid import Grid
from sfumato.synth._levels.tree import Tree, tree_of
from sfumato.synth._private.places import Places

if TYPE_CHECKING:
    from sfumato.ledger import Right
    from sfumato.plan.questions.nodes import Measured
    from sfumato.session.session import Session

__all__ = ["COUNT", "Asked", "asked"]

COUNT, LOWER, UPPER = "count", "lower", "upper"
_MOST_ATTRIBUTES = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """What is counted, and all that is public of it.

    Attributes:
        session: Whose table it is.
        question: The one that is read: how many rows each smallest place has in each cell.
        tree: The places.
        grid: The attributes.
        values: Of each attribute.
    """

    session: Session
    question: Measured
    tree: Tree
    grid: Grid
    values: tuple[tuple[Any, ...], ...]
    _axes: tuple[int, ...]

    @property
    def sensitivity(self) -> Fraction:
        """The most that a unit moves any sums of these counts, in L2, in people."""
        return self._moved * self._step

    @property
    def _moved(self) -> Fraction:
        return sensitivity_of_sums(self.question.measurements[0], self.question).l2

    @property
    def _step(self) -> Fraction:
        measurement, unit = self.question.measurements[0], self.question.unit
        return step(measurement, unit, keyed=True, bounding=self.question.bounding)

    @property
    def fingerprint(self) -> str:
        """What is read, as `reads` of a debit names it."""
        return fingerprint_of((self.question,))

    def check(self) -> None:
        """Make the statement without running it: what cannot be read is refused before it is paid."""
        self.session.vault.check((self.question,))

    def places(self, right: Right) -> Places:
        """The exact counts, for a right to `fingerprint`, once.

        Privacy:
            Claim: neighbours differ by one unit, which moves any sums of disjoint groups of the counts by at
            most the stated sensitivity: `plan.questions.sensitivity.sensitivity_of_sums`, whose conditions
            the statement holds. A row whose place or attribute is none of those listed is not counted.
        """
        [counts] = self.session.vault.read((self.question,), right).columns
        listed = [[path[-1] for path in self.tree.paths[-1]], *self.values]
        table = np.zeros([len(values) for values in listed], counts.dtype)
        at = [{value: place for place, value in enumerate(values)} for values in listed]
        keys = zip(*self.question.combinations, strict=True)
        found = [[at[axis][value] for value in column] for axis, column in zip(self._axes, keys, strict=True)]
        in_order = sorted(range(len(found)), key=lambda key: self._axes[key])
        table[tuple(found[key] for key in in_order)] = counts
        return Places(self.tree, self.grid, table, self._moved, self._step)


def asked(
    session: Session,
    rows: str | Selection[Any],
    geography: Sequence[str],
    places: Any,
    by: Sequence[str | Col | Keys] | str | Col | Keys,
) -> Asked:
    """The question; nothing is read, and all that can be refused without rows is refused here.

    Raises:
        InvalidParameter: for places or attributes that are not declared, or names that are taken.
        QueryRefused: for what cannot be asked.
    """
    selection = session.table(rows) if isinstance(rows, str) else rows
    if not isinstance(selection, Selection):
        raise InvalidParameter(
            'Name the table: levels(session, "people", …), or s.table("people").filter(…).'
        )
    if selection.groupings:
        raise QueryRefused("The rows are grouped already.", "Leave group_by out: by= says what is counted.")
    tree = tree_of(geography, _public(session, places, geography))
    leaf = tree.names[-1]
    listed = [by] if isinstance(by, str | Col | Keys) else list(by)
    grouped = selection.group_by(Keys(**{leaf: [path[-1] for path in tree.paths[-1]]}), *listed)
    names = [name for name, _ in grouped.groupings[1:]]
    _check_names(names, tree)
    if len({expression for _, expression in grouped.groupings}) < len(grouped.groupings):
        raise InvalidParameter(f"by= names {leaf[:60]} or an attribute twice: leave one of them out.")
    query = grouped.agg(**{COUNT: count()})
    for name, key in zip(names, query.report.child.keys[1:], strict=True):
        if key.values is None:
            raise QueryRefused(
                f"The values of {name[:60]} are not public.",
                f"Declare them, or list them: by=[sf.Keys({name[:60]}=[…])].",
            )
    keys = query.report.child.keys
    [question] = query.recipe().questions
    axes = [[key.expression for key in keys].index(key.expression) for key in question.keys]
    known = set(keys[0].values or ())
    if any(path[-1] not in known for path in tree.paths[-1]):
        raise InvalidParameter(f"Some of the places of {leaf[:60]} are no values of its column.")
    values = tuple(tuple(key.values or ()) for key in keys[1:])
    grid = Grid(tuple(names), tuple(map(len, values)))
    return Asked(session, question, tree, grid, values, tuple(axes))


def _check_names(names: list[str], tree: Tree) -> None:
    if len(names) > _MOST_ATTRIBUTES:
        raise InvalidParameter(f"At most {_MOST_ATTRIBUTES} attributes can be counted together: name fewer.")
    taken = {*tree.names, COUNT, LOWER, UPPER}
    for at, name in enumerate(names):
        if name in taken or name in names[:at]:
            raise InvalidParameter(
                f"The name {name[:60]!r} is taken: give the attribute another, "
                f"sf.col({name[:60]!r}).alias(…)."
            )


def _public(session: Session, places: Any, geography: Sequence[str]) -> Any:
    """The rows of a public table of the session, where one is named; anything else as it is."""
    if isinstance(places, PublicTable):
        places = places.name
    if not isinstance(places, str):
        return places
    table = session.tables.get(places)
    if not isinstance(table, PublicTable):
        raise InvalidParameter(f"The session has no public table {places[:60]!r} to take places from.")
    columns, rows = table.listed or ((), frozenset())
    names = [geography] if isinstance(geography, str) else list(geography)
    if missing := [name for name in names if name not in columns]:
        raise InvalidParameter(
            f"The public table {places[:60]} lists no values of {str(missing[0])[:60]!r}: hand in its rows, "
            "places=frame."
        )
    picked = sorted({tuple(row[columns.index(name)] for name in names) for row in rows}, key=repr)
    return dict(zip(names, map(list, zip(*picked, strict=True)), strict=True))
