"""Empirical lower bounds on epsilon: what samples prove about a mechanism, whatever it claims."""

from __future__ import annotations

from sfumato.audit.blackbox import lower_bound, lower_bounds, support_bound
from sfumato.audit.bounds import Bound, clopper_pearson, familywise, resolution
from sfumato.audit.events import Feature

__all__ = [
    "Bound",
    "Feature",
    "clopper_pearson",
    "familywise",
    "lower_bound",
    "lower_bounds",
    "resolution",
    "support_bound",
]
