"""The conformance kit over every registered mechanism: a new file in `mechanisms/` is found by itself."""

import pytest

from sfumato.mechanisms import examples, modules
from sfumato.testing import check_mechanism

EXAMPLES = {example.name: example for example in examples()}

# What part of its claim an example is known to show, where that is less than 55 %, and why. A mechanism with
# half the noise shows up to twice as much; below one half, `law` or the module's own tests must catch it.
LOOSE = {
    "adaptive selection: exchange": (0.4, "half of delta is for groups of one unit, and this pair has none"),
    "adaptive selection: large groups are left out": (0.4, "the same, and three groups share what is moved"),
    "gaussian selection: exchange": (0.45, "half of delta is for groups of one unit, and this pair has none"),
    "nested quantiles: three levels": (
        0.3,
        "no pair is the worst for both depths; the exact joint law is checked in the module's own tests",
    ),
    "top-k: 2 of 3": (0.35, "a bound of k times bounded range; no pair is the worst for both choices"),
    "top-k: 2 of 3, monotone": (
        0.35,
        "a bound of k times bounded range; no pair is the worst for both choices",
    ),
    "above-threshold: monotone": (0.3, "the worst case needs an endless run of values below the threshold"),
    "sparse vector": (0.2, "the worst case needs an endless run of values below the threshold"),
    "sparse vector: monotone": (0.2, "the worst case needs an endless run of values below the threshold"),
    "sparse vector: numeric": (
        0.35,
        "the price of the number and of the place are both near worst only together",
    ),
    "bounded laplace": (0.35, "the scale pays for the worst place in the interval, at the bounds"),
    "tree counter: concentrated": (0.4, "rho alone is carried, which is loose for one small delta"),
    "discrete gaussian: rho": (0.5, "rho alone is carried for vectors"),
    "discrete gaussian: vector": (0.5, "rho alone is carried for vectors"),
    "discrete gaussian: scalar": (0.4, "the lattice shows its worst at a few deltas only"),
    "smooth sensitivity: laplace": (
        0.35,
        "half of the price pays for the scale, which this pair hardly moves",
    ),
}
# Widths that are bounds rather than quantiles.
BOUNDS: frozenset[str] = frozenset()


def run(name, samples):
    tight = LOOSE.get(name, (0.55, ""))[0]
    return check_mechanism(EXAMPLES[name], samples=samples, tight=tight, exact_error=name not in BOUNDS)


# Fewer samples than these would not show enough of their claims.
MANY = {
    "above-threshold: monotone",
    "partition selection: few units",
    "quantiles: first quartile",
    "quantiles: maximum",
    "quantiles: two levels",
}


def size(name):
    # Additive mechanisms draw arrays, the others answer one question at a time.
    return 60_000 if EXAMPLES[name].additive else 10_000 if name in MANY else 5_000


@pytest.mark.parametrize("name", EXAMPLES)
def test_mechanism_keeps_its_claims(name):
    run(name, size(name))


@pytest.mark.stats
@pytest.mark.parametrize("name", EXAMPLES)
def test_mechanism_keeps_its_claims_over_many_samples(name):
    run(name, 20 * size(name))


def test_every_module_lists_examples_under_names_of_their_own():
    assert len(EXAMPLES) == len(examples())
    for module in modules():
        assert module.examples(), module.__name__


def test_exceptions_are_not_stale():
    assert set(LOOSE) | MANY | BOUNDS <= set(EXAMPLES)
