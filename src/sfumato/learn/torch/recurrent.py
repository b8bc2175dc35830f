"""`nn.LSTM`, `nn.GRU` and `nn.RNN` step by step: one gradient of the gates says what each weight's is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Outer, Stored
from sfumato.learn.torch.precision import precision_of
from sfumato.learn.torch.tape import Gradients, Tape, bounded, finite

__all__ = ["recur", "recur_once"]

Tensor: TypeAlias = torch.Tensor
State: TypeAlias = tuple[Tensor, ...]


def recur(layer: nn.RNNBase, name: str, tape: Tape, given: Any, hx: Any = None) -> tuple[Tensor, Any]:
    """What the layer gives, by the same formulas."""
    _check(layer, name, given)
    sequence = given if layer.batch_first else given.transpose(0, 1)
    start = _start(layer, sequence, hx)
    ends = list[State]()
    for depth in range(layer.num_layers):
        outs = list[Tensor]()
        for turned in range(2 if layer.bidirectional else 1):
            seat = len(ends)
            suffix = f"_l{depth}{'_reverse' * turned}"
            along = sequence.flip(1) if turned else sequence
            out, end = _pass(layer, suffix, name, tape, finite(along), tuple(each[seat] for each in start))
            outs.append(out.flip(1) if turned else out)
            ends.append(end)
        sequence = outs[0] if len(outs) == 1 else torch.cat(outs, 2)
        if layer.dropout and layer.training and depth + 1 < layer.num_layers:
            sequence = F.dropout(sequence, layer.dropout)
    last = tuple(torch.stack(parts) for parts in zip(*ends, strict=True))
    out = sequence if layer.batch_first else sequence.transpose(0, 1)
    return out, (last if isinstance(layer, nn.LSTM) else last[0])


def recur_once(layer: nn.RNNCellBase, name: str, tape: Tape, given: Tensor, hx: Any = None) -> Any:
    """What a cell gives: one step of a layer."""
    if given.dim() != 2:
        raise InvalidParameter(f"{_told(layer, name)} must be given a batch: two axes.")
    if hx is None:
        zero = given.new_zeros(given.shape[0], layer.hidden_size)
        hx = (zero, zero) if isinstance(layer, nn.LSTMCell) else zero
    start = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    _, end = _pass(layer, "", name, tape, finite(given[:, None]), start)
    return end if isinstance(layer, nn.LSTMCell) else end[0]


def _told(layer: nn.Module, name: str) -> str:
    return f"The layer {name or 'itself'!r} ({type(layer).__name__})"


def _check(layer: nn.RNNBase, name: str, given: Any) -> None:
    told = _told(layer, name)
    if not isinstance(given, torch.Tensor):
        raise InvalidParameter(
            f"{told} must be given a padded tensor and no PackedSequence, whose lines belong to no record."
        )
    if given.dim() != 3:
        raise InvalidParameter(f"{told} must be given a batch: three axes.")
    if getattr(layer, "proj_size", 0):
        raise InvalidParameter(f"{told} must have no proj_size: put nn.Linear behind it.")


def _start(layer: nn.RNNBase, sequence: Tensor, hx: Any) -> State:
    if hx is not None:
        return tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    many = layer.num_layers * (2 if layer.bidirectional else 1)
    zero = sequence.new_zeros(many, sequence.shape[0], layer.hidden_size)
    return (zero, zero) if isinstance(layer, nn.LSTM) else (zero,)


def _pass(
    layer: nn.Module, suffix: str, name: str, tape: Tape, sequence: Tensor, state: State
) -> tuple[Tensor, State]:
    """One layer in one direction: what it gives at each place, and how it ends."""
    weights = [getattr(layer, f"weight_{which}{suffix}") for which in ("ih", "hh")]
    biases = [getattr(layer, f"bias_{which}{suffix}", None) for which in ("ih", "hh")]
    befores, resets = list[Tensor](), list[Tensor]()

    def of(gradient: Tensor) -> Gradients:
        inner = gradient
        if resets:
            third = gradient.shape[2] // 3
            reset = torch.stack(resets, 1)
            inner = torch.cat([gradient[..., : 2 * third], gradient[..., 2 * third :] * reset], 2)
        before = bounded(torch.stack(befores, 1))
        return _gradients(gradient, sequence.detach(), "ih", suffix, tape.records) | _gradients(
            inner, before, "hh", suffix, tape.records
        )

    (gates,) = tape.watch(name, (F.linear(sequence, weights[0], biases[0]),), of)
    cell, outs = _CELLS[type(layer)](layer), list[Tensor]()
    for given in gates.unbind(1):
        befores.append(state[0].detach())
        state = cell(given, F.linear(state[0], weights[1], biases[1]), state, resets)
        outs.append(state[0])
    return torch.stack(outs, 1), state


def _gradients(gradient: Tensor, source: Tensor, which: str, suffix: str, records: int) -> Gradients:
    precision = precision_of(gradient.dtype, gradient.device)
    left = gradient.reshape(records, -1, gradient.shape[-1])
    right = source.reshape(records, -1, source.shape[-1])
    shape = torch.Size((left.shape[2], right.shape[2]))
    return {
        f"weight_{which}{suffix}": Outer(left, right, shape, precision),
        f"bias_{which}{suffix}": Stored(left.sum(1, dtype=precision.stored)),
    }


Cell: TypeAlias = Callable[[Tensor, Tensor, State, list[Tensor]], State]


def _long(_: nn.Module) -> Cell:
    def cell(given: Tensor, inner: Tensor, state: State, __: list[Tensor]) -> State:
        into, forget, new, show = (given + inner).chunk(4, 1)
        kept = torch.sigmoid(forget) * state[1] + torch.sigmoid(into) * torch.tanh(new)
        return torch.sigmoid(show) * torch.tanh(kept), kept

    return cell


def _gated(_: nn.Module) -> Cell:
    def cell(given: Tensor, inner: Tensor, state: State, resets: list[Tensor]) -> State:
        (reset, keep, new), (reset_in, keep_in, new_in) = given.chunk(3, 1), inner.chunk(3, 1)
        reset, keep = torch.sigmoid(reset + reset_in), torch.sigmoid(keep + keep_in)
        resets.append(reset.detach())
        fresh = torch.tanh(new + reset * new_in)
        return (fresh + keep * (state[0] - fresh),)

    return cell


def _plain(layer: nn.Module) -> Cell:
    bend = torch.relu if getattr(layer, "nonlinearity", "tanh") == "relu" else torch.tanh

    def cell(given: Tensor, inner: Tensor, _: State, __: list[Tensor]) -> State:
        return (bend(given + inner),)

    return cell


_CELLS: dict[type[nn.Module], Callable[[nn.Module], Cell]] = {
    nn.LSTM: _long,
    nn.GRU: _gated,
    nn.RNN: _plain,
    nn.LSTMCell: _long,
    nn.GRUCell: _gated,
    nn.RNNCell: _plain,
}
