"""A first sfumato.toml: commented, from column names and types alone, with every open decision marked."""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from sfumato._dataclasses import dataclass
from sfumato.catalog._lines import Decided, column_lines, known_bounds, quoted, toml_key, toml_number
from sfumato.catalog.keys import UNDECIDED, Kept, nearest
from sfumato.errors import CatalogUnusable
from sfumato.schema.classify import ROLES, Role, role_of, type_of, units_of

__all__ = [
    "Decided",
    "DraftTable",
    "draft",
    "known_bounds",
    "quoted",
    "section",
    "toml_key",
    "toml_number",
    "write_new",
]

_HEAD = """\
# sfumato.toml: what may be asked of this data, whose privacy is protected, and
# what all answers together may cost. Written from the names and types of the
# columns, and from what the steward said. No row was read: a bound or a list of
# values that is taken from the data would itself tell something about it.
#
# Lines marked DECIDE are yours. A unit and a budget are needed before anything
# can be asked; a number without bounds can be counted and filtered on, and is
# ready to be summed once you give them. All settings: docs/catalog.md
"""
_ROLE_NOTES: dict[Role, tuple[str, ...]] = {
    "identifier": (
        "Identifiers point at one person. They are left out, so no query can name",
        "them; the unit works all the same. Uncomment one only with a good reason.",
    ),
    "quasi-identifier": ("Quasi-identifiers: harmless alone, telling in combination.",),
    "sensitive": ("Sensitive: what nobody should learn about a person.",),
    "plain": ("The rest.",),
}


_NOTHING = Decided()


@dataclass(frozen=True, slots=True)
class DraftTable:
    """A source with the public metadata of its columns: name → kind.

    Attributes:
        name: What queries will call it.
        source: As the file will say it.
        columns: Each column's kind, as an engine tells it.
        untyped: Whether the file has no types of its own (CSV), so that names must suggest them.
        names: The names that the file is to give to the columns of a CSV file; None: its header's.
        header: Whether its first line is a header.
        delimiter: What separates its fields, if that is known.
        decimal: What separates the fraction of its numbers, if that is decided.
        dates: How its days are written, where that is not the usual way.
        remark: Why it is so, for whoever edits the file.
        decided: What the steward has said of columns already, by their names.
        max_rows: As how many rows one unit counts, if that is decided.
    """

    name: str
    source: str
    columns: Mapping[str, str]
    untyped: bool = False
    names: tuple[str, ...] | None = None
    header: bool = True
    delimiter: str | None = None
    decimal: str | None = None
    dates: tuple[str, ...] = ()
    remark: str = ""
    decided: Mapping[str, Decided] = field(default_factory=dict)
    max_rows: int | None = None

    def type(self, column: str) -> str | None:
        """The type to declare; None for a column that cannot be asked for."""
        return self.of(column).type or type_of(column, self.columns[column], untyped=self.untyped)

    def of(self, column: str) -> Decided:
        """What the steward decided about a column."""
        return self.decided.get(column, _NOTHING)

    def role(self, column: str) -> Role:
        """What the column looks like, or was said to be."""
        return self.of(column).role or role_of(
            column, word if (word := self.type(column)) == "date" else self.columns[column]
        )


def draft(
    tables: Sequence[DraftTable],
    *,
    unit: str | None = None,
    epsilon: str | None = None,
    delta: str | None = None,
) -> str:
    """The text of a commented sfumato.toml for these tables.

    Args:
        tables: At least one.
        unit: The unit, if it is decided: a column's name or `row`.
        epsilon: The budget's epsilon, if it is decided.
        delta: The budget's delta, if it is decided.
    """
    parts = [_HEAD, _LEDGER]
    # Tables whose rows are of the same people share one budget, or a person would be paid for twice.
    shared = tables[0].name if len(tables) > 1 and unit not in (None, "row") else None
    parts.extend(_dataset(table.name, epsilon, delta) for table in (tables if shared is None else tables[:1]))
    if len(tables) > 1:
        parts.append((_SEVERAL if shared is None else _SHARED) + _LINKED)
    parts.extend(_table(table, unit, None if table.name == shared else shared) for table in tables)
    return "\n".join(parts)


def section(
    table: DraftTable,
    *,
    unit: str | None = None,
    epsilon: str | None = None,
    delta: str | None = None,
    dataset: str | None = None,
) -> str:
    """The part of a sfumato.toml that is about one more table.

    Args:
        table: The table.
        unit: The unit, if it is decided: a column's name or `row`.
        epsilon: The epsilon of its own budget, if it is decided.
        delta: The delta of its own budget, if it is decided.
        dataset: Whose budget it draws on instead of one of its own.
    """
    budget = [] if dataset is not None else [_dataset(table.name, epsilon, delta)]
    return "\n".join([*budget, _table(table, unit, dataset)])


_SEVERAL = """\
# Tables about the same people must share one budget: give them the same
# `dataset`, and remove the sections above that are then not used.
"""
_SHARED = """\
# The tables are about the same people, by their unit, and share one budget.
"""
_LINKED = """\
#
# A table that does not name the people itself may point to one that does. It
# protects whoever owns the row it points to, and draws on the same budget; the
# columns of `on` must be declared in both tables:
#   unit = { via = "orders", on = { order_id = "order_id" } }
#
# A table about no one, such as a list of regions, is free to read. Replace its
# unit and max_rows by:
#   public = true
#   key = "region_id"          # if no two rows have the same: joins need it
"""
_LEDGER = """\
[ledger]
path = "sfumato.ledger"      # beside this file; or url = "postgresql://…"

[engine]
# threads = 2
# memory = "2GB"
timeout = 300                # seconds; a read that is stopped stays charged
"""


def _dataset(name: str, epsilon: str | None, delta: str | None) -> str:
    decided, zero = epsilon is not None, "0"
    mark = (
        "what all answers together may reveal" if decided else "DECIDE: what all answers together may reveal;"
    )
    lines = [
        f"[datasets.{toml_key(name)}]",
        f"{f'epsilon = {toml_number(epsilon)}':<28} # {mark}",
        *([] if decided else [f"{'':<28} # 1 is a common start: sfumato explain 1"]),
        f"{f'delta = {toml_number(delta or zero)}':<28} # above 0, such as 1e-6: unknown groups and models",
        'accountant = "basic"         # how spendings add up; or "zcdp", "gaussian", "rdp"',
        "",
        f"# [datasets.{toml_key(name)}.analysts]   # if listed, only they may ask, each within a limit",
        "# alice = { epsilon = 0.5 }",
        "",
    ]
    return "\n".join(lines)


def _table(table: DraftTable, unit: str | None, dataset: str | None) -> str:
    lines = [f"[tables.{toml_key(table.name)}]", f"source = {quoted(table.source)}", *_unit(table, unit)]
    lines += [] if dataset is None else [f"{f'dataset = {quoted(dataset)}':<28} # whose budget it draws on"]
    lines += [
        'version = "1"                # change it when the data changes',
        "# size = 1000                # about how many units, if public;",
        "#                            # lets quotes show the error of means",
        *_exactly(unit),
        "",
        *_csv(table),
        f"[tables.{toml_key(table.name)}.columns]",
    ]
    grouped: dict[Role, list[str]] = {role: [] for role in ROLES}
    for column in table.columns:
        grouped[table.role(column)].append(column)
    for role in ROLES:
        if grouped[role]:
            lines += [f"# {note}" for note in _ROLE_NOTES[role]]
            for column in grouped[role]:
                untyped = table.untyped and table.of(column).type is None
                lines += column_lines(column, table.type(column), role, table.of(column), guessed=untyped)
            lines.append("")
    return "\n".join(lines)


def _csv(table: DraftTable) -> list[str]:
    """How a CSV file is written: what is known, and what else may be said."""
    if not table.untyped:
        return []
    section = f"[tables.{toml_key(table.name)}.csv]"
    formats = [
        'decimal = ","                # numbers are written 3,5' if table.decimal == "," else _DECIMAL,
        f"dates = [{', '.join(map(quoted, table.dates))}]" if table.dates else _DATES,
        "# trim = true                # blanks around text do not count",
    ]
    if table.names is None:
        usual = table.decimal != "," and not table.dates
        if usual and table.delimiter in (None, ","):
            return [f"# {section:<26} # if it is not written in the usual way;", _TOO, *formats, ""]
        return [section, *formats, ""]
    lines = [section, *_comment(table.remark)]
    if not table.header:
        lines += ["header = false", f"delimiter = {quoted(table.delimiter or ',')}"]
    listed = ", ".join(map(quoted, table.names))
    lines += ["names = [", *textwrap.wrap(listed, 76, initial_indent="  ", subsequent_indent="  "), "]"]
    return [*lines, *formats, ""]


_TOO = "# uncomment the line above, too, with any of these:"
_DECIMAL = '# decimal = ","              # numbers are written 3,5'
_DATES = '# dates = ["%d.%m.%Y"]       # days are written 31.12.2024, not 2024-12-31'


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=79,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _exactly(unit: str | None) -> list[str]:
    """Where each row is a unit, its number of rows may be public: if rows are exchanged, not added."""
    if unit != "row":
        return []
    return ['# rows = 1000                # exactly how many, if public; needs adjacency = "exchange"']


def _unit(table: DraftTable, unit: str | None) -> list[str]:
    if unit == "row":
        if any(column.lower() == "row" for column in table.columns):
            raise CatalogUnusable(
                f'{table.name} has a column "row", so that unit = "row" is ambiguous; rename it.'
            )
        return ['unit = "row"                 # each row is somebody else']
    if unit is not None:
        if unit not in table.columns and not table.header:
            raise CatalogUnusable(
                f"{table.name} has no column {unit[:40]!r}: its first line was taken for a row; "
                "if it holds the names of the columns, add --header."
            )
        if unit not in table.columns:
            raise CatalogUnusable(
                f'{table.name} has no column {unit[:40]!r}; give one of its own, or "row".'
                f"{nearest(unit, table.columns)}"
            )
        return [f"{f'unit = {quoted(unit)}':<28} # whose privacy is protected", *_groups(table, unit)]
    likely = [column for column in units_of(table.columns) if table.role(column) == "identifier"][:_LIKELY]
    if not likely:
        hint = [
            "# DECIDE: whose privacy is protected? The column that names the people, or",
            '# "row" if nobody can have two rows. No column looks like it by name.',
        ]
    else:
        hint = _comment(
            f"DECIDE: whose privacy is protected? By name it could be {' or '.join(map(quoted, likely))}; "
            '"row" only if nobody can have two rows.'
        )
    return [*hint, f'unit = "{UNDECIDED}"', *_groups(table)]


def _groups(table: DraftTable, unit: str = "unit") -> list[str]:
    rows = '"auto"' if table.max_rows is None else str(table.max_rows)
    owner = unit if toml_key(unit) == unit else quoted(unit)
    most = f"# ceiling = 50               # no {owner} has more rows than this; 1000 unless given"
    return [*_ROWS, f"max_rows = {rows}", most, _FEW_GROUPS]


_LIKELY = 3  # units that are suggested
_ROWS = [
    "# As how many rows may one unit count? Whoever has more is weighted down to that;",
    '# a larger number weights fewer down and adds more noise. "auto" takes what gives',
    "# the least error for each question, from a noisy profile that the first question",
    "# buys with a fifth of its price. Or a number, from what you know of such units.",
]
_FEW_GROUPS = "# max_groups = 1             # where people are counted by group, or groups are found"


def write_new(path: str | Path, text: str, *, force: bool = False) -> Path:
    """Write the text to that file whole or not at all; an existing file is kept unless `force`.

    Raises:
        CatalogUnusable: if the file exists, or cannot be written.
    """
    target = Path(path)
    exists = Kept(
        f"{target} exists and was left as it is; --force writes a new one. "
        "To add a table to it: sfumato start."
    )
    if not force and target.exists():
        raise exists
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError:
        raise Kept(f"{target} cannot be written.") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        if force:
            os.replace(temporary, target)
        else:
            os.link(temporary, target)  # unlike a rename, fails if somebody was faster
    except FileExistsError:
        raise exists from None
    except OSError:
        raise Kept(f"{target} cannot be written.") from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target
