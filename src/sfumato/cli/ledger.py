"""`sfumato ledger`: who spent what on which data, whether the chain holds, and the steward's acts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato._dataclasses import dataclass
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
from sfumato.cli.options import AskerOptions, JsonOption, LedgerOptions, ReasonOption, spread
from sfumato.cli.output import emit_json, paragraph, progress_bar, say, spinner, table, unbroken
from sfumato.cli.receipts import balance_facts, listed
from sfumato.errors import CatalogUnusable, InvalidParameter, LedgerMismatch, LedgerTampered

if TYPE_CHECKING:
    from sfumato.ledger import Budget, Ledger, Receipt, Steward
    from sfumato.schema.windows import Each

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
@spread
def show(
    dataset: DatasetArgument = None,
    last: Annotated[int, typer.Option("--last", min=0, help="How many receipts to list, newest first.")] = 20,
    all_: Annotated[bool, typer.Option("--all", help="List the receipts of kept answers, too.")] = False,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", metavar="WINDOW", help="Of which window, such as 2026-03, where budgets are for each."
        ),
    ] = None,
    *,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """What is spent and left of each budget, and the latest receipts."""
    analyst = asker.analyst
    with spinner("reading the ledger", quiet=json_), open_ledger(asker.config, asker.ledger) as book:
        names = [entry.name for entry in book.datasets()]
        chosen = names if dataset is None else [dataset_named(dataset, names)]
        each = {entry.name: entry.budget.each for entry in book.datasets() if entry.name in chosen}
        timed = {name for name, length in each.items() if length is not None}
        if window is not None and not timed:
            raise InvalidParameter("--window is for budgets that open anew with each window; none does here.")
        own = [book.balance(name, analyst, window=window if name in timed else None) for name in chosen]
        balances = [balance_facts(balance) if json_ else str(balance) for balance in own]
        asked = book.entries(None if dataset is None else chosen[0])
        entries = [
            entry
            for entry in (asked if window is None else _of_window(asked, window, each))
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


def _of_window(entries: Iterable[Receipt], window: str, each: Mapping[str, Each | None]) -> Iterator[Receipt]:
    """The receipts that are about a window: debits that are paid in it, and what follows from these.

    What holds in every window is left in: what the steward did, and receipts of budgets for all time.
    """
    from sfumato.schema import Windows

    places = {
        name: Windows.named(length, window).first for name, length in each.items() if length is not None
    }
    others = set[int]()
    for entry in entries:
        place, paid = places.get(entry.dataset), entry.windows
        if place is not None and paid is not None and not paid.first <= place <= paid.last:
            others.add(entry.number)
        elif place is None or entry.memo.get("debit") not in others:
            yield entry


@app.command("verify")
@reported
@spread
def verify(*, place: LedgerOptions) -> None:
    """Check every receipt, the chain and its anchor; exit code 4 if one fails."""
    from sfumato.ledger import Ledger

    where, state = ledger_place(place.config, place.ledger)
    with progress_bar("verifying", quiet=place.json_) as progress:
        verification = Ledger.inspect(where, state=state, progress=progress)
    if place.json_:
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
@spread
def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
    *,
    place: LedgerOptions,
) -> None:
    """Every receipt: one JSON object a line, or with --json one array."""
    with place.open() as book:
        receipts = book.export()
    text = (
        json.dumps(receipts, indent=2) + "\n"
        if place.json_
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
@spread
def adopt(reason: ReasonOption, *, place: LedgerOptions) -> None:
    """Take the ledger over as it stands after its anchor was lost."""
    acting()
    from sfumato.ledger import Ledger
    from sfumato.ledger.rules import reason_of

    where, state = ledger_place(place.config, place.ledger)
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
    if place.json_:
        emit_json({"done": told, "entries": verification.entries, "head": verification.head})
        return
    paragraph(told)
    paragraph(
        "Receipts that had been cut off at its end before cannot be noticed any more: compare the number "
        "with an older export if there is one. Nor can acts on accounts: see sfumato account list, and "
        "remove whoever should be out."
    )


@app.command("raise")
@reported
@spread
def raise_(
    dataset: DatasetNeeded,
    reason: ReasonOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    *,
    place: LedgerOptions,
) -> None:
    """Raise a dataset's budget to what the toml says, or to --epsilon and --delta."""
    with _acting_on(dataset, place) as act:
        declared = _declared_budget(place.config, dataset)
        budget = _budget(act.budget, declared, epsilon, delta)
        act.steward.raise_budget(dataset, budget, reason=reason)
        act.done(f"The budget of {dataset} is now {budget}.")
    if declared is not None and declared != budget and not place.json_:
        from sfumato.catalog.write import toml_number

        figures = f"epsilon = {toml_number(exactly(budget.epsilon))}"
        if budget.delta != declared.delta:
            figures += f", delta = {toml_number(exactly(budget.delta))}"
        line = line_of_budget(read_catalog(place.config).path, dataset)
        paragraph(f"Now write it into the toml, too: {figures} in [datasets.{dataset}]{line}.")


@app.command("close")
@reported
@spread
def close(dataset: DatasetNeeded, reason: ReasonOption, *, place: LedgerOptions) -> None:
    """Close a dataset's budget for good: nothing more can be asked of it."""
    with _acting_on(dataset, place) as act:
        act.steward.close_budget(dataset, reason=reason)
        act.done(f"The budget of {dataset} is closed.")


@app.command("limit")
@reported
@spread
def limit(
    dataset: DatasetNeeded,
    analyst: AnalystNeeded,
    reason: ReasonOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    *,
    place: LedgerOptions,
) -> None:
    """Set what one analyst may spend: as the toml says, or --epsilon and --delta."""
    with _acting_on(dataset, place) as act:
        listed = declared_limits(place.config, dataset)
        declared = listed.get(listed_as(analyst, listed) or "")
        if epsilon is None and declared is None:
            raise InvalidParameter(f"Say how much {analyst[:40]} may spend: --epsilon 0.5.")
        budget = _budget(act.budget, declared, epsilon, delta)
        act.steward.limit(dataset, analyst, budget, reason=reason)
        act.done(f"{analyst} may now spend {budget} on {dataset}.", analyst)
    if place.json_:
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
@spread
def revoke(
    dataset: DatasetNeeded,
    analyst: AnalystNeeded,
    reason: ReasonOption,
    force: Annotated[bool, typer.Option("--force", help="Also for a name that was never seen.")] = False,
    *,
    place: LedgerOptions,
) -> None:
    """Take an analyst's leave to ask; a new limit gives it back."""
    with _acting_on(dataset, place) as act:
        if not force:
            _seen(act.book, place.config, dataset, analyst)
        act.steward.revoke(dataset, analyst, reason=reason)
        act.done(f"{analyst} may no longer ask about {dataset}.", analyst)


@app.command("give")
@reported
@spread
def give(
    dataset: DatasetNeeded,
    receipts: Annotated[
        list[int], typer.Argument(metavar="RECEIPT", help="The numbers of the debits that paid for them.")
    ],
    reason: ReasonOption,
    *,
    place: LedgerOptions,
) -> None:
    """Give answers on record to all: reading them counts toward nobody's limit."""
    with _acting_on(dataset, place) as act:
        act.steward.give(dataset, receipts, reason=reason)
        numbers = ", ".join(str(number) for number in receipts)
        many = "s" if len(receipts) > 1 else ""
        act.done(f"The answer{many} of receipt{many} {numbers} on {dataset}: given to all.")


@app.command("redeclare")
@reported
@spread
def redeclare(dataset: DatasetNeeded, reason: ReasonOption, *, place: LedgerOptions) -> None:
    """Put the toml's columns and bounds on record after something was spent."""
    acting()
    from sfumato.session import declaration_of

    catalog = read_catalog(place.config, place.ledger)
    declaration = declaration_of(list(catalog.members(dataset_named(dataset, list(catalog.budgets)))))
    with _acting_on(dataset, place) as act:
        act.steward.redeclare(dataset, declaration, reason=reason)
        act.done(f"The columns and bounds of {dataset} are now those of {catalog.path.name}.")


@dataclass(frozen=True, slots=True)
class _Act:
    """A steward's act on a dataset, while its ledger is open."""

    book: Ledger
    steward: Steward
    dataset: str
    budget: Budget
    json_: bool

    def done(self, text: str, analyst: str | None = None) -> None:
        """Say what was done, and the balance of the dataset or of its analyst, as it is now."""
        balance = self.book.balance(self.dataset, analyst)
        if self.json_:
            emit_json({"done": text, "balance": balance_facts(balance)})
            return
        paragraph(text)
        say(str(balance))


@contextmanager
def _acting_on(dataset: str, place: LedgerOptions) -> Iterator[_Act]:
    """The ledger opened for a steward's act on a dataset that it has."""
    acting()
    with place.open() as book:
        known = {entry.name: entry for entry in book.datasets()}
        budget = known[dataset_named(dataset, list(known))].budget
        yield _Act(book, steward_of(book), dataset, budget, place.json_)


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
    if listed_as(analyst, known):
        return  # in another window
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
    if base.each != current.each:
        raise LedgerMismatch(
            f"The budget was opened for {current.span or 'all time'}, which stays; the toml has one for "
            f"{base.span or 'all time'}."
        )
    return Budget(
        base.epsilon if epsilon is None else epsilon,
        base.delta if delta is None else delta,
        current.accountant,
        order=current.order,
        aside=current.aside,
        each=current.each,
    )
