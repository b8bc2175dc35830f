"""Whether records stay apart: where one is made another, nothing of the others may change by a bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.surveying import others
from sfumato.learn.torch.tosses import EVERY, ONE, Toss, chosen, states

__all__ = ["Found", "alike", "another", "check_apart", "extremes", "repeated"]

Tensor: TypeAlias = torch.Tensor
Pair: TypeAlias = tuple[Tensor, Tensor]
Way: TypeAlias = Callable[[int], Pair]
Found: TypeAlias = Callable[[int], Sequence[Tensor]]
_NUMBERS = (1e30, float("nan"), float("inf"), 0.0, -1e30, float("-inf"))
_WHOLE = (-1, -100, 1000)  # unknown, left out, and past most tables
_MIXED = (
    "The loss of a record hangs on others of its batch: some layer mixes records. Put nn.GroupNorm or "
    "nn.LayerNorm in its place, and leave means over a batch out of the objective."
)


def check_apart(
    model: nn.Module, batch: Pair, run: Callable[[Tensor, Tensor], Found], *, thorough: bool = False
) -> None:
    """Refuses a model in whose present modes something of a record hangs on another one.

    Records are made others, one at a time: huge ones, infinite ones, such as have no values or no labels,
    among ordinary records and among such as have gaps. What is left to chance, such as dropout, is the same
    with and without; where coins are tossed, they are put to either end as well. What there is of the others
    must be the same to the last bit: the shapes are the same, and so is each record's place. Only where two
    passes over the very same records differ, as sums on accelerators may, is that much allowed.

    Args:
        model: Which.
        batch: Made-up records.
        run: What is looked at: from the place of a record to what there is of all others.
        thorough: Whether all of that is tried, or the first of each kind.

    Raises:
        InvalidParameter: if a record shows in others.
    """

    def ran(values: Pair, toss: Toss = ONE) -> tuple[Found, bool]:
        with forgetting(model), chosen(toss):
            before = states()
            return run(*values), states() != before

    def tried(values: Pair, toss: Toss = ONE) -> Found | None:
        """The same of records that a model need not take."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ran(values, toss)[0]
        except Exception:
            return None

    def compare(first: Found | None, second: Found | None, at: int) -> None:
        if first is not None and second is not None and not alike(first(at), second(at), off):
            raise InvalidParameter(_MIXED)

    plain, tossed = ran(batch)
    off = repeated(model, plain(-1), ran(batch)[0](-1))
    many = len(batch[0])
    for at in range(many):
        compare(plain, ran(another(batch, at))[0], at)
    for turn, kind in enumerate(islice(extremes(batch), None if thorough else 3)):
        compare(plain, tried(kind(turn % many)), turn % many)
    for base in _bases(model, batch) if thorough else ():
        first = tried(base)
        kinds: list[Way] = [partial(another, base), *extremes(base)]
        for turn, kind in enumerate(kinds[::2] if first is not None else ()):
            compare(first, tried(kind(turn % many)), turn % many)
    for turn, toss in enumerate(EVERY if thorough and tossed else ()):
        compare(tried(batch, toss), tried(another(batch, turn % many), toss), turn % many)


def repeated(model: nn.Module, first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """How far passes over the same records with the same coins may be apart: nothing, if these two are not.

    Raises:
        InvalidParameter: if they are further apart than sums in another order are.
    """
    if alike(first, second):
        return 0.0
    off = max(_noise(each) for each in model.parameters())
    if not alike(first, second, off):
        raise InvalidParameter(
            "The model gives other losses for the same records and the same coins: what it leaves to chance "
            "must come from PyTorch's own generators, from numpy's functions or from Python's random."
        )
    return off


def alike(first: Sequence[Tensor], second: Sequence[Tensor], off: float = 0.0) -> bool:
    """Whether all numbers are the same, to the last bit unless something is allowed."""
    for one, two in zip(first, second, strict=True):
        same = (one == two) | (one.isnan() & two.isnan())
        if not off and not same.all():
            return False
        if off:
            largest = max((float(each.abs().nan_to_num(0.0, 0.0).max()) for each in first), default=0.0)
            near = (one - two).abs() <= off * (largest + 1e-30)
            if not (same | near).all():
                return False
    return True


def another(batch: Pair, at: int) -> Pair:
    """The same records but for one, which has other numbers and another target."""

    def changed(value: Tensor) -> Tensor:
        value = value.clone()
        value[at] = 3 - 5 * value[at] if value.is_floating_point() else (value[at] == 0).to(value.dtype)
        return value

    return changed(batch[0]), changed(batch[1])


def extremes(batch: Pair) -> Iterator[Way]:
    """Ways to make one record another: values in full and in part, of what goes in and of targets.

    Whole numbers that a model may not take only where one of them raises, and ends no process.
    """
    sides = [_values(each) for each in batch]
    for turn in range(max(map(len, sides))):
        for side in (0, 1):
            if turn < len(sides[side]):
                yield partial(_set, batch, side, sides[side][turn])
    for side in (0, 1):
        gaps = _gaps(batch[side])
        if gaps is not None:
            yield partial(_gap, batch, side, gaps)


def _gap(batch: Pair, side: int, gaps: Tensor, at: int) -> Pair:
    return _set(batch, side, gaps[at], at)


def _set(batch: Pair, side: int, value: Tensor | float, at: int) -> Pair:
    changed = batch[side].clone()
    changed[at] = value
    return (changed, batch[1]) if side == 0 else (batch[0], changed)


def _values(of: Tensor) -> tuple[float, ...]:
    if of.is_floating_point():
        return tuple(
            min(max(each, -_most(of)), _most(of)) if abs(each) == 1e30 else each for each in _NUMBERS
        )
    if of.dtype == torch.bool or of.is_complex() or of.device.type != "cpu":
        return ()
    ends = torch.iinfo(of.dtype)
    return tuple(dict.fromkeys(min(max(each, ends.min), ends.max) for each in _WHOLE))


def _most(of: Tensor) -> float:
    return float(torch.finfo(of.dtype).max)


def _gaps(value: Tensor) -> Tensor | None:
    """Records some of whose values are missing, others in each."""
    gaps = (torch.arange(value.numel(), device=value.device) * 0.6180339887 % 1 < 0.4).view(value.shape)
    if value.is_floating_point():
        return value.masked_fill(gaps, float("nan"))
    values = _values(value)
    return value.masked_fill(gaps, values[1]) if len(values) > 1 else None


def _bases(model: nn.Module, batch: Pair) -> Iterator[Pair]:
    """Records among which one is made another, beside the first ones."""
    yield from others(model, (batch[0][0], batch[1][0]), len(batch[0]))
    given, target = (_gaps(each) for each in batch)
    if given is not None and given.is_floating_point():
        yield given, batch[1]
    if target is not None:
        yield batch[0], target


def _noise(parameter: Tensor) -> float:
    """How far sums of this type are off in another order, of the largest number."""
    return 1e-2 if parameter.dtype in (torch.bfloat16, torch.float16) else 1e-4
