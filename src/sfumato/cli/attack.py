"""`sfumato attack`: what an attacker reads off a table or its answers, beside what a guess would reach."""

from __future__ import annotations

from collections.abc import Callable

import typer

from sfumato.cli import attack_numbers, attack_synthetic, attack_tables
from sfumato.cli.attacking import STEWARD

__all__ = ["app"]

app = typer.Typer(help="Attack your own tables and answers; for the steward.", no_args_is_help=True)
_COMMANDS: dict[str, Callable[..., None]] = {
    "linkage": attack_tables.linkage,
    "homogeneity": attack_tables.homogeneity,
    "intersection": attack_tables.intersection,
    "singling-out": attack_synthetic.singling_out,
    "inference": attack_synthetic.inference,
    "differencing": attack_numbers.differencing,
    "averaging": attack_numbers.averaging,
    "reconstruction": attack_numbers.reconstruction,
    "tracing": attack_numbers.tracing,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, epilog=STEWARD)(_command)
