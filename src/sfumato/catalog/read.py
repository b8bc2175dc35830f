"""Reading sfumato.toml: flags over environment over file, unknown keys refused, nothing guessed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from sfumato._dataclasses import dataclass
from sfumato.catalog._sections import check_known, named_in, place_of, section_of, text_of
from sfumato.catalog._synth import SynthSettings
from sfumato.catalog._tables import read_tables, settle
from sfumato.catalog.keys import UNDECIDED, Missing, Undecided, nearest
from sfumato.catalog.toml_text import NotToml, parsed, text_of_file
from sfumato.errors import AccessDenied, CatalogUnusable, InvalidParameter
from sfumato.ledger.budget import Budget
from sfumato.ledger.names import spelled
from sfumato.schema import PrivateTable, PublicTable
from sfumato.schema.classify import Role

if TYPE_CHECKING:
    from sfumato.engines import Engine

__all__ = ["Catalog", "EngineLimits"]

FILE_NAME = "sfumato.toml"


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What reads, and what a read may use. None leaves the engine's own default.

    Attributes:
        threads: How many threads.
        memory: How much memory, such as `2GB`.
        timeout: How many seconds.
        name: Which engine.
        url: Where its server is, for an engine that has one.
    """

    threads: int | None = None
    memory: str | None = None
    timeout: float | None = None
    name: str | None = None
    url: str | None = field(default=None, repr=False)  # it may hold a password

    def open(self, sources: Iterable[Any] = ()) -> Engine:
        """The engine, with these limits; whoever opens it closes it.

        Args:
            sources: What it is to read: their addresses say which engine it is where no name does.

        Raises:
            InvalidParameter: if there is no engine of that name, or it does not take what is set here.
        """
        from sfumato.engines.base import engine, engine_of

        name = engine_of(sources) if self.name is None else self.name
        return engine(name, url=self.url, threads=self.threads, memory=self.memory, timeout=self.timeout)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The steward's decisions, as read from one file.

    Attributes:
        path: The file.
        tables: What may be asked. A table whose unit is via others draws on the dataset of its owner.
        budgets: What may be spent on each dataset in all.
        limits: By dataset, what each analyst may spend of it; a dataset that lists none is open to all.
        roles: By table and column, how the column is classified.
        ledger: A path or a `postgresql://` address.
        state: The folder for the ledger's key and anchor; None: beside the ledger's own file.
        engine: What a read may use.
        analyst: In whose name to ask, if anyone's.
        public: Tables about no one, which questions about any dataset may use.
        moved: Whether an argument or the environment names a ledger other than the file's.
        synth: By table, what its synthetic rows keep to.
    """

    path: Path
    tables: tuple[PrivateTable, ...]
    budgets: Mapping[str, Budget]
    limits: Mapping[str, Mapping[str, Budget]]
    roles: Mapping[str, Mapping[str, Role]]
    ledger: str
    state: Path | None
    engine: EngineLimits
    analyst: str | None = None
    public: tuple[PublicTable, ...] = ()
    moved: bool = False
    synth: Mapping[str, SynthSettings] = field(default_factory=dict)

    @classmethod
    def find(cls, start: str | Path | None = None, *, environ: Mapping[str, str] | None = None) -> Path:
        """The nearest sfumato.toml: `SFUMATO_CONFIG` if set, else in `start` or a folder above it.

        Raises:
            CatalogUnusable: if there is none.
        """
        environment = os.environ if environ is None else environ
        if named := environment.get("SFUMATO_CONFIG"):
            return Path(named)
        folder = Path.cwd() if start is None else Path(start).resolve()
        for place in (folder, *folder.parents):
            if (place / FILE_NAME).is_file():
                return place / FILE_NAME
        raise Missing(f"There is no {FILE_NAME} here or in a folder above; make one with: sfumato init FILE")

    @classmethod
    def read(
        cls,
        path: str | Path | None = None,
        *,
        ledger: str | None = None,
        analyst: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Catalog:
        """The catalog in that file, or in the nearest one.

        Args:
            path: The file; None: `find` it.
            ledger: A ledger to use instead of the file's, relative to the current folder.
            analyst: In whose name to ask.
            environ: The environment, by default the process's: `SFUMATO_*` stand between arguments and file,
                but for what a read may use, which the file alone decides.

        Raises:
            CatalogUnusable: if it is missing, unreadable, has an unknown key or leaves something undecided.
        """
        environment = os.environ if environ is None else environ
        file = cls.find(environ=environment) if path is None else Path(path)
        return cls._understood(_load(file), file, ledger, analyst, environment)

    @classmethod
    def parse(cls, text: str, path: str | Path) -> Catalog:
        """The catalog that a text would be in that file, whatever the environment says.

        Raises:
            CatalogUnusable: as `read` does.
        """
        try:
            data = parsed(text)
        except NotToml as error:
            raise CatalogUnusable(f"{Path(path).name} {error}.") from None
        return cls._understood(data, Path(path), None, None, {})

    @classmethod
    def _understood(
        cls,
        data: dict[str, Any],
        file: Path,
        ledger: str | None,
        analyst: str | None,
        environment: Mapping[str, str],
    ) -> Catalog:
        check_known("", data, "")
        undecided: list[str] = []
        budgets, limits = _datasets(named_in(data, "datasets"), undecided)
        listed, roles, synth = read_tables(named_in(data, "tables"), file.parent.absolute(), undecided)
        if undecided:
            raise Undecided(
                f"{file.name} leaves this to decide: {'; '.join(undecided)}. "
                "Write a value for each into its section."
            )
        tables, public = settle(listed)
        if not tables:
            raise CatalogUnusable(f"{file.name} has no private table; add a [tables.NAME] section.")
        for table in tables:
            if table.dataset not in budgets:
                fix = nearest(table.dataset, budgets) or f" Add [datasets.{table.dataset}] with its epsilon."
                raise CatalogUnusable(f"tables.{table.name}: there is no dataset {table.dataset!r}.{fix}")
        place, state = _ledger(section_of(data, "ledger"), file.parent.absolute())
        override = ledger or environment.get("SFUMATO_LEDGER", "").strip() or None
        moved = override is not None and not _same_place(override, place)
        # An address of the same ledger may bring a password; a path is the file's, however it is written.
        chosen = override if override is not None and (moved or "://" in override) else place
        if "://" in chosen:
            state = state or file.parent.absolute() / ".sfumato"
        elif moved:
            state = None  # another file's key is beside it, not in this one's state
        return cls(
            path=file,
            tables=tables,
            budgets=budgets,
            limits=limits,
            roles=roles,
            ledger=chosen,
            state=state,
            engine=_limits(section_of(data, "engine")),
            analyst=analyst or environment.get("SFUMATO_ANALYST") or None,
            public=public,
            moved=moved,
            synth=synth,
        )

    def table(self, name: str) -> PrivateTable:
        """The table of that name.

        Raises:
            CatalogUnusable: if there is none.
        """
        for table in self.tables:
            if table.name.lower() == name.lower():
                return table
        fix = nearest(name, [table.name for table in self.tables])
        raise CatalogUnusable(f"{self.path.name} has no table {name[:40]!r}.{fix}")

    def members(self, dataset: str) -> tuple[PrivateTable, ...]:
        """The tables that draw on one dataset's budget.

        Raises:
            CatalogUnusable: if there is no such dataset.
        """
        if dataset not in self.budgets:
            fix = nearest(dataset, self.budgets)
            raise CatalogUnusable(f"{self.path.name} has no dataset {dataset[:40]!r}.{fix}")
        return tuple(table for table in self.tables if table.dataset == dataset)

    def admit(self, dataset: str) -> None:
        """Check that this catalog's analyst may ask about the dataset.

        Raises:
            AccessDenied: if the dataset lists its analysts and this is not one of them.
        """
        listed = self.limits.get(dataset, {})
        if not listed or (self.analyst is not None and spelled(self.analyst, listed) is not None):
            return
        if self.analyst is None:
            raise AccessDenied(
                f"{dataset} is open to the analysts that {self.path.name} lists; say who asks with --analyst."
            )
        raise AccessDenied(
            f"{self.analyst[:40]!r} is not among the analysts of {dataset} in {self.path.name}."
        )

    def __str__(self) -> str:
        """The file, its tables and budgets."""
        names = [table.name for table in self.tables] + [table.name for table in self.public]
        tables = ", ".join(names)
        budgets = "; ".join(f"{name} {budget}" for name, budget in self.budgets.items())
        return f"{self.path}: tables {tables}; budgets {budgets}; ledger {self.ledger}"


def _load(file: Path) -> dict[str, Any]:
    try:
        return parsed(text_of_file(file))
    except FileNotFoundError:
        raise Missing(f"There is no {file}; make one with: sfumato init FILE") from None
    except OSError as error:
        raise CatalogUnusable(f"{file} cannot be read: {error}.") from None
    except NotToml as error:
        raise CatalogUnusable(f"{file.name} {error}.") from None


def _datasets(
    sections: Mapping[str, dict[str, Any]], undecided: list[str]
) -> tuple[dict[str, Budget], dict[str, dict[str, Budget]]]:
    budgets: dict[str, Budget] = {}
    limits: dict[str, dict[str, Budget]] = {}
    for name, section in sections.items():
        where = f"datasets.{name}"
        check_known("datasets.NAME", section, where)
        analysts = named_in(section, "analysts", f"{where}.analysts")
        budget = _budget(section, where, undecided)
        if budget is not None:
            budgets[name] = budget
        limits[name] = {}
        for who, limit in analysts.items():
            place = f"{where}.analysts.{who}"
            if (other := spelled(who, limits[name])) is not None:
                raise CatalogUnusable(f"{place}: this is {other!r} in another spelling; list them once.")
            check_known("datasets.NAME.analysts.WHO", limit, place)
            own = _budget({**_gate(section), **limit}, place, undecided)
            if own is not None:
                limits[name][who] = own
    return budgets, limits


def _gate(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: section[key] for key in ("accountant", "order", "aside", "each") if key in section}


def _budget(section: Mapping[str, Any], where: str, undecided: list[str]) -> Budget | None:
    missing = [
        key
        for key, optional in (("epsilon", False), ("delta", True), ("accountant", True))
        if section.get(key, None if optional else UNDECIDED) == UNDECIDED
    ]
    if missing:
        undecided.extend(f"{key} of {where}" for key in missing)
        return None
    try:
        return Budget(
            section["epsilon"],
            section.get("delta", 0),
            section.get("accountant", "basic"),
            order=section.get("order"),
            aside=section.get("aside", 0),
            each=section.get("each"),
        )
    except InvalidParameter as error:
        raise CatalogUnusable(f"{where}: {error}") from None


def _ledger(section: Mapping[str, Any], folder: Path) -> tuple[str, Path | None]:
    if "path" in section and "url" in section:
        raise CatalogUnusable("ledger takes a path or a url, not both.")
    state = folder / text_of(section, "state", "ledger") if "state" in section else None
    if "url" in section:
        return text_of(section, "url", "ledger"), state
    return place_of(
        text_of(section, "path", "ledger") if "path" in section else "sfumato.ledger", folder
    ), state


def _same_place(one: str, other: str) -> bool:
    """Whether two addresses or paths name one ledger: a password, or who connects, makes no other one."""
    if "://" in one and "://" in other:
        return _server(one) == _server(other)
    return "://" not in one + other and os.path.realpath(one) == os.path.realpath(other)


def _server(address: str) -> tuple[str, str, list[tuple[str, str]]]:
    parts = urlsplit(address)
    where = parts.netloc.rpartition("@")[2].lower()
    options = [(key, value) for key, value in parse_qsl(parts.query, True) if key not in _WHO]
    return where if ":" in where else f"{where}:5432", parts.path, sorted(options)


_WHO = ("user", "password", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert", "connect_timeout")


def _limits(section: Mapping[str, Any]) -> EngineLimits:
    """What reads, and what it may use: the file's word alone.

    Privacy:
        Whether a read ends within a limit depends on the rows. Whoever could choose the limit would choose it
        so that the read ends if and only if somebody is not there; so no argument or environment does.
    """
    threads, memory, timeout = section.get("threads"), section.get("memory"), section.get("timeout")
    if threads is not None and (type(threads) is not int or threads < 1):
        raise CatalogUnusable("engine.threads must be a whole number of at least 1, such as threads = 2.")
    if memory is not None and not isinstance(memory, str):
        raise CatalogUnusable('engine.memory must be a text, such as memory = "2GB".')
    if timeout is not None and (type(timeout) not in (int, float, Decimal) or not 0 < timeout < 10**9):
        raise CatalogUnusable("engine.timeout must be a positive number of seconds, such as timeout = 60.")
    return EngineLimits(
        threads=threads,
        memory=memory,
        timeout=None if timeout is None else float(timeout),
        name=text_of(section, "name", "engine") if "name" in section else None,
        url=text_of(section, "url", "engine") if "url" in section else None,
    )
