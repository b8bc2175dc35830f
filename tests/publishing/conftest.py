"""A clinic whose visits come month by month, and a file that lists what is published of them."""

import os
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import invoke
from sfumato.cli import app
from sfumato.ledger import Ledger

START = date(2024, 1, 1)
CATALOG = """
[datasets.visits]
epsilon = 3
delta = 1e-4

[tables.visits]
source = "visits/*.parquet"
unit = "row"

[tables.visits.columns]
day = { type = "date", start = "2024-01-01", end = "2026-12-31" }
shop = { type = "enum", values = ["north", "south"] }
amount = { type = "int", lower = 0, upper = 10 }
"""
SERIES = """
[[series]]
name = "daily"
sql = "SELECT day, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY day"
start = 2024-01-01
horizon = 100
epsilon = 1
delta = 1e-6
"""
QUESTION = """
[[question]]
name = "by_shop"
sql = "SELECT shop, COUNT(*) AS n FROM visits WHERE day >= $from AND day < $to GROUP BY shop"
every = "month"
start = 2024-01-01
epsilon = 0.25
"""


class Clinic:
    """A folder with visits, a catalog and a release file, and the command that publishes them."""

    series, question = SERIES, QUESTION

    def __init__(self, folder):
        self.folder = folder
        (folder / "visits").mkdir()
        (folder / "sfumato.toml").write_text(CATALOG)
        self.lists(SERIES + QUESTION)

    def lists(self, releases, head='folder = "public"\n'):
        (self.folder / "release.toml").write_text(head + releases)

    def month(self, number, days=29, many=20):
        """The visits of a month as a file of its own."""
        first = date(2024, number, 1)
        listed = [first + timedelta(days=day) for day in range(days) for _ in range(many)]
        draw = np.random.default_rng(number)
        rows = {
            "day": pa.array(listed, pa.date32()),
            "shop": pa.array(draw.choice(["north", "south"], len(listed)).tolist(), pa.string()),
            "amount": pa.array(draw.integers(0, 11, len(listed)), pa.int64()),
        }
        pq.write_table(pa.table(rows), self.folder / "visits" / f"{number:02}.parquet")

    def publish(self, now, *more, code=0):
        result = invoke(app, ["publish", "release.toml", "--now", f"{now}T00:00Z", *more])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, result.stdout + result.stderr
        assert max(map(len, (result.stdout + result.stderr).split("\n"))) <= 80 or "--json" in more
        return " ".join((result.stdout + result.stderr).split()) if "--json" not in more else result.stdout

    def spent(self):
        if not (self.folder / "sfumato.ledger").exists():
            return 0
        with Ledger.open(self.folder / "sfumato.ledger") as ledger:
            assert ledger.verify().ok
            known = {entry.name for entry in ledger.datasets()}
            return sum(ledger.balance(name).spent for name in known)

    def files(self):
        return {path.name: path.read_bytes() for path in sorted((self.folder / "public").glob("*"))}


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("SFUMATO_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    made = Clinic(tmp_path)
    made.month(1)
    made.month(2)
    return made
