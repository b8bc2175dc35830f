"""One pass through a model that keeps what the gradients of each record are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.learn.torch.apart import check_apart
from sfumato.learn.torch.attention import attend
from sfumato.learn.torch.forgetting import forgetting, modes_of
from sfumato.learn.torch.forms import Form
from sfumato.learn.torch.layers import has_finite_gradient, has_finite_input, rule_of
from sfumato.learn.torch.lines import Followed, Key, Layout
from sfumato.learn.torch.precision import in_full, precision_of
from sfumato.learn.torch.recurrent import recur, recur_once
from sfumato.learn.torch.stacked import of_all_uses
from sfumato.learn.torch.surveying import compare, made_up, others, still, unmoved
from sfumato.learn.torch.tape import Gradients, Tape, finite
from sfumato.learn.torch.unknown import Call, gradients_of_unknown

__all__ = ["Objective", "Recorder"]

Tensor: TypeAlias = torch.Tensor
Objective: TypeAlias = Callable[[Any, Tensor], Tensor]

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

    Attributes:
        modes: In which modes of the model it records (`forgetting.modes_of`), once it was surveyed.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._tape: Tape | None = None
        self._calls = dict[str, int]()
        self.modes: tuple[bool | str, ...] | None = None
        self._layouts = dict[tuple[bool | str, ...], Layout]()
        self._layout: Layout | None = None  # of the present modes
        self._calm: Layout | None = None  # with nothing left to chance
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

    def forget(self) -> None:
        """Takes nothing that was found out before for granted."""
        self._layouts.clear()
        self._calm = None

    def survey(self, example: tuple[Tensor, Tensor], objective: Objective, own: Any = None) -> None:
        """Finds out, on made-up records, what of a layer's input belongs to which record.

        A layer may be given a line for each record, the same for all, or several lines for each. Which it is
        shows in how its input grows with the number of records, and not in its shape at one number. In modes
        that were surveyed before nothing is done again.

        Args:
            example: What a record is like.
            objective: A loss for each record.
            own: The same as its user gave it, who may have let it keep something.

        Raises:
            InvalidParameter: if gradients differ from those of each record by itself, or the model keeps
                what cannot be put back.
        """
        modes, before = modes_of(self.model), self._layout
        if modes not in self._layouts:
            for name, layer in self.model.named_modules():
                refuse(layer, name)
            try:
                with unmoved(self.model, own):
                    self._layouts[modes] = self._surveyed(example, objective)
            finally:
                self._layout = before
        self.modes, self._layout = modes, self._layouts[modes]

    def _surveyed(self, example: tuple[Tensor, Tensor], objective: Objective) -> Layout:
        batch, several = made_up(example, 3), others(self.model, example, 3)
        if self._calm is None:
            with forgetting(self.model), still(self.model), in_full(batch[0].device):
                calm = self._layout = self._laid(example)
                taken = self._try(several)
                taken = [batch, taken[0], *(each for each in taken[1:] if self._takes(*each))]
                compare(self.model, partial(self.gradients, objective=objective), taken, objective)
            self._calm = calm
        self._layout = self._laid(example, self._calm)
        self._try(several)
        check_apart(self.model, batch, partial(self._losses, objective), thorough=True)
        return self._layout

    def _laid(self, example: tuple[Tensor, Tensor], known: Layout | None = None) -> Layout:
        """Where records are in each part of the layers, in the present modes."""
        shapes = list[dict[Key, torch.Size]]()
        for records in (2, 3):
            given, _ = made_up(example, records)
            torch.manual_seed(0)
            with (
                forgetting(self.model),
                Followed(given) as followed,
                self._recording(records, followed) as tape,
            ):
                self.model(given)
            shapes.append(tape.shapes)
        return Layout(shapes[0], shapes[1], known)

    def _try(self, batches: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """Those that the model takes; it is refused if it gives a layer more lines of them, or fewer.

        The first are like those of every survey; what a model makes of the others is its own affair.
        """
        taken = list[tuple[Tensor, Tensor]]()
        for place, (given, target) in enumerate(batches):
            with forgetting(self.model), self._recording(len(given)):
                try:
                    self.model(given)
                except SfumatoError:
                    raise
                except Exception:
                    if not place:
                        raise
                    continue
            taken.append((given, target))
        return taken

    def _takes(self, given: Tensor, _: Tensor) -> bool:
        """Whether an ordinary pass takes records: numbers beyond a table are not put right there."""
        try:
            with forgetting(self.model):
                self.model(given)
        except Exception:
            return False
        return True

    @contextmanager
    def calm(self) -> Iterator[None]:
        """As a model is looked at in which nothing is left to chance (`surveying.still`)."""
        before, self._layout = self._layout, self._calm
        try:
            yield
        finally:
            self._layout = before

    def check_gradients(self, example: tuple[Tensor, Tensor], objective: Objective) -> None:
        """Refuses a model in whose present modes the gradient of a record hangs on another one.

        Raises:
            InvalidParameter: then, or if there are no gradients of each record.
        """
        check_apart(self.model, made_up(example, 3), partial(self._learned, objective))

    def _losses(self, objective: Objective, given: Tensor, target: Tensor) -> Callable[[int], list[Tensor]]:
        with self._recording(len(given)):
            losses = objective(self.model(given), target).detach().double()
        return lambda place: [losses[torch.arange(len(losses), device=losses.device) != place]]

    def _learned(self, objective: Objective, given: Tensor, target: Tensor) -> Callable[[int], list[Tensor]]:
        forms = self.gradients(given, target, objective)
        weights = torch.arange(1, len(given) + 1, device=given.device).double()
        none = {name: torch.zeros_like(each) for name, each in self.model.named_parameters()}
        return lambda place: [
            forms[name].summed(weights * (weights != place + 1)) if name in forms else none[name]
            for name in self.trained
        ]

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
        if self._tape.given(key, value) is not None:
            return value
        return value.expand(self._tape.records, *(value.shape[1:] if value.shape[0] == 1 else value.shape))

    def _axes(self, name: str, parts: dict[int | str, Any]) -> tuple[int, ...]:
        """Which axis of what went in is that of records; the first of what was the same for all of them."""
        assert self._tape is not None
        return tuple(
            self._tape.axis((name, self._calls[name], part))
            if isinstance(value, torch.Tensor) and value.dim()
            else 0
            for part, value in parts.items()
        )

    def _after(self, name: str) -> Callable[..., Any]:
        def hook(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
            if self._tape is None:
                return None
            outs, tree = tree_flatten(out)
            shown = [at for at, each in enumerate(outs) if _has_gradient(each)]
            if not shown:
                raise InvalidParameter(f"{_told(layer, name)} gives nothing that has a gradient.")
            parts_in: dict[int | str, Any] = dict(enumerate(given))
            parts_in.update(named.items())
            axes = self._axes(name, parts_in)
            kept = tuple(
                each.detach() if isinstance(each, torch.Tensor) else each
                for each in (*given, *named.values())
            )
            parts = tuple(outs[at] for at in shown)
            ends = self._tape.ends(name, parts)
            of = self._of(layer, Call(kept, tuple(named), axes, tuple(shown), ends))
            watched = self._tape.watch(
                name, parts, of, ends=ends, bound=has_finite_gradient(layer), apart=rule_of(layer) is None
            )
            for at, each in zip(shown, watched, strict=True):
                outs[at] = each
            return tree_unflatten(outs, tree)

        return hook

    @contextmanager
    def _recording(self, records: int, followed: Followed | None = None) -> Iterator[Tape]:
        self._tape, self._calls = Tape(records, self._layout, followed), dict[str, int]()
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
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        _refuse_table(layer, name)
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


def _refuse_table(layer: nn.Embedding | nn.EmbeddingBag, name: str) -> None:
    """One that shortens its own lines by who asks for them, frozen or not, or weighs one by all that do."""
    trained = layer.weight.requires_grad and (layer.scale_grad_by_freq or layer.sparse)
    if layer.max_norm is not None or trained:
        raise InvalidParameter(
            f"{_told(layer, name)} must have none of max_norm, scale_grad_by_freq and sparse."
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
