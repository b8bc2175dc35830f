"""The tables of sfumato.toml: private ones with their units, and public ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.catalog._sections import check_known, named_in, place_of, text_of
from sfumato.catalog._synth import SynthSettings, read_synth
from sfumato.catalog.keys import UNDECIDED
from sfumato.engines.csv_format import Csv
from sfumato.errors import CatalogUnusable, InvalidParameter
from sfumato.schema import (
    ColumnType,
    PrivacyUnit,
    PrivateTable,
    PublicTable,
    State,
    column_from_dict,
    dataset_of,
)
from sfumato.schema.classify import ROLES, Role

__all__ = ["read_tables", "settle"]

_BOUNDS = ("max_groups", "max_rows", "adjacency", "ceiling")
_WINDOWS = ("window", "time", "zone")
_OF_PUBLIC = ("public", "source", "key", "version", "columns", "csv")


def read_tables(
    sections: Mapping[str, dict[str, Any]], folder: Path, undecided: list[str]
) -> tuple[list[PrivateTable | PublicTable], dict[str, dict[str, Role]], dict[str, SynthSettings]]:
    """The tables, how their columns are classified, and what their synthetic rows keep to.

    What is left open is added to `undecided`.

    Raises:
        CatalogUnusable: for settings that mean nothing.
    """
    tables: list[PrivateTable | PublicTable] = []
    roles: dict[str, dict[str, Role]] = {}
    synth: dict[str, SynthSettings] = {}
    for name, section in sections.items():
        where = f"tables.{name}"
        check_known("tables.NAME", section, where)
        columns, roles[name] = _columns(section, where)
        public = _is_public(section, where)
        if "synth" in section:
            synth[name] = read_synth(section["synth"], columns, f"{where}.synth")
        needed = ("source",) if public else ("source", "unit")
        if missing := [key for key in needed if section.get(key, UNDECIDED) == UNDECIDED]:
            undecided.extend(f"{key} of {where}" for key in missing)
            continue
        try:
            source = _source(section, where, folder)
            make = _public if public else _private
            tables.append(make(name, source, columns, section, where))
        except InvalidParameter as error:
            raise CatalogUnusable(f"{where}: {error}") from None
    return tables, roles, synth


def _source(section: Mapping[str, Any], where: str, folder: Path) -> str | Csv:
    """Where the rows are, and how CSV files are written if the file says so."""
    place = place_of(text_of(section, "source", where), folder)
    if "csv" not in section:
        return place
    settings = section["csv"]
    if not isinstance(settings, dict):
        raise CatalogUnusable(f"{where}: csv is a section: [{where}.csv].")
    check_known("tables.NAME.csv", settings, f"{where}.csv")
    for key in ("names", "dates"):
        listed = settings.get(key, [])
        if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
            raise CatalogUnusable(f"{where}.csv: {key} is a list of texts.")
    return Csv(place, **settings)


def settle(
    tables: Sequence[PrivateTable | PublicTable],
) -> tuple[tuple[PrivateTable, ...], tuple[PublicTable, ...]]:
    """The private tables, each with the dataset that it draws on, and the public ones.

    Raises:
        CatalogUnusable: if a unit is via a table that does not lead to its owner.
    """
    private: list[PrivateTable] = []
    for table in tables:
        if not isinstance(table, PrivateTable):
            continue
        try:
            private.append(_with_dataset(table, dataset_of(table, tables)))
        except InvalidParameter as error:
            raise CatalogUnusable(f"tables.{table.name}: {error}") from None
    return tuple(private), tuple(public for public in tables if isinstance(public, PublicTable))


def _with_dataset(table: PrivateTable, dataset: str) -> PrivateTable:
    return PrivateTable(
        table.name,
        source=table.source,
        unit=table.unit,
        schema=table.schema,
        dataset=dataset,
        version=table.version,
        size=table.size,
        rows=table.rows,
        profile=table.profile or None,
        states=table.states,
    )


def _is_public(section: Mapping[str, Any], where: str) -> bool:
    public = section.get("public", False)
    if not isinstance(public, bool):
        raise CatalogUnusable(f"{where}: public is true or false.")
    if public and (extra := [key for key in section if key not in _OF_PUBLIC]):
        raise CatalogUnusable(f"{where}: {extra[0]} has no meaning with public = true.")
    if not public and "key" in section:
        raise CatalogUnusable(f"{where}: key is for a table with public = true.")
    return public


def _public(
    name: str, source: str | Csv, columns: dict[str, ColumnType], section: Mapping[str, Any], where: str
) -> PublicTable:
    key = section.get("key")
    listed = [key] if isinstance(key, str) else key
    if listed is not None and not (isinstance(listed, list) and all(isinstance(e, str) for e in listed)):
        raise CatalogUnusable(f'{where}: key is a column or a list of columns, such as ["year", "region"].')
    return PublicTable(
        name, source=source, schema=columns, key=listed, version=str(section.get("version", "1"))
    )


def _private(
    name: str, source: str | Csv, columns: dict[str, ColumnType], section: Mapping[str, Any], where: str
) -> PrivateTable:
    states = _states(section, where)
    if states and "version" in section:
        raise CatalogUnusable(f"{where}: the last of its states is the version; leave version out.")
    return PrivateTable(
        name,
        source=source,
        unit=_unit(section, where),
        schema=columns,
        dataset=text_of(section, "dataset", where) if "dataset" in section else None,
        version=None if states else str(section.get("version", "1")),
        size=section.get("size"),
        rows=section.get("rows"),
        profile=_profile(section["profile"], where) if "profile" in section else None,
        states=states,
    )


def _states(section: Mapping[str, Any], where: str) -> dict[str, State]:
    """What the table held at some times, in the order of the file."""
    found = {}
    for name, settings in named_in(section, "states", f"{where}.states").items():
        place = f"{where}.states.{name}"
        check_known("tables.NAME.states.STATE", settings, place)
        listed = [settings.get(key, []) for key in ("files", "sizes")]
        if not all(isinstance(each, list) for each in listed):
            raise CatalogUnusable(f"{place}: files and sizes are lists.")
        try:
            found[name] = State(**settings)
        except (InvalidParameter, TypeError) as error:
            raise CatalogUnusable(f"{place}: {error}") from None
    return found


def _profile(declared: object, where: str) -> dict[int, int]:
    """The declared profile, whose keys are text in the file."""
    if not isinstance(declared, dict) or not all(key.isdecimal() for key in declared):
        raise CatalogUnusable(
            f"{where}: profile says how many units have up to so many rows: "
            "profile = { 1 = 8000, 10 = 900, 200 = 30 }."
        )
    return {int(rows): units for rows, units in declared.items()}


def _unit(section: Mapping[str, Any], where: str) -> PrivacyUnit:
    settings = {key: section[key] for key in _BOUNDS if key in section}
    if isinstance(section["unit"], dict):
        return _via(section["unit"], settings, f"{where}.unit")
    column = text_of(section, "unit", where)
    if column == "row":
        if any(name.lower() == "row" for name in section["columns"]):
            # Taken as the wrong one of the two, it would protect single rows where people were meant.
            raise CatalogUnusable(f'{where}: unit = "row" could mean the column of that name; rename it.')
        limits = {key: settings.pop(key) for key in [*settings] if key != "adjacency"}
        if extra := [key for key, limit in limits.items() if limit not in (1, "auto")]:
            raise CatalogUnusable(
                f'{where}: with unit = "row" each unit is one row in one group; leave {extra[0]} out.'
            )
        return PrivacyUnit.row(**settings)
    return PrivacyUnit(column, **settings, **{key: section[key] for key in _WINDOWS if key in section})


def _via(unit: Mapping[str, Any], beside: Mapping[str, Any], where: str) -> PrivacyUnit:
    """A unit that is reached through another table; its limits are with it or beside it, not both."""
    check_known("tables.NAME.unit", unit, where)
    if "via" not in unit or "on" not in unit:
        raise CatalogUnusable(
            f'{where} is a column, "row", or the owner in another table: {{ via = "orders", '
            'on = { l_orderkey = "o_orderkey" } }.'
        )
    if twice := [key for key in _BOUNDS if key in unit and key in beside]:
        raise CatalogUnusable(f"{where}: {twice[0]} is given twice; leave one out.")
    settings = {key: unit[key] for key in _BOUNDS if key in unit}
    return PrivacyUnit.via(text_of(unit, "via", where), on=unit["on"], **beside, **settings)


def _columns(section: Mapping[str, Any], where: str) -> tuple[dict[str, ColumnType], dict[str, Role]]:
    listed = section.get("columns", {})
    if not isinstance(listed, dict) or not listed:
        raise CatalogUnusable(f"{where} needs its columns: a section [{where}.columns].")
    columns: dict[str, ColumnType] = {}
    roles: dict[str, Role] = {}
    for name, entry in listed.items():
        place = f"{where}.columns.{name}"
        settings = {"type": entry} if isinstance(entry, str) else entry
        if not isinstance(settings, dict):
            raise CatalogUnusable(f'{place} is a type such as "text", or {{ type = "int", lower = 0, … }}.')
        check_known("tables.NAME.columns.COLUMN", settings, place)
        role = settings.get("role", "plain")
        if role not in ROLES:
            raise CatalogUnusable(f"{place}: role is one of {', '.join(ROLES)}.")
        roles[name] = role
        if not isinstance(settings.get("nullable", True), bool):
            raise CatalogUnusable(f"{place}: nullable is true or false.")
        if settings.get("values", UNDECIDED) != UNDECIDED and not isinstance(settings["values"], list):
            raise CatalogUnusable(f'{place}: values is a list, such as ["Lyon", "Nice"].')
        # An undecided bound does not count: the column can be filtered on and counted, not summed.
        decided = {key: value for key, value in settings.items() if key != "role" and value != UNDECIDED}
        try:
            columns[name] = column_from_dict(decided)
        except InvalidParameter as error:
            raise CatalogUnusable(f"{place}: {error}") from None
    return columns, roles
