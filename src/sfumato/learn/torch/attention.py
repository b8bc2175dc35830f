"""`nn.MultiheadAttention` in pieces that are watched: its projections are products like any other."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Form, Outer, Stored
from sfumato.learn.torch.precision import precision_of
from sfumato.learn.torch.stacked import Stacked
from sfumato.learn.torch.tape import Gradients, Tape, finite

__all__ = ["attend"]

Tensor: TypeAlias = torch.Tensor


def attend(
    layer: nn.MultiheadAttention,
    name: str,
    tape: Tape,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What the layer gives, by the same formulas; the mask says what is seen, `is_causal` is a hint only."""
    _check(name, query, attn_mask, is_causal)
    if is_causal and (layer.bias_k is not None or layer.add_zero_attn):
        raise InvalidParameter(
            f"The layer {name!r} (MultiheadAttention) is given is_causal, with which PyTorch hides the keys "
            "of add_bias_kv and add_zero_attn: leave the hint out, attn_mask is enough."
        )
    given = [query, *([] if key is query else [key]), *([] if value is key else [value])]
    seats = (0, int(key is not query), len(given) - 1)
    if not layer.batch_first:
        given = [each.transpose(0, 1) for each in given]
    q, k, v = _projected(layer, name, tape, [finite(each) for each in given], seats)
    k, v = _lengthened(layer, name, tape, k, v)
    records, places, width = q.shape
    q, k, v = (each.view(records, -1, layer.num_heads, layer.head_dim).transpose(1, 2) for each in (q, k, v))
    mask = _mask(layer, attn_mask, key_padding_mask, q, k.shape[2])
    chance = layer.dropout if layer.training else 0.0
    weights = None
    if need_weights:
        scores = q @ k.transpose(2, 3) / math.sqrt(layer.head_dim)
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
        weights = F.dropout(weights, chance) if chance else weights
        mixed = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, mask, chance)
    out = layer.out_proj(mixed.transpose(1, 2).reshape(records, places, width))
    return (out if layer.batch_first else out.transpose(0, 1)), weights


def _check(name: str, query: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    if query.dim() != 3:
        raise InvalidParameter(f"The layer {name!r} (MultiheadAttention) must be given a batch: three axes.")
    if is_causal and attn_mask is None:
        raise InvalidParameter(
            f"The layer {name!r} (MultiheadAttention) needs attn_mask beside is_causal, which is a hint."
        )


def _projected(
    layer: nn.MultiheadAttention, name: str, tape: Tape, given: list[Tensor], seats: tuple[int, int, int]
) -> list[Tensor]:
    """Queries, keys and values; a record's gradients are those of three products, one below the other."""
    biases = (None,) * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    packed = layer.in_proj_weight is not None
    sources = [given[seat].detach() for seat in seats]
    if packed and len(given) == 1:
        whole = F.linear(given[0], layer.in_proj_weight, layer.in_proj_bias)

        def of_whole(gradient: Tensor) -> Gradients:
            weight, bias = _of_product(gradient, sources[0], tape.records)
            return {"in_proj_weight": weight, "in_proj_bias": bias}

        return list(tape.watch(name, (whole,), of_whole)[0].chunk(3, -1))
    weights = (
        layer.in_proj_weight.chunk(3)
        if packed
        else (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    )
    outs = tuple(
        F.linear(given[seat], weight, bias) for seat, weight, bias in zip(seats, weights, biases, strict=True)
    )

    def of(*gradients: Tensor) -> Gradients:
        parts = [
            _of_product(gradient, source, tape.records)
            for gradient, source in zip(gradients, sources, strict=True)
        ]
        found: Gradients = {"in_proj_bias": Stacked(tuple(bias for _, bias in parts))}
        if packed:
            return found | {"in_proj_weight": Stacked(tuple(weight for weight, _ in parts))}
        each: Gradients = {f"{which}_proj_weight": parts[at][0] for at, which in enumerate("qkv")}
        return found | each

    return list(tape.watch(name, outs, of))


def _of_product(gradient: Tensor, source: Tensor, records: int) -> tuple[Form, Form]:
    precision = precision_of(gradient.dtype, gradient.device)
    left = gradient.reshape(records, -1, gradient.shape[-1])
    right = source.reshape(records, -1, source.shape[-1])
    shape = torch.Size((left.shape[2], right.shape[2]))
    return Outer(left, right, shape, precision), Stored(left.sum(1, dtype=precision.stored))


def _lengthened(
    layer: nn.MultiheadAttention, name: str, tape: Tape, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """Keys and values with those that are the same for all records: learned, or zero."""
    if layer.bias_k is not None and layer.bias_v is not None:
        each = tuple(bias.expand(k.shape[0], -1, -1) for bias in (layer.bias_k, layer.bias_v))

        def of(*gradients: Tensor) -> Gradients:
            return {
                which: Stored(gradient.reshape(tape.records, -1, 1, 1, gradient.shape[-1]).sum(1))
                for which, gradient in zip(("bias_k", "bias_v"), gradients, strict=True)
            }

        more = tape.watch(name, each, of)
        k, v = (torch.cat([own, extra.to(own.dtype)], 1) for own, extra in zip((k, v), more, strict=True))
    if layer.add_zero_attn:
        k, v = (F.pad(each, (0, 0, 0, 1)) for each in (k, v))
    return k, v


def _mask(
    layer: nn.MultiheadAttention, seen: Tensor | None, padding: Tensor | None, q: Tensor, keys: int
) -> Tensor | None:
    """Both masks as one that is added to scores; what was put behind the keys is seen by all."""
    found: list[Any] = []
    if seen is not None:
        seen = _added(seen, q)
        found.append(seen if seen.dim() == 2 else seen.view(q.shape[0], layer.num_heads, *seen.shape[1:]))
    if padding is not None:
        found.append(_added(padding, q)[:, None, None])
    if not found:
        return None
    mask: Tensor = found[0] if len(found) == 1 else found[0] + found[1]
    return F.pad(mask, (0, keys - mask.shape[-1]))


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)
    return mask.to(like.dtype)
