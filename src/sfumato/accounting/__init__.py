"""Accounting: what several releases cost together, and how much noise a target asks for.

`compare(losses, delta)` shows every accountant side by side. An accountant with `adaptive = False` is for a
plan fixed in advance; budgets that react to answers are gated by a filter. `calibrate` and its relatives go
from a target to the noise. `unit_loss` is what a release cost one unit, for the steward.
"""

from __future__ import annotations

from sfumato.accounting._accountants import ACCOUNTANTS, Accountant, advanced, basic, compare, optimal
from sfumato.accounting._allocation import allocation_multiplier
from sfumato.accounting._calibrate import (
    calibrate,
    discrete_gaussian_variance,
    gaussian_classic,
    gaussian_sigma,
    laplace_scale,
    noise_multiplier,
)
from sfumato.accounting._filters import BasicFilter, ConcentratedFilter, Filter, GaussianFilter, RenyiFilter
from sfumato.accounting._gaussian import selection_epsilon
from sfumato.accounting._shuffle import shuffled, shuffled_closed_form, shuffled_delta, shuffled_response
from sfumato.accounting._tally import Tally
from sfumato.accounting._units import unit_loss

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "BasicFilter",
    "ConcentratedFilter",
    "Filter",
    "GaussianFilter",
    "RenyiFilter",
    "Tally",
    "advanced",
    "allocation_multiplier",
    "basic",
    "calibrate",
    "compare",
    "discrete_gaussian_variance",
    "gaussian_classic",
    "gaussian_sigma",
    "laplace_scale",
    "noise_multiplier",
    "optimal",
    "selection_epsilon",
    "shuffled",
    "shuffled_closed_form",
    "shuffled_delta",
    "shuffled_response",
    "unit_loss",
]
