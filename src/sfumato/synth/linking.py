"""`LinkedPlan`: all that is public of a fit of two linked tables, and what cannot be done, refused here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.schema import PrivateTable
from sfumato.session import Session
from sfumato.session.rows_wanted import Coded, RowsTaken, RowsWanted, rows_wanted
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth.columns.fine import Fine, fine
from sfumato.synth.methods import chosen_method
from sfumato.synth.methods.base import Wanted
from sfumato.synth.planning import most_cells, workload_of

if TYPE_CHECKING:
    from sfumato.synth.methods.base import Method

__all__ = ["Link", "LinkedPlan", "linked_plan"]

MOST_CHILDREN = 1000
"""How many children a parent may have: the most that `max_rows` may say."""

# Fewer than for one table: what children are like follows from how many there are of each kind of parent, so
# that pairs with the number of children must be cheap enough to be measured.
_BINS, _FEW = 32, 12


@dataclass(frozen=True, slots=True)
class Link:
    """Two tables, the second of which points to rows of the first; public.

    Attributes:
        parent: The name of the table with one row for each unit.
        child: The name of the table with any number of rows for each.
        key: The columns of the first that are made anew: those that are pointed to, and the unit's.
        pointer: The columns of the second that point to them.
        parents: The columns of the first as fine cells, with the table's name before theirs.
        children: Those of the second.
        most: How many children a parent has at most.
    """

    parent: str
    child: str
    key: tuple[str, ...]
    pointer: tuple[str, ...]
    parents: tuple[Fine, ...]
    children: tuple[Fine, ...]
    most: int

    @property
    def number(self) -> Fine:
        """How many children a parent has that has some, as a column."""
        steps = self.most - 1
        name = f"number of {self.child}"
        return Fine(name, "integer", None, Fraction(1), Fraction(self.most), steps, nullable=False)

    @property
    def columns(self) -> tuple[Fine, ...]:
        """All columns of the model: of parents, the number of children, of children."""
        return (*self.parents, self.number, *self.children)

    def bins(self, column: Fine) -> int:
        """How many cells the model holds a column in, at most."""
        return _FEW if column == self.number else _BINS

    def bare(self, column: Fine) -> str:
        """The name of a column within its table."""
        table = self.parent if column in self.parents else self.child
        return column.name.removeprefix(f"{table}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back."""
        return {
            "parent": self.parent,
            "child": self.child,
            "key": list(self.key),
            "pointer": list(self.pointer),
            "parents": [column.to_dict() for column in self.parents],
            "children": [column.to_dict() for column in self.children],
            "most": self.most,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Link:
        """The link that `to_dict` wrote."""
        return cls(
            str(facts["parent"]),
            str(facts["child"]),
            tuple(map(str, facts["key"])),
            tuple(map(str, facts["pointer"])),
            tuple(map(Fine.from_dict, facts["parents"])),
            tuple(map(Fine.from_dict, facts["children"])),
            int(facts["most"]),
        )


@dataclass(frozen=True, slots=True)
class LinkedPlan:
    """What is fitted, and how.

    Attributes:
        link: The two tables.
        wanted: Rows of both, joined.
        method: How it is chosen what is measured.
        wishes: Which marginals of parents with children matter, and how large the model may be.
        childless: The same for parents without children.
    """

    link: Link
    wanted: RowsWanted
    method: Method
    wishes: Wanted
    childless: Wanted

    @property
    def taken(self) -> RowsTaken:
        """The joined rows as cells: parents, children, and whether there is a child.

        A parent without a value that is declared to be there is left out. A child without one is not counted
        as a child.
        """
        ways = {f"p{at}": column.way for at, column in enumerate(self.link.parents)}
        ways |= {f"c{at}": column.way for at, column in enumerate(self.link.children)}
        needed = [f"p{at}" for at, column in enumerate(self.link.parents) if not column.nullable]
        return self.wanted.taking(ways | {"present": Coded([1])}, complete=needed)

    @property
    def facts(self) -> Any:
        """All that a fit depends on but its rows and its price, as plain data."""
        return [
            self.method.name,
            self.link.to_dict(),
            [[list(clique), weight.hex()] for clique, weight in self.wishes.workload],
            self.wishes.most_cells,
        ]


def linked_plan(
    session: Session, tables: Any, *, method: str, columns: Any, workload: Any, memory: int
) -> LinkedPlan:
    """The plan of a fit of two tables; nothing is read.

    Raises:
        InvalidParameter: for what cannot be done, with what would work.
        QueryRefused: for rows that cannot be read.
    """
    if not isinstance(session, Session):
        raise InvalidParameter('A fit takes a session: sf.synth.tables(session, ["people", "visits"], …).')
    parent, child = _pair(session, tables)
    pairs = _pairs(parent, child)
    _check_limits(parent, child)
    chosen = _chosen(columns, (parent.name, child.name))
    ids = () if parent.unit.column is None else (parent.unit.column,)
    key = tuple(dict.fromkeys((*ids, *(there for _, there in pairs))))
    pointer = tuple(here for here, _ in pairs)
    parents = _columns(session, parent.name, key, chosen)
    children = _columns(session, child.name, pointer, chosen)
    link = Link(parent.name, child.name, key, pointer, parents, children, child.unit.max_rows)
    if len({column.name for column in link.columns}) < len(link.columns):
        raise InvalidParameter(f"A column is called {link.number.name!r}, which the fit needs: rename it.")
    wanted = rows_wanted(session, _joined(link, pairs))
    domain = Domain(
        tuple(column.name for column in link.columns),
        tuple(min(column.size, link.bins(column)) for column in link.columns),
    )
    most = most_cells(memory, domain)
    wishes = Wanted(workload_of(domain, link.columns, workload), most)
    how = chosen_method(method, domain)
    how.check(domain, wishes)
    many = len(parents)
    first = Domain(domain.names[:many], domain.sizes[:many])
    childless = Wanted(_of_parents(wishes, many), most)
    how.check(first, childless)
    return LinkedPlan(link, wanted, how, wishes, childless)


def _pair(session: Session, tables: Any) -> tuple[PrivateTable, PrivateTable]:
    """The parent and the child, whatever their order."""
    names = list(tables) if isinstance(tables, list | tuple) else []
    if len(names) != 2 or names[0] == names[1] or not all(isinstance(name, str) for name in names):
        raise InvalidParameter(
            'Two tables can be fitted together, each by its name: ["patients", "visits"]. Fit others apart.'
        )
    found = list[PrivateTable]()
    for name in names:
        table = session.tables.get(name)
        if table is None:
            raise InvalidParameter(
                f"There is no table {name[:60]!r}. {nearest(name, list(session.tables), 'Tables')}"
            )
        if not isinstance(table, PrivateTable):
            raise InvalidParameter(f"{name} is public: there is nothing to protect, use it as it is.")
        found.append(table)
    first, second = found
    if second.unit.table == first.name:
        return first, second
    points = first.unit.table == second.name
    most, other = ((one.unit.auto, one.unit.max_rows) for one in found)
    return (second, first) if points or most > other else (first, second)


def _pairs(parent: PrivateTable, child: PrivateTable) -> tuple[tuple[str, str], ...]:
    """Which column of the child equals which of the parent."""
    if child.unit.table == parent.name:
        return child.unit.on
    ids = parent.unit.column, child.unit.column
    if (
        parent.dataset == child.dataset
        and not parent.unit.is_via
        and not child.unit.is_via
        and ids[0] is not None
        and ids[0] == ids[1]
    ):
        return ((ids[0], ids[0]),)
    reason = f"Nothing says which row of {parent.name} a row of {child.name} belongs to"
    raise InvalidParameter(
        f'{reason}: declare it, unit=sf.PrivacyUnit.via("{parent.name}", on={{"a column of {child.name}": '
        f'"the key of {parent.name}"}}, max_rows=20).'
    ).in_shell(
        f'{reason}: name both by the same column of people, or write unit = {{ via = "{parent.name}", on = '
        f"{{ … }} }} into [tables.{child.name}] of sfumato.toml."
    )


def _check_limits(parent: PrivateTable, child: PrivateTable) -> None:
    if child.unit.auto:
        reason = f"Nothing says how many rows of {parent.name} and {child.name} one unit has at most"
        raise InvalidParameter(
            f"{reason}: declare max_rows=1 for the table with one row each, and a number such as max_rows=20 "
            'for the other; "auto" is for questions.'
        ).in_shell(
            f"{reason}: in sfumato.toml, write max_rows = 1 for the table with one row each, and a number "
            'such as max_rows = 20 for the other; "auto" is for questions.'
        )
    if parent.unit.max_rows != 1:
        reason = f"A unit has one row of {parent.name} in a fit of two tables"
        raise InvalidParameter(f"{reason}: declare its unit with max_rows=1.").in_shell(
            f"{reason}: write max_rows = 1 into [tables.{parent.name}] of sfumato.toml."
        )
    if child.unit.max_rows > MOST_CHILDREN:
        reason = f"A parent can have {MOST_CHILDREN:,} rows of {child.name} at most"
        raise InvalidParameter(f"{reason}: declare a smaller max_rows.").in_shell(
            f"{reason}: write max_rows = 20, or what is usual, into [tables.{child.name}] of sfumato.toml."
        )


def _chosen(columns: Any, names: tuple[str, str]) -> Mapping[str, Sequence[str]]:
    if columns is None:
        return {}
    if not isinstance(columns, Mapping) or not set(columns) <= set(names):
        raise InvalidParameter(f'columns are lists of names by table: columns={{"{names[1]}": ["a", "b"]}}.')
    for listed in columns.values():
        if isinstance(listed, str) or not listed or len(set(listed)) < len(listed):
            raise InvalidParameter("columns of a table are a list of names, each of them once.")
    return columns


def _columns(
    session: Session, table: str, keys: Sequence[str], chosen: Mapping[str, Sequence[str]]
) -> tuple[Fine, ...]:
    """The columns of a table but those that link it, as fine cells with the table's name before theirs."""
    wanted = rows_wanted(session, table)
    linking = {key.casefold() for key in keys}
    names = chosen.get(table)
    if names is None:
        names = [column.name for column in wanted.columns if column.name.casefold() not in linking]
    found = [wanted.column(name) for name in names]
    if not found:
        raise InvalidParameter(f"{table} has no column but its keys: declare one to model.")
    if any(column.name.casefold() in linking for column in found):
        raise InvalidParameter(f"The keys of {table} are made anew: leave them out of columns.")
    for column in found:
        listed = column.values is not None or column.type == "boolean"
        if not listed and (column.lower is None or column.upper is None):
            reason = f"Nothing says which values '{table}.{column.name[:60]}' can have"
            raise InvalidParameter(
                f'{reason}: declare bounds or a list, such as sf.Int(0, 120) or sf.Enum("a", "b"), or leave '
                f'the column out with columns={{"{table}": […]}}.'
            ).in_shell(
                f"{reason}: declare bounds or a list in sfumato.toml, such as lower = 0, upper = 120 or "
                f'type = "enum", values = ["a", "b"]; or leave it out, --without {table}.{column.name[:60]}.'
            )
    return tuple(fine(replace(column, name=f"{table}.{column.name}")) for column in found)


def _joined(link: Link, pairs: Sequence[tuple[str, str]]) -> str:
    """The text that reads parents with their children, and parents without any."""
    named = [f"p.{in_sql(link.bare(column))} AS p{at}" for at, column in enumerate(link.parents)]
    named += [f"v.c{at}" for at in range(len(link.children))] + ["v.present"]
    own = [f"{in_sql(here)} AS k{at}" for at, (here, _) in enumerate(pairs)]
    own += [f"{in_sql(link.bare(column))} AS c{at}" for at, column in enumerate(link.children)]
    within = f"(SELECT {', '.join(own)}, 1 AS present FROM {in_sql(link.child)}) AS v"
    on = " AND ".join(f"v.k{at} = p.{in_sql(there)}" for at, (_, there) in enumerate(pairs))
    return f"SELECT {', '.join(named)} FROM {in_sql(link.parent)} AS p LEFT JOIN {within} ON {on}"


def _of_parents(wishes: Wanted, many: int) -> tuple[tuple[Clique, float], ...]:
    """What of a workload is about parents alone, and each of their columns where nothing is."""
    found = dict[Clique, float]()
    for clique, weight in wishes.workload:
        part = tuple(place for place in clique if place < many)
        if len(part) > 1:
            found[part] = found.get(part, 0.0) + weight
    return tuple(found.items()) or tuple(((place,), 1.0) for place in range(many))
