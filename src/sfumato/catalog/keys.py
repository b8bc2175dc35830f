"""Every setting of sfumato.toml, in one table: the reader, the messages and the documentation share it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sfumato.errors import CatalogUnusable

__all__ = ["ENVIRONMENT", "KEYS", "UNDECIDED", "Kept", "Missing", "Undecided", "nearest"]


class Missing(CatalogUnusable):
    """There is no file."""

    headline = "There is no catalog."


class Undecided(CatalogUnusable):
    """The file leaves something open that only the steward can decide."""

    headline = "The catalog needs a decision."


class Kept(CatalogUnusable):
    """A file was not written."""

    headline = "Nothing was written."


UNDECIDED = "?"
"""What `sfumato init` writes where the steward must decide."""

KEYS: dict[str, dict[str, str]] = {
    "": {
        "ledger": "where every spending is recorded",
        "engine": "what reads, and its limits",
        "datasets": "whose budget pays, one section each",
        "tables": "what may be asked, one section each",
    },
    "ledger": {
        "path": "a SQLite file, relative to this one",
        "url": "a postgresql:// address instead",
        "state": "the folder for the ledger's key and anchor",
    },
    "engine": {
        "name": 'which engine reads: "duckdb" (the default), or one that an installed package adds',
        "url": "where the engine's server is, if it has one",
        "threads": "how many threads a read may use",
        "memory": 'how much memory a read may use, such as "2GB"',
        "timeout": "after how many seconds a read is stopped; it stays charged",
    },
    "datasets.NAME": {
        "epsilon": "what may be spent in all",
        "delta": "what may be spent of delta in all",
        "accountant": '"basic", "zcdp", "gaussian" or "rdp"; fixed once the budget is opened',
        "order": 'the order of the "rdp" accountant',
        "aside": 'the part of delta that "zcdp" keeps for losses with a delta of their own',
        "each": 'the window of time of which each has a budget of its own, such as "month"',
        "analysts": "who may ask, each with a limit of their own",
    },
    "datasets.NAME.analysts.WHO": {
        "epsilon": "what this analyst may spend",
        "delta": "what this analyst may spend of delta",
    },
    "tables.NAME": {
        "source": "a file, glob, partitioned folder, DuckDB file, or an address that the engine reads",
        "public": "true for a table about no one: no unit, no budget, free to read",
        "key": "the columns of a public table whose combination is in no two rows",
        "unit": 'the column whose values are protected, "row", or { via = … } for the owner in another table',
        "max_groups": "in how many groups of a result one unit may count",
        "max_rows": 'how many rows one unit weighs in all, or "auto": a profile chooses it',
        "ceiling": "the most rows that a unit is taken to have where it is said what limits cut away (1000)",
        "adjacency": '"add-remove" (the default) or "exchange"',
        "window": 'protect each "day", "week", "month", "quarter", "year" or number of days by itself',
        "time": "the column of dates or timestamps that says in which window a row is",
        "zone": 'where windows of timestamps end, such as "Europe/Berlin" (UTC)',
        "dataset": "whose budget it draws on; tables about the same people share one",
        "version": "your word for the state of the data",
        "states": "of a table that grows: what it held at some times, one section each, the newest last",
        "size": "about how many units there are, if that is public",
        "rows": 'exactly how many rows there are, if public: for unit "row" with adjacency "exchange"',
        "profile": "how many units have up to so many rows, if public: { 1 = 8000, 10 = 900, 200 = 30 }",
        "columns": "what may be asked for; other columns cannot",
        "csv": "how a CSV file is written, where its header does not tell",
        "synth": "what its synthetic rows keep to, and what matters in them",
    },
    "tables.NAME.states.STATE": {
        "files": "the files of the source's folder that belong to it; one that arrives later does not",
        "sizes": "how many bytes they had when it was declared, which `sfumato check` looks at",
        "column": "a declared column that grows as rows arrive, where states are not files",
        "last": "the last value of that column that belongs to it",
        "snapshot": "of a Delta table, the number of the snapshot",
    },
    "tables.NAME.synth": {
        "constraints": 'conditions that hold in every row, such as ["age >= 18"]',
        "never": 'values that no row has together: [{ sex = "M", pregnant = true }]',
        "determines": 'columns that follow from others: [{ by = "zip", column = "city", mapping = { … } }]',
        "totals": "how many rows have each value, if public: { sex = { F = 5120, M = 4880 } }",
        "workload": 'which columns matter together: [["age", "sex"], …], or conditions that will be counted',
        "ids": "columns that only name rows, such as the number of an order: made anew",
    },
    "tables.NAME.synth.determines": {
        "by": "the column that decides",
        "column": "the column that follows",
        "mapping": "from values of the one to values of the other",
    },
    "tables.NAME.csv": {
        "header": "whether the first line has the names of the columns (true)",
        "names": "the names of all columns, in order; they go over those of a header",
        "delimiter": 'what separates fields: ",", ";", "|" or a tab',
        "decimal": 'what separates the fraction of a number: "." or ","',
        "dates": 'how days are written, such as ["%d.%m.%Y"]',
        "trim": "whether blanks around text are left out (false)",
    },
    "tables.NAME.unit": {
        "via": "the table whose rows the rows of this one point to",
        "on": "which column here equals which there",
        "max_groups": "in how many groups of a result one unit may count",
        "max_rows": 'how many rows one unit weighs in all, or "auto": a profile chooses it',
        "ceiling": "the most rows that a unit is taken to have where it is said what limits cut away (1000)",
        "adjacency": '"add-remove" (the default) or "exchange"',
    },
    "tables.NAME.columns.COLUMN": {
        "type": '"int", "float", "text", "enum", "bool", "date", "timestamp" or "time"',
        "lower": "the least value of a number",
        "upper": "the greatest value of a number",
        "start": "the first day of a date; of a timestamp or a time of day the first second",
        "end": "the last day or second, included",
        "values": "the public values of an enum",
        "nullable": "whether a row may lack it (true)",
        "role": '"identifier", "quasi-identifier", "sensitive" or "plain"',
    },
}

ENVIRONMENT: dict[str, str] = {
    "SFUMATO_CONFIG": "path of sfumato.toml",
    "SFUMATO_LEDGER": "path or address of the ledger",
    "SFUMATO_ANALYST": "in whose name to ask",
    "SFUMATO_DEBUG": "1: show where an unexpected error arose, without any value",
}


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause that names the known word most like this one, or all of them: ` Did you mean …?`."""
    listed = sorted(known)
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in listed], n=1, cutoff=0.6)
    if close:
        return f" Did you mean {next(name for name in listed if name.lower() == close[0])!r}?"
    return f" Known: {', '.join(listed)}." if listed else ""
