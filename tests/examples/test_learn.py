"""The examples of models run, fit a page, and say what they were made to show."""

import importlib.util
import re
from pathlib import Path

import pytest

from sfumato.testing import seeded

FOLDER = Path(__file__).parents[2] / "examples" / "learn"

# What each must tell, and what it is called with: fewer rows are enough to see that it runs.
TOLD = {
    "boosting": ({"count": 4_000}, r" 10 +6\d\.\d% +7\d\.\d%"),
    "clusters": ({"size": 2_000}, r"epsilon 10: 0\.7"),
    "federated": ({"many": 400}, r"local: epsilon inf.*local: epsilon [12]\d"),
    "linear": ({"count": 4_000}, r" 10 +1[12]\.\d+ +-1[45]\.\d+.*Absolute error by group.*on=island"),
    "logistic": ({"count": 6_000}, r"epsilon 1 +[67]\d\.\d%.*income: odds × 1\.[234].*read back: epsilon 1 "),
    "moments": ({"count": 4_000}, r" 10 +-0\.5\d +0\.[56]\d +0\.[56]\d +1\.00.*stress +\d\.\d+ +from"),
    "pipeline": ({"count": 6_000}, r"as it is +6\d\.\d%.*equal counts +7\d\.\d%.*all +rho .*epsilon 1,"),
    "poisson": ({"count": 4_000}, r" 10 +1\.0[12]\d +1\.[01]\d+ +0\.[67]\d+.*rested driver"),
}


@pytest.mark.parametrize("name", TOLD)
def test_an_example_runs_and_fits_eighty_columns(name, capsys, tmp_path):
    spec = importlib.util.spec_from_file_location(f"learn_{name}", FOLDER / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    given, pattern = TOLD[name]
    if "path" in example.main.__annotations__:
        given = given | {"path": str(tmp_path / "model.json")}
    with seeded(f"example {name}"):
        example.main(**given)
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert re.search(pattern, told, flags=re.S), told
