"""Per-record gradients of one use of a parameter, in the form in which they cost least."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import torch

from sfumato._dataclasses import dataclass
from sfumato.learn.torch.precision import Precision

__all__ = ["IN_TURN", "Form", "Looked", "Norms", "Outer", "Stored", "Tied", "merged", "multiplied"]

Tensor: TypeAlias = torch.Tensor
_WIDE = torch.float64
IN_TURN = 32
"""How many records are added up in 32-bit floats, at most."""
_SQUARED_TOGETHER = 512
_LEAST = 2.0**-126  # below it a product of 32 bits may be lost
_MOST = 2.0**64  # what a factor is at most: times a factor that is lost below `_LEAST` it is nothing


@dataclass(frozen=True, slots=True)
class Norms:
    """What is known of the lengths of per-record gradients, a number a record.

    Attributes:
        square: Not below the square of each gradient's norm.
        spread: The norm's bound if nothing cancelled: what errors of additions are in proportion to, if any.
        turned: What errors of factors that are cut short are in proportion to, if any.
    """

    square: Tensor
    spread: Tensor | None = None
    turned: Tensor | None = None

    @classmethod
    def together(cls, parts: Sequence[Norms]) -> Norms:
        """Of several parameters, as if they were one: squares add up."""
        spread, turned = ([getattr(each, of) for each in parts] for of in ("spread", "turned"))
        return cls(torch.stack([each.square for each in parts]).sum(0), _length(spread), _length(turned))


class Form(Protocol):
    """Gradients of one parameter, of each record, not yet added up."""

    def norms(self) -> Norms:
        """Bounds on their lengths."""
        ...

    def settled(self, block: Callable[[int], int]) -> Form:
        """The form in which they are measured and added up, with blocks by the number of places."""
        ...

    def summed(self, factors: Tensor) -> Tensor:
        """The sum of all, each times its factor, in 64-bit floats and the parameter's shape."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Gradients that were made, a tensor a record: what they are is what is stored.

    Attributes:
        made: Records first.
        order: How the axes of the parameter are found among those that were made, if they are others.
    """

    made: Tensor
    order: tuple[int, ...] | None = None

    def settled(self, block: Callable[[int], int]) -> Stored:  # noqa: ARG002
        """As it is."""
        return self

    def norms(self) -> Norms:
        """Of what is stored, up to how sums of squares are off."""
        return Norms(_squares(self.made))

    def summed(self, factors: Tensor) -> Tensor:
        """A few records at a time in the type of products, and over these in 64-bit floats."""
        kind = _WIDE if self.made.dtype == _WIDE else torch.float32
        return _ordered(_added(_scaled(self.made.to(kind), factors.to(kind))), self.order)

    def straight(self) -> Tensor:
        """What was made, in the order of the parameter's axes."""
        return self.made if self.order is None else self.made.permute(0, *(axis + 1 for axis in self.order))


@dataclass(frozen=True, slots=True)
class Outer:
    """Gradients of a weight that multiplies: sums of outer products over the places of a record.

    Attributes:
        left: Gradients of outputs: records, places, outputs.
        right: Inputs: records, places, inputs.
        shape: The weight's, in the order of axes that inputs have here.
        precision: Of products.
        finite: Whether the left side is, whatever the records hold; the right one always is.
        block: How many records are added up in one product.
        order: How the weight's own axes are found among those, if they are others.
    """

    left: Tensor
    right: Tensor
    shape: torch.Size
    precision: Precision
    finite: bool = False
    block: int = 1
    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", self.left.to(self.precision.inside))
        object.__setattr__(self, "right", self.right.to(self.precision.inside))

    @property
    def places(self) -> int:
        """Of a record."""
        return int(self.left.shape[1])

    def norms(self) -> Norms:
        """By the inner products of all pairs of places, unless there is one.

        A sum of products is off by what additions are off, in proportion to the lengths of both factors, and
        by `_LEAST` for each product that is too small for 32 bits.
        """
        if self.places == 1:
            left, right = _lengths(self.left), _lengths(self.right)
            spread = (left * right).sum(1)
            beyond = (torch.maximum(left, right) > _MOST).any(1)
            return Norms(spread.square(), spread, torch.where(beyond, math.inf, spread))
        among_left, among_right = _products(self.left, self.precision), _products(self.right, self.precision)
        widths, places = (self.left.shape[2], self.right.shape[2]), self.places
        off = (sum(widths) + 4) * self.precision.added
        lost = [width * _LEAST for width in widths]  # of an inner product, where its terms are too small
        lengths = [
            _on_diagonal(each) * (1 + off) + small
            for each, small in zip((among_left, among_right), lost, strict=True)
        ]
        square = (among_left * among_right).sum((1, 2), dtype=_WIDE).clamp(min=0)
        spread = (lengths[0] * lengths[1]).sqrt().sum(1)
        small = places * (lost[0] * lengths[1].sum(1) + lost[1] * lengths[0].sum(1)) + places**2 * _LEAST
        widest = [
            (each.square().sum((1, 2), dtype=_WIDE) + places**2 * _LEAST).sqrt()
            for each in (among_left, among_right)
        ]
        scaled = 0 if self.scales_left else 1  # whose factors are cut short
        turned = (lengths[scaled].sum(1) * widest[1 - scaled]).sqrt() * (1 + off)
        return Norms(square + off * spread.square() + small, spread, torch.minimum(spread, turned))

    @property
    def scales_left(self) -> bool:
        """Which side a record's factor is multiplied into: the narrower one, where that is safe."""
        return not self.finite or self.left.shape[2] <= self.right.shape[2]

    def made(self) -> Stored:
        """The same, stored."""
        made = torch.bmm(self.left.transpose(1, 2), _laid(self.right))
        return Stored(made.view(made.shape[0], *self.shape), self.order)

    def settled(self, block: Callable[[int], int]) -> Outer | Stored:
        """In the cheaper form: stored, or by pairs of places with so many records in a block."""
        pairs, size = self.places * self.places, self.left.shape[2] * self.right.shape[2]
        if self.places > 1 and self.precision.stored_costs * size < pairs:
            return self.made()
        return replace(self, block=block(self.places))

    def summed(self, factors: Tensor) -> Tensor:
        """Block by block in products, and over blocks in 64-bit floats."""
        sides = [self.left, self.right]
        which = 0 if self.scales_left else 1
        sides[which] = _scaled(sides[which], factors.to(self.precision.stored)).to(self.precision.inside)
        left, right = (_blocks(each, self.block) for each in sides)
        made = multiplied(left.transpose(1, 2), right, self.precision)
        return _ordered(_added(made, self.block).view(self.shape), self.order)


@dataclass(frozen=True, slots=True)
class Looked:
    """Gradients of a table of which each place of a record takes one line.

    Attributes:
        left: Gradients of the lines that were taken: records, places, width.
        lines: Which: records, places.
        shape: The table's.
        precision: Of products.
    """

    left: Tensor
    lines: Tensor
    shape: torch.Size
    precision: Precision

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", self.left.to(self.precision.inside))

    def settled(self, block: Callable[[int], int]) -> Looked:  # noqa: ARG002
        """As it is."""
        return self

    def made(self) -> Stored:
        """The same, stored."""
        records, places = self.lines.shape
        made = self.left.new_zeros((records, *self.shape))
        whose = torch.arange(records, device=self.lines.device)[:, None].expand(-1, places)
        return Stored(made.index_put((whose, self.lines), self.left, accumulate=True))

    def norms(self) -> Norms:
        """By the inner products of places that take the same line."""
        same = self.lines[:, :, None] == self.lines[:, None, :]
        among = _products(self.left, self.precision)
        square = torch.where(same, among, 0).sum((1, 2), dtype=_WIDE)
        spread = _lengths(self.left).sum(1)
        off = (self.left.shape[2] + 4) * self.precision.added
        small = self.lines.shape[1] ** 2 * self.left.shape[2] * _LEAST
        return Norms(square.clamp(min=0) + off * spread.square() + small)

    def summed(self, factors: Tensor) -> Tensor:
        """In 64-bit floats throughout."""
        scaled = _scaled(self.left.to(_WIDE), factors)
        total = scaled.new_zeros(self.shape)
        return total.index_add(0, self.lines.reshape(-1), scaled.flatten(0, 1))


@dataclass(frozen=True, slots=True)
class Tied:
    """Gradients of a table whose lines are looked up and that multiplies, too: those of both uses together.

    Attributes:
        looked: Of the one use.
        outer: Of the other.
    """

    looked: Looked
    outer: Outer

    def norms(self) -> Norms:
        """The inner product of both is a sum over pairs of places.

        It is the output's gradient at the line that was taken, times the inner product of that line's
        gradient and the input.
        """
        looked, outer = self.looked, self.outer
        first, second = looked.norms(), outer.norms()
        assert second.spread is not None
        lines = looked.lines[:, None, :].expand(-1, outer.places, -1)
        taken = torch.gather(outer.left, 2, lines)  # records, places that multiply, places that look up
        across = multiplied(outer.right, looked.left.transpose(1, 2), outer.precision)
        cross = (taken.to(across.dtype) * across).sum((1, 2), dtype=_WIDE)
        off = (outer.right.shape[2] + 4) * outer.precision.added
        off = off * _lengths(looked.left).sum(1) * second.spread
        bound = (first.square.sqrt() + second.square.sqrt()).square()
        square = torch.minimum((first.square + second.square + 2 * (cross + off)).clamp(min=0), bound)
        square = torch.where(torch.isfinite(cross), square, bound)  # 32 bits may be too few
        return Norms(square, second.spread, second.turned)

    def settled(self, block: Callable[[int], int]) -> Tied:
        """With so many records in a block."""
        return replace(self, outer=replace(self.outer, block=block(self.outer.places)))

    def summed(self, factors: Tensor) -> Tensor:
        """Both."""
        return self.looked.summed(factors) + self.outer.summed(factors)


def merged(uses: Sequence[Form]) -> Form:
    """The gradients of a parameter that is used several times: those of all uses together."""
    if len(uses) == 1:
        return uses[0]
    outer = [each for each in uses if isinstance(each, Outer)]
    looked = [each for each in uses if isinstance(each, Looked)]
    together = list[Outer | Looked]()
    if outer:
        left, right = (torch.cat([getattr(each, side) for each in outer], 1) for side in ("left", "right"))
        finite = all(each.finite for each in outer)
        together.append(replace(outer[0], left=left, right=right, finite=finite))
    if looked:
        left, lines = (torch.cat([getattr(each, side) for each in looked], 1) for side in ("left", "lines"))
        together.append(replace(looked[0], left=left, lines=lines))
    if len(outer) + len(looked) == len(uses):
        return Tied(together[1], together[0]) if len(together) == 2 else together[0]  # type: ignore[arg-type]
    stored = [each.made() for each in together]
    stored += [each for each in uses if isinstance(each, Stored)]
    return Stored(torch.stack([each.straight().to(stored[-1].made.dtype) for each in stored]).sum(0))


def _length(parts: Sequence[Tensor | None]) -> Tensor | None:
    """The roots of sums of squares, where there are any."""
    some = [each for each in parts if each is not None]
    return torch.stack(some).square().sum(0).sqrt() if some else None


def _scaled(value: Tensor, factors: Tensor) -> Tensor:
    """Each record's values times its factor; nothing of a record whose factor is 0, whatever it holds."""
    by = factors.view(-1, *[1] * (value.dim() - 1))
    return torch.where(by > 0, value * by, 0)


def _ordered(total: Tensor, order: tuple[int, ...] | None) -> Tensor:
    return total if order is None else total.permute(order)


def _on_diagonal(products: Tensor) -> Tensor:
    """The squares of lengths, from the inner products of all pairs."""
    return products.diagonal(dim1=1, dim2=2).to(_WIDE).clamp(min=0)


def _added(blocks: Tensor, records: int = 1) -> Tensor:
    """The sum of all, which are of so many records each.

    Of `IN_TURN` records at most in the blocks' own type, one after the other, and over these in 64 bits.
    """
    count, most = len(blocks), max(1, IN_TURN // records)
    together = max(each for each in range(1, min(most, count) + 1) if count % each == 0)
    apart = blocks.view(count // together, together, *blocks.shape[1:])
    total = apart[:, 0]
    for turn in range(1, together):
        total = total + apart[:, turn]
    return total.sum(0, dtype=_WIDE)


def _squares(value: Tensor) -> Tensor:
    """The sum of squares of each record; not below it, where a few at a time are added up in 32 bits."""
    flat = value.flatten(1)
    together = math.gcd(flat.shape[1], _SQUARED_TOGETHER)
    if flat.dtype == _WIDE or together < 8:
        return flat.to(_WIDE).square().sum(1)
    few = flat.float().square().unflatten(1, (-1, together)).sum(2)
    off = 1 + (together + 1) * 2.0**-23
    return few.sum(1, dtype=_WIDE) * off + flat.shape[1] * _LEAST


def _lengths(value: Tensor) -> Tensor:
    return value.to(_WIDE).square().sum(2).sqrt()


def _products(value: Tensor, precision: Precision) -> Tensor:
    return multiplied(value, value.transpose(1, 2), precision)


def multiplied(left: Tensor, right: Tensor, precision: Precision) -> Tensor:
    """The products of matrices, a pair a record."""
    if precision.inside == precision.stored:
        return torch.bmm(left, _laid(right))
    return torch.bmm(left, right, out_dtype=precision.stored)


def _laid(right: Tensor) -> Tensor:
    """On a CPU, line by line: many small products with a transposed side are up to 100 times slower there."""
    return right.contiguous() if right.device.type == "cpu" else right


def _blocks(value: Tensor, records: int) -> Tensor:
    count, places, width = value.shape
    return value.reshape(count // records, records * places, width)
