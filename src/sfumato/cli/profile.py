"""`sfumato profile`: how many rows units have, bought once and kept for all questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import open_session
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.output import emit_json, paragraph, say, spinner, table
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.session import Session

__all__ = ["profile"]


@reported
@spread
def profile(
    name: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="Which table; may be left out if there is one."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", metavar="E", help="What it may cost.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Of groups of this column instead of rows; repeatable."),
    ] = None,
    *,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """How many rows units have, with noise; bought once, and free for all questions afterwards.

    A steward who buys one may give it to all: sfumato ledger give.
    """
    catalog = asker.catalog()
    declared = _table(name, catalog)
    if epsilon is None:
        raise InvalidParameter("Say what the profile may cost: --epsilon 0.5.")
    with spinner("asking", quiet=json_), open_session(catalog, declared[1]) as session:
        before = _receipts(session)
        found = session.profile(declared[0], epsilon, by=by or None)
        paid = [number for number in _receipts(session) if number not in before]
        balance = session.balance(declared[1])
        left = str(balance)
    what = "groups" if by else "rows"
    if json_:
        errors = {"units_error": found.errors(0.95)[0], f"{what}_error": found.errors(0.95)[1]}
        emit_json(
            {
                "table": declared[0],
                "by": by or [],
                "up_to": list(found.rungs),
                "units": [float(number) for number in found.units],
                what: [float(number) for number in found.rows],
                **{key: list(values) for key, values in errors.items()},
                "receipt": paid[0] if paid else None,
                "left": {"epsilon": balance.remaining, "delta": balance.remaining_delta},
            }
        )
        return
    table(found.columns)
    say()
    cost = f"Paid epsilon {epsilon} (receipt {paid[0]})" if paid else "It is declared or on record: free"
    paragraph(f"{found.holds} {cost}; it is kept for all questions.")
    say(left)


def _receipts(session: Session) -> list[int]:
    """The numbers of what was paid for profiles."""
    return [one.number for one in session.releases() if one.purpose.spender == "profile"]


def _table(name: str | None, catalog: Catalog) -> tuple[str, str]:
    """The name of a table and its dataset."""
    known = {table.name.lower(): (table.name, table.dataset) for table in catalog.tables}
    listed = ", ".join(table.name for table in catalog.tables)
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None or name.lower() not in known:
        raise InvalidParameter(f"Say which table: sfumato profile TABLE, one of {listed}.")
    return known[name.lower()]
