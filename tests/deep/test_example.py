"""The example of deep learning runs and learns."""

import importlib.util
import re
from pathlib import Path

from deep import torch

PATH = Path(__file__).parents[2] / "examples" / "deep.py"


def test_the_example_reads_digits(capsys):
    spec = importlib.util.spec_from_file_location("example_of_deep", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.manual_seed(3)
    example.main(steps=30)
    told = capsys.readouterr().out
    assert re.search(r"30 private steps for epsilon 4", told)
    assert float(re.search(r"([\d.]+)% of 360", told)[1]) > 75
