"""A figure that draws itself in a notebook, whether or not pyplot was set up there."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture"]


class Picture(Figure):
    """A figure of matplotlib, registered nowhere."""

    def _repr_png_(self) -> bytes:
        """What notebooks show."""
        drawn = io.BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()
