"""The weights of a model around a pass: what it changes of them has no noise, and is taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter

__all__ = ["Weights", "check_traced"]

Tensor: TypeAlias = torch.Tensor
_CHANGED = (
    "The model changes its own parameters by what it is given, without noise: keep such values in buffers, "
    "which are put back after each step, or leave them out."
)


class Weights:
    """All weights of a model, and of an objective that is a module, whether they are trained or frozen.

    Args:
        parts: The model and the objective.

    Privacy:
        Claim: after `taken_back` each weight holds the very bits that it held before, and a pass in which one
        was changed ends in an error, so that it counts as one that failed (`faults.summed`). Proof: a lazy
        copy of a weight shares its memory until somebody writes there, be it past the version counter
        (`.data`, an array of numpy): then the weight gets memory of its own, and the copy keeps the old one.
        A weight that still shares its memory was not written; any other is compared bit by bit. Conditions:
        nobody writes to the memory of weights by an address that was taken before the pass (compiled passes
        do: `check_traced`).
    """

    def __init__(self, *parts: Any) -> None:
        self._parts = [each for each in parts if isinstance(each, nn.Module)]

    @contextmanager
    def taken_back(self, more: Iterable[Tensor] = ()) -> Iterator[None]:
        """Gives weights what they held before.

        Args:
            more: Weights that no layer names, such as those in a list.

        Raises:
            InvalidParameter: if a pass changed one; its sums may be of weights that one record made.
        """
        weights = {id(each): each for part in self._parts for each in part.parameters()}
        held = [_held(each) for each in {**weights, **{id(each): each for each in more}}.values()]
        try:
            yield
        finally:
            moved = [_taken_back(each) for each in held]
        if any(moved):
            raise InvalidParameter(_CHANGED)


class _Held(NamedTuple):
    """A weight before a pass.

    Attributes:
        weight: Which.
        same: The same memory, as a tensor of its own.
        copy: What is in it.
        lazy: Whether the copy has no memory of its own yet.
    """

    weight: Tensor
    same: Tensor
    copy: Tensor
    lazy: bool


def _held(weight: Tensor) -> _Held:
    same = weight.detach()
    try:
        copy = torch._lazy_clone(same)
    except RuntimeError:  # memory that PyTorch did not allocate, such as a file's
        copy = same.clone()
    return _Held(weight, same, copy, _shared(same))


def _taken_back(held: _Held) -> bool:
    """Whether a weight was changed; it is no more."""
    weight, same, copy, lazy = held
    moved = _memory(weight) != _memory(same) or weight.shape != same.shape
    if moved:
        weight.data = same
    if lazy and _shared(same):
        return moved
    if not torch.equal(_bits(same), _bits(copy)):
        with torch.no_grad():
            same.copy_(copy)
        moved = True
    return moved


def _shared(value: Tensor) -> bool:
    return bool(torch._C._is_cow_tensor(value))  # type: ignore[attr-defined, unused-ignore]


def _memory(value: Tensor) -> tuple[Any, ...]:
    return value.untyped_storage()._cdata, value.storage_offset(), value.stride()


def _bits(value: Tensor) -> Tensor:
    return value.detach().contiguous().view(-1).view(torch.uint8)


def check_traced(traced: torch.fx.GraphModule, weights: int) -> None:
    """Refuses a pass that was traced and writes to its first inputs, the weights.

    Args:
        traced: What is compiled: operations of PyTorch, one after another.
        weights: How many of the inputs are weights.

    Raises:
        InvalidParameter: if it does.
    """
    inputs = [node for node in traced.graph.nodes if node.op == "placeholder"]
    known = set(inputs[:weights])  # weights, and what may share their memory
    for node in traced.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None:
            known |= {node} if known & set(node.all_input_nodes) else set()
            continue
        named = {each.name: given for each, given in zip(schema.arguments, node.args, strict=False)}
        named |= node.kwargs
        shares = False
        for argument in schema.arguments:
            alias, given = argument.alias_info, named.get(argument.name)
            several = given if isinstance(given, list | tuple) else (given,)
            if alias is None or not any(each in known for each in several if isinstance(each, torch.fx.Node)):
                continue
            if alias.is_write:
                raise InvalidParameter(_CHANGED)
            shares = True
        known |= {node} if shares else set()
