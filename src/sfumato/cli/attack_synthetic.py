"""Attacks on synthetic tables, as commands: on the rows they were made from, on them, and on private rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.attack_promise import Promise
from sfumato.cli.attack_rows import DELTA, MADE, NOT_SHOWN, private_rows
from sfumato.cli.attacking import (
    STAGES,
    EpsilonOption,
    LeakOption,
    PlotOption,
    SeedOption,
    at_epsilon,
    columns_in,
    listed,
    names_in,
    picture,
    price,
    tell,
)
from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import stages
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.attacks import Outcome

__all__ = ["inference", "singling_out"]

OriginalArgument = Annotated[
    str, typer.Argument(metavar="ORIGINAL", help="The people whom the synthetic table was made from.")
]
SyntheticArgument = Annotated[str, typer.Argument(metavar="SYNTHETIC", help="The synthetic table.")]
ControlArgument = Annotated[
    str, typer.Argument(metavar="CONTROL", help="People of the same kind whom it was not made from.")
]
AttacksOption = Annotated[
    int, typer.Option("--attacks", metavar="NUMBER", min=1, help="How often to try at most.")
]


@reported
def singling_out(
    original: OriginalArgument,
    synthetic: SyntheticArgument,
    control: ControlArgument,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="COLUMNS", help="Which columns; all of SYNTHETIC unless given."),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(
            "--width",
            metavar="NUMBER",
            min=1,
            help="How many columns a description has; whole rows unless given.",
        ),
    ] = None,
    tries: AttacksOption = 500,
    epsilon: EpsilonOption = "1",
    leak: LeakOption = 0.1,
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Describe one person alone, from a synthetic row."""
    from sfumato import attacks
    from sfumato.attacks.control import check_apart

    def attack(table: pa.Table, target: str) -> Outcome:
        return attacks.singling_out(
            people,
            table,
            others,
            columns=names,
            width=width,
            attacks=tries,
            seed=seed,
            leak=leak,
            target=target,
        )

    cost = price(epsilon)
    picture(plot)
    with stages(*STAGES, quiet=json_) as begin:
        names = listed(columns or [])
        if not names:
            names = names_in(synthetic)
            _check_all_have(names, original, control)
        if width is not None and width > len(names):
            raise InvalidParameter(f"--width is at most the number of columns, {len(names):,}; give less.")
        check_apart(original, control)
        people, given, others = (columns_in(source, names) for source in (original, synthetic, control))
        outcomes, notes = _beside(attack, people, given, others, names, cost, seed, begin)
    tell(outcomes, *notes, title="Whom a description fits alone", plot=plot, json_=json_)


@reported
def inference(
    original: OriginalArgument,
    synthetic: SyntheticArgument,
    control: ControlArgument,
    known: Annotated[
        list[str], typer.Option("--known", metavar="COLUMNS", help="What the attacker knows of a person.")
    ],
    secret: Annotated[
        str, typer.Option("--secret", metavar="COLUMN", help="What the attacker wants to learn.")
    ],
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", metavar="SHARE", help="How far off a number may be, of its extent."),
    ] = 0.05,
    tries: AttacksOption = 500,
    epsilon: EpsilonOption = "1",
    leak: LeakOption = 0.1,
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Learn a secret from the nearest synthetic row."""
    from sfumato import attacks
    from sfumato.attacks.control import check_apart

    def attack(table: pa.Table, target: str) -> Outcome:
        return attacks.inference(
            people,
            table,
            others,
            known=names,
            secret=secret,
            tolerance=tolerance,
            attacks=tries,
            seed=seed,
            leak=leak,
            target=target,
        )

    cost, names = price(epsilon), listed(known)
    picture(plot)
    with stages(*STAGES, quiet=json_) as begin:
        all_ = [*names, secret]
        check_apart(original, control)
        people, given, others = (columns_in(source, all_) for source in (original, synthetic, control))
        outcomes, notes = _beside(attack, people, given, others, all_, cost, seed, begin)
    title, private = "Whose secret the nearest row tells", Promise(cost, DELTA)
    tell(outcomes, *notes, title=title, plot=plot, json_=json_, promised=private)


def _check_all_have(names: list[str], *files: str) -> None:
    """Refuse a file that lacks columns which nobody named: no name is quoted, as it may be a value."""
    wanted = {name.strip().casefold() for name in names}
    for file in files:
        if not wanted <= {name.strip().casefold() for name in names_in(file)}:
            raise InvalidParameter(
                "A table has no column for some of those of SYNTHETIC; with --columns name those that all "
                "three have, and check that the first row of each holds the names."
            )


def _beside(
    attack: Callable[[pa.Table, str], Outcome],
    people: pa.Table,
    given: pa.Table,
    others: pa.Table,
    names: list[str],
    cost: Fraction,
    seed: int | None,
    begin: Callable[[], None],
) -> tuple[list[Outcome], list[str]]:
    """The attack on the rows themselves, on the table that was given, and on private rows; what to say."""
    # First, so that what is wrong is said of the user's own table.
    begin()
    told = attack(given, "the synthetic table")
    notes = [f"{MADE} in all. {NOT_SHOWN} Which values there are is taken for declared."]

    def reference(table: pa.Table, target: str) -> list[Outcome]:
        try:
            return [attack(table, target)]
        except InvalidParameter:  # all that is left to be wrong
            notes.append(
                f"In {target} no description fits one alone: nothing there to single anybody out by."
            )
            return []

    begin()
    private = private_rows(people, others, names=names, epsilon=cost, seed=seed)
    rows = reference(people, "the rows themselves")
    return [*rows, told, *reference(private, at_epsilon("private rows", cost))], notes
