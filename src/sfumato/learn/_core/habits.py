"""What scikit-learn does with all its estimators: copies, pictures, pickles, and what is refused."""

from __future__ import annotations

import inspect
import reprlib
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from sklearn.base import _clone_parametrized

from sfumato.errors import UnknownName

__all__ = ["FittedAgain", "Habits", "Refused", "names_there"]


class FittedAgain(UserWarning):
    """Copies of one model were fitted several times, as searches of scikit-learn do: each costs epsilon."""


class Refused:
    """A method that there is not, for a reason: to ask for it raises, so that `hasattr` says no."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __get__(self, model: Any, kind: type | None = None) -> NoReturn:
        raise UnknownName(self._reason)


def names_there(model: Any) -> list[str]:
    """What `dir` lists: as in scikit-learn, but no property is asked, since one may refuse."""
    return [
        name
        for name in object.__dir__(model)
        if isinstance(inspect.getattr_static(type(model), name, None), property) or hasattr(model, name)
    ]


class _Lineage:
    """What copies of one model have in common."""

    def __init__(self) -> None:
        self.copies, self.fits = 0, 0


class Habits:
    """What every model has of scikit-learn's habits, beside what `BaseEstimator` does."""

    epsilon: Any
    _lineage: _Lineage | None = None
    _copy: int = 0  # the how manieth copy it is; 0: it is none

    def __sklearn_clone__(self) -> Any:
        """An unfitted copy, as `sklearn.base.clone` makes them; fits of copies are counted together."""
        if self._lineage is None:
            self._lineage = _Lineage()
        copy = _clone_parametrized(self)
        self._lineage.copies += 1
        copy._lineage, copy._copy = self._lineage, self._lineage.copies
        return copy

    def _count_fit(self) -> None:
        """Counts one more fit on arrays, and warns if copies of one model are fitted again and again."""
        if self._lineage is not None:
            self._lineage.fits += 1
        elif not self._copy:
            self._lineage = _Lineage()
            self._lineage.fits = 1
        # In another process nobody counts fits: then it is as many as copies were made before this one.
        times = self._copy if self._lineage is None else self._lineage.fits
        if self._copy and times > 1:
            warnings.warn(
                f"Copies of one {type(self).__name__} were fitted {times} times: on the same rows that costs "
                f"epsilon={self.epsilon} {times} times over, and scores on held-out rows are not private at "
                "all. This is what scikit-learn's searches and cross-validation do; use those of "
                "sfumato.learn, or public data.",
                FittedAgain,
                stacklevel=3,
            )

    def __dir__(self) -> list[str]:
        """The names that there are, also of a model that has no price yet."""
        return names_there(self)

    def __getstate__(self) -> Any:
        """What a pickle holds: parameters, what was released, its price and receipt; no key and no rows."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_lineage"}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters that differ from their defaults; short, however many columns there are."""
        defaults = inspect.signature(type(self).__init__).parameters
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        shown = [
            f"{name}={_short(value)}"
            for name, value in ((name, given[name]) for name in defaults if name in given)
            if not _same(value, defaults[name].default)
        ]
        text = f"{type(self).__name__}({', '.join(shown)})"
        return text if len(text) <= N_CHAR_MAX else f"{text[: N_CHAR_MAX - 2]}…)"


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        type(value) is type(default) and not np.ndim(value) and bool(value == default)
    )


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and len(value) > 3:
        first = ", ".join(f"{name!r}: {_short(value[name])}" for name in list(value)[:2])
        return f"{{{first}, … {len(value) - 2} more}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_short(each)}' for name, each in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        shown = [_short(each) for each in value[:4]]
        return f"[{', '.join(shown)}{f', … {len(value) - 4} more' * (len(value) > 4)}]"
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"<array of {value.size}>"
    if hasattr(value, "get_params"):
        return repr(value)
    return reprlib.repr(value) if isinstance(value, str) else repr(value)[:200]
