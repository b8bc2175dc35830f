"""From a table to the people in it: the chain of tables that leads to whoever owns a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.schema.tables import PrivateTable, PublicTable

__all__ = ["Tables", "dataset_of", "owners", "pointers_of"]

Tables: TypeAlias = Mapping[str, PrivateTable | PublicTable] | Iterable[PrivateTable | PublicTable]
"""All tables that are declared together, by name or as a list."""


def owners(table: PrivateTable, tables: Tables) -> tuple[PrivateTable, ...]:
    """The chain from a table to the one that names its units: `(lineitem, orders, customer)`.

    A table that names its own units is a chain of one. The pointer from each link to the next is the `on` of
    its unit; the unit column of the last link holds the ids.

    Privacy:
        Claim: let a row belong to every id that it reaches by joining along the chain on equality, and count
        for each of them. A row that reaches no id counts nowhere. Then the pairs (id, row) of one id depend
        on the rows that reach this id alone, so that bounding them by id after the join bounds what one unit
        changes, whatever the data.
        Conditions: the bound is put on the joined rows, keyed by the id as the source has it, and never on
        the rows of a link by itself. A row that reaches two ids, since a pointer fits two rows, is protected
        as part of each of the two and not on its own account.
        Proof: a pair exists if and only if one row of every link exists and the equalities hold; adding or
        removing rows that reach no other id adds or removes pairs of this id and no others.

    Raises:
        InvalidParameter: if a table or a column of the chain is not declared, the kinds of two columns
            differ, the chain comes back to itself, ends in a unit of rows, or mixes adjacencies.
    """
    known = _by_name(tables)
    chain = [table]
    while (above := chain[-1].unit.table) is not None:
        following = known.get(above)
        if following is None:
            there = f" Tables: {', '.join(sorted(known))}." if known else ""
            raise InvalidParameter(f"{_unit(chain[-1])} is via {above[:60]!r}, which is not a table.{there}")
        if not isinstance(following, PrivateTable):
            raise InvalidParameter(f"{_unit(chain[-1])} is via {above}, which is public and has no owners.")
        if any(following.name == link.name for link in chain):
            names = " → ".join(link.name for link in (*chain, following))
            raise InvalidParameter(f"Owners go round in a circle: {names}. One table must name them.")
        _check_link(chain[-1], following)
        chain.append(following)
    return tuple(chain)


def dataset_of(table: PrivateTable, tables: Tables) -> str:
    """Whose budget a table draws on: its own dataset, or for a unit via other tables that of their owner.

    Privacy:
        All tables that lead to the same owners draw on one budget, so that what is spent on one person is
        added up in one place.

    Raises:
        InvalidParameter: as of `owners`, or if tables of one chain are declared with different datasets.
    """
    *below, root = owners(table, tables)
    for link in below:
        if link.dataset not in (link.name, root.dataset):
            raise InvalidParameter(
                f"{link.name} is about the owners in {root.name} and must share its dataset "
                f"{root.dataset!r}; leave out dataset={link.dataset!r}."
            )
    return root.dataset


def pointers_of(tables: Iterable[PrivateTable]) -> dict[str, tuple[str, ...]]:
    """The columns of each table, by its name, that lead from a row to its owner: on either end, each once.

    Privacy:
        Engines show these as the source has them, since what a cast makes equal need not be one pointer:
        see `engines.base.Engine.attach`.
    """
    pointers: dict[str, dict[str, None]] = {}
    for table in tables:
        for here, there in table.unit.on:
            pointers.setdefault(table.name, {})[here] = None
            pointers.setdefault(str(table.unit.table), {})[there] = None
    return {name: tuple(columns) for name, columns in pointers.items()}


def _by_name(tables: Tables) -> dict[str, PrivateTable | PublicTable]:
    return {table.name: table for table in (tables.values() if isinstance(tables, Mapping) else tables)}


def _check_link(table: PrivateTable, owner: PrivateTable) -> None:
    unit = table.unit
    for here, there in unit.on:
        for side, column in ((table, here), (owner, there)):
            if column not in side.schema:
                raise InvalidParameter(
                    f"{_unit(table)} is via {owner.name} on {here} = {there}, but the schema of {side.name} "
                    f"has no column {column[:60]!r}; declare it."
                )
        kinds = table.schema[here].kind, owner.schema[there].kind
        if "float" in kinds or kinds[0] != kinds[1]:
            raise InvalidParameter(
                f"{_unit(table)} is via {owner.name} on {here} ({kinds[0]}) = {there} ({kinds[1]}); "
                "both must be of one kind, and not floats."
            )
    if owner.unit.is_row:
        raise InvalidParameter(
            f"{_unit(table)} is via {owner.name}, whose unit is the row; name the column of its ids instead: "
            f'PrivacyUnit("{unit.on[0][1]}").'
        )
    if owner.unit.window is not None:
        raise InvalidParameter(
            f"{_unit(table)} is via {owner.name}, whose units are windows of time: which window a row of "
            f"{table.name} is in would not be known. Declare the id in {table.name} itself."
        )
    if unit.adjacency != owner.unit.adjacency:
        raise InvalidParameter(
            f"{table.name} has adjacency {unit.adjacency!r} and its owner {owner.name} "
            f"{owner.unit.adjacency!r}; declare the same for both."
        )


def _unit(table: PrivateTable) -> str:
    return f"The unit of {table.name}"
