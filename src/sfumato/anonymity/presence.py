"""Whether somebody is in the table at all, judged by a table of the population it was taken from."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato._dataclasses import dataclass
from sfumato.anonymity.tables import Rows
from sfumato.errors import InvalidParameter

__all__ = ["Presence", "presence"]

_NUMBERS = {"integer": "number", "float": "number"}


@dataclass(frozen=True, slots=True)
class Presence:
    """How well the people of a table hide in their population.

    Attributes:
        delta: The least and the largest share of a class of the population that is in the table: how sure
            one can be that a person of it is not, or is, in the table. With a largest share of 1 everybody
            of some class is, and with a least one of 0 nobody of another.
        k_map: The least number of people of the population that a row of the table could be.
        reidentified: The share of rows that one person alone could be.
    """

    delta: tuple[float, float]
    k_map: int
    reidentified: float


def presence(rows: Rows, population: Rows, quasi: Sequence[str]) -> Presence:
    """The share of each class of the population that is in the table; both must be open side by side.

    Source: Nergiz, Atzori, Clifton, Hiding the Presence of Individuals from Shared Databases, SIGMOD 2007
    (δ-presence); Sweeney, k-Anonymity: A Model for Protecting Privacy, IJUFKS 2002 (k-map).

    Raises:
        InvalidParameter: if the table has somebody whom the population has not, if that has no rows, or if
            a column holds something else there.
    """
    population.count()
    for name, other in zip(quasi, population.kinds, strict=True):
        kinds = rows.kinds[name], population.kinds[other]
        if len({_NUMBERS.get(kind, kind) for kind in kinds}) > 1:
            raise InvalidParameter(
                f'The column "{name[:100]}" holds {kinds[0]} values in the table and {kinds[1]} values in '
                "the population; give both the same type."
            )
        if kinds[0] != kinds[1]:
            side, own = (rows, name) if kinds[0] == "integer" else (population, other)
            if _is_beyond_floats(side, own):
                raise InvalidParameter(
                    f'The column "{name[:100]}" holds whole numbers beyond 2^53 beside floats, which '
                    "cannot tell them apart; give both the same type."
                )
    here = ", ".join(f"{rows.scalar(name)} AS q{i}" for i, name in enumerate(quasi))
    there = ", ".join(population.scalar(name) for name in population.kinds)
    names = ", ".join(f"q{i}" for i in range(len(quasi)))
    both = (
        f"SELECT {here}, 1 AS here, 0 AS there FROM {rows.relation} "
        f"UNION ALL SELECT {there}, 0, 1 FROM {population.relation}"
    )
    classes = f"SELECT sum(here) AS here, sum(there) AS there FROM ({both}) AS b GROUP BY {names}"
    least, largest, k_map, strangers, reidentified, total = rows.first(
        "SELECT min(here / there), max(here / there), min(there) FILTER (WHERE here > 0), "
        "count(*) FILTER (WHERE here > there), count(*) FILTER (WHERE here = 1 AND there = 1), sum(here) "
        f"FROM ({classes}) AS c"
    )
    if strangers:
        many = f"{strangers:,} classes" if strangers > 1 else "1 class"
        raise InvalidParameter(
            f"The population has fewer people than the table in {many}; it must have everybody of the table, "
            "in columns that are generalised alike."
        )
    return Presence((float(least), float(largest)), int(k_map), int(reidentified) / int(total))


def _is_beyond_floats(rows: Rows, name: str) -> bool:
    """Whether a whole number is so large that another one is the same float."""
    value = rows.scalar(name)
    (beyond,) = rows.first(f"SELECT max(greatest({value}, -{value}::HUGEINT)) > {2**53} FROM {rows.relation}")
    return bool(beyond)
