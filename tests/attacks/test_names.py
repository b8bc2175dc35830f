"""The package has every public name of its modules."""

import importlib
import pkgutil

import pytest

from sfumato import attacks

SHARED = {"control", "matching", "percent"}  # with other packages, not with users
MODULES = [
    module.name
    for module in pkgutil.iter_modules(attacks.__path__)
    if not module.name.startswith("_") and module.name not in SHARED
]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_a_module_is_one_of_the_package(module):
    found = importlib.import_module(f"sfumato.attacks.{module}")
    assert found.__all__
    for name in found.__all__:
        assert name in attacks.__all__
        assert getattr(attacks, name) is getattr(found, name)


def test_no_other_name_is():
    modules = [importlib.import_module(f"sfumato.attacks.{each}") for each in MODULES]
    assert sorted(attacks.__all__) == sorted({name for each in modules for name in each.__all__})
