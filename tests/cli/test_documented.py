"""Documentation cannot drift: every command, option, setting and variable is described, and no other."""

import re
from pathlib import Path

import pytest
import typer

from sfumato.catalog import Catalog
from sfumato.catalog.keys import ENVIRONMENT, KEYS
from sfumato.cli import app
from sfumato.cli.commands import COMMANDS
from sfumato.cli.failures import FAILURES

DOCS = Path(__file__).parents[2] / "docs"
CLI, CATALOG = (DOCS / "cli.md").read_text(), (DOCS / "catalog.md").read_text()


ROOT = typer.main.get_command(app)


def commands(command, path=()):
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from commands(child, (*path, name))
    if not children:
        yield path, command


for name in COMMANDS:
    ROOT.loaded(name)
ALL = list(commands(ROOT))


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_and_option_is_described(path, command):
    assert f"sfumato {path[0]}" in CLI
    if len(path) > 1:
        assert f"| `{path[1]}" in CLI
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-"):
                assert re.search(rf"`{option}[` ]", CLI), option
        assert getattr(parameter, "help", "x"), f"{parameter.name} has no help"
    assert {"--json"} <= {option for parameter in command.params for option in parameter.opts}
    if path[0] in ("query", "quote", "ledger", "account"):
        assert "--ledger" in {option for parameter in command.params for option in parameter.opts}
    assert command.help


def test_the_list_says_of_each_command_what_it_says_of_itself():
    assert list(ROOT.commands) == list(COMMANDS)
    own = {name: command.short_help or command.help for name, command in ROOT.commands.items()}
    assert own == {name: line for name, (_, line) in COMMANDS.items()}


def test_no_line_of_any_help_page_breaks_off(cli):
    paths = [(), ("local",), ("attack",), ("ledger",), ("state",), ("account",), *(path for path, _ in ALL)]
    pages = {path: cli(*path, "--help").out for path in paths}
    for path, page in pages.items():
        usage, *lines = page.split("\n")
        assert max(map(len, (usage, *lines))) <= 80, path
        assert not [line for line in lines if line.endswith(("...", "…"))], path
        assert "...}" not in usage, path
    for path, command in ALL:  # what stands beside its name in the list is its whole first line
        listed = " ".join(pages[path[:-1]].split())
        assert " ".join(command.help.partition("\n")[0].split()) in listed, path


def test_no_option_is_described_that_does_not_exist():
    parameters = [parameter for _, command in ALL for parameter in command.params]
    known = {option for each in parameters for option in (*each.opts, *each.secondary_opts)}
    known |= {"--help", "-h", "--version", "--install-completion", "--show-completion"}
    assert set(re.findall(r"`(--?[a-z-]+)", CLI)) <= known


def test_every_setting_is_described_and_no_other():
    rows = {
        key
        for row in re.findall(r"^\| (`[^|]*?`) \|", CATALOG, flags=re.M)
        for key in re.findall(r"`(\w+)`", row)
    }
    settings = {key for section in list(KEYS.values())[1:] for key in section}
    assert rows == settings | set(ENVIRONMENT)
    for section in ("ledger", "engine", "datasets", "tables"):
        assert f"[{section}" in CATALOG


def test_every_exit_code_is_described():
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", CLI, flags=re.M)}
    assert listed == {0} | {code for code, _ in FAILURES.values()}


def test_the_whole_file_in_the_documentation_is_a_catalog(tmp_path):
    (block,) = re.findall(r"^```toml\n(.*?)^```", CATALOG, flags=re.S | re.M)
    (tmp_path / "sfumato.toml").write_text(block)
    catalog = Catalog.read(tmp_path / "sfumato.toml", environ={})
    assert set(catalog.limits["hospital"]) == {"alice", "bob"}
