"""Put the modules of one version of Tumult's core over another, but for those that use its compiled parts.

`python tumult_core.py WHEEL`, by the interpreter of the environment; see `install_peers.sh`. What is left of
the installed version are its numbers of arbitrary precision and what draws noise from them, in Python.
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path

KEPT = (
    "tmlt/core/ext/",
    "tmlt/core/random/",
    "tmlt/core/utils/arb.py",
    "tmlt/core/utils/distributions.py",
    "tmlt/core/utils/prdp.py",
    "tmlt/core/measurements/pandas_measurements/series.py",
)


def main(wheel: str) -> None:
    found = importlib.util.find_spec("tmlt.core")
    assert found is not None
    assert found.origin is not None
    place = Path(found.origin).parents[2]
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("tmlt/core/") and name.endswith(".py") and not name.startswith(KEPT):
                archive.extract(name, place)


if __name__ == "__main__":
    main(sys.argv[1])
