"""`sfumato attack`: what an attacker reads off a table or its answers, beside what a guess would reach."""

from __future__ import annotations

import typer

from sfumato.cli import attack_numbers, attack_synthetic, attack_tables

__all__ = ["app"]

app = typer.Typer(help="Attack your own tables and answers; for the steward.", no_args_is_help=True)
app.command("linkage")(attack_tables.linkage)
app.command("homogeneity")(attack_tables.homogeneity)
app.command("intersection")(attack_tables.intersection)
app.command("singling-out")(attack_synthetic.singling_out)
app.command("inference")(attack_synthetic.inference)
app.command("differencing")(attack_numbers.differencing)
app.command("averaging")(attack_numbers.averaging)
app.command("reconstruction")(attack_numbers.reconstruction)
app.command("tracing")(attack_numbers.tracing)
