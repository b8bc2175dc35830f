"""MNIST and CIFAR from their own files, as tensors: read as bytes, never unpickled."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter

__all__ = ["cifar10", "cifar100", "idx", "mnist"]

Tensor: TypeAlias = torch.Tensor
Path_: TypeAlias = str | os.PathLike[str]

_BYTES = 8  # the code of unsigned bytes in a header; the others are of no use to pictures
_MOST_AXES = 4
_SIDE, _COLOURS = 32, 3
_PICTURE = _COLOURS * _SIDE * _SIDE


def mnist(images: Path_, labels: Path_) -> tuple[Tensor, Tensor]:
    """Pictures and labels of MNIST, or of a set that is written like it (Fashion-MNIST, EMNIST).

    ```python
    x, y = mnist("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
    ```

    Args:
        images: A file of three axes, gzipped or not.
        labels: A file of one axis, of as many.

    Returns:
        Pictures as numbers from 0 to 1 with one channel (records, 1, rows, columns), and labels.

    Raises:
        InvalidParameter: if a file is not of that format.
    """
    given, target = idx(images), idx(labels)
    if given.ndim != 3 or target.ndim != 1:
        raise InvalidParameter("MNIST has pictures in a file of three axes and labels in one of one axis.")
    if len(given) != len(target):
        raise InvalidParameter("The two files are not of one set: their headers tell of different numbers.")
    return torch.from_numpy(given.copy())[:, None].float() / 255, torch.from_numpy(target.astype(np.int64))


def idx(path: Path_) -> NDArray[np.uint8]:
    """The array of bytes in a file of the IDX format, gzipped or not.

    Raises:
        InvalidParameter: if it is not of that format, or not whole.
    """
    held = _content(path)
    if len(held) < 4 or held[:2] != b"\0\0" or not 1 <= held[3] <= _MOST_AXES:
        raise InvalidParameter(f"{_name(path)} is no IDX file: it does not begin with such a header.")
    if held[2] != _BYTES:
        raise InvalidParameter(f"{_name(path)} does not hold bytes: pictures and labels are of that type.")
    start = 4 + 4 * held[3]
    if len(held) < start:
        raise InvalidParameter(f"{_name(path)} ends within its header: fetch it again.")
    shape = [int.from_bytes(held[at : at + 4], "big") for at in range(4, start, 4)]
    if len(held) - start != math.prod(shape):
        raise InvalidParameter(f"{_name(path)} is not as long as its header says: fetch it again.")
    return np.frombuffer(held, np.uint8, offset=start).reshape(shape)


def cifar10(*files: Path_) -> tuple[Tensor, Tensor]:
    """Pictures and labels of CIFAR-10, from its binary version (`data_batch_1.bin` … or `test_batch.bin`).

    Args:
        files: One or several of them; gzipped ones end in .gz. The version for Python is a pickle, which may
            run any code when it is read, and is refused.

    Returns:
        Pictures as numbers from 0 to 1 (records, 3, 32, 32), and labels.

    Raises:
        InvalidParameter: if a file is not of that format.
    """
    return _cifar(files, 1, 0)


def cifar100(*files: Path_, coarse: bool = False) -> tuple[Tensor, Tensor]:
    """Pictures and labels of CIFAR-100, from its binary version (`train.bin`, `test.bin`).

    Args:
        files: One or several of them.
        coarse: Whether labels are the twenty coarse classes.

    Returns:
        As `cifar10`.

    Raises:
        InvalidParameter: if a file is not of that format.
    """
    return _cifar(files, 2, 0 if coarse else 1)


def _cifar(files: tuple[Path_, ...], labels: int, which: int) -> tuple[Tensor, Tensor]:
    if not files:
        raise InvalidParameter("Name at least one file, such as data_batch_1.bin.")
    parts = [_lines(path, labels + _PICTURE) for path in files]
    whole = np.concatenate(parts)
    pictures = whole[:, labels:].reshape(-1, _COLOURS, _SIDE, _SIDE)
    return torch.from_numpy(pictures.copy()).float() / 255, torch.from_numpy(whole[:, which].astype(np.int64))


def _lines(path: Path_, width: int) -> NDArray[np.uint8]:
    """Records of one width. Nothing but the length of a file is refused: its first byte is a record's."""
    held = _content(path, zipped=Path(path).suffix == ".gz")
    if not held or len(held) % width:
        raise InvalidParameter(
            f"{_name(path)} is no file of records of {width:,} bytes: take the binary version, whole. That "
            "for Python is a pickle, which may run any code when it is read, and is not read here."
        )
    return np.frombuffer(held, np.uint8).reshape(-1, width)


def _content(path: Path_, *, zipped: bool | None = None) -> bytes:
    """What a file holds, unzipped; by its first bytes where nothing is said, which are a public header's."""
    try:
        held = Path(path).read_bytes()
        zipped = held[:2] == b"\x1f\x8b" if zipped is None else zipped
        return gzip.decompress(held) if zipped else held
    except (OSError, EOFError, zlib.error):
        raise InvalidParameter(f"{_name(path)} cannot be read: is it there, and whole?") from None


def _name(path: Path_) -> str:
    return Path(path).name[:100]
