"""`sfumato ledger allot` and `take-back`: one budget divided among teams, on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.failures import reported
from sfumato.cli.ledger import DatasetNeeded
from sfumato.cli.opening import acting, dataset_named, declared_limits, exactly, limit_in_toml, open_ledger
from sfumato.cli.options import ConfigOption, JsonOption, LedgerOption, ReasonOption
from sfumato.cli.output import emit_json, paragraph, say, table, unbroken
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.games import Grants, Request
    from sfumato.ledger import Budget

__all__ = ["allot", "take_back"]


class _Rule(StrEnum):
    max_min = "max-min"
    weights = "weights"
    auction = "auction"


Pairs = list[str]


@reported
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
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why, in a few words; kept in the receipts.")
    ] = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Divide what a budget has left among teams; nothing is written without --write."""
    from sfumato import games

    requests = _requests(ask, _pairs(weight, "--weight"), _pairs(value, "--value"))
    if write and not (reason or "").strip():
        raise InvalidParameter("Limits are a steward's act and need a reason: add --reason 'why'.")
    if write:
        acting()
    with open_ledger(config, ledger) as book:
        name = dataset_named(dataset, [each.name for each in book.datasets()])
        planned = games.grants(book, name, requests, rule=_name(rule), total=total)
        receipts = planned.write(book, reason=str(reason)) if write else []
    if json_:
        emit_json(
            {
                "dataset": planned.dataset,
                "unit": planned.unit,
                **planned.allocation.to_dict(),
                "promised": str(planned.promised),
                "limits": {
                    team: None if each is None else {"epsilon": each.epsilon, "delta": each.delta}
                    for team, each in planned.limits.items()
                },
                "written": [each.number for each in receipts],
            }
        )
        return
    _show(planned, requests, written=write)
    if write:
        given = {team: each for team, each in planned.limits.items() if each is not None}
        _to_the_toml(name, given, declared_limits(config, name))


@reported
def take_back(
    dataset: DatasetNeeded,
    reason: ReasonOption,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    json_: JsonOption = False,
) -> None:
    """Undo the last allotment: earlier limits are in force again, what was spent stays spent."""
    from sfumato.ledger import Budget

    acting()
    with open_ledger(config, ledger) as book:
        name = dataset_named(dataset, [each.name for each in book.datasets()])
        receipts = book.take_back(name, reason=reason)
    teams = list(dict.fromkeys(str(each.analyst) for each in receipts))
    told = (
        f"The allotment is taken back; the earlier limits of {', '.join(teams)} on {name} are in force again."
    )
    if json_:
        emit_json(
            {"done": told, "dataset": name, "teams": teams, "written": [each.number for each in receipts]}
        )
        return
    paragraph(told)
    again = {
        str(each.analyst): Budget.from_dict(each.memo["budget"]) for each in receipts if each.kind == "limit"
    }
    _to_the_toml(name, again, declared_limits(config, name))


def _name(rule: _Rule) -> Literal["max_min", "weights", "auction"]:
    return rule.name  # type: ignore[return-value]


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """TEAM=NUMBER as a mapping."""
    found: dict[str, str] = {}
    for each in given or ():
        team, sign, number = each.rpartition("=")
        if not sign or not team.strip() or not number.strip():
            raise InvalidParameter(f"{option} takes TEAM=NUMBER, such as {option} health=0.5.")
        if team.strip() in found:
            raise InvalidParameter(f"{option} names {team.strip()[:40]} twice.")
        found[team.strip()] = number.strip()
    return found


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


def _show(planned: Grants, requests: Sequence[Request], *, written: bool) -> None:
    found = planned.allocation
    columns: dict[str, list[object]] = {
        "team": [each.team for each in requests],
        "asked epsilon": [each.epsilon for each in requests],
        f"share of {planned.unit}": [found.shares[each.team] for each in requests],
        "may spend in all": [
            "nothing more"
            if (limit := planned.limits[each.team]) is None
            else f"epsilon {exactly(limit.epsilon)}"
            for each in requests
        ],
    }
    if found.rule == "auction":
        columns["pays"] = [found.payments[each.team] for each in requests]
    table(columns)
    say()
    if found.left > 0:
        paragraph(f"Not asked for: {planned.unit} {_figure(found.left)}.")
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
    from sfumato.catalog.write import toml_key

    same = (
        (known := listed.get(team)) is not None
        and (known.epsilon, known.delta) == (each.epsilon, each.delta)  # which is what is compared later
        for team, each in limits.items()
    )
    if not listed or all(same):
        return
    paragraph(
        "Now write them into the toml, too, which lists who may ask: in "
        + unbroken(f"[datasets.{toml_key(dataset)}.analysts].")
        + " Until then those teams are refused."
    )
    for team, each in limits.items():
        say(f"  {limit_in_toml(team, each.epsilon, each.delta)}")


def _figure(exact: Fraction) -> str:
    return f"{float(exact):.6g}"
