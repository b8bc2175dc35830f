"""From one use of a layer to the gradients of its parameters, of each record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from sfumato.learn.torch.forms import Form, Looked, Outer, Stored
from sfumato.learn.torch.precision import Precision
from sfumato.learn.torch.tape import bounded

__all__ = ["RULES", "Gradients", "Rule", "has_finite_gradient", "has_finite_input", "rule_of"]

Tensor: TypeAlias = torch.Tensor
Gradients: TypeAlias = dict[str, Form]
Rule: TypeAlias = Callable[[Any, Tensor, Tensor, Precision], Gradients]


def _places(value: Tensor) -> Tensor:
    """Records, places, width; all between records and width are places."""
    return value.reshape(value.shape[0], -1, value.shape[-1])


def has_finite_gradient(layer: nn.Module) -> bool:
    """Whether the gradient of what comes out is made finite: where the input is the side to be scaled."""
    if isinstance(layer, nn.Linear):
        return bool(layer.out_features > layer.in_features)
    return _full_name(layer) == _TURNED


def has_finite_input(layer: nn.Module) -> bool:
    """Whether the input is made finite: where it multiplies what another record must not reach."""
    return isinstance(layer, nn.Linear) or _full_name(layer) == _TURNED


def rule_of(layer: nn.Module) -> Rule | None:
    """How the gradients of a layer's parameters are found, where that is known."""
    found = RULES.get(type(layer))
    return _turned if found is None and _full_name(layer) == _TURNED else found


_TURNED = "transformers.pytorch_utils.Conv1D"


def _full_name(layer: nn.Module) -> str:
    return f"{type(layer).__module__}.{type(layer).__qualname__}"


def _linear(layer: nn.Linear, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    left, right = _places(gradient), _places(given)
    found: Gradients = {
        "weight": Outer(left, right, layer.weight.shape, precision, has_finite_gradient(layer))
    }
    if layer.bias is not None:
        found["bias"] = Stored(left.sum(1, dtype=precision.stored))
    return found


def _turned(layer: Any, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    """A product whose weight has inputs first, as GPT-2's have: both sides are finite."""
    left, right = _places(given), _places(gradient)
    return {
        "weight": Outer(left, right, layer.weight.shape, precision, finite=True),
        "bias": Stored(right.sum(1, dtype=precision.stored)),
    }


def _convolution(layer: Any, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    left = gradient.flatten(2)  # records, outputs, places
    right = bounded(_patches(layer, given.to(gradient.dtype)))  # records, places, kernel, inputs
    groups, found, kernel = layer.groups, dict[str, Form](), tuple(layer.kernel_size)
    last = len(kernel) + 1
    order = (0, last, *range(1, last))
    if groups == 1:
        shape = torch.Size((layer.out_channels, *kernel, layer.in_channels))
        found["weight"] = Outer(left.transpose(1, 2), right.flatten(2), shape, precision, order=order)
    else:
        records, places = left.shape[0], left.shape[2]
        apart = right.unflatten(3, (groups, -1)).permute(0, 3, 1, 2, 4).reshape(records * groups, places, -1)
        parts = left.reshape(records * groups, -1, places)
        made = torch.bmm(parts.to(precision.inside), apart.to(precision.inside))
        shape = (records, layer.out_channels, *kernel, layer.in_channels // groups)
        found["weight"] = Stored(made.view(shape), order)
    if layer.bias is not None:
        found["bias"] = Stored(left.sum(2, dtype=precision.stored))
    return found


def _patches(layer: Any, given: Tensor) -> Tensor:
    """What each place of the output sees of the input: records, places, kernel, inputs."""
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    seen = F.pad(given, _padding(layer), mode)
    for at, (size, step, hole) in enumerate(
        zip(layer.kernel_size, layer.stride, layer.dilation, strict=True)
    ):
        seen = seen.unfold(2 + at, (size - 1) * hole + 1, step)[..., ::hole]
    many = len(layer.kernel_size)  # records, inputs, places …, kernel …
    order = (0, *range(2, 2 + 2 * many), 1)
    return seen.permute(order).flatten(1 + many, 2 * many).flatten(1, many)


def _padding(layer: Any) -> list[int]:
    ends = list[int]()
    for at in reversed(range(len(layer.kernel_size))):
        if layer.padding == "same":
            whole = layer.dilation[at] * (layer.kernel_size[at] - 1)
            ends += [whole // 2, whole - whole // 2]
        else:
            ends += [0, 0] if layer.padding == "valid" else [layer.padding[at]] * 2
    return ends


def _embedding(layer: nn.Embedding, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    lines = given.reshape(given.shape[0], -1)
    left = gradient.reshape(*lines.shape, gradient.shape[-1])
    if layer.padding_idx is not None:
        left = torch.where((lines == layer.padding_idx)[:, :, None], 0, left)
    return {"weight": Looked(left, lines, layer.weight.shape, precision)}


def _scaled_by(
    layer: Any, normal: Tensor, gradient: Tensor, keep: tuple[int, ...], wide: torch.dtype
) -> Gradients:
    """Of a weight that multiplies what was made normal, and of a bias; summed over all other axes."""
    over = tuple(axis for axis in range(1, gradient.dim()) if axis not in keep)
    product = gradient.to(wide) * normal
    found: Gradients = {"weight": Stored(product.sum(over) if over else product)}
    if getattr(layer, "bias", None) is not None:
        found["bias"] = Stored(gradient.sum(over, dtype=wide) if over else gradient.to(wide))
    return found


def _layer_norm(layer: nn.LayerNorm, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    normal = F.layer_norm(given.to(precision.stored), layer.normalized_shape, None, None, layer.eps)
    keep = tuple(range(given.dim() - len(layer.normalized_shape), given.dim()))
    return _scaled_by(layer, normal, gradient, keep, precision.stored)


def _rms_norm(layer: nn.RMSNorm, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    eps = torch.finfo(given.dtype).eps if layer.eps is None else layer.eps
    normal = F.rms_norm(given.to(precision.stored), layer.normalized_shape, None, eps)
    keep = tuple(range(given.dim() - len(layer.normalized_shape), given.dim()))
    return _scaled_by(layer, normal, gradient, keep, precision.stored)


def _group_norm(layer: nn.GroupNorm, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    normal = F.group_norm(given.to(precision.stored), layer.num_groups, None, None, layer.eps)
    return _scaled_by(layer, normal, gradient, (1,), precision.stored)


def _instance_norm(layer: Any, given: Tensor, gradient: Tensor, precision: Precision) -> Gradients:
    normal = F.instance_norm(given.to(precision.stored), eps=layer.eps)
    return _scaled_by(layer, normal, gradient, (1,), precision.stored)


RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.Embedding: _embedding,
    nn.LayerNorm: _layer_norm,
    nn.RMSNorm: _rms_norm,
    nn.GroupNorm: _group_norm,
    nn.InstanceNorm1d: _instance_norm,
    nn.InstanceNorm2d: _instance_norm,
    nn.InstanceNorm3d: _instance_norm,
    NonDynamicallyQuantizableLinear: _linear,
}
"""What is known of layers, by their exact type: a subclass may compute something else."""
