"""The conformance kit over every registered accountant."""

import pytest

from sfumato.accounting import ACCOUNTANTS
from sfumato.testing import check_accountant

# Proven as filters, for losses chosen by earlier answers: sums of rho and of mu squared. (Sums of epsilon and
# delta are one with prices fixed on admission, as BasicFilter does; the accountant shares delta out later.)
ADAPTIVE = {"zcdp", "gdp"}
# The one that claims to be tight.
TIGHT = {"numerical": 1e-6}


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_accountant_is_sound(name):
    check_accountant(ACCOUNTANTS[name], tight=TIGHT.get(name))


def test_adaptive_is_said_of_the_proven_ones_alone():
    assert {name for name, accountant in ACCOUNTANTS.items() if accountant.adaptive} == ADAPTIVE
    assert all(accountant.name == name for name, accountant in ACCOUNTANTS.items())
