"""A private table beside one that is attacked: rows of a model of all its columns, fitted on a session."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.anonymity.codes import Coded, Codes
    from sfumato.schema import ColumnType

__all__ = ["DELTA", "MADE", "NOT_SHOWN", "private_rows"]

DELTA = Fraction(1, 10**6)
"""Of all private rows that a command makes."""

MADE = (
    "The private rows are drawn from a model of these columns together, fitted at this epsilon and delta 1e-6"
)
NOT_SHOWN = (
    "It keeps what ties the columns of a person together as far as its noise lets it, so that a high epsilon "
    "may let the attack through; one that holds here held against one attack."
)
_MOST_ROWS = 10_000_000  # a tiny epsilon may ask for any number of them
_APART = 1 << 32
_WIDE = 64  # values on a line that are each a cell
_TOGETHER = 6  # columns whose every combination is modelled, where it matters most


def private_rows(
    members: pa.Table,
    *others: pa.Table,
    names: Sequence[str],
    epsilon: Fraction,
    seed: int | None,
    delta: Fraction = DELTA,
) -> pa.Table:
    """Rows drawn from a private model of some columns.

    Args:
        members: Whose rows are modelled.
        others: More people, who are not, but whose values are possible ones too.
        names: The columns.
        epsilon: For the model.
        seed: Of the drawing; the noise is always fresh.
        delta: For the model.

    Privacy:
        Claim: (epsilon, delta)-DP for adding or removing one of `members`, given which values are possible,
        as a schema would declare them. It is one `synth.fit` on a session of those rows, each a unit. Where
        the possible values are those of members and others together, it does not matter for them who is a
        member.

    Raises:
        InvalidParameter: for an epsilon so small that nothing can be learned.
    """
    import pyarrow as pa

    from sfumato import synth
    from sfumato.attacks.matching import together_coded
    from sfumato.ledger import Budget
    from sfumato.schema import PrivacyUnit, PrivateTable
    from sfumato.session import Session

    both = {
        name: together_coded([table.column(name) for table in (members, *others)], name) for name in names
    }
    table = PrivateTable(
        "people",
        source=pa.table({name: _cells(coded, codes[0]) for name, (coded, codes) in both.items()}),
        unit=PrivacyUnit.row(),
        schema={name: _declared(coded) for name, (coded, _) in both.items()},
    )
    # Pairs miss what only three columns or more tell together.
    wanted = [list(names)] if 1 < len(names) <= _TOGETHER else None
    with Session(table, budget=Budget(epsilon=epsilon, delta=delta)) as session:
        model = synth.fit(session, epsilon=epsilon, delta=delta, workload=wanted)
    # Another stream than the one that chose the members, so that the rows do not depend on who they are.
    drawn = model.sample(
        min(max(1, round(model.rows)), _MOST_ROWS), seed=None if seed is None else seed + _APART
    )
    return pa.table({name: pa.array(coded.values).take(drawn[name]) for name, (coded, _) in both.items()})


def _is_line(coded: Coded) -> bool:
    """Whether much of a column lies on a line, and nothing beside it but what is missing."""
    rest = coded.values[coded.proper :]
    return coded.kind in ("number", "date", "time") and coded.proper > _WIDE and list(rest) in ([], [None])


def _declared(coded: Coded) -> ColumnType:
    """A column of codes: what lies on a line in its order; else each by itself."""
    from sfumato.schema import Enum, Int

    if _is_line(coded):
        return Int(0, coded.proper - 1, nullable=coded.proper < len(coded.values))
    return Enum(*range(len(coded.values)), nullable=False)


def _cells(coded: Coded, codes: Codes) -> pa.Array:
    import pyarrow as pa

    return pa.array(codes, pa.int64(), mask=codes >= coded.proper if _is_line(coded) else None)
