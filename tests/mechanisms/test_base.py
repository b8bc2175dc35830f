"""What is found in the package, and the shape that every mechanism shares."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import sfumato.mechanisms as package
from sfumato.mechanisms import Example, Laplace, Mechanism


def test_every_name_loads_and_is_listed() -> None:
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        package.NotAMechanism  # noqa: B018


def test_every_mechanism_file_is_found_with_examples_of_its_own() -> None:
    folder = Path(inspect.getfile(package)).parent
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")} - {"base"}
    assert {module.__name__.rpartition(".")[2] for module in package.modules()} == files
    for module in package.modules():
        assert module.examples(), module.__name__
        assert all(isinstance(example, Example) for example in module.examples())
    names = [example.name for example in package.examples()]
    assert len(names) == len(set(names))


def test_every_public_mechanism_is_exported() -> None:
    found = {
        name
        for module in package.modules()
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Mechanism)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert found <= set(package.__all__)


def test_every_mechanism_states_its_privacy() -> None:
    for module in package.modules():
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, Mechanism)
                and value.__module__ == module.__name__
            ):
                assert "Privacy:" in (value.__doc__ or ""), value


def test_no_mechanism_has_a_source_of_randomness_of_its_own() -> None:
    folder = Path(inspect.getfile(package)).parent
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"random", "secrets"}, path.name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("np", "random"), ("os", "urandom")}, path.name


def test_an_example_gives_independent_draws_of_both_sides() -> None:
    example = Example.of_release("pair", Laplace(1, 1), (0.0, 5.0), (1.0, 5.0))
    assert example.draw("left", 7).shape == (7, 2)
    assert len(np.unique(example.draw("right", 50))) > 90
    assert example.input("left") == (0.0, 5.0)
    assert example.input("right") == (1.0, 5.0)
