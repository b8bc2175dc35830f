"""`Summarised`: the weights of a model as a small table, with intervals where they are known to hold."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import NotCertified
from sfumato.render import between, text_table

__all__ = ["Summarised"]

_WIDTH = 80


class Summarised:
    """A model with weights by name, and perhaps with intervals."""

    coef_: Any
    intercept_: Any
    coefficient_names_: list[str]

    def summary(self, level: float = 0.95) -> str:
        """A table of the weights, with standard errors and intervals, or with the reason why there are none.

        Args:
            level: How often an interval holds the true weight.

        Raises:
            InvalidParameter: if the level is not between 0 and 1.
        """
        check_is_fitted(self, "coef_")
        columns, said = self._weights_told(), ""
        try:
            ends, errors = self._ends_told(level)
        except NotCertified as refused:
            said = str(refused)
        else:
            weights = columns["weight"]
            columns["standard error"] = [_short(error) for error in errors]
            columns[f"{level * 100:.6g} % interval"] = [
                between(*given) for given in zip(*ends.T.tolist(), weights, errors.tolist(), strict=True)
            ]
        table = text_table(columns, width=_WIDTH)
        return f"{table}\n{textwrap.fill(said, _WIDTH)}" if said else table

    def _ends_told(self, level: float) -> tuple[Any, Any]:  # noqa: ARG002 - as others take it
        """An interval and a standard error for each line of the table.

        Raises:
            NotCertified: where there are none.
        """
        raise NotCertified(f"No standard errors here: for {type(self).__name__} none are shown to hold.")

    def _weights_told(self) -> dict[str, list[Any]]:
        """The columns of the table: a line for each weight, the intercept's last."""
        lines = np.column_stack([np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)])
        classes = getattr(self, "classes_", None)
        heads = ["weight"] if len(lines) == 1 or classes is None else [str(name) for name in classes]
        found = {head: [_short(value) for value in line] for head, line in zip(heads, lines, strict=True)}
        return {"column": [*self.coefficient_names_, "intercept"], **found}


def _short(value: float) -> float:
    return float(f"{value:.4g}")
