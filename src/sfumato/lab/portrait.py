"""A half-length portrait in a few ellipses, after the best known of all: pixels to be flipped."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter

__all__ = ["dots", "portrait"]

Tones: TypeAlias = NDArray[np.float64]
Pixels: TypeAlias = NDArray[np.bool_]

_WIDE, _HIGH = 96.0, 128.0  # the units in which the shapes below are placed
_BAYER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])


def portrait(width: int = 144, height: int = 192) -> Tones:
    """The picture in tones from 0, black, to 1, white.

    Raises:
        InvalidParameter: if it has fewer than 16 pixels on a side, or more than 4,096.
    """
    if not (16 <= width <= 4096 and 16 <= height <= 4096):
        raise InvalidParameter("A portrait has from 16 to 4,096 pixels on each side.")
    rows, columns = np.mgrid[0:height, 0:width]
    x, y = (columns + 0.5) / width * _WIDE, (rows + 0.5) / height * _HIGH
    tones = np.full((height, width), 0.78)  # sky
    _landscape(tones, x, y)
    _figure(tones, x, y)
    _face(tones, x, y)
    return tones


def dots(tones: Tones) -> Pixels:
    """The picture in black (False) and white (True) dots, as dense as its tones are light.

    Ordered dithering (Bayer 1973).
    """
    height, width = tones.shape
    tiled = np.tile(_BAYER, (height // 4 + 1, width // 4 + 1))[:height, :width]
    return np.asarray(tones > (tiled + 0.5) / 16)


def _round(x: Tones, y: Tones, at: tuple[float, float], radii: tuple[float, float]) -> Pixels:
    return np.asarray(((x - at[0]) / radii[0]) ** 2 + ((y - at[1]) / radii[1]) ** 2 <= 1)


def _landscape(tones: Tones, x: Tones, y: Tones) -> None:
    tones[y > 52 + 5 * np.sin(x / 9) + 3 * np.sin(x / 4)] = 0.5
    tones[y > 72 + 3 * np.sin(x / 7 + 1)] = 0.38
    tones[(np.abs(x - (16 + 6 * np.sin(y / 5))) < 2.2) & (y > 56) & (y < 86)] = 0.8  # the road
    tones[(np.abs(x - (82 + 4 * np.sin(y / 6))) < 2.2) & (y > 50) & (y < 80)] = 0.8  # the river


def _figure(tones: Tones, x: Tones, y: Tones) -> None:
    tones[_round(x, y, (48, 42), (25, 33))] = 0.06  # hair, and veil
    tones[(np.abs(x - 48) < 24) & (y > 42) & (y < 84) & (np.abs(x - 48) >= 9)] = 0.06
    tones[_round(x, y, (48, 104), (44, 30)) | ((y > 100) & (np.abs(x - 48) < 46))] = 0.16  # dress
    tones[_round(x, y, (48, 84), (17, 15))] = 0.86
    tones[(np.abs(x - 48) < 8.5) & (y > 60) & (y < 84)] = 0.8
    tones[_round(x, y, (40, 119), (17, 6))] = 0.85  # hands
    tones[_round(x, y, (57, 115), (15, 5.5))] = 0.9
    tones[(np.abs(y - (116 + (x - 48) * 0.1)) < 0.6) & (x > 42) & (x < 66)] = 0.35


def _face(tones: Tones, x: Tones, y: Tones) -> None:
    face = _round(x, y, (48, 45), (15.5, 22))
    tones[face] = 0.95
    tones[face & (x > 58)] = 0.8
    for eye in (41.5, 54.5):
        tones[_round(x, y, (eye, 41), (3.6, 1.7))] = 0.1
        tones[(np.abs(x - eye) < 4.6) & (np.abs(y - (36.6 + ((x - eye) / 5) ** 2)) < 0.7)] = 0.55
    tones[(np.abs(x - 49.2) < 0.9) & (y > 42) & (y < 52)] = 0.62
    tones[(np.abs(y - 53) < 0.8) & (np.abs(x - 48) < 3.4)] = 0.45
    tones[(np.abs(y - (59.2 - ((x - 48) / 5.2) ** 2)) < 0.9) & (np.abs(x - 48) < 6.8)] = 0.12  # the smile
