"""The table that was spoken of, declared: as code to copy, and as an empty one to be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sfumato._dataclasses import dataclass
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal

if TYPE_CHECKING:
    from sfumato.plan.prices.quote import Quote
    from sfumato.session import Session

__all__ = ["LONG", "Column", "Declared", "amounts", "days", "kinds", "numbers"]


LONG = 76
"""The longest line of code, which is shown with four blanks before it."""


class Column(NamedTuple):
    """A column: its name, its type as code, the type itself, and what the file has in it."""

    name: str
    code: str
    kind: Any
    told: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A table with one row or more of each person.

    Attributes:
        said: What was said of it.
        columns: Its columns, beside the one that says whose a row is.
        groups: In how many groups a person is, at most; 0 where there are none.
        sized: Whether its size is declared, for errors that depend on it.
        accountant: What adds up the budget.
        max_rows: The most rows of a person that count; None: as many as were said.
        each: How many rows a person has, in words; empty: as was said.
        shared: For columns x1, x2 and so on of one type, a line of code that their type needs.
    """

    said: Said
    columns: tuple[Column, ...] = ()
    groups: int = 0
    sized: bool = False
    accountant: Literal["basic", "gaussian", "zcdp"] = "basic"
    max_rows: int | None = None
    each: str = ""
    shared: str = ""

    @property
    def most(self) -> int:
        """The most rows of a person that count."""
        return self.said.rows if self.max_rows is None else self.max_rows

    @property
    def size(self) -> int:
        """How many rows there are at least, about: one of each person."""
        return self.said.people

    @property
    def reads(self) -> str:
        """The file, in words."""
        many = len(self._numbered)
        others = [f"{column.name} ({column.told})" for column in self.columns[many:]]
        if many:
            span = "x1" if many == 1 else f"x1 to x{many}"
            others.insert(0, f"{span} ({self.columns[0].told})")
        rows = "one row" if self.said.rows == 1 else f"up to {self.said.rows:,} rows"
        listed = ", ".join(["person (whose row it is)", *others])
        return f"data.csv: {listed}; {self.each or rows} a person. Put your own file and names here"

    @property
    def _numbered(self) -> list[Column]:
        return [column for column in self.columns if column.name.startswith("x")]

    def code(self, *lines: str) -> str:
        """The declarations, and lines below them."""
        return "\n".join(
            ["import sfumato as sf", "", *self._listed(), *self._table(), *self._session(), *lines]
        )

    def quotes(self, text: str, delta: Any = None) -> dict[str, Quote]:
        """What each kind of noise would give for a question, by its name; "" is what a session chooses."""
        said, found = self.said, dict[str, Any]()
        slack = said.delta if delta is None else delta
        with self.session() as session:
            query = session.sql(text)
            for name in ("laplace", "gaussian", None) if slack else ("laplace", None):
                found[name or ""] = query.quote(
                    said.epsilon, delta=slack, mechanism=name, confidence=said.confidence
                )
        return found

    def session(self) -> Session:
        """A session over an empty table with the same declarations."""
        import pyarrow as pa

        from sfumato.ledger import Budget
        from sfumato.schema import PrivacyUnit, PrivateTable
        from sfumato.session import Session

        said = self.said
        unit = PrivacyUnit("person", max_rows=self.most, max_groups=max(self.groups, 1))
        empty = {"person": pa.array([], pa.int64())}
        for column in self.columns:
            empty[column.name] = pa.array([], _ARROW[type(column.kind).__name__]())
        table = PrivateTable(
            "data",
            source=pa.table(empty),
            unit=unit,
            schema={column.name: column.kind for column in self.columns},
            size=self.size if self.sized else None,
        )
        return Session(table, budget=Budget(said.epsilon, said.delta, self.accountant))

    def _listed(self) -> list[str]:
        """What the declarations need before them."""
        lines = [self.shared] if self.shared else []
        if any("*kinds" in column.code for column in self.columns):
            lines.append(f'kinds = [f"kind{{i}}" for i in range(1, {self.said.groups + 1})]  # your own list')
        if self._numbered:
            code, many = self.columns[0].code, len(self._numbered)
            lines.append(f'columns = {{f"x{{i}}": {code} for i in range(1, {many + 1})}}  # your own')
            lines += [f'columns["{column.name}"] = {column.code}' for column in self.columns[many:]]
        return [*lines, ""] if lines else []

    def _table(self) -> list[str]:
        limits = [f"max_rows={self.most}"] + [f"max_groups={self.groups}"] * (self.groups > 1)
        unit = ", ".join(['"person"', *limits])
        return [
            "data = sf.PrivateTable(",
            '    "data",',
            '    source="data.csv",',
            f"    unit=sf.PrivacyUnit({unit}),",
            *self._schema(),
            *[f"    size={self.size},"] * self.sized,
            ")",
        ]

    def _schema(self) -> list[str]:
        if self._numbered:
            return ["    schema=columns,"]
        entries = [f'"{column.name}": {column.code}' for column in self.columns]
        whole = f"    schema={{{', '.join(entries)}}},"
        if len(whole) <= LONG:
            return [whole]
        return ["    schema={", *(f"        {entry}," for entry in entries), "    },"]

    def _session(self) -> list[str]:
        said = self.said
        price = [f"epsilon={literal(said.epsilon)}"]
        price += [f"delta={literal(said.delta)}"] * bool(said.delta)
        price += [f'accountant="{self.accountant}"'] * (self.accountant != "basic")
        return [
            f"budget = sf.Budget({', '.join(price)})",
            'session = sf.Session(data, budget=budget, ledger="data.ledger")',
        ]


def amounts(said: Said) -> Column:
    """A column of numbers within what was said."""
    from sfumato.schema import Float

    code = f"sf.Float({literal(said.lower)}, {literal(said.upper)})"
    told = f"a number within {literal(said.lower)} and {literal(said.upper)}"
    return Column("amount", code, Float(said.lower, said.upper), told)


def kinds(said: Said, *, known: bool = True) -> Column:
    """A column of values: a public list of them, or texts of which some are found."""
    from sfumato.schema import Enum, Text

    if not known:
        return Column("kind", "sf.Text()", Text(), "a text")
    listed = Enum(*(f"kind{place}" for place in range(1, said.groups + 1)))
    return Column("kind", "sf.Enum(*kinds)", listed, f"one of {said.groups:,} known values")


def days() -> Column:
    """A column of dates."""
    from sfumato.schema import Date

    first, last = "2026-01-01", "2060-12-31"
    return Column("day", f'sf.Date("{first}", "{last}")', Date(first, last), "a date")


def numbers(many: int, code: str, kind: Any, told: str) -> Sequence[Column]:
    """Columns x1, x2 and so on of one type."""
    return [Column(f"x{place}", code, kind, told) for place in range(1, many + 1)]


def _float64() -> Any:
    import pyarrow as pa

    return pa.float64()


def _int64() -> Any:
    import pyarrow as pa

    return pa.int64()


def _string() -> Any:
    import pyarrow as pa

    return pa.string()


def _date() -> Any:
    import pyarrow as pa

    return pa.date32()


_ARROW = {"Float": _float64, "Int": _int64, "Enum": _string, "Text": _string, "Date": _date}
