"""Texts, and options that are left out, reach a command as they are.

Typer checks each value by a library of types. To load that takes longer than to answer a short question, and
for these values it changes nothing. Numbers, paths and choices are left to it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["lighten"]


def lighten(command: Any) -> None:
    """Let plain values of the options of a command, and of the commands within it, through."""
    all_of = command.get_params  # with the option for help, which is made late

    def lightened(context: Any) -> list[Any]:
        parameters: list[Any] = all_of(context)
        for parameter in parameters:
            if not isinstance(parameter.process_value, _Values):
                parameter.process_value = _Values(parameter)
            if getattr(parameter, "is_flag", False):
                parameter.display_type_rich = _nothing  # a flag takes no value, so that help shows no type
        return parameters

    command.get_params = lightened
    for inner in getattr(command, "commands", {}).values():
        lighten(inner)


def _nothing(ctx: Any) -> None:
    del ctx


class _Values:
    """Reads the value of one option, in place of its own `process_value`."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter
        self.otherwise = parameter.process_value
        self.is_text = getattr(getattr(parameter, "type_descriptor", None), "annotation", None) is str

    def __call__(self, context: Any, value: Any) -> Any:
        parameter = self.parameter
        if value is None and not parameter.required:
            value = () if getattr(parameter, "multiple", False) or parameter.nargs == -1 else None
        elif not (self.is_text and isinstance(value, str)):
            return self.otherwise(context, value)
        return value if parameter.callback is None else parameter.callback(context, parameter, value)
