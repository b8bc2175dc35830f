"""The command line on neighbouring files with frozen noise: what it prints must be alike."""

from __future__ import annotations

import re

from commands import invoke
from sfumato.cli import app
from sfumato.testing import record, replay

_ROWS = [f"{each},{'ab'[each % 2]},{each}.5,2024-01-{1 + each:02d}" for each in range(12)]
_TOML = """
[ledger]
path = "visits.ledger"

[datasets.visits]
epsilon = 100
delta = 1e-6

[tables.visits]
source = "visits.csv"
unit = "id"
max_groups = 2

[tables.visits.columns]
city = { type = "enum", values = ["a", "b"] }
spend = { type = "float", lower = 0, upper = 20 }
day = { type = "date", start = 2024-01-01, end = 2024-01-12 }
"""
_ODD = {
    "ordinary": "99,a,7.5,2024-01-02",
    "unknown": "99,zz,nan,never",
    "out of range": '99,"a","1e999","0000-00-00"',
    "empty": "99,,,",
    "too short": "99,b",
    "infinite": "é,b,-inf,2024-01-01",
    "too long": "99,b,1,2024-01-01,and,more",
}
_COMMANDS = (
    ("query", "SELECT city, COUNT(*) AS n, AVG(spend) AS mean FROM visits GROUP BY city", "--epsilon", "1"),
    ("query", "SELECT MEDIAN(spend) AS m FROM visits", "--epsilon", "1", "--json"),
    (
        "query",
        "SELECT COUNT(*) AS n FROM visits WHERE day > DATE '2024-01-05'",
        "--epsilon",
        "1",
        "--format",
        "csv",
    ),
    ("quote", "SELECT SUM(spend) AS s FROM visits", "--epsilon", "1"),
    ("ledger", "show"),
    ("schema",),
)
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?[^\s\"]*|[0-9a-f]{64}")


def _ask(folder, rows, monkeypatch):
    folder.mkdir()
    (folder / "sfumato.toml").write_text(_TOML)
    (folder / "visits.csv").write_text("\n".join(["id,city,spend,day", *rows, ""]))

    def program():
        monkeypatch.chdir(folder)
        done = [invoke(app, list(command)) for command in _COMMANDS]
        return [(each.exit_code, _CLOCK.sub("", each.stdout), each.stderr) for each in done]

    return program


def test_commands_print_nothing_of_a_row_but_noise(tmp_path, monkeypatch):
    tape = record(_ask(tmp_path / "without", _ROWS, monkeypatch))
    assert len(tape.meetings) >= 4
    assert re.findall(r"tuple\[int\((\d)\)", tape.seen) == ["0"] * len(_COMMANDS)
    for name, row in _ODD.items():
        other = replay(_ask(tmp_path / name, [*_ROWS, row], monkeypatch), tape)
        assert other.findings == [], name
