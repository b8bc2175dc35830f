"""Run by test_kill.py in a process of its own: asks in forked children that kill themselves at a named point.

Arguments: folder, point, times. Prints one line a child: `answer <n>` if it replied before it died.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.engines import DuckDB
from sfumato.engines.dialect import DUCKDB
from sfumato.ledger import Ledger
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quoting import make_quote
from sfumato.plan.prices.terms import Terms
from sfumato.session import answering
from sfumato.session.vault import Vault
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower

SHORT = pa.table({"age": [34, 71, 52, 88, 19, 67]})
LONG = pa.table({"age": np.arange(4_000_000) % 110})


def die(*_args, **_kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def around(owner, name, *, before=False, after=False):
    """Make a function die as it is called, or once it has done its work."""
    real = getattr(owner, name)

    def wrapped(*args, **kwargs):
        if before:
            die()
        result = real(*args, **kwargs)
        if after:
            die()
        return result

    setattr(owner, name, wrapped)


def during_read():
    """Die some milliseconds after the engine was given the statement, while it is at work."""
    real = DuckDB.fetch

    def wrapped(self, statement):
        threading.Timer(0.005, die).start()
        result = real(self, statement)
        os.write(1, b"error the read was over before the kill\n")
        return result

    DuckDB.fetch = wrapped


POINTS = {
    "before debit": lambda: around(Ledger, "debit", before=True),
    "after commit": lambda: around(Ledger, "debit", after=True),
    "mid-read": during_read,
    "after read": lambda: around(Vault, "_read", after=True),
    "after noise": lambda: around(answering, "privatise", after=True),
    "before reply": lambda: around(Ledger, "record", after=True),
    "never": lambda: None,
}


def child(ledger: Path, point: str, number: int) -> None:
    table = sf.PrivateTable(
        "people",
        source=LONG if point == "mid-read" else SHORT,
        unit=sf.PrivacyUnit.row(),
        schema={"age": sf.Int(0, 110)},
    )
    with sf.Session(table, budget=sf.Budget(1000), ledger=ledger) as session:
        POINTS[point]()
        text = f"SELECT COUNT(*) AS n FROM people WHERE LN(age + 2) * SQRT(age) > {number} / 100"
        release = session.sql(text).release(epsilon=1)
        os.write(1, f"answer {release.table['n'][0].as_py()}\n".encode())


def warm() -> None:
    """Load everything once, and start no thread: the children then begin at once."""
    import duckdb  # noqa: F401

    import sfumato.explain  # noqa: F401

    sf.Geometric(epsilon=1, sensitivity=1).release(3)
    table = sf.PrivateTable("t", source=None, unit=sf.PrivacyUnit.row(), schema={"age": sf.Int(0, 110)})
    report = parse("SELECT COUNT(*) AS n FROM t WHERE age > 3", {"t": table})
    quote = make_quote(Plan.of(report, {"t": table}), Terms.of(1))
    lower(quote.measured, table, DUCKDB).sql("duckdb")
    Ledger.open(None).close()


def main() -> None:
    folder, point, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    warm()
    for number in range(times):
        process = os.fork()
        if process == 0:
            try:
                child(folder / "people.ledger", point, number)
            except BaseException as error:
                os.write(1, f"error {type(error).__name__} {error}\n".encode())
            os._exit(0)
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()
