"""Failures: one block, one exit code, never a value from the data."""

import json
import sys

import pytest
import typer

from sfumato import errors
from sfumato.cli.failures import FAILURES, reported
from sfumato.cli.output import is_terminal, say, width
from sfumato.render import plain_json

SECRET = "Zanzibar-4711"


def run(error, **options):
    @reported
    def command(json_: bool = False) -> None:
        held = SECRET  # in a local, where a careless traceback would find it
        assert held
        raise error

    with pytest.raises(typer.Exit) as ended:
        command(**options)
    assert ended.value.__cause__ is None
    return ended.value.exit_code


def test_every_error_code_has_a_headline_or_is_a_fault_of_ours():
    known = {
        each.code for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)
    }
    assert set(FAILURES) <= known
    ours = {"error", "invalid_value", "not_certified", "spent"}
    assert known - set(FAILURES) == ours


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.QueryRefused("No.", "Do this."), 2),
        (errors.InvalidParameter("Wrong."), 2),
        (errors.CatalogUnusable("Decide."), 2),
        (errors.BudgetExceeded("Enough."), 3),
        (errors.LedgerTampered("Broken."), 4),
        (errors.LedgerMismatch("Other."), 1),
        (errors.Cancelled("Stopped."), 130),
        (errors.TimedOut("Long."), 1),
        (errors.NotCertified("Unproven."), 1),
    ],
)
def test_exit_codes(error, code, capsys):
    assert run(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[1] == f"  {error}"


def test_what_nobody_foresaw_is_told_without_its_text(capsys, monkeypatch):
    assert run(ValueError(f"could not convert {SECRET}")) == 1
    assert SECRET not in capsys.readouterr().err
    monkeypatch.setenv("SFUMATO_DEBUG", "1")
    assert run(ValueError(f"could not convert {SECRET}")) == 1
    err = capsys.readouterr().err
    assert SECRET not in err
    assert "test_failures.py" in err  # where it arose
    assert run(ValueError(SECRET), json_=True) == 1
    told = capsys.readouterr().err
    assert SECRET not in told


def test_an_interrupt_says_that_a_begun_read_is_paid(capsys):
    assert run(KeyboardInterrupt()) == 130
    assert "its price stays paid" in capsys.readouterr().err
    assert run(KeyboardInterrupt(), json_=True) == 130
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "cancelled"


def test_an_interrupt_during_the_read_is_charged(cli, hospital, monkeypatch):
    from sfumato.engines import DuckDB

    def interrupted(*_):
        raise errors.Cancelled("The read was interrupted; its price stays paid.")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "fetch", interrupted)
        stopped = cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.25")
    assert stopped.code == 130
    assert "its price stays paid" in stopped.err
    left = cli("quote", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", "--json").json["left"]
    assert left["epsilon"] == 0.75


class Ascii:
    """A stream that can write ASCII only."""

    encoding = "ascii"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text.encode("ascii").decode()

    def flush(self):
        pass

    def isatty(self):
        return False


def test_a_line_is_spelled_out_where_the_stream_cannot_write_it():
    stream = Ascii()
    say("12 ± 3 … ε", stream=stream)
    assert stream.text == "12 +/- 3 ... epsilon\n"


def test_the_width_is_the_terminals_within_reason(monkeypatch):
    for columns, expected in (("80", 80), ("10", 40), ("500", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        assert width() == expected


def test_a_dumb_terminal_is_no_terminal(monkeypatch):
    class Screen(Ascii):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert is_terminal(Screen())
    monkeypatch.setenv("TERM", "dumb")
    assert not is_terminal(Screen())
    assert not is_terminal(sys.stdout)


def test_json_holds_what_json_can():
    from datetime import date
    from fractions import Fraction

    value = {
        "a": Fraction(1, 4),
        "b": [Fraction(3), float("nan"), float("inf")],
        "c": date(2024, 5, 31),
        1: None,
    }
    assert plain_json(value) == {"a": 0.25, "b": [3, None, None], "c": "2024-05-31", "1": None}
