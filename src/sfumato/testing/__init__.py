"""Statistics for tests, conformance kits and planted bugs. Imported by tests, never on a release path.

* `seeded`, `SeededStream`: repeatable noise, inside pytest only.
* `assert_discrete`, `assert_continuous`, `assert_bernoulli`, `assert_coverage`, `assert_mean`,
  `assert_variance`: does a sample follow the stated law? Each fails on too much noise as well as on too
  little, at a stated false-alarm rate.
* `power`, `detectable`, `detectable_distance`: what a test of a given size would catch.
* `check_mechanism`, `check_accountant`: everything that is claimed, held against what is drawn and what is
  exactly known; `check_engine`: what statements rely on, held against Python.
* `exact`: what a query measures before noise, and the sensitivities it claims.
* `compare`, `record`, `replay`: a program on two neighbouring inputs, with the noise of the first: nothing
  outside the noise may differ.
* `MUTANTS`: named bugs that the kits above must catch, each beside its honest twin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

if TYPE_CHECKING:
    from sfumato.testing.accountants import check_accountant
    from sfumato.testing.detection import detectable, detectable_distance, power
    from sfumato.testing.engines import check_engine
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
    "accountants": "check_accountant",
    "detection": "detectable detectable_distance power",
    "engines": "check_engine",
    "mechanisms": "check_mechanism",
    "moments": "assert_coverage assert_mean assert_variance",
    "mutants": "MUTANTS Mutant",
    "queries": "Exact exact",
    "replaying": "Meeting Tape compare record replay",
    "statistics": "assert_bernoulli assert_continuous assert_discrete",
    "stream": "SeededStream seeded",
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
    "check_engine",
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

__getattr__, __dir__ = lazy(globals(), _HOMES)
