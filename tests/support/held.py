"""`sfumato serve`, whose reads wait in the middle: a script that takes a folder and the command's arguments.

A read makes a file `reading` in the folder, and goes on once there is a file `go`. `GRACE` in the environment
is how long the server waits for requests at its end.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Runs the command."""
    from sfumato import cli
    from sfumato.engines.duckdb import DuckDB
    from sfumato.server import running

    folder, real = Path(sys.argv[1]), DuckDB._fetch

    def waiting(self: Any, *arguments: Any, **more: Any) -> Any:
        (folder / "reading").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return real(self, *arguments, **more)

    DuckDB._fetch = waiting  # type: ignore[method-assign]
    running._IDLE = int(os.environ.get("GRACE", "30"))
    sys.argv = ["sfumato", *sys.argv[2:]]
    cli.main()


if __name__ == "__main__":
    main()
