"""Statistics for tests, conformance kits and planted bugs. Imported by tests, never on a release path.

* `seeded`, `SeededStream`: repeatable noise, inside pytest only.
* `assert_discrete`, `assert_continuous`, `assert_bernoulli`, `assert_coverage`, `assert_mean`,
  `assert_variance`: does a sample follow the stated law? Each fails on too much noise as well as on too
  little, at a stated false-alarm rate.
* `power`, `detectable`, `detectable_distance`: what a test of a given size would catch.
* `check_mechanism`, `check_accountant`: everything that is claimed, held against what is drawn and what is
  exactly known.
* `exact`: what a query measures before noise, and the sensitivities it claims.
* `compare`, `record`, `replay`: a program on two neighbouring inputs, with the noise of the first: nothing
  outside the noise may differ.
* `MUTANTS`: named bugs that the kits above must catch, each beside its honest twin.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.testing.accountants import check_accountant
    from sfumato.testing.detection import detectable, detectable_distance, power
    from sfumato.testing.mechanisms import check_mechanism
    from sfumato.testing.moments import assert_coverage, assert_mean, assert_variance
    from sfumato.testing.mutants import MUTANTS, Mutant
    from sfumato.testing.queries import Exact, exact
    from sfumato.testing.replaying import Meeting, Tape, compare, record, replay
    from sfumato.testing.statistics import (
        assert_bernoulli,
        assert_continuous,
        assert_discrete,
    )
    from sfumato.testing.stream import SeededStream, seeded

# Loaded on first use, so that a test of the lowest layer does not import the highest.
_HOMES = {
    "MUTANTS": "mutants",
    "Exact": "queries",
    "exact": "queries",
    "Meeting": "replaying",
    "Mutant": "mutants",
    "SeededStream": "stream",
    "Tape": "replaying",
    "assert_bernoulli": "statistics",
    "assert_continuous": "statistics",
    "assert_coverage": "moments",
    "assert_discrete": "statistics",
    "assert_mean": "moments",
    "assert_variance": "moments",
    "check_accountant": "accountants",
    "check_mechanism": "mechanisms",
    "compare": "replaying",
    "detectable": "detection",
    "detectable_distance": "detection",
    "power": "detection",
    "record": "replaying",
    "replay": "replaying",
    "seeded": "stream",
}

__all__ = [
    "MUTANTS",
    "Exact",
    "Meeting",
    "Mutant",
    "SeededStream",
    "Tape",
    "assert_bernoulli",
    "assert_continuous",
    "assert_coverage",
    "assert_discrete",
    "assert_mean",
    "assert_variance",
    "check_accountant",
    "check_mechanism",
    "compare",
    "detectable",
    "detectable_distance",
    "exact",
    "power",
    "record",
    "replay",
    "seeded",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
