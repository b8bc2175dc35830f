"""The survival example runs, and tells the arms apart."""

import runpy
from pathlib import Path

from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "learn" / "survival.py"


def test_the_example_tells_the_arms_apart(capsys):
    with seeded(0):
        runpy.run_path(str(PATH))["main"]()
    shown = capsys.readouterr().out
    assert "log-rank test, at no further cost" in shown
    assert float(shown.split("p = ")[1].split()[0].rstrip(".")) < 1e-3
