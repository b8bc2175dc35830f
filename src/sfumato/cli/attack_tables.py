"""Attacks on released tables, as commands: on the rows as they are, and on private ones beside them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.attack_promise import Promise
from sfumato.cli.attack_rows import DELTA, MADE, NOT_SHOWN, private_rows
from sfumato.cli.attacking import (
    STAGES,
    EpsilonOption,
    FileArgument,
    LeakOption,
    PlotOption,
    SeedOption,
    at_epsilon,
    columns_in,
    divided,
    listed,
    part_and_whole,
    picture,
    price,
    tell,
)
from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import stages
from sfumato.errors import InvalidParameter
from sfumato.render import key

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.attacks import Intersection, Outcome

__all__ = ["homogeneity", "intersection", "linkage"]

_AS_IT_IS = "the table as it is"
_HALVES = (
    f"{MADE} in all, over a random half of the rows; the other half are the people who are not in the "
    f"data. {NOT_SHOWN} Which values there are is taken for declared."
)
_ASKED = 1_000  # people whom several tables are searched for
_MOST = 500  # people of either half whose every candidate is looked at

QuasiOption = Annotated[
    list[str], typer.Option("--quasi", metavar="COLUMNS", help="What outsiders may know: zip,age.")
]
SensitiveOption = Annotated[
    str, typer.Option("--sensitive", metavar="COLUMN", help="What they should not learn.")
]


@reported
def linkage(
    known: Annotated[str, typer.Argument(metavar="KNOWN", help="People with names: what outsiders have.")],
    released: Annotated[str, typer.Argument(metavar="RELEASED", help="The table without names.")],
    on: Annotated[
        list[str], typer.Option("--on", metavar="COLUMNS", help="What both have: zip,birth_date,sex.")
    ],
    truth: Annotated[
        str | None,
        typer.Option("--truth", metavar="COLUMN", help="A column of both that says whose row it is."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option("--control", metavar="FILE", help="People who are not in RELEASED, to compare with."),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="RELEASED has labels that cover values, such as 19***.")
    ] = False,
    epsilon: EpsilonOption = "1",
    leak: LeakOption = 0.1,
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Find people with names again in a table without."""
    cost, names = price(epsilon), listed(on)
    picture(plot)
    own = [] if truth is None else [truth]
    if truth is not None and control is not None:
        raise InvalidParameter("Give --truth or --control, not both: people of the control have no true row.")
    if truth in names:
        raise InvalidParameter("--truth must not be among --on: no attacker knows whose row is whose.")
    with stages(*STAGES, quiet=json_) as begin:
        people = columns_in(known, [*names, *own])
        # The attack sees all columns: only rows that are alike in each of them are copies.
        rows, all_columns = part_and_whole(released, [*names, *own])
        strangers = None if control is None else columns_in(control, names)
        from sfumato import attacks
        from sfumato.attacks.control import check_apart

        if control is not None:
            check_apart(known, control)
        asked: dict[str, Any] = {"on": names, "leak": leak, "seed": seed}
        begin()
        plain = attacks.linkage(
            people, all_columns, truth=truth, control=strangers, labels=labels, target=_AS_IT_IS, **asked
        )
        members, others = divided(rows, seed)
        begin()
        private = attacks.linkage(
            members,
            private_rows(members, others, names=names, epsilon=cost, seed=seed),
            control=others,
            target=at_epsilon("private rows", cost),
            **asked,
        )
    title = "Who is found again"
    tell([plain, private], _HALVES, title=title, plot=plot, json_=json_, promised=Promise(cost, DELTA))


@reported
def homogeneity(
    file: FileArgument,
    quasi: QuasiOption,
    sensitive: SensitiveOption,
    values: Annotated[
        list[str] | None,
        typer.Option("--values", metavar="VALUES", help="Which values are a harm to be known; all."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Also write which values are certain, and of how many.")
    ] = False,
    epsilon: EpsilonOption = "1",
    leak: LeakOption = 0.1,
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Read a secret off a class whose rows all have the same."""
    cost, names = price(epsilon), listed(quasi)
    picture(plot)
    with stages(*STAGES, quiet=json_) as begin:
        rows = columns_in(file, [*names, sensitive])
        from sfumato import attacks

        asked: dict[str, Any] = {"quasi": names, "sensitive": sensitive, "leak": leak, "seed": seed}
        asked["values"] = [_value(word) for word in listed(values)] if values else None
        begin()
        plain = attacks.homogeneity(rows, target=_AS_IT_IS, **asked)
        members, others = divided(rows, seed)
        outcomes, notes = [plain], [_certain_of(plain) if show else ""]
        begin()
        try:
            outcomes.append(
                attacks.homogeneity(
                    private_rows(members, others, names=[*names, sensitive], epsilon=cost, seed=seed),
                    people=members.slice(0, _MOST),
                    control=others.slice(0, _MOST),
                    target=at_epsilon("private rows", cost),
                    **asked,
                )
            )
            notes.append(_HALVES)
        except InvalidParameter:
            if values is None:
                raise
            notes.append("Too few rows have one of these values to attack private rows beside the table.")
    tell(
        outcomes if show else [_unnamed(outcome) for outcome in outcomes],
        *notes,
        title="Whose secret is certain",
        plot=plot,
        json_=json_,
        promised=Promise(cost, DELTA) if len(outcomes) > 1 else None,
    )


def _certain_of(outcome: Outcome) -> str:
    """Which values are certain, as a sentence."""
    sure = [
        f"{key(value)} of {hits:,} of {all_:,}"
        for value, (hits, all_) in outcome.detail["certain of"].items()
    ]
    return f"Certain: {', '.join(sure)}." if sure else ""


def _unnamed(outcome: Outcome) -> Outcome:
    """The outcome without the values that are certain: they are written only if asked for."""
    return replace(
        outcome, detail={name: value for name, value in outcome.detail.items() if name != "certain of"}
    )


@reported
def intersection(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Two tables or more.")],
    quasi: QuasiOption,
    sensitive: SensitiveOption,
    person: Annotated[
        str | None,
        typer.Option("--person", metavar="COLUMN=VALUE,…", help="Whom to look for: zip=19456,age=31."),
    ] = None,
    people: Annotated[
        str | None, typer.Option("--people", metavar="FILE", help="Or many people, with exact values.")
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option("--truth", metavar="COLUMN", help="The column of --people with the true value."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Also write the values that remain of --person.")
    ] = False,
    epsilon: EpsilonOption = "1",
    leak: LeakOption = 0.1,
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Lay several tables side by side: which value do all of them allow?"""
    cost, names = price(epsilon), listed(quasi)
    picture(plot)
    if (person is None) == (people is None):
        raise InvalidParameter("Say whom to look for: --person COLUMN=VALUE,… or --people FILE.")
    if person is not None and truth is not None:
        raise InvalidParameter("--truth is a column of --people; of one --person, see what remains.")
    if person is not None and plot is not None:
        raise InvalidParameter("--plot draws a rate, and one --person has none; give --people instead.")
    if show and person is None:
        raise InvalidParameter("--show is about one --person; of many people, there is only a count.")
    with stages(*STAGES, quiet=json_) as begin:
        tables = [columns_in(file, [*names, sensitive]) for file in files]
        own = [*names, *([] if truth is None else [truth])]
        who = _some(columns_in(people, own), seed) if people is not None else _person(str(person), names)
        from sfumato import attacks

        asked: dict[str, Any] = {"people": who, "quasi": names, "sensitive": sensitive, "truth": truth}
        asked |= {"leak": leak, "seed": seed}
        begin()
        plain = attacks.intersection(tables, target="the tables as they are", **asked)
        begin()
        private_tables = [
            private_rows(
                table,
                names=table.column_names,
                epsilon=cost / len(tables),
                delta=DELTA / len(tables),
                seed=_after(seed, place),
            )
            for place, table in enumerate(tables)
        ]
        private = attacks.intersection(private_tables, target=at_epsilon("private rows", cost), **asked)
    note = f"{MADE} for all tables together. {NOT_SHOWN} Which values there are is taken for declared."
    both = [plain, private]
    if truth is not None:
        note = f"{_alone(plain)} {note}"
    if plain.outcome.reached.trials == _ASKED:
        note = f"At most {_ASKED:,} people are looked for, a random choice. {note}"
    words = None if person is None else [_remaining(side, show=show) for side in both]
    alone = "One person is one trial, which says nothing about a rate: --people takes many."
    tell(
        [side.outcome for side in both],
        note,
        "" if person is None else alone,
        title="Of whom one value remains",
        plot=plot,
        json_=json_,
        words=words,
        more=None if person is None else {"person": [_left(side, show=show) for side in both]},
    )


# ── whom to look for


def _some(people: pa.Table, seed: int | None) -> pa.Table:
    """All of them, or a random choice where they are many."""
    from sfumato.random import simulation

    if people.num_rows <= _ASKED:
        return people
    return people.take(simulation(seed).permutation(people.num_rows)[:_ASKED])


def _alone(narrowed: Intersection) -> str:
    """What one table tells by itself: where that is much, it is what is wrong."""
    from sfumato.attacks.percent import percent

    return (
        "The most telling table alone, with its most frequent candidate, is right about "
        f"{percent(narrowed.outcome.detail['one table alone'])} of the people, as it is."
    )


def _person(given: str, quasi: Sequence[str]) -> dict[str, object]:
    """What is known of a person, from `zip=19456,age=31`."""
    known: dict[str, object] = {}
    for pair in listed([given]):
        name, is_there, value = pair.partition("=")
        if not is_there or not name.strip():
            raise InvalidParameter("--person takes what is known as COLUMN=VALUE, with commas between.")
        if name.strip() in known:
            raise InvalidParameter(f'--person says "{name.strip()[:100]}" twice.')
        if name.strip() not in quasi:
            raise InvalidParameter(
                f'--person says "{name.strip()[:100]}", which is not among --quasi; add it.'
            )
        known[name.strip()] = _value(value.strip())
    return known


def _value(text: str) -> object:
    """A plain number or day as such, as in a CSV file: `02139` stays text."""
    if re.fullmatch("-?(0|[1-9][0-9]{0,17})", text):
        return int(text)
    if re.fullmatch("-?(0|[1-9][0-9]{0,14})[.][0-9]{1,15}", text):
        return float(text)
    with suppress(ValueError):
        return datetime.date.fromisoformat(text) if len(text) == 10 else text
    return text


def _left(narrowed: Intersection, *, show: bool) -> dict[str, object]:
    """What remains of one person."""
    counts: dict[str, object] = {
        "target": narrowed.outcome.target,
        "alone": list(narrowed.alone[0]),
        "together": len(narrowed.candidates[0]),
    }
    return counts | ({"values": list(narrowed.candidates[0])} if show else {})


def _remaining(narrowed: Intersection, *, show: bool) -> str:
    alone = ", ".join(f"{count:,}" for count in narrowed.alone[0][:-1])
    left = narrowed.candidates[0]
    remain = "one remains" if len(left) == 1 else f"{len(left):,} remain" if left else "none remains"
    text = (
        f"intersection against {narrowed.outcome.target}: each table alone leaves {alone} and "
        f"{narrowed.alone[0][-1]:,} values; together {remain}."
    )
    return text if not show or not left else f"{text} Left: {', '.join(map(key, left[:20]))}."


def _after(seed: int | None, place: int) -> int | None:
    """Another seed for each table, so that two tables are not drawn alike."""
    return None if seed is None else seed + place
