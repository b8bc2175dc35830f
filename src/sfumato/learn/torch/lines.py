"""Which lines of what goes into a layer, and of what comes out, are whose: found once, and held to."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from sfumato.errors import InvalidParameter

__all__ = ["Followed", "Key", "Layout", "axis_of"]

Tensor: TypeAlias = torch.Tensor
Key: TypeAlias = tuple[str, int, int | str]  # a layer, which of its calls, a part of what went in or came out
_SIZED = frozenset({"nonzero", "argwhere", "masked_select"})
_INTO = frozenset({"index_put", "index_add", "index_copy", "index_fill", "masked_scatter", "__setitem__"})


class _Seat(NamedTuple):
    """Where records are in a part.

    Attributes:
        axis: That of records; none: the part is the same for all of them.
        shape: Of one record; of all, where it is the same.
    """

    axis: int | None
    shape: tuple[int, ...]


class Layout:
    """Where records are in each part of a model's layers, and how many lines a record has there.

    Args:
        two: The shapes of all parts in a pass of two records.
        three: Likewise of three.
        known: What is known already, of layers that these passes may have left out.

    Privacy:
        Claim: each line that counts for a record is of that record. Proof: what grows with records has as
        many lines of each on made-up records; a pass in which a part has any other shape, or is another one,
        is refused as a whole (`faults`: who is left out then follows from each record alone, as those that
        are kept pass among made-up ones, and so have that many lines each). Conditions: a record's lines
        stand together (`surveying.compare`); how many there are of each does not hang on values, which
        `Followed` and made-up records of several kinds look for.
    """

    def __init__(
        self, two: Mapping[Key, torch.Size], three: Mapping[Key, torch.Size], known: Layout | None = None
    ) -> None:
        self._seats: dict[Key, _Seat] = {} if known is None else dict(known._seats)
        for key in dict.fromkeys((*three, *two)):
            if key in self._seats and not (key in two and key in three):
                continue  # a layer that is left out by chance
            size = three.get(key)
            axis = axis_of(key[0], two.get(key), size)
            assert size is not None
            shape = list(size)
            if axis is not None:
                shape[axis] //= 3
            self._seats[key] = _Seat(axis, tuple(shape))

    def axis(self, key: Key) -> int | None:
        """Which axis of a part is that of records; none: it is the same for all of them."""
        return self._seat(key).axis

    def check(self, key: Key, shape: torch.Size, records: int) -> int | None:
        """The same, of a part that has the shape that it must have.

        Raises:
            InvalidParameter: for another one, or a part that no made-up record led to.
        """
        axis, wanted = self._seat(key)
        if axis is not None:
            wanted = (*wanted[:axis], wanted[axis] * records, *wanted[axis + 1 :])
        if tuple(shape) != wanted:
            raise _another(key[0])
        return axis

    def check_out(self, key: Key, shape: torch.Size, records: int) -> int:
        """The same of what comes out: where that is of what was the same for all, each record has its own."""
        axis, wanted = self._seat(key)
        if axis is not None:
            self.check(key, shape, records)
            return axis
        if tuple(shape) not in ((records, *wanted), (records, *wanted[1:])):
            raise _another(key[0])
        return 0

    def _seat(self, key: Key) -> _Seat:
        seat = self._seats.get(key)
        if seat is None:
            raise InvalidParameter(
                f"The layer {key[0] or 'itself'!r} is called otherwise than on made-up records: how layers "
                "are called must not hang on what records hold."
            )
        return seat


def _another(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"The layer {name or 'itself'!r} has another number of lines than on made-up records: it must have "
        "as many of each record, whatever that holds. Give it all lines, and mask what comes out."
    )


def axis_of(name: str, two: torch.Size | None, three: torch.Size | None) -> int | None:
    """Which axis of a layer's input or output is that of records, by two records and by three; none: shared.

    It is the one that grows with them; there may be several lines of it for each record.
    """
    if two is not None and two == three:
        return None
    few, more = two or (), three or ()
    grows = [
        axis
        for axis, (one, other) in enumerate(zip(few, more, strict=False))
        if one * 3 == other * 2 and other % 3 == 0
    ]
    rest = [each for axis, each in enumerate(few) if axis not in grows]
    if len(grows) == 1 and rest == [each for axis, each in enumerate(more) if axis not in grows]:
        return grows[0]
    raise InvalidParameter(
        f"The layer {name or 'itself'!r} is given something of a size that does not follow from the number "
        "of records. Give it all lines, and mask what comes out."
    )


class Followed(TorchFunctionMode):
    """Follows what is made of records, and knows what has as many lines as their values say.

    Such lines are whose they are by values: no made-up record shows all ways in which they may fall.

    Args:
        given: Records.
    """

    def __init__(self, given: Tensor) -> None:
        super().__init__()
        self._made, self._sized = _Tensors(), _Tensors()
        self._made.add(given)

    def check(self, name: str, outs: tuple[Tensor, ...]) -> None:
        """Refuses what has as many lines as values say.

        Raises:
            InvalidParameter: then.
        """
        if any(out in self._sized for out in outs):
            raise InvalidParameter(
                f"The layer {name or 'itself'!r} is given as many lines as the values of records say, and "
                "which line is whose is not known: give it all lines, and mask what comes out."
            )

    def __torch_function__(
        self,
        func: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What a function of PyTorch gives, noted."""
        out = func(*args, **(kwargs or {}))
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        if any(each in self._made for each in given):
            name = getattr(func, "__name__", "")
            into = name.removesuffix("_") in _INTO or name.startswith("scatter") or name.endswith("_")
            held = given[:1] if into else given
            sized = any(each in self._sized for each in held) or self._sizes(name, args, kwargs or {})
            for each in tree_leaves(out if out is not None else held):
                if isinstance(each, torch.Tensor):
                    self._made.add(each)
                    if sized and each.dim():
                        self._sized.add(each)
        return out

    def _sizes(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a function gives as many lines as the values of records say."""
        if name in _SIZED or "unique" in name:
            return True
        if name == "where":
            return len(args) + len(kwargs) == 1
        if name == "repeat_interleave":
            return self._by(args[1:]) or self._by(kwargs.get("repeats"))
        if name == "__getitem__":
            return any(
                each in self._made
                for each in tree_leaves(args[1:])
                if isinstance(each, torch.Tensor) and each.dtype in (torch.bool, torch.uint8)
            )
        return False

    def _by(self, values: Any) -> bool:
        return any(each in self._made for each in tree_leaves(values) if isinstance(each, torch.Tensor))


class _Tensors:
    """Tensors that are looked at and not held."""

    def __init__(self) -> None:
        self._found = dict[int, weakref.ref[Tensor]]()

    def add(self, value: Tensor) -> None:
        self._found[id(value)] = weakref.ref(value)

    def __contains__(self, value: Tensor) -> bool:
        found = self._found.get(id(value))
        return found is not None and found() is value
