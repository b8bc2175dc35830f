"""The binary tree with Gaussian noise: the floor that other factorisations are compared with."""

from __future__ import annotations

from sfumato.numeric.exact import as_integer

__all__ = ["tree_error"]


def tree_error(horizon: int, *, refined: bool = False) -> float:
    """The mean squared error of running totals from a binary tree with Gaussian noise in every node.

    In the units of `Factorisation.mean_square`, for units that touch one step.

    Args:
        horizon: How many steps there are.
        refined: Whether a node's sum is estimated from all nodes below it as well, with the least variance
            (Honaker 2015, "Efficient use of differentially private binary trees"), and not from itself alone.
    """
    steps = as_integer(horizon, "horizon")
    levels = steps.bit_length()
    total = 0.0
    for level in range(levels):
        # A total up to t adds up the node of this length if t has a one at this place.
        period = 2 << level
        whole, rest = divmod(steps + 1, period)
        often = whole * (period // 2) + max(0, rest - period // 2)
        total += often * (1 / (2 - 2.0**-level) if refined else 1.0)
    return total / steps * levels
