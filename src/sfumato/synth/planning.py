"""`SynthPlan`: all that is public of a fit before it is paid, and what cannot be done, refused here."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_fraction, as_integer
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.session import Session
from sfumato.session.rows_wanted import RowsTaken, RowsWanted, rows_wanted
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.room import BYTES, MEGABYTE, megabytes, size_of
from sfumato.synth._rules.rules import Condition
from sfumato.synth.columns.coarse import WIDE
from sfumato.synth.columns.fine import Fine, all_fine
from sfumato.synth.columns.ids import Id, ids_of
from sfumato.synth.constraints import Constraints, condition
from sfumato.synth.methods import chosen_method
from sfumato.synth.methods.base import Wanted

if TYPE_CHECKING:
    from sfumato.synth.methods.base import Method

__all__ = ["SynthPlan", "most_cells", "planned", "workload_of"]

_HEAVY = 10**9  # the largest weight of a set of columns
_SETS = "A workload is sets of columns: workload=[('age', 'sex'), …], or a dictionary of them with weights."


@dataclass(frozen=True, slots=True)
class SynthPlan:
    """What is fitted, and how.

    Attributes:
        wanted: The rows.
        columns: Their columns as fine cells.
        method: How it is chosen what is measured.
        wishes: Which marginals matter, and how large the model may be.
        unit: The name of the column that says whose a row is; empty: there is none.
        constraints: What holds in every row that is drawn.
        ids: Columns that are not read, whose values are made anew.
        asked: The rows as they were asked for, and the parameters of their text.
    """

    wanted: RowsWanted
    columns: tuple[Fine, ...]
    method: Method
    wishes: Wanted
    unit: str
    constraints: Constraints
    ids: tuple[Id, ...] = ()
    asked: tuple[Any, Any] = (None, None)

    @property
    def taken(self) -> RowsTaken:
        """The rows as cells. A row without a value that is declared to be there is left out."""
        needed = [column.name for column in self.columns if not column.nullable]
        return self.wanted.taking({column.name: column.way for column in self.columns}, complete=needed)

    @property
    def searches(self) -> bool:
        """Whether it is found out which texts a column has."""
        return any(column.is_open for column in self.columns)

    @property
    def facts(self) -> Any:
        """All that a fit depends on but its rows and its price, as plain data."""
        return [
            self.method.name,
            [column.to_dict() for column in self.columns],
            [[list(clique), weight.hex()] for clique, weight in self.wishes.workload],
            self.wishes.most_cells,
            self.constraints.to_data(),
        ]


def planned(
    session: Session,
    rows: Any,
    *,
    method: str,
    columns: Sequence[str] | None,
    workload: Any,
    memory: int,
    parameters: Any,
    constraints: Any = None,
    ids: Any = (),
) -> SynthPlan:
    """The plan of a fit; nothing is read.

    Raises:
        InvalidParameter: for what cannot be done, with what would work.
        QueryRefused: for rows that cannot be read.
    """
    if not isinstance(session, Session):
        raise InvalidParameter("A fit takes a session: sf.synth.fit(session, epsilon=1).")
    asked = _rows(session, rows)
    wanted = rows_wanted(session, asked, parameters)
    if isinstance(asked, str) and asked.strip().lower() == wanted.table.lower():
        asked = wanted.table
    names, made = ids_of(wanted, _named(wanted, columns), ids)
    cells = all_fine([wanted.column(name) for name in names])
    sizes = tuple(min(column.size, WIDE) for column in cells)
    domain = Domain(tuple(names), sizes)
    most, single = most_cells(memory, domain), [(at,) for at in range(len(cells))]
    wishes = Wanted(workload_of(domain, cells, workload), most)
    rules = Constraints.read(cells, constraints)
    if size_of(domain, single, rules.cliques) > most:
        raise InvalidParameter("The constraints hold too many cells together for this memory: give more.")
    how = chosen_method(str(method), domain)
    how.check(domain, wishes)
    unit = session.tables[wanted.table].unit
    named = unit.column if wanted.has_units and unit.column is not None else ""
    _check_unit(named, [*names, *(one.name for one in made)])
    return SynthPlan(wanted, cells, how, wishes, named, rules, made, (asked, parameters))


def _rows(session: Session, rows: Any) -> Any:
    if rows is not None:
        return rows
    if len(session.tables) != 1:
        names = ", ".join(sorted(session.tables))
        raise InvalidParameter(f"The session has several tables, so name one of them: {names}.")
    return next(iter(session.tables))


def _named(wanted: RowsWanted, columns: Sequence[str] | None) -> list[str]:
    every = [column.name for column in wanted.columns]
    if columns is None:
        return every
    listed = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else []
    named = all(isinstance(name, str) for name in listed)
    if not listed or not named or len(set(listed)) < len(listed):
        raise InvalidParameter("columns are a list of names, each of them once: columns=['age', 'sex'].")
    return [wanted.column(name).name for name in listed]


def _check_unit(unit: str, names: Sequence[str]) -> None:
    """Refuse a column that is called like the one that says whose a row is: drawn rows have both."""
    if unit and any(name.casefold() == unit.casefold() for name in names):
        raise InvalidParameter(
            f"A column is called {unit[:60]!r}, like the one that says whose a row is: give it another name, "
            f"such as AS {in_sql(f'{unit}_2')}."
        )


def most_cells(memory: int, domain: Domain) -> int:
    """How many cells a model may have for so many megabytes.

    Raises:
        InvalidParameter: if that is too few for the columns by themselves.
    """
    most = as_integer(memory, "memory") * MEGABYTE // BYTES
    least = size_of(domain, [(at,) for at in range(len(domain))])
    if most < least:
        need = megabytes(least)
        raise InvalidParameter(f"There are {len(domain)} columns: give at least memory={need}.").in_shell(
            f"There are {len(domain)} columns: give at least --memory {need}."
        )
    return most


def workload_of(domain: Domain, cells: Sequence[Fine], workload: Any) -> tuple[tuple[Clique, float], ...]:
    """Sets of columns with weights; all pairs where none are given, and the one column where it is alone.

    A condition, as of a question that counts a range, stands for the columns that it names.

    Raises:
        InvalidParameter: if it names no set, no such column, or a weight that is none.
    """
    if workload is None:
        pairs = list(itertools.combinations(range(len(domain)), 2))
        return tuple((pair, 1.0) for pair in pairs) or (((0,), 1.0),)
    if not isinstance(workload, Iterable) or isinstance(workload, str | bytes):
        raise InvalidParameter(_SETS)
    given: Iterable[tuple[Any, Any]]
    given = workload.items() if isinstance(workload, Mapping) else [(names, 1) for names in workload]
    found = dict[Clique, float]()
    for names, weight in given:
        if not isinstance(names, Iterable):
            raise InvalidParameter(_SETS)
        listed = _mattering(domain, cells, names) if isinstance(names, str) else list(names)
        for name in listed:
            if name not in domain.names:
                raise InvalidParameter(
                    f"The workload names {str(name)[:60]!r}, which is no column of the table. "
                    f"{nearest(str(name), list(domain.names), 'Columns')}"
                )
        if not listed:
            raise InvalidParameter(_SETS)
        clique = domain.clique(listed)
        found[clique] = found.get(clique, 0.0) + _weight(weight)
    if not found:
        raise InvalidParameter("The workload is empty: name at least one set of columns, or leave it out.")
    return tuple(sorted(found.items()))  # the same in whatever order they are named


def _weight(given: Any) -> float:
    """A weight, within what can be computed with whatever the others are."""
    weight = as_fraction(given, "A weight")
    if not 1 <= weight * _HEAVY <= _HEAVY**2:
        raise InvalidParameter(
            f"A weight of the workload is a number above 0, from {1 / _HEAVY:g} to {_HEAVY:,}."
        )
    return float(weight)


def _mattering(domain: Domain, cells: Sequence[Fine], text: str) -> list[str]:
    """The column of a text, or those that a condition names."""
    if text in domain.names or text.isidentifier():
        return [text]
    return list(Condition(text, condition(text, cells)).names)
