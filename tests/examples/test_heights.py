"""Heights: declared bounds decide the noise, and bounds that are too narrow move the average unseen."""

import importlib.util
from pathlib import Path

from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "heights.py"
spec = importlib.util.spec_from_file_location("heights", PATH)
heights = importlib.util.module_from_spec(spec)
spec.loader.exec_module(heights)


def test_wide_bounds_cost_noise_and_narrow_ones_move_the_average(capsys):
    with seeded("heights"):
        heights.main(2_000)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    lines = {line.split(",")[0].strip(): line for line in said.splitlines() if line.strip()}
    found = {}
    for name in heights.BOUNDS:
        *_, woman, _, less, man, _, more = lines[name].split()
        found[name] = float(woman), float(less), float(man), float(more)
    *_, women, men = (float(word) for word in lines["the truth"].split()[-2:])
    known, wide, narrow = found.values()
    assert abs(known[0] - women) < 4 * known[1]
    assert abs(known[2] - men) < 4 * known[3]
    assert wide[1] > 5 * known[1]
    # Far from the truth, and sure of itself.
    assert men - narrow[2] > 10 * narrow[3]
    assert narrow[3] < known[3]
