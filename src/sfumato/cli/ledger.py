"""`sfumato ledger`: who spent what on which data, whether the chain holds, and the steward's acts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import (
    acting,
    dataset_named,
    declared_limits,
    exactly,
    ledger_place,
    limit_in_toml,
    line_of_budget,
    listed_as,
    open_ledger,
    read_catalog,
    steward_of,
)
from sfumato.cli.options import AnalystOption, ConfigOption, JsonOption, LedgerOption, ReasonOption
from sfumato.cli.output import emit_json, paragraph, say, spinner, table, unbroken
from sfumato.cli.receipts import balance_facts, listed
from sfumato.errors import CatalogUnusable, InvalidParameter, LedgerMismatch, LedgerTampered

if TYPE_CHECKING:
    from sfumato.ledger import Balance, Budget, Ledger

__all__ = ["app"]

app = typer.Typer(help="Who spent what, whether it holds, and the steward's acts.", no_args_is_help=True)

DatasetArgument = Annotated[
    str | None, typer.Argument(metavar="DATASET", help="Whose budget; else the only one.")
]
DatasetNeeded = Annotated[str, typer.Argument(metavar="DATASET", help="Whose budget.")]
AnalystNeeded = Annotated[str, typer.Argument(metavar="ANALYST", help="Whose limit.")]
EpsilonOption = Annotated[
    str | None, typer.Option("--epsilon", metavar="NUMBER", help="The new epsilon in all; else the toml's.")
]
DeltaOption = Annotated[
    str | None, typer.Option("--delta", metavar="NUMBER", help="The new delta in all; else the toml's.")
]


@app.command("show")
@reported
def show(
    dataset: DatasetArgument = None,
    last: Annotated[int, typer.Option("--last", min=0, help="How many receipts to list, newest first.")] = 20,
    all_: Annotated[bool, typer.Option("--all", help="List the receipts of kept answers, too.")] = False,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    analyst: AnalystOption = None,
    json_: JsonOption = False,
) -> None:
    """What is spent and left of each budget, and the latest receipts."""
    with spinner("reading the ledger", quiet=json_), open_ledger(config, ledger) as book:
        names = [entry.name for entry in book.datasets()]
        chosen = names if dataset is None else [dataset_named(dataset, names)]
        own = [book.balance(name, analyst) for name in chosen]
        balances = [balance_facts(balance) if json_ else str(balance) for balance in own]
        entries = [
            entry
            for entry in book.entries(None if dataset is None else chosen[0])
            if analyst is None or (entry.analyst and listed_as(entry.analyst, [analyst]))
        ]
        # A release belongs to its debit and says nothing of its own to people.
        receipts = [entry for entry in entries if json_ or all_ or entry.kind != "release"]
        kept = len(entries) - len(receipts)
        total, receipts = len(receipts), receipts[len(receipts) - min(last, len(receipts)) :][::-1]
    if json_:
        emit_json(
            {
                "balances": balances,
                "entries": total,
                "receipts": [receipt.to_dict() for receipt in receipts],
            }
        )
        return
    if not balances:
        say("Nothing is registered yet.")
    for balance in balances:
        say(str(balance))
        say()
    if receipts:
        table(listed(receipts))
        more = [f"… and {total - len(receipts):,} more: --last {total}"] if total > len(receipts) else []
        if kept:
            more.append("Not listed: receipts of kept answers, which cost nothing of their own: --all")
        if more:
            say()
            for line in more:
                paragraph(line)


@app.command("verify")
@reported
def verify(config: ConfigOption = None, ledger: LedgerOption = None, json_: JsonOption = False) -> None:
    """Check every receipt, the chain and its anchor; exit code 4 if one fails."""
    from sfumato.ledger import Ledger

    where, state = ledger_place(config, ledger)
    with spinner("verifying the ledger", quiet=json_):
        verification = Ledger.inspect(where, state=state)
    if json_:
        emit_json(
            {
                "ok": verification.ok,
                "entries": verification.entries,
                "head": verification.head,
                "problems": list(verification.problems),
            }
        )
    elif verification.ok:
        say(f"The ledger holds: {verification.entries:,} receipts, chained and anchored.", style="good")
    else:
        say("The ledger does not hold:", style="bad")
        for problem in verification.problems:
            paragraph(f"- {problem}", indent="  ")
    if not verification.ok:
        raise typer.Exit(4)


@app.command("export")
@reported
def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Every receipt: one JSON object a line, or with --json one array."""
    with open_ledger(config, ledger) as book:
        receipts = book.export()
    text = (
        json.dumps(receipts, indent=2) + "\n"
        if json_
        else "".join(json.dumps(receipt, sort_keys=True) + "\n" for receipt in receipts)
    )
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter(f"{output} cannot be written.") from None


@app.command("adopt")
@reported
def adopt(
    reason: ReasonOption,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Take the ledger over as it stands after its anchor was lost."""
    acting()
    from sfumato.ledger import Ledger
    from sfumato.ledger.rules import reason_of

    where, state = ledger_place(config, ledger)
    why = reason_of(reason)
    try:
        Ledger.open(where, state=state, create=False).close()
    except LedgerTampered:
        pass  # if it is not the anchor that is missing, the same is raised again below
    else:
        raise InvalidParameter("There is nothing to adopt: the ledger's anchor is there and holds.")
    with Ledger.open(where, state=state, create=False, adopt=True) as book:
        steward_of(book).adopted(reason=why)
        verification = book.verify()
    told = f"The ledger is adopted with {verification.entries:,} receipts and anchored again."
    if json_:
        emit_json({"done": told, "entries": verification.entries, "head": verification.head})
        return
    paragraph(told)
    paragraph(
        "Receipts that had been cut off at its end before cannot be noticed any more: compare the number "
        "with an older export if there is one."
    )


@app.command("raise")
@reported
def raise_(
    dataset: DatasetNeeded,
    reason: ReasonOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Raise a dataset's budget to what the toml says, or to --epsilon and --delta."""
    acting()
    with open_ledger(config, ledger) as book:
        current = _dataset(book, dataset).budget
        declared = _declared_budget(config, dataset)
        budget = _budget(current, declared, epsilon, delta)
        steward_of(book).raise_budget(dataset, budget, reason=reason)
        _done(f"The budget of {dataset} is now {budget}.", book.balance(dataset), json_)
    if declared is not None and declared != budget and not json_:
        from sfumato.catalog.write import toml_number

        figures = f"epsilon = {toml_number(exactly(budget.epsilon))}"
        if budget.delta != declared.delta:
            figures += f", delta = {toml_number(exactly(budget.delta))}"
        place = line_of_budget(read_catalog(config).path, dataset)
        paragraph(f"Now write it into the toml, too: {figures} in [datasets.{dataset}]{place}.")


@app.command("close")
@reported
def close(
    dataset: DatasetNeeded,
    reason: ReasonOption,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Close a dataset's budget for good: nothing more can be asked of it."""
    acting()
    with open_ledger(config, ledger) as book:
        _dataset(book, dataset)
        steward_of(book).close_budget(dataset, reason=reason)
        _done(f"The budget of {dataset} is closed.", book.balance(dataset), json_)


@app.command("limit")
@reported
def limit(
    dataset: DatasetNeeded,
    analyst: AnalystNeeded,
    reason: ReasonOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Set what one analyst may spend: as the toml says, or --epsilon and --delta."""
    acting()
    with open_ledger(config, ledger) as book:
        current = _dataset(book, dataset).budget
        listed = declared_limits(config, dataset)
        declared = listed.get(listed_as(analyst, listed) or "")
        if epsilon is None and declared is None:
            raise InvalidParameter(f"Say how much {analyst[:40]} may spend: --epsilon 0.5.")
        budget = _budget(current, declared, epsilon, delta)
        steward_of(book).limit(dataset, analyst, budget, reason=reason)
        _done(f"{analyst} may now spend {budget} on {dataset}.", book.balance(dataset, analyst), json_)
    if json_:
        return
    if delta is None and declared is None and budget.delta:
        paragraph(
            f"Its delta is all that {dataset} has, {exactly(budget.delta)}, as none was given: --delta."
        )
    entry = unbroken(limit_in_toml(analyst, budget.epsilon, budget.delta))
    if declared is not None and declared != budget:
        paragraph(
            f"Now write it into the toml, too: {entry} in [datasets.{dataset}.analysts]. Until then "
            f"{analyst} is refused."
        )
    elif declared is None and listed:
        paragraph(
            f"Now add {analyst} to the toml, which lists who may ask: {entry} in "
            f"[datasets.{dataset}.analysts]. Until then {analyst} is refused."
        )


@app.command("revoke")
@reported
def revoke(
    dataset: DatasetNeeded,
    analyst: AnalystNeeded,
    reason: ReasonOption,
    force: Annotated[bool, typer.Option("--force", help="Also for a name that was never seen.")] = False,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Take an analyst's leave to ask; a new limit gives it back."""
    acting()
    with open_ledger(config, ledger) as book:
        _dataset(book, dataset)
        if not force:
            _seen(book, config, dataset, analyst)
        steward_of(book).revoke(dataset, analyst, reason=reason)
        _done(f"{analyst} may no longer ask about {dataset}.", book.balance(dataset, analyst), json_)


@app.command("give")
@reported
def give(
    dataset: DatasetNeeded,
    receipts: Annotated[
        list[int], typer.Argument(metavar="RECEIPT...", help="The numbers of the debits that paid for them.")
    ],
    reason: ReasonOption,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Give answers on record to all: reading them counts toward nobody's limit."""
    acting()
    with open_ledger(config, ledger) as book:
        _dataset(book, dataset)
        steward_of(book).give(dataset, receipts, reason=reason)
        numbers = ", ".join(str(number) for number in receipts)
        many = "s" if len(receipts) > 1 else ""
        _done(
            f"The answer{many} of receipt{many} {numbers} on {dataset}: given to all.",
            book.balance(dataset),
            json_,
        )


@app.command("redeclare")
@reported
def redeclare(
    dataset: DatasetNeeded,
    reason: ReasonOption,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Put the toml's columns and bounds on record after something was spent."""
    acting()
    from sfumato.session import declaration_of

    catalog = read_catalog(config, ledger)
    declaration = declaration_of(list(catalog.members(dataset_named(dataset, list(catalog.budgets)))))
    with open_ledger(config, ledger) as book:
        _dataset(book, dataset)
        steward_of(book).redeclare(dataset, declaration, reason=reason)
        _done(
            f"The columns and bounds of {dataset} are now those of {catalog.path.name}.",
            book.balance(dataset),
            json_,
        )


def _dataset(book: Ledger, name: str) -> Any:
    known = {entry.name: entry for entry in book.datasets()}
    return known[dataset_named(name, list(known))]


def _seen(book: Ledger, config: Path | None, dataset: str, analyst: str) -> None:
    """Refuse the name of somebody who is neither in the ledger nor in the toml: it may be a slip."""
    from sfumato.catalog.keys import nearest

    balance = book.balance(dataset, analyst)
    if balance.limited or balance.entries or not (balance.open or balance.closed):
        return
    listed = declared_limits(config, dataset)
    if listed_as(analyst, listed):
        return
    known = {entry.analyst for entry in book.entries(dataset) if entry.analyst} | set(listed)
    raise InvalidParameter(
        f"{dataset} has never seen an analyst {analyst[:40]!r}.{nearest(analyst, known)} To shut that name "
        "out all the same, add --force."
    )


def _declared_budget(config: Path | None, dataset: str) -> Budget | None:
    """The budget in the toml, if there is one."""
    try:
        catalog = read_catalog(config)
    except CatalogUnusable:
        if config is not None:
            raise
        return None
    return catalog.budgets.get(dataset)


def _budget(current: Budget, declared: Budget | None, epsilon: str | None, delta: str | None) -> Budget:
    """A budget with the gate of the one in force."""
    from sfumato.ledger import Budget

    base = declared or current
    if base.accountant != current.accountant:
        raise LedgerMismatch(
            f"The budget was opened with the accountant {current.accountant!r}, which stays; the toml names "
            f"{base.accountant!r}."
        )
    return Budget(
        base.epsilon if epsilon is None else epsilon,
        base.delta if delta is None else delta,
        current.accountant,
        order=current.order,
        aside=current.aside,
    )


def _done(text: str, balance: Balance, json_: bool) -> None:
    """Say what was done, while the ledger is still open: some figures are worked out when they are read."""
    if json_:
        emit_json({"done": text, "balance": balance_facts(balance)})
        return
    paragraph(text)
    say(str(balance))
