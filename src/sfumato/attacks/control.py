"""Whether strangers are strangers: a control must not hold the rows of those it is compared with."""

from __future__ import annotations

import math

import numpy as np

from sfumato.anonymity.given import whole
from sfumato.attacks.matching import grouped, together_coded
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter

__all__ = ["check_apart"]

_SHARED = 0.1  # of either table
_DEVIATIONS = 5.0


def check_apart(people: Source, control: Source) -> None:
    """Refuse a control that holds the rows of people it is to be compared with.

    Rows are the same if they are in all columns that both tables have. Of two samples of one population a
    share is the same by chance, and that chance is the one at which a row meets another of its own table.
    So only what is beyond that counts: a tenth of the rows, or five deviations where rows are few (less than
    1/√n each: one row more or less changes the shares by at most three rows in n).

    Raises:
        InvalidParameter: if it does.
        SourceUnusable: if a table cannot be read.
    """
    one, two = whole(people)[0], whole(control)[0]
    smaller = min(one.num_rows, two.num_rows)
    excess = max(_SHARED, _DEVIATIONS / math.sqrt(max(1, smaller)))
    if excess >= 1:
        return
    codes = []
    for name in one.column_names:
        if two.column_names.count(name) == one.column_names.count(name) == 1:
            try:
                codes.append(together_coded([one.column(name), two.column(name)], name)[0].codes)
            except InvalidParameter:  # lists have no order; the other columns will do
                continue
    if not codes:
        return
    both = grouped(codes)
    mine, theirs = both.of_row[: one.num_rows], both.of_row[one.num_rows :]
    ours, others = (np.bincount(groups, minlength=len(both.sizes)) for groups in (mine, theirs))
    met = max((others[mine] > 0).mean(), (ours[theirs] > 0).mean())
    by_chance = max((ours[mine] > 1).mean(), (others[theirs] > 1).mean())
    if met - by_chance > excess:
        raise InvalidParameter(
            "The control holds rows of the people it is compared with, more than chance would put there; "
            "give a control of other people."
        )
