"""Two relations side by side: what ON asks for, and whether a unit's rows meet only its own.

Privacy:
    Of two private sides the rows of one unit meet rows of the same unit, since
    `plan.questions.sources.Joined` compares the units whatever ON says; here it is seen to that the query
    says so too, by the units' columns or by a declared foreign key, so that what is run is what was asked. A
    public side has one row at most for each row it is joined to, since the columns compared contain its
    declared key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.normal import normal
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, columns_of, literal, to_wire
from sfumato.plan.questions.relations import substituted
from sfumato.plan.questions.sources import Block, Joined, Public
from sfumato.schema import PrivateTable, PublicTable, dataset_of
from sfumato.sql.read.meeting import strangers
from sfumato.sql.read.relation import ColumnOrigin, Named, Relation, both, called_after, facts_within, fresh
from sfumato.sql.read.scope import Scope
from sfumato.sql.read.settle import terms
from sfumato.sql.refusals import refuse

__all__ = ["check_same_units", "join"]


def join(left: Relation, right: Relation, conditions: Sequence[exp.Expr], *, outer: bool = False) -> Relation:
    """The rows of the private left side with those of the right that satisfy the conditions.

    Args:
        left: Private.
        right: Private of the same units, or public.
        conditions: All of which must hold, over both sides' names.
        outer: Whether left rows without a partner stay.

    Raises:
        QueryRefused: if units would meet others' rows, or the public side has no declared key in ON.
    """
    if not right.is_public:
        check_same_units(left, right, "joined")
    names = _renamed(right, left)
    moved = _moved(right, names)
    scope = Scope(_side_by_side(left, moved))
    with scope.relation.in_words():
        asked = _Asked.of(conditions, scope, left, moved)
    if right.is_public:
        if right.distinct and not _covers(asked, right, names):
            return _looked_up(left, right, moved, asked, outer=outer)
        _check_key(asked, left, right, names)
    elif not (asked.units or _follows_key(asked, left, moved)):
        raise strangers(left, right)
    return _joined(left, right, moved, names, asked, outer=outer)


def check_same_units(left: Relation, right: Relation, word: str) -> None:
    """Refuse two private sides that are not about the same units.

    Raises:
        QueryRefused: if rows are units, or the tables draw on different budgets.
    """
    first, second = left.private, right.private
    for table in (first, second):
        if table.unit.is_row:
            raise refuse(
                f"{table.name} protects single rows, which cannot be {word} with other private rows.",
                "Have the column that names its people declared as the privacy unit.",
            )
    try:
        datasets = dataset_of(first, left.known), dataset_of(second, left.known)
    except InvalidParameter as error:
        raise refuse(str(error), "Have the steward correct the declaration.") from None
    if datasets[0] != datasets[1] or first.unit.adjacency != second.unit.adjacency:
        raise refuse(
            f"{first.name} and {second.name} are not declared to be about the same people.",
            "Ask each by itself, or have the steward declare both with the same dataset.",
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What ON says, sorted.

    Attributes:
        units: Whether the units of both sides are equal.
        equal: Pairs of a left and a right expression that are equal.
        left: Conditions on left columns alone.
        right: Conditions on right columns alone, or on none.
        across: Other conditions on both.
    """

    units: bool
    equal: tuple[tuple[Expression, Expression], ...]
    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    across: tuple[Expression, ...]

    @classmethod
    def of(cls, conditions: Iterable[exp.Expr], scope: Scope, left: Relation, right: Relation) -> _Asked:
        units, scalars = False, []
        for node in conditions:
            tree = scope.resolved(node)
            sides = _unit_sides(tree, scope, left)
            if sides is None:
                _check_values(tree, scope)
                scalars.append(scope.scalar(tree))
            else:
                units |= sides == {True, False}
        equal, one, other, across = [], [], [], []
        for condition in scalars:
            for term in terms(condition):
                used = set(columns_of(term))
                pair = _pair(term, left.facts, right.facts)
                if pair is not None:
                    equal.append(pair)
                elif used <= set(right.facts):  # a constant, too: without it nobody has a partner
                    other.append(term)
                elif used <= set(left.facts):
                    one.append(term)
                else:
                    across.append(term)
        ordered = sorted(dict.fromkeys(equal), key=repr)
        return cls(units, tuple(ordered), tuple(one), tuple(other), tuple(across))


def _check_values(tree: exp.Expr, scope: Scope) -> None:
    columns = [scope.column(node) for node in tree.find_all(exp.Column)]
    for column in columns:
        if column is not None and column.is_unit and column.meaning is None:
            raise refuse(
                f"In ON, {column.written} can only be equal to the privacy unit of the other side.",
                "Write that equality, and further conditions after AND.",
            )


def _unit_sides(tree: exp.Expr, scope: Scope, left: Relation) -> set[bool] | None:
    """For an equality of two unit columns, whether each is on the left; None for anything else."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if not isinstance(tree, exp.EQ):
        return None
    columns = scope.column(tree.this), scope.column(tree.expression)
    tables = {column.table for column in left.columns}
    sides = [column.table in tables for column in columns if column is not None and column.is_unit]
    return set(sides) if len(sides) == 2 else None


def _pair(
    term: Expression, left: Mapping[str, object], right: Mapping[str, object]
) -> tuple[Expression, Expression] | None:
    if not (isinstance(term, Call) and term.function == "equal"):
        return None
    first, second = term.arguments
    for here, there in ((first, second), (second, first)):
        used = set(columns_of(here)), set(columns_of(there))
        if all(used) and used[0] <= set(left) and used[1] <= set(right):
            return here, there
    return None


def _renamed(right: Relation, left: Relation) -> dict[str, str]:
    """New names for the right side's columns where the left has them already: by position, not by alias."""
    names: dict[str, str] = {}
    taken = list(left.facts)
    for name in right.facts:
        names[name] = fresh(name, taken)
        taken.append(names[name])
    return names


def _moved(right: Relation, names: Mapping[str, str]) -> Relation:
    """The right side as it looks from outside the join."""
    columns: dict[str, Expression] = {old: Column(new) for old, new in names.items()}

    def over(expression: Expression | None) -> Expression | None:
        return None if expression is None else normal(substituted(expression, columns))

    return replace(
        right,
        predicate=over(right.predicate),
        columns=tuple(replace(column, meaning=over(column.meaning)) for column in right.columns),
        facts={names[name]: facts for name, facts in right.facts.items()},
        origins={names[name]: origin for name, origin in right.origins.items()},
    )


def _side_by_side(left: Relation, right: Relation) -> Relation:
    """Both sides' names; the table that is called so comes before the one that was renamed."""
    own = {alias.lower(): alias for side in (left, right) for alias in side.aliases.values()}
    others = [side.aliases for side in (left, right)]
    shared = set(others[0]) & set(others[1])
    aliases = {
        name: alias for mapping in others for name, alias in mapping.items() if name not in shared
    } | own
    above = 1 + max((origin.use for origin in left.origins.values()), default=0)
    origins = {name: replace(origin, use=origin.use + above) for name, origin in right.origins.items()}
    return replace(
        left,
        columns=left.columns + right.columns,
        facts={**left.facts, **right.facts},
        aliases=aliases,
        origins={**left.origins, **origins},
    )


# ── which joins are sound, and mean what they say ──


def _covers(asked: _Asked, right: Relation, names: Mapping[str, str]) -> bool:
    table = right.known[right.source.table]  # type: ignore[union-attr]
    assert isinstance(table, PublicTable)
    compared = {there.name for _, there in asked.equal if isinstance(there, Column)}
    return bool(table.key) and {names[column] for column in table.key} <= compared


def _check_key(asked: _Asked, left: Relation, right: Relation, names: Mapping[str, str]) -> None:
    if _covers(asked, right, names):
        return
    assert isinstance(right.source, Public)
    table = right.known[right.source.table]
    assert isinstance(table, PublicTable)
    if not table.key:
        raise refuse(
            f"{table.name} has no declared key, so a join with it could multiply rows.",
            "Have the steward declare the column that no two of its rows share: "
            f"key={in_sql(next(iter(table.schema)))!r}.",
        )
    alias = next(iter(right.aliases.values()), table.name)
    listed = " AND ".join(f"{in_sql(alias)}.{in_sql(column)} = {_other(asked, left)}" for column in table.key)
    raise refuse(
        f"ON must compare the key of {table.name}, or the join could multiply rows.", f"Write ON {listed}."
    )


def _other(asked: _Asked, left: Relation) -> str:
    """What ON compares already with another column, as the query writes it."""
    here = asked.equal[0][0] if len(asked.equal) == 1 else None
    written = [column.written for column in left.columns if here is not None and column.meaning == here]
    return written[0] if written else "…"


def _follows_key(asked: _Asked, left: Relation, right: Relation) -> bool:
    """Whether the columns compared are a declared way from one table to the owner of its rows."""
    pairs: dict[tuple[int, str, int, str], set[tuple[str, str]]] = {}
    for here, there in asked.equal:
        one, other = _origin(here, left), _origin(there, right)
        if one is not None and other is not None:
            compared = pairs.setdefault((one.use, one.table, other.use, other.table), set())
            compared.add((one.column, other.column))
    return any(_is_way(left, first, second, compared) for (_, first, _, second), compared in pairs.items())


def _origin(expression: Expression, relation: Relation) -> ColumnOrigin | None:
    return relation.origins.get(expression.name) if isinstance(expression, Column) else None


def _is_way(relation: Relation, first: str, second: str, pairs: set[tuple[str, str]]) -> bool:
    one, other = relation.known[first], relation.known[second]
    if not isinstance(one, PrivateTable) or not isinstance(other, PrivateTable):
        return False
    turned = {(there, here) for here, there in pairs}
    if one.unit.table == second and set(one.unit.on) <= pairs:
        return True
    if other.unit.table == first and set(other.unit.on) <= turned:
        return True
    # Two rows that point to the same row of the same table have its owner.
    targets = {there: here for here, there in other.unit.on}
    siblings = {(here, targets.get(there, "")) for here, there in one.unit.on}
    return one.unit.is_via and one.unit.table == other.unit.table and siblings <= pairs


# ── the joined relation ──


def _joined(
    left: Relation,
    right: Relation,
    moved: Relation,
    names: Mapping[str, str],
    asked: _Asked,
    *,
    outer: bool,
) -> Relation:
    if outer and (asked.left or asked.across):
        raise refuse(
            "ON of a LEFT JOIN takes equalities, and conditions on the joined table alone.",
            "Put conditions on the first table into WHERE, or write JOIN if rows without a partner may go.",
        )
    back: dict[str, Expression] = {new: Column(old) for old, new in names.items()}
    sides = _Columns(left.facts, {}), _Columns(moved.facts, back)
    taken = [*left.facts, *moved.facts]
    on = tuple(
        sorted((sides[0].name(here, taken), sides[1].name(there, taken)) for here, there in asked.equal)
    )
    columns = moved.columns
    inside: Expression | None = None
    if outer:
        columns = tuple(_maybe(column, sides[1], taken) for column in columns)
        inside = right.predicate
        for term in asked.right:
            inside = both(inside, normal(substituted(term, back)))
    source = Joined(
        Block(left.source, None, sides[0].block()),
        Block(right.source, inside, sides[1].block()),
        on,
        outer,
    )
    joined = replace(
        _side_by_side(left, replace(moved, columns=columns)),
        source=source,
        facts=facts_within(source, taken, left.known),
    )
    for condition in () if outer else (moved.predicate, *asked.left, *asked.right, *asked.across):
        joined = joined.where(condition)
    return joined


class _Columns:
    """The columns of one side of a join: the source's, and expressions that need a name."""

    def __init__(self, facts: Mapping[str, object], back: Mapping[str, Expression]) -> None:
        self._back = back
        self._columns: dict[str, Expression] = {name: back.get(name, Column(name)) for name in facts}
        self._made: dict[Expression, str] = {}

    def name(self, expression: Expression, taken: list[str]) -> str:
        """The name of an expression over this side's columns, as it is seen from outside."""
        if isinstance(expression, Column):
            return expression.name
        if expression not in self._made:
            inner = normal(substituted(expression, self._back))
            called = fresh(called_after("expression", to_wire(inner)), taken)
            self._made[expression] = called
            self._columns[called] = inner
            taken.append(called)
        return self._made[expression]

    def block(self) -> tuple[tuple[str, Expression], ...]:
        """All of them."""
        return tuple(self._columns.items())


def _maybe(column: Named, side: _Columns, taken: list[str]) -> Named:
    """A column of the side that may be missing: it is NULL there, whatever its definition would give."""
    if column.meaning is None:
        return replace(column, is_unit=False)
    return replace(column, meaning=Column(side.name(column.meaning, taken)), is_unit=False)


def _looked_up(left: Relation, right: Relation, moved: Relation, asked: _Asked, *, outer: bool) -> Relation:
    """A join with the distinct values of one public column: the rows whose value is among them."""
    assert isinstance(right.source, Public)
    named = [column for column in moved.columns if column.meaning is not None]
    match asked.equal:
        case ((here, Column(name)),) if len(named) == 1 and named[0].meaning == Column(name):
            values = moved.facts[name].values
            used = set(columns_of(moved.predicate)) if moved.predicate is not None else set()
            # Only texts are listed as the table has them; bounds of others say what could be there.
            if values is not None and moved.facts[name].kind == "text" and used <= {name} and not outer:
                listed = [literal(value) for value in values if value is not None]
                among = normal(Call("in", (here, *listed))) if listed else Literal(False, "boolean")
                joined = replace(
                    _side_by_side(left, replace(moved, columns=(replace(named[0], meaning=here),))),
                    facts=left.facts,
                    origins=left.origins,
                )
                conditions = [moved.predicate, *asked.left, *asked.right, *asked.across]
                joined = joined.where(among)
                for condition in conditions:
                    over = None if condition is None else normal(substituted(condition, {name: here}))
                    joined = joined.where(over)
                return joined
    table = right.known[right.source.table]
    raise refuse(
        f"SELECT DISTINCT from the public table {table.name} can be joined on its one column alone, where "
        "its values are listed.",
        f"Join {table.name} itself on its key, and group by the column.",
    )
