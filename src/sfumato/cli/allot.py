"""`sfumato ledger allot` and `take-back`: one budget divided among teams, on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.failures import reported
from sfumato.cli.ledger import DatasetNeeded, app
from sfumato.cli.opening import (
    acting,
    begun_ledger,
    dataset_named,
    declared_limits,
    exactly,
    limit_in_toml,
    steward_of,
)
from sfumato.cli.options import LedgerOptions, ReasonOption, spread
from sfumato.cli.output import emit_json, paragraph, say, table, unbroken
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.games import Grants, Request
    from sfumato.ledger import Budget

__all__ = ["app"]


class _Rule(StrEnum):
    max_min = "max-min"
    weights = "weights"
    auction = "auction"


Pairs = list[str]


@app.command("allot")
@reported
@spread
def allot(
    dataset: DatasetNeeded,
    ask: Annotated[
        Pairs, typer.Option("--ask", metavar="TEAM=EPSILON", help="The most that is of use to a team.")
    ],
    rule: Annotated[_Rule, typer.Option("--rule", help="How to divide what is short.")] = _Rule.max_min,
    weight: Annotated[
        Pairs | None, typer.Option("--weight", metavar="TEAM=NUMBER", help="How much a team counts; else 1.")
    ] = None,
    value: Annotated[
        Pairs | None,
        typer.Option(
            "--value", metavar="TEAM=CREDITS", help="What a unit is worth to a team, in an auction."
        ),
    ] = None,
    total: Annotated[
        str | None,
        typer.Option("--total", metavar="EPSILON", help="How much to divide; else all there is."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Put the limits on record.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also for teams that the toml does not list.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why, in a few words; kept in the receipts.")
    ] = None,
    *,
    place: LedgerOptions,
) -> None:
    """Divide what a budget has left among teams; nothing is written without --write."""
    from sfumato import games

    requests = _requests(ask, _pairs(weight, "--weight"), _pairs(value, "--value"))
    if write and not (reason or "").strip():
        raise InvalidParameter("Limits are a steward's act and need a reason: add --reason 'why'.")
    if write:
        acting()
    listed = declared_limits(place.config, dataset)
    if listed and not force:
        _known(requests, listed)
    with begun_ledger(place.config, place.ledger, dataset, write=write) as book:
        name = dataset_named(dataset, [entry.name for entry in book.datasets()])
        planned = games.grants(book, name, requests, rule=_name(rule), total=total)
        receipts = planned.write(book, reason=str(reason)) if write else []
    if place.json_:
        emit_json(
            {
                "dataset": planned.dataset,
                "unit": planned.unit,
                **planned.allocation.to_dict(),
                "promised": str(planned.promised),
                "limits": {
                    team: None if limit is None else {"epsilon": limit.epsilon, "delta": limit.delta}
                    for team, limit in planned.limits.items()
                },
                "written": [receipt.number for receipt in receipts],
            }
        )
        return
    _show(planned, requests, written=write)
    deltas = {exactly(limit.delta) for limit in planned.limits.values() if limit is not None and limit.delta}
    if deltas:
        paragraph(f"Each of these limits has its own delta, too: {', '.join(sorted(deltas))}.")
    if write:
        given = {team: limit for team, limit in planned.limits.items() if limit is not None}
        _to_the_toml(name, given, listed)
        if not listed:
            paragraph(
                "Others than these teams may ask, too, and spend what is set aside: list who may in "
                f"{_section(name)} of the toml."
            )


@app.command("take-back")
@reported
@spread
def take_back(dataset: DatasetNeeded, reason: ReasonOption, *, place: LedgerOptions) -> None:
    """Undo the last allotment: earlier limits are in force again, what was spent stays spent."""
    from sfumato.ledger import Budget

    acting()
    with place.open() as book:
        name = dataset_named(dataset, [entry.name for entry in book.datasets()])
        receipts = steward_of(book).take_back(name, reason=reason)
        teams = list(dict.fromkeys(str(receipt.analyst) for receipt in receipts))
    told = f"The allotment is taken back: on {name}, what held before for {', '.join(teams)} holds again."
    if place.json_:
        numbers = [receipt.number for receipt in receipts]
        emit_json({"done": told, "dataset": name, "teams": teams, "written": numbers})
        return
    paragraph(told)
    again = {
        str(receipt.analyst): Budget.from_dict(receipt.memo["budget"])
        for receipt in receipts
        if receipt.kind == "limit" and receipt.memo["budget"] is not None
    }
    listed = declared_limits(place.config, name)
    _to_the_toml(name, again, listed)
    if any(team in listed and team not in again for team in teams):
        paragraph(
            f"Who had no limit on record before gets the one that {_section(name)} of the toml lists, with "
            "the next question: change it there first if it should be another."
        )


def _name(rule: _Rule) -> Literal["max_min", "weights", "auction"]:
    return rule.name  # type: ignore[return-value]


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """TEAM=NUMBER as a mapping."""
    numbers: dict[str, str] = {}
    for pair in given or ():
        team, sign, number = pair.rpartition("=")
        if not sign or not team.strip() or not number.strip():
            raise InvalidParameter(f"{option} takes TEAM=NUMBER, such as {option} health=0.5.")
        if team.strip() in numbers:
            raise InvalidParameter(f"{option} names {team.strip()[:40]} twice.")
        numbers[team.strip()] = number.strip()
    return numbers


def _requests(ask: Sequence[str], weights: dict[str, str], values: dict[str, str]) -> list[Request]:
    from sfumato.games import Request

    asked = _pairs(ask, "--ask")
    for option, given in (("--weight", weights), ("--value", values)):
        for team in given:
            if team not in asked:
                raise InvalidParameter(
                    f"{option} names {team[:40]}, who does not ask: add --ask {team[:40]}=…."
                )
    return [
        Request(team, epsilon, weight=weights.get(team, 1), value=values.get(team))
        for team, epsilon in asked.items()
    ]


def _known(requests: Sequence[Request], listed: Mapping[str, Budget]) -> None:
    """Refuse a team that the toml does not list: it may be a slip, and what it gets is lost to the others."""
    from sfumato.catalog.keys import nearest

    for request in requests:
        if request.team not in listed:
            raise InvalidParameter(
                f"The toml does not list {request.team[:40]!r} among those who may ask."
                f"{nearest(request.team, listed)} To give to that name all the same, add --force."
            )


def _show(planned: Grants, requests: Sequence[Request], *, written: bool) -> None:
    allocation = planned.allocation
    columns: dict[str, list[object]] = {
        "team": [request.team for request in requests],
        "asked epsilon": [request.epsilon for request in requests],
        f"share of {planned.unit}": [allocation.shares[request.team] for request in requests],
        "may spend in all": [
            "nothing more"
            if (limit := planned.limits[request.team]) is None
            else f"epsilon {exactly(limit.epsilon)}"
            for request in requests
        ],
    }
    if allocation.rule == "auction":
        columns["pays"] = [allocation.payments[request.team] for request in requests]
    table(columns)
    say()
    if allocation.left > 0:
        paragraph(f"Not asked for: {planned.unit} {_figure(allocation.left)}.")
    if planned.promised:
        paragraph(
            f"Kept for other teams by an earlier allotment: {planned.unit} {_figure(planned.promised)}."
        )
    if written:
        paragraph(
            f"The limits are on record for {planned.dataset}. To undo it: "
            + unbroken(f"sfumato ledger take-back {planned.dataset} --reason …")
        )
    else:
        paragraph("Nothing is written yet: add --write --reason … to put these limits on record.")


def _to_the_toml(dataset: str, limits: Mapping[str, Budget], listed: Mapping[str, Budget]) -> None:
    """Say what the file must list, which otherwise contradicts the ledger and stops the teams."""
    same = (
        (known := listed.get(team)) is not None
        and (known.epsilon, known.delta) == (limit.epsilon, limit.delta)  # which is what is compared later
        for team, limit in limits.items()
    )
    if not listed or all(same):
        return
    paragraph(
        "Now write them into the toml, too, which lists who may ask: in "
        f"{_section(dataset)}. Until then those teams are refused."
    )
    for team, limit in limits.items():
        say(f"  {limit_in_toml(team, limit.epsilon, limit.delta)}")


def _section(dataset: str) -> str:
    """Where the toml lists who may ask."""
    from sfumato.catalog.write import toml_key

    return unbroken(f"[datasets.{toml_key(dataset)}.analysts]")


def _figure(exact: Fraction) -> str:
    return f"{float(exact):.6g}"
