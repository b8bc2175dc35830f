"""One person, step by step: how many rows are left as each thing that is known of them is added."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.anonymity.codes import encode, text_of
from sfumato.anonymity.tables import checked, names_given, opened
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter

__all__ = ["crowds"]


def crowds(table: Source, known: Mapping[str, object]) -> dict[str, int]:
    """How many rows agree with what is known of one person, after each column in the order given.

    ```python
    crowds(voters, {"birth": "1945-07-31", "sex": "M", "zip": "02138"})    # {'birth': 6, 'sex': 3, 'zip': 1}
    ```

    Where the last number is 1, whoever knows as much has found the row, name or no name (Sweeney,
    k-Anonymity: A Model for Protecting Privacy, IJUFKS 2002). A value may be given as the table shows it: a
    day as `"1945-07-31"`, a missing value as None.

    Privacy:
        None is claimed; steward-only. The numbers are exact, and about one person.

    Raises:
        InvalidParameter: for a column that is not there, values that have no order, or no rows.
        SourceUnusable: if the table cannot be read.
    """
    if not isinstance(known, Mapping) or not known:
        raise InvalidParameter("known must say for at least one column which value the person has.")
    with opened(table, names_given(list(known), "known")) as rows:
        names = list(rows.kinds)
        read = rows.all()
    left = np.ones(checked(read.num_rows, rows.shown), dtype=bool)
    sizes: dict[str, int] = {}
    for name, value in zip(names, known.values(), strict=True):
        column, wanted = encode(read, name), text_of(value)
        fitting = [code for code, other in enumerate(column.values) if text_of(other) == wanted]
        left &= np.isin(column.codes, fitting)
        sizes[name] = int(left.sum())
    return sizes
