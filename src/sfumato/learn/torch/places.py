"""Places in a pass: a record must have the same numbers at all of them, to the last bit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from itertools import cycle
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_leaves

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.apart import alike, another, repeated
from sfumato.learn.torch.clipping import clipped
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.forms import Form
from sfumato.learn.torch.precision import precision_of
from sfumato.learn.torch.products import check_products
from sfumato.learn.torch.surveying import made_up, still
from sfumato.learn.torch.tosses import ONE, Toss, chosen, states

__all__ = ["check_places", "places_of", "usual"]

Tensor: TypeAlias = torch.Tensor
Pair: TypeAlias = tuple[Tensor, Tensor]
_FULL = 32  # passes are multiples of it: tails of products are computed in other ways than what is before
_OTHERS = (1e30, float("nan"), -1e30)


def usual(batch: int, rate: Fraction) -> int:
    """More than nearly all draws have, and with many divisors, as blocks of records divide it."""
    return _whole(batch + 3 * math.ceil(math.sqrt(batch * (1 - rate))))


def places_of(physical: int, device: torch.device) -> int:
    """How many places a pass has: on a processor a multiple of 32, or the one where records pass alone."""
    return physical if physical == 1 or device.type != "cpu" else _whole(physical)


def _whole(places: int) -> int:
    return -(-places // _FULL) * _FULL


def check_places(engine: Engine, example: Pair, places: int, each: int | None = None) -> None:
    """Refuses passes in which a record's numbers hang on where it is, or on who else is there.

    Made-up records pass in two orders, and with some or half of them made others, in passes of the size that
    steps have: what a layer does only when many come together shows there. A pass that is compiled gives sums
    alone: in it one record is tried at several places.

    Args:
        engine: What makes the passes.
        example: What a record is like.
        places: How many there are in a pass.
        each: How many records a place has, if they are users'.

    Raises:
        InvalidParameter: then.

    Privacy:
        Claim: in the passes that were tried each record's loss, gradients and factor are the same to the last
        bit at two places, and whatever some others are. It is what `clipping.clipped` supposes of all passes.
        Conditions: later passes are computed in the same way, with as many threads, on the same device.
    """
    if places == 1 and each is None:
        return
    check_products(engine.amp or engine.kind, engine.device)
    batch = _several(example, places, each)
    with forgetting(engine.recorder.model), chosen(ONE):
        before = states()
        first = _seen(engine, batch)
        tossed = states() != before
    off = repeated(engine.recorder.model, first, _passed(engine, batch, ONE))
    for changed, at in _with_others(batch):
        rest = torch.ones(places, dtype=torch.bool, device=engine.device)
        rest[at] = False
        second = _tried(engine, changed)
        if second is not None and not _same([one[rest] for one in first], [one[rest] for one in second], off):
            raise InvalidParameter(
                "What a record gives hangs on others of its batch where many pass together: some layer mixes "
                "records, as experts with room for so many do. Leave out what has a limit for a whole batch."
            )
    with _calm(engine) if tossed else _as_it_is():
        first = _passed(engine, batch, ONE) if tossed else first
        order = torch.arange(places - 1, -1, -1, device=engine.device).roll(places % 2)
        turned = _passed(engine, (batch[0][order], batch[1][order]), ONE)
        if not _same([one[order] for one in first], turned, off):
            raise InvalidParameter(_elsewhere(places))
    if engine.compiled and not tossed and not off:
        _check_sums(engine, batch, places)
    if engine.device.type == "cuda":
        torch.cuda.empty_cache()  # a step needs less at a time than these passes did


def _elsewhere(places: int) -> str:
    return (
        f"A record's gradient hangs on its place in a pass of {places:,}: layers give the same record other "
        "numbers there, or let those that come first through. If it is the former, another physical may "
        "help, and physical=1 has one place alone."
    )


def _same(first: Sequence[Tensor], second: Sequence[Tensor], off: float) -> bool:
    return len(first) == len(second) and alike(first, second, off)


def _check_sums(engine: Engine, batch: Pair, places: int) -> None:
    """Refuses a compiled pass that gives a record another sum at another place."""
    given, target = (value[:1].expand_as(value).contiguous() for value in batch)
    found = list[list[Tensor]]()
    for at in dict.fromkeys((0, 1 % places, places // 2, places - 1)):
        mask = torch.zeros(places, device=engine.device)
        mask[at] = 1
        with forgetting(engine.recorder.model), chosen(ONE):
            found.append([one.clone() for one in engine.sums(given, target, mask)])
    if not all(torch.equal(one, two) for sums in found[1:] for one, two in zip(found[0], sums, strict=True)):
        raise InvalidParameter(_elsewhere(places))


def _passed(engine: Engine, batch: Pair, toss: Toss) -> list[Tensor]:
    with forgetting(engine.recorder.model), chosen(toss):
        return _seen(engine, batch)


def _tried(engine: Engine, batch: Pair) -> list[Tensor] | None:
    """The same of records that a model need not take."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _passed(engine, batch, ONE)
    except Exception:
        return None


def _seen(engine: Engine, batch: Pair) -> list[Tensor]:
    """What there is of each place; of a pass that is compiled losses alone, as memory may be short."""
    losses, out = engine.losses(*batch)
    if engine.compiled:
        return [losses]
    outs = [each for each in tree_leaves(out) if isinstance(each, torch.Tensor) and each.dim()]
    forms = engine.measured(*batch)
    precision = precision_of(engine.amp or engine.kind, engine.device)
    mask = torch.ones(len(batch[0]), device=engine.device)
    factors = clipped(forms, mask, engine.bound, precision.given, precision.added).factors
    parts = (part for name in engine.names if name in forms for part in _parts(forms[name]))
    return [losses, *(each for each in outs if len(each) == len(losses)), factors, *parts]


def _parts(form: Form) -> Iterator[Tensor]:
    """What a form is made of, with records first."""
    for each in fields(form):  # type: ignore[arg-type]
        value: Any = getattr(form, each.name)
        if isinstance(value, torch.Tensor):
            yield value.detach()
        elif each.name in ("looked", "outer"):
            yield from _parts(value)
        elif each.name == "parts":
            for part in value:
                yield from _parts(part)


def _several(example: Pair, places: int, each: int | None) -> Pair:
    """Made-up records, another one at each place."""
    given, target = made_up(example, places * (each or 1))
    if given.is_floating_point():
        given = given * 5 - 2
    if each is None:
        return given, target
    return given.unflatten(0, (places, each)), target.unflatten(0, (places, each))


def _with_others(batch: Pair) -> Iterator[tuple[Pair, list[int]]]:
    """The same with some records made others, and which: as far out as they can be, and near."""
    given, target = batch
    many = len(given)
    at = list(dict.fromkeys((0, many // 2, many - 1)))
    if many == 1:
        return
    far, near = given.clone(), batch
    _far(far, at)
    for place in at:
        near = another(near, place)
    yield (far, target), at
    yield near, at
    for turn in (0, 1):  # each has such neighbours
        at, far, wanted = list(range(turn, many, 2)), given.clone(), target.clone()
        _far(far, at)
        yield (far, target), at
        if target.is_floating_point():
            _far(wanted, at)
            yield (given, wanted), at


def _far(values: Tensor, at: list[int]) -> None:
    """Puts records as far out as they can be."""
    if not values.is_floating_point():
        values[at] = 0
        return
    most = float(torch.finfo(values.dtype).max)
    for place, value in zip(at, cycle(_OTHERS), strict=False):
        values[place] = max(-most, min(most, value)) if value == value else value


@contextmanager
def _calm(engine: Engine) -> Iterator[None]:
    with engine.recorder.calm(), still(engine.recorder.model):
        yield


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield
