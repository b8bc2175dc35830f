"""What k-anonymity costs as k grows: the curve of what is left of a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.anonymity._shares import percent
from sfumato.anonymity.anonymized import Anonymized
from sfumato.anonymity.generalize import generalize
from sfumato.anonymity.given import whole
from sfumato.anonymity.mondrian import mondrian
from sfumato.anonymity.tables import names_given
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.render import text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Utility", "utility"]

_KS = (2, 5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True, slots=True)
class Utility:
    """How much of a table is left at each k. Steward-only: exact figures of the rows.

    Attributes:
        rows: How many rows there are.
        ks: The k that were tried, increasing.
        local: What is left where each class is made as small as it can be (Mondrian), 0 … 1: one less the
            normalised certainty penalty of the quasi-identifiers.
        whole: The same where a whole column is generalised alike.
    """

    rows: int
    ks: tuple[int, ...]
    local: tuple[float, ...]
    whole: tuple[float, ...]

    def __str__(self) -> str:
        table = text_table(
            {
                "k": list(self.ks),
                "each class by itself": [percent(share) for share in self.local],
                "whole columns alike": [percent(share) for share in self.whole],
            }
        )
        return f"What is left of the quasi-identifiers of {self.rows:,} rows:\n{table}"

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The two curves over k; also written to a .png or .svg."""
        from sfumato.plots import utility_curve

        return utility_curve(
            self.ks,
            {"each class by itself (Mondrian)": self.local, "whole columns alike": self.whole},
            title=f"What is left of {self.rows:,} rows as k grows",
            path=path,
        )


def utility(table: Source, quasi: str | Sequence[str], *, ks: Sequence[int] = _KS) -> Utility:
    """How much of a table is left as k grows.

    Args:
        table: The rows.
        quasi: The quasi-identifiers, columns that others may know.
        ks: The k to try; those above the number of rows are left out.

    Privacy:
        None is claimed; steward-only. The figures are exact functions of the rows.

    Raises:
        InvalidParameter: for a column that is not there, or no k that the table has rows for.
        SourceUnusable: if the table cannot be read.
    """
    rows, names = whole(table)[0], names_given(quasi, "quasi")
    tried = tuple(sorted({as_integer(k, "k", least=2) for k in ks}))
    tried = tuple(k for k in tried if k <= rows.num_rows)
    if not tried:
        raise InvalidParameter("The table has fewer rows than the least k; give a smaller one.")

    def left(result: Anonymized) -> float:
        return 1 - result.ncp

    return Utility(
        rows.num_rows,
        tried,
        tuple(left(mondrian(rows, names, k)) for k in tried),
        tuple(left(generalize(rows, names, k)) for k in tried),
    )
