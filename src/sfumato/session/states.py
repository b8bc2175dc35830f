"""States of tables that grow, as a session reads them: which one is meant, and what is known of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter
from sfumato.plan.prices.bundle import fingerprint_of
from sfumato.plan.questions.relations import rows_of
from sfumato.schema import PrivateTable
from sfumato.schema.states import GROWING

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.session import Session

__all__ = ["about_states", "all_states", "answered_before", "state_of", "states_named"]


def states_named(tables: Mapping[str, Any], state: str, table: str | None = None) -> dict[str, str]:
    """The state of each table that grows, or of one of them.

    Raises:
        InvalidParameter: if there is no such state.
    """
    growing = _growing(tables)
    wanted = growing if table is None else {name: one for name, one in growing.items() if name == table}
    if not wanted:
        which = "No table here" if table is None else f"{str(table)[:60]!r} is no table that"
        raise InvalidParameter(f"{which} has states: declare them, PrivateTable(…, states={{…}}).")
    for name, one in wanted.items():
        if state not in one.states:
            named = " Say which table: at(…, table=…)." if len(growing) > 1 and table is None else ""
            raise InvalidParameter(
                f"There is no state {str(state)[:60]!r} of {name}: {', '.join(one.states)}.{named}"
            )
    return dict.fromkeys(wanted, state)


def all_states(tables: Mapping[str, Any]) -> dict[str, str]:
    """Each table that grows, read as it is."""
    return dict.fromkeys(_growing(tables), GROWING)


def state_of(tables: Mapping[str, Any], table: str) -> str:
    """The state in which a table is read; empty where it has none.

    Of one that is read as it is, the newest that is declared by now, and that there may be later rows.
    """
    known = tables.get(table)
    if not isinstance(known, PrivateTable) or not known.states:
        return ""
    return f"{known.newest} and later" if known.version == GROWING else known.version


def about_states(tables: Mapping[str, Any]) -> str:
    """Which data answers are about, in words; empty where no table has states."""
    told = []
    for name, table in _growing(tables).items():
        newest = table.newest
        if table.version == GROWING:
            told.append(f"{name} as it is when it is read")
        else:
            told.append(f"{name} as of {table.version}{'' if table.version == newest else f', not {newest}'}")
    return f"About {' and '.join(told)}." if told else ""


def answered_before(session: Session, quote: Quote) -> tuple[str, ...] | None:
    """The earlier states about which this question has an answer on record, oldest first; None: none has.

    Privacy:
        By the record and the declarations alone: no source is opened.
    """
    table = session.tables.get(quote.measured.table)
    if not isinstance(table, PrivateTable) or table.version not in table.states:
        return None
    named, dataset = [*table.states], session.dataset_with(table).name
    found = []
    for state in named[: named.index(table.version)]:
        tables = {**session.tables, table.name: table.at(state)}
        questions = [
            replace(question, version=rows_of(question.rows, tables).version)
            for question in quote.recipe.questions
        ]
        if any(True for _ in session.ledger.recall(dataset, fingerprint_of(questions))):
            found.append(state)
    return tuple(found) or None


def _growing(tables: Mapping[str, Any]) -> dict[str, PrivateTable]:
    return {name: table for name, table in tables.items() if isinstance(table, PrivateTable) and table.states}
