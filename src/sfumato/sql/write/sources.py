"""The rows of a source as part of a statement: its columns by name, and `UNIT_COLUMN` with whose they are.

Privacy:
    Claim: the rows that carry one unit's id follow from the rows of that unit in the tables and from public
    tables alone, as multisets: rows(D) is the disjoint union of rows(D_u). No order of rows, number of
    threads or statistics of columns can show, and no row can make the engine raise.
    Conditions: the engine keeps rule 7 of its contract (`engines.base`), and the ids of one unit are equal in
    all tables, as the pointers to one owner are: those of different native types would be cast by the engine
    before they are compared, which can merge units, split one in two or fail on a row. The statement cannot
    see this; `id_types` asks for the types, so that whoever attaches tables of one dataset can refuse them
    unless they are the same.
    Proof: by induction over the source; each function below says why its node keeps it. Columns hold equal
    values in one form, so that what an engine's order, hash or group takes for the same row is the same row.
    Only a table that is read alone is left as it is: each of its rows is judged by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN, pointer_column
from sfumato.engines.dialect import Dialect
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.questions.relations import block_facts, is_single, source_facts
from sfumato.plan.questions.sources import Block, Joined, PerUnit, Public, Scan, Source, United, Windowed
from sfumato.plan.questions.windowing import AHEAD, is_shifted, offset_of, window_of
from sfumato.schema import Kind, PrivateTable, PublicTable, owners, pointers_of
from sfumato.sql.write.constants import constant_node
from sfumato.sql.write.per_unit import refined, select_per_unit, where
from sfumato.sql.write.pieces import check_names, column, has_id, select, subquery, table
from sfumato.sql.write.typed import Typed, as_kind, as_typed, plain, select_plain, typed
from sfumato.sql.write.windows import select_windowed

__all__ = [
    "MOST_JOINED",
    "MOST_PARTNERS",
    "id_types",
    "in_paid_windows",
    "lower_source",
    "timed_table",
    "unit_in_window",
]

MOST_JOINED = 1000
"""The most rows of one unit that enter one side of a join of private rows."""
MOST_PARTNERS = 100
"""The most rows that one row of a unit meets there."""
_PLACE = "sfumato place"


def lower_source(source: Source, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    """What FROM holds: it has the source's columns, and `UNIT_COLUMN` unless each row is a unit.

    Args:
        source: Where the rows come from.
        tables: The tables by name, private and public, with those that lead to owners.
        dialect: The engine's.

    Raises:
        InvalidParameter: for a source that has no meaning, such as rows of a unit of rows put together.
        QueryRefused: for ill-typed expressions.
    """
    if isinstance(source, Scan):  # whatever reads one table alone looks at each row by itself
        return _scan(source, tables, dialect)
    return _lowered(source, tables, dialect)


def id_types(columns: Sequence[tuple[str, str]], dialect: Dialect) -> exp.Select:
    """One row with the types of columns of attached tables, as `"0"`, `"1"`, … in this order, reading no row.

    Ids of tables whose rows are put together must have the same one, the text that the engine gives for it;
    and so must both ends of a pointer.
    """
    none = exp.Boolean(this=False)
    types = [
        subquery(
            select(
                [("t", dialect.type_name(column(name)))],
                table(of),
                none.copy(),
            ),
            f"t{i}",
        )
        for i, (of, name) in enumerate(columns)
    ]
    query = select([(str(i), column("t", f"t{i}")) for i in range(len(columns))], types[0])
    for other in types[1:]:
        query = query.join(other, join_type="cross", copy=False)
    return query


def _lowered(source: Source, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    if isinstance(source, Scan):
        return _plain_scan(source, tables, dialect)
    if isinstance(source, Joined):
        return subquery(_joined(source, tables, dialect), "j")
    if isinstance(source, United):
        return subquery(_united(source, tables, dialect), "a")
    _need_units(source.source, tables)
    inner = _lowered(source.source, tables, dialect)
    if isinstance(source, PerUnit):
        return subquery(select_per_unit(source, inner, tables, dialect), "b")
    return subquery(select_windowed(source, inner, tables, dialect), "c")


def _has_units(source: Source, tables: Mapping[str, Any]) -> bool:
    """Whether the rows carry ids: not where each is a unit of its own."""
    match source:
        case Scan():
            return not _private(source.table, tables).unit.is_row
        case Joined():
            return _has_units(_rows(source.left), tables)
        case United() | PerUnit() | Windowed():
            return True
        case unknown:
            assert_never(unknown)


def _need_units(source: Source, tables: Mapping[str, Any]) -> None:
    if not _has_units(source, tables):
        raise InvalidParameter("Rows that are units by themselves cannot be put together with others.")


def _private(name: str, tables: Mapping[str, Any]) -> PrivateTable:
    private = tables.get(name)
    if not isinstance(private, PrivateTable):
        raise InvalidParameter(f"{name[:60]!r} is not a private table.")
    return private


def _rows(block: Block) -> Source:
    if isinstance(block.source, Public):
        raise InvalidParameter("A public table can only be the right side of a join.")
    return block.source


def _scan(source: Scan, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    """The table, or its rows joined along the chain that leads to their owners, or with units in windows.

    Privacy:
        A row belongs to each id that it reaches, and to none otherwise: see `schema.owners`. No pointer is
        taken to be unique. Pointers are compared as the source has them: of '07' and '7', declared as whole
        numbers, a cast would make one, and rows would reach owners that they do not point to.
    """
    chain = owners(_private(source.table, tables), tables) if _is_via(source, tables) else ()
    if not chain:
        private = _private(source.table, tables)
        if private.unit.window is None:
            return _of_state(private, tables, dialect)
        return _in_windows(private, tables, dialect)
    last = f"t{len(chain) - 1}"
    columns: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN, last))]
    columns += [(name, column(name, "t0")) for name in chain[0].schema]
    query = select(columns, _of_state(chain[0], tables, dialect, "t0"), has_id(last))
    for i, (here, there) in enumerate(itertools.pairwise(chain)):
        ends = [(pointer_column(a), pointer_column(b)) for a, b in here.unit.on]
        pairs = [_equal(column(a, f"t{i}"), column(b, f"t{i + 1}")) for a, b in ends]
        owner = _of_state(there, tables, dialect, f"t{i + 1}")
        query = query.join(owner, on=exp.and_(*pairs, copy=False), copy=False)
    return subquery(query, "v")


def _of_state(
    private: PrivateTable, tables: Mapping[str, Any], dialect: Dialect, alias: str | None = None
) -> exp.Expr:
    """The rows of the state that a table is read in.

    Privacy:
        Whether a row belongs to it is decided by that row and by what the steward declared, so that the rows
        of a unit are some of its own.
    """
    rows = table(private.relation, alias)
    if private.last is None:
        return rows
    name, last = private.last
    facts = source_facts(Scan(private.name), tables)
    within = typed(call("less_equal", Column(name), literal(last)), facts, dialect)
    pointers = pointers_of([each for each in tables.values() if isinstance(each, PrivateTable)])
    kept = [pointer_column(pointer) for pointer in pointers.get(private.name, ())] + [*private.schema]
    kept += [] if private.unit.is_row or private.unit.is_via else [UNIT_COLUMN]
    return subquery(
        select([(each, column(each)) for each in kept], table(private.relation), within.sql), alias or "y"
    )


def unit_in_window(source: Source, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr | None:
    """The unit of a row of `timed_table` where units are windows of time: of the window and the id one text.

    None for every other source.

    Privacy:
        Two ids, and two windows of one id, stay apart: the text of a window has no colon, what is after the
        first one is the text of the id, and values of one type that differ have texts that do
        (`Dialect.shown`). A row without a time or an id is nobody's: NULL.
    """
    private = tables.get(source.table) if isinstance(source, Scan) else None
    if not isinstance(private, PrivateTable) or private.unit.window is None:
        return None
    window = _window(private, tables, dialect)
    texts = [dialect.fill(dialect.shown, node) for node in (window, column(UNIT_COLUMN))]
    return dialect.fill("{0} || ':' || {1}", *texts)


def _window(private: PrivateTable, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    """The window of a row of `timed_table`."""
    kind = private.schema[str(private.unit.time)].kind
    facts = {**source_facts(Scan(private.name), tables), AHEAD: Facts("integer", False)}
    return as_typed(window_of(private.unit, kind), facts, dialect).sql


def timed_table(private: PrivateTable, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    """A table whose units are windows of time, with what its rows need to be put into them.

    The offset of a zone is a column of its own, since forms of what follows name it several times.
    """
    if not is_shifted(private.unit, private.schema[str(private.unit.time)].kind):
        return _of_state(private, tables, dialect)
    offset = typed(offset_of(private.unit), source_facts(Scan(private.name), tables), dialect)
    columns: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN)), (AHEAD, offset.sql)]
    columns += [(name, column(name)) for name in private.schema]
    return subquery(select(columns, _of_state(private, tables, dialect)), "z")


def in_paid_windows(source: Source, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr | None:
    """Whether a row of `timed_table` is in one of the windows that it is held to (`PrivateTable.held_to`).

    None where nothing holds it, and for every other source.

    Privacy:
        It compares the very expression that is a part of the row's unit (`unit_in_window`): all rows of a
        unit pass or none does, by the row's own time. A row without a time is in no window, and does not.
    """
    private = tables.get(source.table) if isinstance(source, Scan) else None
    if not isinstance(private, PrivateTable) or private.within is None:
        return None
    window, held = _window(private, tables, dialect), private.within
    window = window if isinstance(window, exp.Column) else exp.Paren(this=window)
    ends = (held.first, held.last) if isinstance(held.each, int) else held.begins()
    low, high = map(constant_node, ends)
    return exp.Between(this=window, low=low, high=high)


def _in_windows(private: PrivateTable, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    source = Scan(private.name)
    unit = unit_in_window(source, tables, dialect)
    assert unit is not None
    columns: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, unit)]
    columns += [(name, column(name)) for name in private.schema]
    paid = in_paid_windows(source, tables, dialect)
    return subquery(select(columns, timed_table(private, tables, dialect), paid), "v")


def _plain_scan(source: Scan | Public, tables: Mapping[str, Any], dialect: Dialect) -> exp.Expr:
    """The same with equal values in one form, as the columns of all other sources have them."""
    kinds = {name: declared.kind for name, declared in tables[source.table].schema.items()}
    rows = table(source.table) if isinstance(source, Public) else _scan(source, tables, dialect)
    if "float" not in kinds.values():
        return rows
    columns: list[tuple[str, exp.Expr]] = []
    if not isinstance(source, Public) and _has_units(source, tables):
        columns.append((UNIT_COLUMN, column(UNIT_COLUMN)))
    columns += [(name, plain(Typed(column(name), kind), dialect)) for name, kind in kinds.items()]
    return subquery(select(columns, rows), "f")


def _is_via(source: Scan, tables: Mapping[str, Any]) -> bool:
    return _private(source.table, tables).unit.is_via


def _block(
    block: Block, tables: Mapping[str, Any], dialect: Dialect, kinds: Mapping[str, Facts]
) -> exp.Select:
    """The rows of a source that satisfy a condition, each judged by itself; in the types of `kinds`."""
    check_names([name for name, _ in block.columns])
    before, inside = refined(block.source, block.predicate, tables)
    columns: list[tuple[str, Typed]] = []
    if isinstance(block.source, Public):
        if not isinstance(tables.get(block.source.table), PublicTable):
            raise InvalidParameter(f"{block.source.table[:60]!r} is not a public table.")
        rows = _plain_scan(block.source, tables, dialect)
    else:
        rows = _lowered(block.source, tables, dialect)
        if _has_units(block.source, tables):
            columns.append((UNIT_COLUMN, Typed(column(UNIT_COLUMN), None)))
    values = {name: as_typed(expression, inside, dialect) for name, expression in block.columns}
    columns += [(name, as_kind(values[name], facts.kind, dialect)) for name, facts in kinds.items()]
    return select_plain(columns, rows, dialect, where(block.predicate, before, dialect))


def _joined(source: Joined, tables: Mapping[str, Any], dialect: Dialect) -> exp.Select:
    """Left rows with their partners.

    Privacy:
        Private partners have the same unit, whatever else is asked: the pairs of a unit are pairs of its own
        rows. A public table is the same for all neighbours, and a row has at most one partner in it, since
        it is grouped by what is compared. So one row stays one, even if a declared key is not unique.
    """
    source_facts(source, tables)  # checks names and kinds
    private = _has_units(_rows(source.left), tables)
    left, right = block_facts(source.left, tables), block_facts(source.right, tables)
    pairs = [_compared(a, left[a].kind, b, right[b].kind, dialect) for a, b in source.on]
    matches = [_equal(here, column(f"j{i}", "r")) for i, (here, _) in enumerate(pairs)]
    other = subquery(_block(source.right, tables, dialect, right), "q")
    keys = [there for _, there in pairs]
    if source.is_public:
        reduced = _at_most_one(other, right, keys, dialect)
    else:
        _need_units(_rows(source.left), tables)
        _need_units(_rows(source.right), tables)
        matches.append(_equal(column(UNIT_COLUMN, "l"), column(UNIT_COLUMN, "r")))
        few = subquery(_few(other, source.right, right, dialect), "q")
        reduced = _partners(_with_keys(few, right, keys, dialect), source.right, keys, right, dialect)
    columns: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN, "l"))] if private else []
    columns += [(name, column(name, "l")) for name in left]
    columns += [(name, column(f"c{i}", "r")) for i, name in enumerate(right)]
    mine: exp.Query = _block(source.left, tables, dialect, left)
    if not source.is_public:
        mine = _few(subquery(mine, "p"), source.left, left, dialect)
    query = select(columns, subquery(mine, "l"))
    return query.join(
        subquery(reduced, "r"),
        on=exp.and_(*matches, copy=False),
        join_type="left" if source.outer else "inner",
        copy=False,
    )


def _few(rows: exp.Subquery, block: Block, columns: Mapping[str, Facts], dialect: Dialect) -> exp.Select:
    """At most `MOST_JOINED` rows of each unit, chosen by a hash of their columns.

    Privacy:
        Which rows stay follows from the unit's own rows: rows of the same hash are told apart by their
        columns, and rows alike in all columns are alike, since equal values have one form (`select_plain`).
        Without this the size of a join of joins would grow as a power of one unit's rows, and a read that is
        never finished would tell whether somebody has many.
    """
    shown: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN))]
    shown += [(name, column(name)) for name in columns]
    if is_single(block):
        return select(shown, rows)
    every = [column(name) for name in columns]
    return _first(shown, rows, [column(UNIT_COLUMN)], every, MOST_JOINED, dialect)


def _partners(
    rows: exp.Select, block: Block, keys: Sequence[Typed], columns: Mapping[str, Facts], dialect: Dialect
) -> exp.Select:
    """At most `MOST_PARTNERS` rows of each unit with the same keys `j0`, …, chosen like those of `_few`.

    Privacy:
        As there. So a join has at most MOST_JOINED·MOST_PARTNERS rows of a unit before anything is counted:
        what one unit adds to the work of a read is bounded by the shape of the statement.
    """
    if is_single(block):
        return rows
    by = [UNIT_COLUMN, *(f"j{i}" for i in range(len(keys)))]
    every = [f"c{i}" for i in range(len(columns))]
    shown = [(name, column(name)) for name in (*by, *every)]
    inner = subquery(rows, "k")
    return _first(shown, inner, [*map(column, by)], [*map(column, every)], MOST_PARTNERS, dialect)


def _first(
    shown: Sequence[tuple[str, exp.Expr]],
    rows: exp.Subquery,
    by: Sequence[exp.Expr],
    every: Sequence[exp.Expr],
    most: int,
    dialect: Dialect,
) -> exp.Select:
    """So many rows of those that agree in `by`, in the order of a hash of all columns and of these."""
    lot: exp.Expr = exp.Literal.number(0)
    if every:
        lot = dialect.chosen_by(*(node.copy() for node in every))
    order = exp.Order(expressions=[exp.Ordered(this=node.copy()) for node in (lot, *every)])
    place = exp.Window(this=exp.RowNumber(), partition_by=[node.copy() for node in by], order=order)
    ranked = select([*shown, (_PLACE, place)], rows)
    limit = exp.LTE(this=column(_PLACE), expression=exp.Literal.number(most))
    return select([(name, node.copy()) for name, node in shown], subquery(ranked, "w"), limit)


def _compared(
    here: str, kind: Kind | None, there: str, other: Kind | None, dialect: Dialect
) -> tuple[exp.Expr, Typed]:
    """Both columns of an equality in one type: that which the engine would choose, but before it counts."""
    common: Kind | None = "float" if {kind, other} == {"integer", "float"} else kind
    left = as_kind(Typed(column(here, "l"), kind), common, dialect)
    return left.sql, as_kind(Typed(column(there), other), common, dialect)


def _with_keys(
    rows: exp.Expr, columns: Mapping[str, Facts], keys: Sequence[Typed], dialect: Dialect
) -> exp.Select:
    """Rows with `j0`, … to compare, and their columns as `c0`, …; a NaN equals nothing."""
    listed: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN))]
    listed += [(f"j{i}", key.sql) for i, key in enumerate(keys)]
    listed += [(f"c{i}", column(name)) for i, name in enumerate(columns)]
    return select(listed, rows, *(_no_nan(key, dialect) for key in keys))


def _at_most_one(
    rows: exp.Expr, columns: Mapping[str, Facts], keys: Sequence[Typed], dialect: Dialect
) -> exp.Select:
    """One row for each combination of keys: of several, the least value of each column."""
    if not keys:
        raise InvalidParameter("A join with a public table compares at least one column.")
    listed = [(f"j{i}", key.sql.copy()) for i, key in enumerate(keys)]
    listed += [(f"c{i}", column(name)) for i, name in enumerate(columns)]
    level = select(listed, rows, *(_no_nan(key, dialect) for key in keys))
    groups: list[tuple[str, exp.Expr]] = [(f"j{i}", column(f"j{i}", "p")) for i in range(len(keys))]
    kinds = [facts.kind for facts in columns.values()]
    groups += [(f"c{i}", dialect.least(column(f"c{i}", "p"), kind)) for i, kind in enumerate(kinds)]
    by = [column(f"j{i}", "p") for i in range(len(keys))]
    return select(groups, subquery(level, "p")).group_by(*by, copy=False)


def _no_nan(key: Typed, dialect: Dialect) -> exp.Expr | None:
    return exp.not_(dialect.nan_test(key.sql.copy())) if key.kind == "float" else None


def _united(source: United, tables: Mapping[str, Any], dialect: Dialect) -> exp.Query:
    """All rows of all parts; ids stay as they are, so that a unit of several parts is one."""
    kinds = source_facts(source, tables)
    for part in source.parts:
        _need_units(_rows(part), tables)
    first, *others = (_block(part, tables, dialect, kinds) for part in source.parts)
    union: exp.Query = first
    for other in others:
        union = exp.Union(this=union, expression=other, distinct=False)
    return union


def _equal(first: exp.Expr, second: exp.Expr) -> exp.EQ:
    return exp.EQ(this=first, expression=second)
