"""Names of a package that load on first use, so that importing the package costs next to nothing."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing's, without loading it
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["lazy"]


def lazy(
    package: dict[str, Any], homes: Mapping[str, str], *, modules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package (PEP 562).

    The package still lists its names in `__all__`, and imports them under `TYPE_CHECKING`: type checkers read
    these two. `tests/test_package.py` holds all three against one another.

    Args:
        package: The package's `globals()`. A name that was used once is kept there.
        homes: For each module of the package, relative to it, its public names with spaces between.
        modules: Modules of the package that are public themselves.
    """
    path = package["__name__"]
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    public = frozenset(modules.split())

    def load(name: str) -> Any:
        if name in public:
            return import_module(f"{path}.{name}")
        if name not in home_of:
            raise _unknown(path, name, package["__all__"])
        package[name] = value = getattr(import_module(f"{path}.{home_of[name]}"), name)
        return value

    return load, lambda: sorted(package["__all__"])


def _unknown(path: str, name: str, known: list[str]) -> AttributeError:
    """The error of a name that a package does not have, with the nearest one."""
    if name.startswith("_"):  # what tools look for; nobody wrote it
        return AttributeError(f"module {path!r} has no attribute {name!r}")
    from difflib import get_close_matches

    from sfumato.errors import UnknownName

    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UnknownName(f"module {path!r} has no attribute {name!r}.{hint}")
