"""How the rows of a column lie over its fine cells: counted with noise on several scales."""

from __future__ import annotations

from fractions import Fraction

from sfumato.fits.meter import Meter
from sfumato.synth._private.cells import Cells
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales, widths

__all__ = ["scales_of"]


def scales_of(cells: Cells, meter: Meter, place: int, column: Fine, share: Fraction) -> Scales:
    """Noisy counts of a column's cells and of stretches of them.

    Args:
        cells: The private rows, this column in its fine cells.
        meter: Gives noise.
        place: Which column.
        column: The same as fine cells.
        share: Which part of the price all scales take together, each an equal part.

    Privacy:
        Claim: that of the meter, for the share. How many scales there are follows from the declared column.
    """
    all_widths = widths(column)
    each = share / len(all_widths)
    totals = [cells.stretches(place, width, column.known) for width in all_widths]
    sigma = meter.sigma(totals[0].sensitivity * totals[0].step, each)
    return Scales(column.known, tuple(meter.noisy(total, each) for total in totals), sigma)
