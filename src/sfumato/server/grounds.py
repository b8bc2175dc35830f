"""`Grounds`: where a server's tables are declared, and how a steward adds one while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sfumato._dataclasses import dataclass
from sfumato.catalog import Catalog, DraftTable, draft, write_new
from sfumato.catalog.adding import replace_text, with_table
from sfumato.catalog.keys import Kept
from sfumato.catalog.looking import Naming, drafted, naming_of, refuse_wide
from sfumato.errors import CatalogUnusable, InvalidParameter, LedgerMismatch, SfumatoError, SourceUnusable
from sfumato.server.house import House

__all__ = ["SUFFIXES", "Grounds", "Wanted", "suffix_of"]

SUFFIXES = (".parquet", ".parq", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
_MOST_LISTED, _LONGEST = 50, 500
_MOST_COLUMNS = 900  # each has two fields in a form, which holds 2,000
_OUTSIDE = (
    "There is no such CSV or Parquet file in the catalog's folder; what lies outside it, or behind a link "
    "that leads out of it, is not read here."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One more table, with all that a steward decided.

    Attributes:
        table: The table.
        unit: A column's name or `row`.
        epsilon: Of its own budget.
        delta: Of its own budget.
        dataset: Whose budget it draws on instead; None: its own.
    """

    table: DraftTable
    unit: str
    epsilon: str = ""
    delta: str = ""
    dataset: str | None = None


def suffix_of(name: str) -> str | None:
    """How the name of a file ends that can be a table; None: it cannot."""
    lower = name.lower()
    return next((each for each in sorted(SUFFIXES, key=len, reverse=True) if lower.endswith(each)), None)


class Grounds:
    """The folder of a sfumato.toml, and the house that serves what it declares.

    Args:
        house: What is served.
        path: The file; there may be none yet.
    """

    def __init__(self, house: House, path: Path) -> None:
        self._house, self.path = house, path
        self.folder = path.absolute().parent.resolve()

    def files(self) -> list[str]:
        """Names of files in the folder that can be a table: some of them."""
        try:
            found = sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file())
        except OSError:
            return []
        return [name for name in found if name[0] != "." and suffix_of(name)][:_MOST_LISTED]

    def located(self, name: str) -> Path:
        """A file in the folder.

        Raises:
            SourceUnusable: if there is none of that name, or it leads out of the folder.
        """
        if not name or len(name) > _LONGEST or "\0" in name:
            raise SourceUnusable(_OUTSIDE)
        try:
            real = (self.folder / name).resolve(strict=True)
            inside = real.relative_to(self.folder)
        except (OSError, RuntimeError, ValueError):
            raise SourceUnusable(_OUTSIDE) from None
        hidden = any(part.startswith(".") for part in inside.parts)
        if hidden or not real.is_file() or suffix_of(real.name) is None:
            raise SourceUnusable(_OUTSIDE)
        return real

    def looked(self, file: Path, header: bool | None) -> tuple[Naming, DraftTable]:
        """What `sfumato init` sees of a file in the folder.

        Args:
            file: Where it is.
            header: Whether its first line holds names, if the steward said so.

        Raises:
            SourceUnusable: if it cannot be opened.
            InvalidParameter: if it has more columns than forms have fields for.
        """
        with self._told():
            naming = naming_of(str(file), header, most=_MOST_COLUMNS)
            source = file.relative_to(self.folder).as_posix()
            table = drafted(str(file), naming, source=source, taken=self.taken())
            refuse_wide(len(table.columns), _MOST_COLUMNS)
            return naming, table

    def taken(self) -> list[str]:
        """Names that a new table cannot have: those of tables and datasets that are served or in the file."""
        names = {*self._house.tables, *self._house.datasets}
        text = self.before()
        if text is not None:
            catalog = Catalog.parse(text, self.path)
            names |= {*catalog.budgets, *(table.name for table in catalog.tables)}
            names |= {table.name for table in catalog.public}
        return sorted(names)

    def before(self) -> str | None:
        """What the file says now; None: there is none yet.

        Raises:
            CatalogUnusable: if it cannot be read.
        """
        try:
            return self.path.read_bytes().decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            raise CatalogUnusable(f"{self.path.name} cannot be read.") from None

    def text(self, wanted: Wanted) -> str:
        """What the file will say.

        Raises:
            CatalogUnusable: if that cannot be, or the file cannot be added to.
        """
        return self._written(wanted, self.before())

    def register(self, wanted: Wanted, seen: str) -> None:
        """Serves one more table, and writes it into the file.

        Args:
            wanted: The table.
            seen: What the file will say, as the steward saw it.

        Raises:
            CatalogUnusable: if the file would say something else by now, or cannot be written.
            SourceUnusable: if the source cannot be used.
            LedgerMismatch: if the ledger has something else on record.
        """
        before = self.before()
        if self._written(wanted, before) != seen:
            raise Kept(f"{self.path.name} has changed since you looked at it: look at it again.")
        catalog = Catalog.parse(seen, self.path)
        table, dataset = catalog.table(wanted.table.name), wanted.dataset or wanted.table.name
        budget = catalog.budgets[dataset] if wanted.dataset is None else None

        served = self._house.catalog
        if served is not None:  # which ledger pays was decided when the server began
            catalog = replace(catalog, ledger=served.ledger, state=served.state, moved=served.moved)

        def keep() -> None:
            if before is None:
                write_new(self.path, seen)
            else:
                replace_text(self.path, before, seen)

        with self._told():
            self._house.widen([table], budgets={dataset: budget}, keep=keep, catalog=catalog)

    def _written(self, wanted: Wanted, before: str | None) -> str:
        table, unit, epsilon, delta = wanted.table, wanted.unit, wanted.epsilon, wanted.delta
        if before is None:
            text = draft([table], unit=unit, epsilon=epsilon, delta=delta)
        else:
            text = with_table(before, table, unit=unit, epsilon=epsilon, delta=delta, dataset=wanted.dataset)
        with self._told():
            Catalog.parse(text, self.path)
        return text

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What fails is told without the folder's own place, which is nobody's business over a network."""
        refusal: SfumatoError | None = None
        try:
            yield
        except (SourceUnusable, CatalogUnusable, LedgerMismatch, InvalidParameter) as error:
            refusal = type(error)(str(error).replace(f"{self.folder}{os.sep}", ""))
        if refusal is not None:
            raise refusal
