"""Empirical lower bounds on epsilon: what samples prove about a mechanism, whatever it claims.

`lower_bound` and `support_bound` take outputs, `query_bound` a whole query, `canary_audit` a training run,
`timing` a clock. `audit_mechanism` holds one claim against samples, `run` all that this package makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy
from sfumato.audit.blackbox import lower_bound, lower_bounds, support_bound
from sfumato.audit.bounds import Bound, clopper_pearson, familywise, resolution
from sfumato.audit.events import Feature

if TYPE_CHECKING:
    from sfumato.audit.canaries import canary_audit, many_runs
    from sfumato.audit.findings import Audit, Finding
    from sfumato.audit.onerun import OneRun, one_run, one_run_fdp
    from sfumato.audit.probes import Timing, floats, timing
    from sfumato.audit.registry import audit_mechanism, run, subjects
    from sfumato.audit.session import query_bound

__all__ = [
    "Audit",
    "Bound",
    "Feature",
    "Finding",
    "OneRun",
    "Timing",
    "audit_mechanism",
    "canary_audit",
    "clopper_pearson",
    "familywise",
    "floats",
    "lower_bound",
    "lower_bounds",
    "many_runs",
    "one_run",
    "one_run_fdp",
    "query_bound",
    "resolution",
    "run",
    "subjects",
    "support_bound",
    "timing",
]

# Loaded on first use: a bound from samples needs neither sessions nor engines.
_HOMES = {
    "canaries": "canary_audit many_runs",
    "findings": "Audit Finding",
    "onerun": "OneRun one_run one_run_fdp",
    "probes": "Timing floats timing",
    "registry": "audit_mechanism run subjects",
    "session": "query_bound",
}

__getattr__, __dir__ = lazy(globals(), _HOMES)
