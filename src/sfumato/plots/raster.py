"""Grey pictures side by side, pixel by pixel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.plots._figure import INK, NOTE, finish, new_figure, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pixels"]

_MOST = 4


def pixels(
    pictures: Sequence[NDArray[Any]],
    labels: Sequence[str],
    *,
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Up to four pictures in a row: values from 0, black, to 1, white.

    Args:
        pictures: two-dimensional arrays of numbers or truth values.
        labels: a line under each.
        title: the title.
        note: the footnote.
        path: where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no pictures, too many, or not as many labels.
    """
    if not 1 <= len(pictures) <= _MOST or len(labels) != len(pictures):
        raise InvalidParameter(f"A row has from 1 to {_MOST} pictures, with a label each.")
    shapes = [np.shape(array) for array in pictures]
    if any(len(shape) != 2 or 0 in shape for shape in shapes):
        raise InvalidParameter("A picture is a two-dimensional array of numbers.")
    tallest = max(shape[0] / shape[1] for shape in shapes)
    wide = 7.0 / len(pictures)
    figure = new_figure(7.0, min(9.0, wide * tallest + 0.85))
    for axes, picture, label in zip(
        np.atleast_1d(figure.subplots(1, len(pictures))), pictures, labels, strict=True
    ):
        axes.imshow(np.asarray(picture, dtype=float), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        columns = int(wide * 11)
        axes.set_xlabel(wrapped(label, columns=columns, lines=3), fontsize=NOTE, color=INK, parse_math=False)
    return finish(figure, title=title, note=note, path=path)
