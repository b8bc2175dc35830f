"""How true a synthetic table is and what it gives away: errors, models, groups, attacks. Steward-only.

A report reads the truth, and nothing pays for that: its figures are for the steward, and none of them enters
an interval that others see.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato._dataclasses import dataclass
from sfumato.attacks.matching import read
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import price
from sfumato.numeric.exact import Rational, as_fraction, show
from sfumato.plan.expressions.names import nearest
from sfumato.random import simulation
from sfumato.render import text_table
from sfumato.session import Query, Session
from sfumato.synth._report.attacked import MOST_ATTACKED, Attack, Nearest, attacks_on, nearest_of
from sfumato.synth._report.learned import EVERYBODY, Task, tasks_of
from sfumato.synth._report.marginals import Errors, Measured, errors_over, group_errors, some_cliques
from sfumato.synth._report.told import caption, tables_of
from sfumato.synth._report.yardstick import Codes, Group, Yardstick, fine_codes, groups_of
from sfumato.synth.columns.fine import Fine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GroupLine", "Report", "fidelity"]

_MOST_PAIRS, _MOST_TRIPLES = 1000, 200
_TESTED = 5  # without other rows, every fifth one is a test row


@dataclass(frozen=True, slots=True)
class GroupLine:
    """What is left of one group in the synthetic table.

    Attributes:
        group: Such as `sex=F`.
        real: How many real rows it has.
        synthetic: How many synthetic ones.
        error: The mean total variation over pairs of the other columns, within the group; 1: it is gone.
        sampling: The same of as many rows drawn again from the real ones of the group.
    """

    group: str
    real: int
    synthetic: int
    error: float
    sampling: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "group": self.group,
            "real": self.real,
            "synthetic": self.synthetic,
            "error": None if np.isnan(self.error) else self.error,
            "sampling": None if np.isnan(self.sampling) else self.sampling,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """How true a synthetic table is, and what it gives away. It reads the truth: for the steward alone.

    Attributes:
        about: What it is about, in words.
        pairs: The errors of counts over pairs of columns; of a single column, over it.
        triples: The same over triples; None where there are fewer than three columns.
        groups: What is left of each group, the smallest first.
        tasks: What models that were trained on synthetic rows are worth on real ones: by target, everybody
            first, then the smallest groups.
        nearest: How near synthetic rows are to real records; None without other people's rows.
        attacks: What attacks reach; empty without other people's rows.
        missing: What was not looked at, and what it would need: a sentence each.
        confidence: Of each interval by itself; those of attacks and nearest records have 99 %.
    """

    about: str
    pairs: Errors
    triples: Errors | None
    groups: tuple[GroupLine, ...]
    tasks: tuple[Task, ...]
    nearest: Nearest | None
    attacks: tuple[Attack, ...]
    missing: tuple[str, ...]
    confidence: float

    @property
    def hardest_hit(self) -> Task | None:
        """The group whose model lost most by being trained on synthetic rows; None without groups."""
        hit = [task for task in self.tasks if task.group != EVERYBODY and task.lost.value == task.lost.value]
        return max(hit, key=lambda task: task.lost.value, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values. They count against the truth."""
        return {
            "about": self.about,
            "steward_only": True,
            "confidence": self.confidence,
            "pairs": self.pairs.to_dict(),
            "triples": None if self.triples is None else self.triples.to_dict(),
            "groups": [line.to_dict() for line in self.groups],
            "tasks": [task.to_dict() for task in self.tasks],
            "nearest": None if self.nearest is None else self.nearest.to_dict(),
            "attacks": [attack.to_dict() for attack in self.attacks],
            "missing": list(self.missing),
        }

    def text(self, width: int = 80) -> str:
        """The report as lines of at most `width`."""
        parts = [textwrap.fill(line, min(width, 80), break_on_hyphens=False) for line in caption(self)]
        for head, columns in tables_of(self).items():
            parts.append("\n" + textwrap.fill(head, min(width, 80), break_on_hyphens=False))
            parts.append(text_table(columns, width=width))
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return str(self)

    def picture(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """One page: errors, models by group, nearest records, attacks; written as .png or .svg."""
        from sfumato.synth._report.drawn import drawn

        return drawn(self, path)


def fidelity(
    real: Source,
    synthetic: Source,
    columns: Sequence[Fine],
    *,
    holdout: Source | None = None,
    targets: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    epsilon: Rational | None = None,
    delta: Rational = 0,
    measured: Measured | None = None,
    bins: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    about: str = "A synthetic table",
) -> Report:
    """How true a synthetic table is, and what it gives away, beside the rows it was made from.

    For the steward: it reads the truth, and nothing pays for it. `Synthesizer.report` gives it of a fit.

    Args:
        real: The rows that it was made from.
        synthetic: The table.
        columns: Their declared columns.
        holdout: Rows of other people of the same kind.
        targets: Columns that models are to tell from all others.
        by: Columns whose values make groups.
        epsilon: What the table cost; None: it has no price.
        delta: The other half of it.
        measured: The noisy counts that it was made from.
        bins: How many cells the numbers of a column are compared in, at most; None: by how many rows there
            are.
        seed: Of all choices.
        confidence: Of each interval by itself.
        about: What it is, in words.

    Raises:
        InvalidParameter: if what is given does not fit together.
        MissingExtra: with targets, but without scikit-learn.
    """
    if not 0 < confidence < 1:
        raise InvalidParameter("confidence must lie strictly between 0 and 1.")
    wanted, split = _places(columns, targets, "targets"), _places(columns, by, "by")
    tables = {
        name: _given(given, columns, name)
        for name, given in (("real", real), ("synthetic", synthetic), ("holdout", holdout))
        if given is not None
    }
    codes = dict[str, list[Codes]]()
    for name, table in tables.items():
        codes[name], is_read = fine_codes(table, columns)
        tables[name] = table.filter(pa.array(is_read))
        if not tables[name].num_rows:
            raise InvalidParameter(f"{name} has no row with all values that are declared to be there.")
    paid = None if epsilon is None else (as_fraction(epsilon, "epsilon"), as_fraction(delta, "delta"))
    rng = simulation(seed)
    yardstick = Yardstick.of(columns, codes["real"], bins)
    mine, theirs = (yardstick.codes(codes[name]) for name in ("real", "synthetic"))
    # The noise of a single set of counts that the whole price is spent on.
    sigma = None if paid is None else float(1 / np.sqrt(2 * float(price(*paid).rho)))
    errors = [
        errors_over(
            some_cliques(len(columns), width, most, rng),
            mine,
            theirs,
            yardstick,
            rng,
            sigma=sigma,
            measured=measured,
        )
        for width, most in ((min(2, len(columns)), _MOST_PAIRS), (3, _MOST_TRIPLES))
        if width <= len(columns)
    ]
    train, test = _split(codes)
    groups = [
        group
        for place in split
        for group in groups_of(columns, place, (codes["real"], codes["synthetic"], test))
    ]
    tasks = [
        task
        for place in wanted
        for task in tasks_of(
            columns, place, codes["synthetic"], train, test, groups, confidence=confidence, seed=seed
        )
    ]
    near, attacked = None, list[Attack]()
    if holdout is not None:
        near = nearest_of(tables["real"], tables["synthetic"], tables["holdout"], rng)
        names = [columns[place].name for place in wanted]
        attacked = attacks_on(
            tables["real"], tables["synthetic"], tables["holdout"], targets=names, paid=paid, seed=seed
        )
    return Report(
        about=_about(about, paid, tables),
        pairs=errors[0],
        triples=errors[1] if len(errors) > 1 else None,
        groups=tuple(_line(group, mine, theirs, yardstick, seed) for group in groups),
        tasks=tuple(tasks),
        nearest=near,
        attacks=tuple(attacked),
        missing=tuple(_missing(tables, wanted)),
        confidence=confidence,
    )


def _line(
    group: Group, real: Sequence[Codes], synthetic: Sequence[Codes], yardstick: Yardstick, seed: int
) -> GroupLine:
    error, sampling = group_errors(group, real, synthetic, yardstick, simulation(seed))
    inside, inside_synthetic = (int(part.sum()) for part in group.parts[:2])
    return GroupLine(group.name, inside, inside_synthetic, error, sampling)


def _split(codes: dict[str, list[Codes]]) -> tuple[list[Codes], list[Codes]]:
    """Real rows to train on, and others to test on: the holdout, or else every fifth of the real ones."""
    if "holdout" in codes:
        return codes["real"], codes["holdout"]
    tested = np.arange(len(codes["real"][0])) % _TESTED == 0
    return tuple([own[chosen] for own in codes["real"]] for chosen in (~tested, tested))  # type: ignore[return-value]


def _about(about: str, paid: tuple[Fraction, Fraction] | None, tables: dict[str, pa.Table]) -> str:
    cost = "" if paid is None else f" at epsilon {show(paid[0])}, delta {float(paid[1]):.4g}"
    others = f", and {tables['holdout'].num_rows:,} of other people" if "holdout" in tables else ""
    return (
        f"{about}{cost}: {tables['synthetic'].num_rows:,} rows, beside {tables['real'].num_rows:,} real "
        f"ones{others}."
    )


def _missing(tables: dict[str, pa.Table], targets: Sequence[int]) -> list[str]:
    said = []
    if "holdout" not in tables:
        said.append(
            "Nothing is said of attacks and nearest records: give holdout=, rows of other people of the same "
            "kind that the fit did not read."
        )
        if targets:
            said.append("Models are tested on every fifth real row, which the synthetic table was made from.")
    if not targets:
        said.append("Nothing is said of models: give targets=, the columns that they are to tell.")
    if "holdout" in tables and max(table.num_rows for table in tables.values()) > MOST_ATTACKED:
        said.append(f"Attacks look at {MOST_ATTACKED:,} rows of each table at most, a random choice.")
    return said


def _given(table: Source, columns: Sequence[Fine], name: str) -> pa.Table:
    """The declared columns of a table.

    Raises:
        InvalidParameter: for a session, a question, or a table that lacks a column.
    """
    if isinstance(table, Session | Query):
        raise InvalidParameter(
            f"A report reads rows that the steward holds already: give {name} as a table, not a session."
        )
    return read(table, [column.name for column in columns])


def _places(columns: Sequence[Fine], names: str | Sequence[str], what: str) -> list[int]:
    listed = [names] if isinstance(names, str) else list(names)
    known = [column.name for column in columns]
    for name in listed:
        if name not in known:
            raise InvalidParameter(
                f"{what} names {str(name)[:60]!r}, which is no column of the table. "
                f"{nearest(str(name), known, 'Columns')}"
            )
    if len(set(listed)) < len(listed):
        raise InvalidParameter(f"{what} names a column twice.")
    return [known.index(name) for name in listed]
