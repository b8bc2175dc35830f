"""Units that are users: the records of one are a single line of a batch, with one gradient, cut once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.coins import Coins
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.forms import Form, Looked, Outer, Stored, Tied
from sfumato.learn.torch.records import Records, sent
from sfumato.learn.torch.stacked import Stacked
from sfumato.numeric.exact import as_integer
from sfumato.numeric.private_ids import ids_of

__all__ = ["OfUsers", "Users", "together"]

Tensor: TypeAlias = torch.Tensor
Integers: TypeAlias = NDArray[np.int64]
_UNEVEN = "users must have one id for each record."


class Users(Records):
    """Users as lines of a batch: of each, so many of its records.

    Args:
        data: The records, as in `Records`.
        example: Likewise.
        users: Whose each record is: ids in the order of the records, or a function from a record's number to
            its id. Ids are whole numbers or text. A record without one is nobody's, and left out.
        each: How many records of a user a step sees. One that has more is seen by some of them, which are
            chosen anew in each step; one that has fewer, by the same ones several times.

    Privacy:
        Claim: what a line holds follows from one user's records and from chance. Whether somebody has records
        shows in its own line and in no other. Nothing is read before a step asks how many users there are,
        and no id makes an error: ids are compared two by two (`numeric.private_ids`), and one that cannot be
        found counts as none. Condition: all records of a user have the same id.
    """

    def __init__(self, data: Any, example: tuple[Tensor, Tensor] | None, users: Any, each: int) -> None:
        super().__init__(data, example)
        self.each, self._users = as_integer(each, "records_each"), users
        if not callable(users):
            if not hasattr(users, "__len__") or isinstance(users, str) or getattr(users, "ndim", 1) != 1:
                raise InvalidParameter("users must be a sequence of ids, or a function from a record to one.")
            if len(users) != super().__len__():
                raise InvalidParameter(_UNEVEN)
        self._found: list[Integers] | None = None

    def __len__(self) -> int:
        """How many users there are: private, and never shown."""
        return len(self._records_of())

    def _records_of(self) -> list[Integers]:
        if self._found is None:
            codes = ids_of(self._ids(), rows=super().__len__(), uneven=_UNEVEN).codes
            order = np.argsort(codes, kind="stable")
            ends = np.flatnonzero(np.diff(codes[order])) + 1
            parts = np.split(order, ends) if len(order) else []
            self._found = [part for part in parts if codes[part[0]] >= 0]
        return self._found

    def _ids(self) -> Any:
        if callable(self._users):
            with Coins(torch.device("cpu")):  # how many were tossed is not to be seen
                return [_id(self._users, place) for place in range(super().__len__())]
        return self._users.cpu().numpy() if isinstance(self._users, torch.Tensor) else self._users

    def _chosen(self, user: int) -> Integers:
        own = self._records_of()[user]
        return own[random.permutation(len(own))[: self.each]]

    def _filled(self, part: Integers, size: int, mask: Tensor) -> tuple[Tensor, Tensor]:
        empty = tuple(value.expand(self.each, *value.shape) for value in self.example)
        if self._pair is not None:
            if not len(part):
                return tuple(value.expand(size, *value.shape) for value in empty)
            lines = np.stack([np.resize(self._chosen(int(user)), self.each) for user in part])
            places = torch.from_numpy(np.resize(lines, (size, self.each)))
            return tuple(value[sent(places, value.device)] for value in self._pair)
        filled = list[Sequence[Tensor]]()
        for place in range(size):
            pairs = self._read(int(part[place])) if place < len(part) else []
            if not pairs:
                mask[place] = 0
            filled.append([torch.stack(side) for side in zip(*pairs, strict=True)] if pairs else empty)
        return tuple(torch.stack(side) for side in zip(*filled, strict=True))

    def _read(self, user: int) -> list[Sequence[Tensor]]:
        """As many as a line has, of those that can be read."""
        read = [pair for pair in map(self._one, self._chosen(user).tolist()) if pair is not None]
        return [read[place % len(read)] for place in range(self.each)] if read else []


def _id(users: Callable[[int], Any], place: int) -> Any:
    try:
        return users(place)
    except Exception:  # no row decides an error
        return None


class OfUsers(Engine):
    """Sums of cut gradients where a line of a batch is a user: lines, records of each, what a record holds.

    Privacy:
        Claim: that of `clipping.clipped`, for users: one of them moves the sums by at most the clip, however
        many records it has. Proof: a user's gradient is that of the mean loss of its records, as one value of
        each form (`together`), and it is that value which is measured, cut and summed.
    """

    def forms(self, given: Tensor, target: Tensor) -> dict[str, Form]:
        """The gradients of each user."""
        users, each = given.shape[:2]
        found = self.recorder.gradients(
            given.flatten(0, 1), target.flatten(0, 1), lambda out, wanted: self.objective(out, wanted) / each
        )
        return {name: together(form, users) for name, form in found.items()}

    def _lost(self, given: Tensor, target: Tensor) -> tuple[Tensor, Any]:
        losses, _ = super()._lost(given.flatten(0, 1), target.flatten(0, 1))
        return losses.reshape(given.shape[0], -1), None


def together(form: Form, users: int) -> Form:
    """The gradients of users, from those of as many records of each, one user after the other.

    Places of all records of a user are places of that user; what is stored is added up, and stored again.
    """
    if isinstance(form, Stored):
        return replace(form, made=_apart(form.made, users).sum(1))
    if isinstance(form, Outer):
        return replace(form, left=_joined(form.left, users), right=_joined(form.right, users))
    if isinstance(form, Looked):
        return replace(form, left=_joined(form.left, users), lines=_joined(form.lines, users))
    if isinstance(form, Tied):
        looked, outer = together(form.looked, users), together(form.outer, users)
        assert isinstance(looked, Looked)
        assert isinstance(outer, Outer)
        return Tied(looked, outer)
    if isinstance(form, Stacked):
        return Stacked(tuple(together(part, users) for part in form.parts))
    raise AssertionError("a form that users have not")


def _apart(value: Tensor, users: int) -> Tensor:
    return value.reshape(users, -1, *value.shape[1:])


def _joined(value: Tensor, users: int) -> Tensor:
    return _apart(value, users).flatten(1, 2)
