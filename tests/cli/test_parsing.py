"""Values that skip Typer's own checks are those that these leave as they are."""

import pytest
import typer

from sfumato.cli import app

COMMANDS = {name: typer.main.get_command(app).loaded(name) for name in ("query", "histogram", "card")}
TEXTS = ["", "0.5", "SELECT 1", "-7", " Zürich ", "北京", "\x00", "null", "\udcff"]


def _outcome(read, context, value):
    try:
        return read(context, value)
    except (typer.BadParameter, typer.Exit) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_no_type_of_a_flag_which_takes_no_value(name):
    command = COMMANDS[name]
    context = command.context_class(command)
    types = {each.name: each.display_type_rich(context) for each in command.get_params(context)}
    assert types["help"] is None
    assert "<bool>" not in types.values()
    assert all(
        types[each.name] for each in command.get_params(context) if not getattr(each, "is_flag", False)
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_values_are_those_that_typer_gives(name):
    command = COMMANDS[name]
    context = command.context_class(command)
    texts = [parameter for parameter in command.get_params(context) if parameter.process_value.is_text]
    assert texts
    for parameter in command.get_params(context):
        values = [*([] if parameter.required else [None]), *(TEXTS if parameter in texts else [])]
        for value in values:
            ours = _outcome(parameter.process_value, context, value)
            assert ours == _outcome(parameter.process_value.otherwise, context, value), parameter.name
