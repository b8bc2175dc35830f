"""`Timed`: what models of survival share: a public grid of times, and a duration and a flag as the target."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sfumato.learn._core.declared import Declared
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.survival._grid import Grid, grid, target_names

__all__ = ["Timed"]


class Timed(PrivateEstimator):
    """A model of how long it takes until something happens, over cells of time that are declared."""

    times: Any
    horizon: Any
    bins: Any

    def _check(self) -> None:
        super()._check()
        self._grid()

    def _grid(self) -> Grid:
        return grid(self.times, self.horizon, self.bins)

    def _target_names(self, target: Any) -> tuple[str, ...]:
        return target_names(target)

    def _target_declared(self, names: tuple[str, ...]) -> tuple[Declared, ...]:
        return self._grid().declared(names, self._public)

    def _target_read(self, columns: list[NDArray[Any]]) -> NDArray[Any]:
        return self._grid().read(columns, flag=self._public[1].kind == "category")
