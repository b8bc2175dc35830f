"""Models that take their inputs by name and give them back by name, as those of `transformers` do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.checking import check_data, kind_of

__all__ = ["Named"]

Tensor: TypeAlias = torch.Tensor
_NO_LABEL = -100  # what `transformers` writes where there is no label


class Named(nn.Module):
    """A model of named inputs, as one that takes a single tensor: what `private` trains.

    ```python
    named = Named(model, {"input_ids": ids, "attention_mask": mask, "labels": labels})   # one made-up record
    run = private(named, optimizer, named.records(data), example=named.example, objective=next_token, …)
    ```

    Inputs are packed into one tensor, a line a record, and taken apart again before the model is called.

    Args:
        model: What is trained; it gives logits, or something that has them.
        example: One made-up record, by name: what a record holds, of which shape and type.
        labels: Which of it should come out.
    """

    def __init__(self, model: nn.Module, example: Mapping[str, Tensor], *, labels: str = "labels") -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise InvalidParameter(f"model must be a torch.nn.Module, not {kind_of(model)}.")
        if not isinstance(example, Mapping) or not all(map(_numbers, example.values())):
            raise InvalidParameter(
                "The example must be one made-up record: a dictionary of tensors, or of lists of numbers."
            )
        if labels not in example or len(example) < 2:
            raise InvalidParameter(f"The example must have {labels!r} and at least one input, as tensors.")
        self.model, self._labels = model, labels
        self._like = {name: torch.as_tensor(value) for name, value in example.items()}
        self._inputs = [name for name in self._like if name != labels]
        if len({self._like[name].dtype for name in self._inputs}) > 1:
            raise InvalidParameter("All inputs must be of one type, such as torch.int64.")
        _settle(model)
        self._quiet = {"use_cache": False} if _takes(model, "use_cache") else {}

    @property
    def example(self) -> tuple[Tensor, Tensor]:
        """The made-up record as inputs and labels."""
        return self._pair(self._like)

    def forward(self, packed: Tensor) -> Any:
        """What the model gives for inputs that were packed: logits, where it has them."""
        parts, start = dict[str, Tensor](), 0
        for name in self._inputs:
            like = self._like[name]
            parts[name] = packed[:, start : start + like.numel()].reshape(-1, *like.shape)
            start += like.numel()
        out = self.model(**parts, **self._quiet)
        return getattr(out, "logits", out)

    def records(self, data: Any) -> Any:
        """Private records for `private`: columns as tensors, or a data set that gives dictionaries by number.

        What a record has beside the example's names is left out. Shorter ones are filled up with 0, labels
        with −100, which count for nothing; longer ones are cut. Missing labels are the first input's.
        """
        if isinstance(data, Mapping) and all(isinstance(value, torch.Tensor) for value in data.values()):
            missing = [name for name in self._like if name not in data]
            if missing:
                raise InvalidParameter(f"The columns {missing} are missing.")
            inputs = [data[name].flatten(1).to(self._like[name].dtype) for name in self._inputs]
            return torch.cat(inputs, 1), data[self._labels]
        check_data(data, records="dictionaries")
        return _Pairs(self, data)

    def _pair(self, record: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        whole = {name: torch.as_tensor(record[name]) for name in self._inputs}
        labels = record.get(self._labels)
        whole[self._labels] = whole[self._inputs[0]] if labels is None else torch.as_tensor(labels)
        fitted = {name: self._fitted(name, value) for name, value in whole.items()}
        return torch.cat([fitted[name].flatten() for name in self._inputs]), fitted[self._labels]

    def _fitted(self, name: str, value: Tensor) -> Tensor:
        like = self._like[name]
        if value.dim() == 1 and like.dim() == 1:
            short = like.shape[0] - len(value)
            value = nn.functional.pad(value, (0, short), value=_NO_LABEL if name == self._labels else 0)
        return value.to(like.dtype).reshape(like.shape)


def _numbers(value: Any) -> bool:
    try:
        torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


class _Pairs:
    """A data set of dictionaries as one of pairs; what cannot be one raises, and counts as no record."""

    def __init__(self, named: Named, data: Any) -> None:
        self._named, self._data = named, data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        return self._named._pair(self._data[place])


def _settle(model: nn.Module) -> None:
    """Attention by one way for all: others choose it by whether any record of a batch is padded."""
    choose = getattr(model, "set_attn_implementation", None)
    if choose is not None and getattr(getattr(model, "config", None), "_attn_implementation", "") != "eager":
        choose("eager")


def _takes(model: nn.Module, name: str) -> bool:
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return name in inspect.signature(base.forward).parameters
