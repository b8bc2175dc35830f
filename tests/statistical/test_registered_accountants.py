"""The conformance kit over every registered accountant."""

import pytest

from sfumato.accounting import ACCOUNTANTS
from sfumato.testing import check_accountant

# Proven as filters, for losses chosen by earlier answers: sums of (epsilon, delta), of rho, of mu squared.
ADAPTIVE = {"basic", "zcdp", "gdp"}
# The one that claims to be tight.
TIGHT = {"numerical": 1e-6}
# Both of its figures split a total equally, which is not one curve read both ways.
TWO_BOUNDS = {"basic"}


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_accountant_is_sound(name):
    check_accountant(ACCOUNTANTS[name], tight=TIGHT.get(name), inverse=name not in TWO_BOUNDS)


def test_adaptive_is_said_of_the_proven_ones_alone():
    assert {name for name, accountant in ACCOUNTANTS.items() if accountant.adaptive} == ADAPTIVE
    assert all(accountant.name == name for name, accountant in ACCOUNTANTS.items())
