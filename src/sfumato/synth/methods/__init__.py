"""Ways to choose what is measured: one file each."""

from __future__ import annotations

from sfumato.errors import InvalidParameter
from sfumato.synth._model.domain import Domain
from sfumato.synth.methods.adaptive import Adaptive
from sfumato.synth.methods.base import Learned, Method, Wanted, silent
from sfumato.synth.methods.fixed import Fixed
from sfumato.synth.methods.independent import Independent
from sfumato.synth.methods.mst import MST
from sfumato.synth.methods.wide import Wide

__all__ = ["METHODS", "Learned", "Method", "Wanted", "chosen_method", "silent"]

METHODS: dict[str, Method] = {
    method.name: method for method in (Independent(), MST(), Adaptive(), Fixed(), Wide())
}
"""All of them by name."""

_MANY = 30  # columns up to which the model is fitted again for each set that is measured


def chosen_method(name: str, domain: Domain) -> Method:
    """The method of a name; "auto" goes by the number of columns, which is public.

    It is the adaptive one, the one for wide tables from 31 columns on, and no choice where one is alone.

    Raises:
        InvalidParameter: for a name that is none of them.
    """
    if name == "auto":
        several = "adaptive" if len(domain) <= _MANY else "wide"
        name = several if len(domain) > 1 else "independent"
    if name not in METHODS:
        listed = ", ".join(["auto", *METHODS])
        raise InvalidParameter(f"There is no method {str(name)[:60]!r}: it is one of {listed}.")
    return METHODS[name]
