"""One pass through a model that keeps what the gradients of each record are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.attention import attend
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.forms import Form
from sfumato.learn.torch.layers import has_finite_gradient, has_finite_input, rule_of
from sfumato.learn.torch.precision import in_full, precision_of
from sfumato.learn.torch.recurrent import recur, recur_once
from sfumato.learn.torch.stacked import of_all_uses
from sfumato.learn.torch.surveying import axis_of, check_apart, compare, made_up, still, unmoved
from sfumato.learn.torch.tape import Gradients, Tape, finite
from sfumato.learn.torch.unknown import Call, gradients_of_unknown

__all__ = ["Objective", "Recorder"]

Tensor: TypeAlias = torch.Tensor
Objective: TypeAlias = Callable[[Any, Tensor], Tensor]
Key: TypeAlias = tuple[str, int, int | str]  # a layer, which of its calls, a part of what went in or came out

STAND_INS: dict[type[nn.Module], Callable[..., Any]] = {
    nn.MultiheadAttention: attend,
    nn.LSTM: recur,
    nn.GRU: recur,
    nn.RNN: recur,
    nn.LSTMCell: recur_once,
    nn.GRUCell: recur_once,
    nn.RNNCell: recur_once,
}
"""Layers that compute in one call what is to be watched in pieces: how they compute while it is recorded."""


class Recorder:
    """Watches a model's layers while it records, and leaves them alone otherwise.

    Only layers with parameters that are trained are watched: what is frozen costs nothing.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._tape: Tape | None = None
        self._calls = dict[str, int]()
        self._seen: dict[Key, torch.Size] | None = None
        self._layout = dict[Key, int | None]()
        self.names = _names(model)
        self.trained = [name for name, each in model.named_parameters() if each.requires_grad]
        self._handles, self._stand_ins = list[Any](), list[tuple[str, nn.Module]]()
        for name, layer in model.named_modules():
            refuse(layer, name)
            if isinstance(layer, nn.Embedding):
                self._handles.append(layer.register_forward_pre_hook(self._within))
            if type(layer) in STAND_INS:
                if any(parameter.requires_grad for parameter in layer.parameters()):
                    self._stand_ins.append((name, layer))
            elif any(parameter.requires_grad for parameter in layer.parameters(recurse=False)):
                before, after = self._before(name), self._after(name)
                self._handles.append(layer.register_forward_pre_hook(before, with_kwargs=True))
                self._handles.append(layer.register_forward_hook(after, with_kwargs=True))

    def gradients(self, given: Tensor, target: Tensor, objective: Objective) -> dict[str, Form]:
        """The gradients of each trained parameter, of each record, in the form in which they were found."""
        with self._recording(given.shape[0]) as tape:
            losses = objective(self.model(given), target)
            if losses.shape != (given.shape[0],):
                raise InvalidParameter(
                    "The objective must give one loss for each record: leave the mean to the step."
                )
            found = tape.gradients(losses.sum())
        listed = {name: list[Form]() for name in self.trained}
        with torch.no_grad():
            for use, parts in zip(tape.uses, found, strict=True):
                if all(part is None for part in parts):
                    continue
                whole = (
                    zero() if part is None else part for part, zero in zip(parts, use.shapes, strict=True)
                )
                for name, form in use.of(*whole).items():
                    key = self.names.get(f"{use.name}.{name}" if use.name else name)
                    if key in listed:
                        listed[key].append(form)
            return {name: of_all_uses(forms) for name, forms in listed.items() if forms}

    def remove(self) -> None:
        """Leaves the model as it was."""
        for handle in self._handles:
            handle.remove()

    def survey(self, example: tuple[Tensor, Tensor], objective: Objective) -> None:
        """Finds out, on made-up records, what of a layer's input belongs to which record.

        A layer may be given a line for each record, the same for all, or several lines for each. Which it is
        shows in how its input grows with the number of records, and not in its shape at one number.

        Raises:
            InvalidParameter: if gradients differ from those of each record by itself.
        """
        seen = list[dict[Key, torch.Size]]()
        with forgetting(self.model), still(self.model), in_full():
            for records in (2, 3):
                self._seen, batch = dict[Key, torch.Size](), made_up(example, records)
                try:
                    with self._recording(records):
                        self.model(batch[0])
                finally:
                    seen, self._seen = [*seen, self._seen], None
            self._layout = {key: axis_of(key[0], seen[0].get(key), size) for key, size in seen[1].items()}
            found = self.gradients(*batch, objective)
            compare(self.model, found, batch, objective)
        with unmoved(self.model):
            check_apart(self.model, batch, partial(self._losses, objective))

    def _losses(self, objective: Objective, given: Tensor, target: Tensor) -> Tensor:
        with self._recording(len(given)):
            return objective(self.model(given), target)

    def _of(self, layer: nn.Module, call: Call) -> Callable[..., Gradients]:
        """From the gradients of what came out to those of the layer's parameters."""
        rule, tape = rule_of(layer), self._tape
        assert tape is not None

        def of(*gradients: Tensor) -> Gradients:
            if rule is None:
                return gradients_of_unknown(layer, call, gradients, tape)
            given = tape.first(call.given[0], call.axes[0])
            gradient = tape.first(gradients[0], call.shown_axes[0])
            return rule(layer, given, gradient, precision_of(_kind(gradient), gradient.device))

        return of

    def _before(self, name: str) -> Callable[..., Any]:
        def hook(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if self._tape is None:
                return None
            if not given and rule_of(layer) is not None:
                given, named = tuple(named.values()), {}
            call = self._calls[name] = self._calls.get(name, -1) + 1
            each = tuple(self._each(value, (name, call, place)) for place, value in enumerate(given))
            more = {key: self._each(value, (name, call, key)) for key, value in named.items()}
            return (tuple(map(finite, each)) if has_finite_input(layer) else each), more

        return hook

    def _within(self, layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Lines that a table has: a record with a number beyond them must not end in an error."""
        if self._tape is None:
            return None
        return tuple(each.clamp(0, layer.num_embeddings - 1) for each in given)

    def _each(self, value: Any, key: Key) -> Any:
        """One line for each record, where a layer is given something that is the same for all of them."""
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            return value
        assert self._tape is not None
        records = self._tape.records
        if self._seen is not None:
            self._seen[key] = value.shape
            return value
        if self._layout.get(key, 0 if value.shape[0] == records else None) is not None:
            return value
        return value.expand(records, *(value.shape[1:] if value.shape[0] == 1 else value.shape))

    def _axes(self, name: str, parts: Iterable[int | str]) -> tuple[int, ...]:
        """Which axis is that of records; the first of what was the same for all of them."""
        return tuple(self._layout.get((name, self._calls[name], part)) or 0 for part in parts)

    def _after(self, name: str) -> Callable[..., Any]:
        def hook(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
            if self._tape is None:
                return None
            outs, tree = tree_flatten(out)
            shown = [at for at, each in enumerate(outs) if _has_gradient(each)]
            if not shown:
                raise InvalidParameter(f"{_told(layer, name)} gives nothing that has a gradient.")
            if self._seen is not None:
                self._seen |= {(name, self._calls[name], f"out {at}"): outs[at].shape for at in shown}
            axes = self._axes(name, [*range(len(given)), *named])
            kept = tuple(
                each.detach() if isinstance(each, torch.Tensor) else each
                for each in (*given, *named.values())
            )
            ends = self._axes(name, [f"out {at}" for at in shown])
            of = self._of(layer, Call(kept, tuple(named), axes, tuple(shown), ends))
            watched = self._tape.watch(
                name, tuple(outs[at] for at in shown), of, ends, bound=has_finite_gradient(layer)
            )
            for at, each in zip(shown, watched, strict=True):
                outs[at] = each
            return tree_unflatten(outs, tree)

        return hook

    @contextmanager
    def _recording(self, records: int) -> Iterator[Tape]:
        self._tape, self._calls = Tape(records, self._seen is None), dict[str, int]()
        trained = [each for each in self.model.parameters() if each.requires_grad]
        quick = torch.backends.mha.get_fastpath_enabled()
        with ExitStack() as stack:
            stack.callback(setattr, self, "_tape", None)
            stack.callback(torch.backends.mha.set_fastpath_enabled, quick)
            torch.backends.mha.set_fastpath_enabled(False)  # it would pass the layers inside by
            for name, layer in self._stand_ins:
                layer.forward = partial(STAND_INS[type(layer)], layer, name, self._tape)
                stack.callback(layer.__dict__.pop, "forward")
            for each in trained:
                stack.callback(each.requires_grad_, True)
                each.requires_grad_(False)
            with torch.enable_grad():
                yield self._tape


def _names(model: nn.Module) -> dict[str, str]:
    """From each name of a parameter to the first name of the same one: tied parameters have several."""
    first = dict[int, str]()
    return {
        name: first.setdefault(id(parameter), name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    }


def _kind(gradient: Tensor) -> torch.dtype:
    """The type that products of a gradient are made in: the short one, where layers compute in one."""
    device = gradient.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else gradient.dtype


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _told(layer: nn.Module, name: str) -> str:
    return f"The layer {name or 'itself'!r} ({type(layer).__name__})"


def refuse(layer: nn.Module, name: str) -> None:
    """Layers in which no record has a gradient of its own, each with what to put in its place."""
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        raise InvalidParameter(
            f"{_told(layer, name)} mixes the records of a batch, and none has a gradient of its own: "
            "put nn.GroupNorm or nn.LayerNorm in its place."
        )
    if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats:
        raise InvalidParameter(
            f"{_told(layer, name)} keeps statistics of records: track_running_stats=False."
        )
    if isinstance(layer, nn.Embedding) and (
        layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
    ):
        raise InvalidParameter(
            f"{_told(layer, name)} must have none of max_norm, scale_grad_by_freq and sparse."
        )
    if getattr(layer, "gradient_checkpointing", False):
        raise InvalidParameter(
            f"{_told(layer, name)} computes parts of a pass again in its backward pass, where they cannot be "
            "watched: turn gradient checkpointing off, and give a smaller physical batch."
        )
    if _redraws(layer):
        raise InvalidParameter(
            f"{_told(layer, name)} has parameters of its own beside layers with dropout: put the parameters "
            "into a module of their own, or set the dropout to 0."
        )


def _redraws(layer: nn.Module) -> bool:
    """Whether a layer is run a second time for its own parameters, and would toss other coins then."""
    own = any(parameter.requires_grad for parameter in layer.parameters(recurse=False))
    if not own or rule_of(layer) is not None or type(layer) in STAND_INS:
        return False
    return any(
        getattr(each, "p", 0) or getattr(each, "dropout", 0) for each in layer.modules() if _random(each)
    )


def _random(layer: nn.Module) -> bool:
    return isinstance(layer, nn.modules.dropout._DropoutNd | nn.MultiheadAttention | nn.RNNBase)
