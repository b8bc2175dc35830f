"""Records as batches of one size, filled up; what is no record of its kind is left out, without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import TensorDataset

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.checking import check_data, check_example, check_pair

__all__ = ["Batch", "Records", "alike", "sent"]

Tensor: TypeAlias = torch.Tensor


class Batch(NamedTuple):
    """Records of one pass.

    Attributes:
        given: What goes into the model.
        target: What should come out.
        mask: 1 for each record that counts, 0 for what fills up.
    """

    given: Tensor
    target: Tensor
    mask: Tensor


class Records:
    """Private records: two tensors, or a data set that gives pairs of tensors by number.

    Args:
        data: `(inputs, targets)`, or an object with `__len__` and `__getitem__`.
        example: For a data set, one made-up pair of the kind that its records are of; a record of another
            shape or type, or one that cannot be read, counts as none.
    """

    def __init__(self, data: Any, example: tuple[Tensor, Tensor] | None = None) -> None:
        pair = (
            data.tensors if type(data) is TensorDataset else data if isinstance(data, tuple | list) else None
        )
        if example is not None:
            check_example(example)
        if pair is not None:
            if len(pair) != 2 or not all(isinstance(each, torch.Tensor) for each in pair):
                raise InvalidParameter("data must be a pair of tensors, inputs and targets, or a data set.")
            check_pair(*pair)
            self._pair: tuple[Tensor, ...] | None = tuple(pair)
            self._data: Any = None
            self.example = tuple(each.new_zeros(each.shape[1:]) for each in pair)
        elif example is None:
            raise InvalidParameter(
                "For a data set, give example=(input, target): one made-up record, as tensors."
            )
        else:
            check_data(data)
            self._pair, self._data = None, data
            self.example = tuple(torch.zeros_like(each) for each in example)

    def __len__(self) -> int:
        """How many there are: private, and never shown."""
        return len(self._pair[0] if self._pair is not None else self._data)

    def batches(self, drawn: NDArray[np.int64], size: int, device: torch.device) -> Iterator[Batch]:
        """All records that were drawn, in batches of one size; one batch at least."""
        for start in range(0, max(len(drawn), 1), size):
            part = drawn[start : start + size]
            mask = torch.zeros(size)
            mask[: len(part)] = 1
            given, target = self._filled(part, size, mask)
            yield Batch(*(sent(each, device) for each in (given, target, mask)))

    def _filled(self, part: NDArray[np.int64], size: int, mask: Tensor) -> tuple[Tensor, Tensor]:
        if self._pair is not None:
            if not len(part):
                return tuple(each.expand(size, *each.shape) for each in self.example)
            places = torch.from_numpy(np.resize(part, size))
            return tuple(each[sent(places, each.device)] for each in self._pair)
        columns: tuple[list[Tensor], list[Tensor]] = ([], [])
        for place in range(size):
            pair = self._one(int(part[place])) if place < len(part) else None
            if pair is None:
                mask[place] = 0
            for column, value in zip(columns, self.example if pair is None else pair, strict=True):
                column.append(value)
        return tuple(torch.stack(column) for column in columns)

    def _one(self, place: int) -> Sequence[Tensor] | None:
        try:
            return [
                alike(value, like, like.shape)
                for value, like in zip(self._data[place], self.example, strict=True)
            ]
        except Exception:  # no row decides an error
            return None


def alike(value: Any, like: Tensor, shape: torch.Size) -> Tensor:
    """A value as a plain tensor of that shape, of the kind and on the device of another one.

    Raises:
        Exception: for a value of another kind; it is caught where a record is read.
    """
    found = torch.as_tensor(value)
    if found.shape != shape or found.layout != torch.strided:
        raise ValueError
    if (found.is_floating_point(), found.is_complex()) != (like.is_floating_point(), like.is_complex()):
        raise ValueError
    return found.detach().as_subclass(torch.Tensor).to(like.device, like.dtype)


def sent(value: Tensor, device: torch.device) -> Tensor:
    """The same on a device, which need not have done all that it was given before."""
    if device.type == "cuda" and value.device.type == "cpu":
        value = value.pin_memory()
    return value.to(device, non_blocking=True)
