"""One pass through a model that keeps what the gradients of each record are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Form, merged
from sfumato.learn.torch.layers import RULES, Gradients, has_finite_gradient
from sfumato.learn.torch.precision import in_full, precision_of
from sfumato.learn.torch.unknown import gradients_of_unknown

__all__ = ["Recorder", "Use"]

Tensor: TypeAlias = torch.Tensor
Objective: TypeAlias = Callable[[Any, Tensor], Tensor]
_CLOSE = 1e-2


class Use(NamedTuple):
    """One use of a layer in a pass.

    Attributes:
        layer: Which.
        name: Where it is in the model.
        given: What went in.
        edge: Where in the graph the gradient of what came out is found.
    """

    layer: nn.Module
    name: str
    given: tuple[Tensor, ...]
    edge: Any


class Recorder:
    """Watches a model's layers while it records, and leaves them alone otherwise.

    Only layers with parameters that are trained are watched: what is frozen costs nothing.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._uses: list[Use] | None = None
        self._records = 0
        self._calls = dict[str, int]()
        self._seen: dict[tuple[str, int, int], int] | None = None
        self._layout = dict[tuple[str, int, int], int]()
        self.names = _names(model)
        self.trained = [name for name, each in model.named_parameters() if each.requires_grad]
        self._handles = list[Any]()
        for name, layer in model.named_modules():
            _refuse(layer, name)
            if isinstance(layer, nn.Embedding):
                self._handles.append(layer.register_forward_pre_hook(self._within))
            if any(parameter.requires_grad for parameter in layer.parameters(recurse=False)):
                self._handles.append(layer.register_forward_pre_hook(self._before(name)))
                self._handles.append(layer.register_forward_hook(self._after(name)))

    def gradients(self, given: Tensor, target: Tensor, objective: Objective) -> dict[str, Form]:
        """The gradients of each trained parameter, of each record, in the form in which they were found."""
        with self._recording(given.shape[0]) as uses:
            losses = objective(self.model(given), target)
            if losses.shape != (given.shape[0],):
                raise InvalidParameter(
                    "The objective must give one loss for each record: leave the mean to the step."
                )
            found = torch.autograd.grad(losses.sum(), [use.edge for use in uses], allow_unused=True)
        listed = dict[str, list[Form]]()
        with torch.no_grad():
            for use, gradient in zip(uses, found, strict=True):
                if gradient is not None:
                    for name, form in self._of(use, gradient).items():
                        listed.setdefault(self.names[f"{use.name}.{name}" if use.name else name], []).append(
                            form
                        )
            return {name: merged(listed[name]) for name in self.trained if name in listed}

    def remove(self) -> None:
        """Leaves the model as it was."""
        for handle in self._handles:
            handle.remove()

    def _of(self, use: Use, gradient: Tensor) -> Gradients:
        if gradient.shape[0] != self._records:  # several lines for each record
            each = [
                value for value in (*use.given, gradient) if isinstance(value, torch.Tensor) and value.dim()
            ]
            apart = {id(value): value.reshape(self._records, -1, *value.shape[1:]) for value in each}
            use = use._replace(given=tuple(apart.get(id(value), value) for value in use.given))
            gradient = apart[id(gradient)]
        precision = precision_of(gradient.dtype, gradient.device)
        rule = RULES.get(type(use.layer))
        if rule is None:
            return gradients_of_unknown(use.layer, use.given, gradient)
        return rule(use.layer, use.given[0], gradient, precision)

    def survey(self, example: tuple[Tensor, Tensor], objective: Objective) -> None:
        """Finds out, on made-up records, what of a layer's input belongs to which record.

        A layer may be given a line for each record, the same for all, or several lines for each. Which it is
        shows in how its input grows with the number of records, and not in its shape at one number.

        Raises:
            InvalidParameter: if gradients differ from those of each record by itself.
        """
        seen = list[dict[tuple[str, int, int], int]]()
        with _still(self.model), in_full():
            for records in (2, 3):
                self._seen, batch = dict[tuple[str, int, int], int](), _made_up(example, records)
                try:
                    with self._recording(records):
                        self.model(batch[0])
                finally:
                    seen, self._seen = [*seen, self._seen], None
            self._layout = {key: _lines(key[0], seen[0].get(key), lines) for key, lines in seen[1].items()}
            found = self.gradients(*batch, objective)
            _compare(self.model, found, batch, objective)

    def _before(self, name: str) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...] | None]:
        def hook(layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if self._uses is None:
                return None
            if not given:
                raise InvalidParameter(f"{_told(layer, name)} must be given its input by place, not by name.")
            call = self._calls[name] = self._calls.get(name, -1) + 1
            each = tuple(self._each(value, (name, call, place)) for place, value in enumerate(given))
            return tuple(map(_finite, each)) if isinstance(layer, nn.Linear) else each

        return hook

    def _within(self, layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Lines that a table has: a record with a number beyond them must not end in an error."""
        if self._uses is None:
            return None
        return tuple(each.clamp(0, layer.num_embeddings - 1) for each in given)

    def _each(self, value: Any, key: tuple[str, int, int]) -> Any:
        """One line for each record, where a layer is given something that is the same for all of them."""
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            return value
        if self._seen is not None:
            self._seen[key] = value.shape[0]
            return value
        if self._layout.get(key, int(value.shape[0] == self._records)):
            return value
        return value.expand(self._records, *(value.shape[1:] if value.shape[0] == 1 else value.shape))

    def _after(self, name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], Any]:
        def hook(layer: nn.Module, given: tuple[Any, ...], out: Any) -> Any:
            if self._uses is None:
                return None
            if not isinstance(out, torch.Tensor):
                raise InvalidParameter(f"{_told(layer, name)} gives something that is no tensor.")
            shown = out
            if not out.requires_grad:
                out = out.detach().requires_grad_()
                shown = out.clone()  # a leaf must not be changed in place
            if has_finite_gradient(layer):
                out.register_hook(torch.nan_to_num)
            edge = torch.autograd.graph.get_gradient_edge(out)
            kept = tuple(each.detach() if isinstance(each, torch.Tensor) else each for each in given)
            self._uses.append(Use(layer, name, kept, edge))
            return shown

        return hook

    @contextmanager
    def _recording(self, records: int) -> Iterator[list[Use]]:
        self._uses, self._records, self._calls = list[Use](), records, dict[str, int]()
        trained = [each for each in self.model.parameters() if each.requires_grad]
        for each in trained:
            each.requires_grad_(False)
        try:
            with torch.enable_grad():
                yield self._uses
        finally:
            self._uses = None
            for each in trained:
                each.requires_grad_(True)


def _finite(value: Any) -> Any:
    return _Finite.apply(value) if isinstance(value, torch.Tensor) else value


class _Finite(torch.autograd.Function):
    """Values that are finite: 0 for what is no number, the largest for what is infinite."""

    @staticmethod
    def forward(_: Any, value: Tensor) -> Tensor:
        return torch.nan_to_num(value)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return gradient


@contextmanager
def _still(model: nn.Module) -> Iterator[None]:
    """A model in which nothing is left to chance."""
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training


def _made_up(example: tuple[Tensor, Tensor], records: int) -> tuple[Tensor, Tensor]:
    """Records that nobody has: numbers between 0 and 1, whole ones 0 or 1."""
    several = [each[None].expand(records, *each.shape) for each in example]
    places = [torch.arange(each.numel(), device=each.device).reshape(each.shape) for each in several]
    return tuple(
        ((place * 0.6180339887) % 1).to(each.dtype)
        if each.is_floating_point()
        else ((place * 5) % 7 % 2).to(each.dtype)
        for each, place in zip(several, places, strict=True)
    )


def _lines(name: str, two: int | None, three: int) -> int:
    """How many lines of an input each record has, by those of two records and of three; 0: shared."""
    if two == three:
        return 0
    if two is not None and three % 3 == 0 and two * 3 == three * 2:
        return three // 3
    raise InvalidParameter(
        f"The layer {name!r} is given something of a size that does not follow from the number of records."
    )


def _compare(
    model: nn.Module, found: Mapping[str, Form], batch: tuple[Tensor, Tensor], objective: Objective
) -> None:
    """Refuses gradients that are not those of each record by itself."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    records = len(batch[0])
    sums = dict[str, list[Tensor]]()
    for record in range(records):
        with torch.enable_grad():
            loss = objective(model(batch[0][record : record + 1]), batch[1][record : record + 1]).sum()
        alone = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
        for name, value in zip(trained, alone, strict=True):
            sums.setdefault(name, []).append(torch.zeros_like(trained[name]) if value is None else value)
    weights = torch.arange(1, records + 1, device=batch[0].device).double()
    largest = max(float(value.abs().max()) for values in sums.values() for value in values)
    for name, values in sums.items():
        wanted = sum(weight * value.double() for weight, value in zip(weights, values, strict=True))
        got = found[name].summed(weights) if name in found else torch.zeros_like(wanted)
        if float((got - wanted).abs().max()) > _CLOSE * (largest + 1e-30):
            raise InvalidParameter(
                f"The gradients of {name!r} in a batch are not those of each record by itself: some layer "
                "mixes records, or is given them in an order of its own."
            )


def _names(model: nn.Module) -> dict[str, str]:
    """From each name of a parameter to the first name of the same one: tied parameters have several."""
    first = dict[int, str]()
    return {
        name: first.setdefault(id(parameter), name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    }


def _told(layer: nn.Module, name: str) -> str:
    return f"The layer {name or 'itself'!r} ({type(layer).__name__})"


def _refuse(layer: nn.Module, name: str) -> None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        raise InvalidParameter(
            f"{_told(layer, name)} mixes the records of a batch, and none has a gradient of its own: "
            "put nn.GroupNorm or nn.LayerNorm in its place."
        )
    if isinstance(layer, nn.Embedding) and (
        layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
    ):
        raise InvalidParameter(
            f"{_told(layer, name)} must have none of max_norm, scale_grad_by_freq and sparse."
        )
