"""Run by test_race.py, several at once: asks different questions of one ledger until the budget is used up.

Arguments: ledger, my number, number of processes. Prints one line an answer. With 0 processes it asks one
question and one choice, the same in all of them, and prints what it was given and whether free.
"""

import glob
import sys
import time

import pyarrow as pa

import sfumato as sf


def main() -> None:
    ledger, mine, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    table = sf.PrivateTable(
        "people",
        source=pa.table({"age": [34, 71, 52, 88, 19, 67]}),
        unit=sf.PrivacyUnit.row(),
        schema={"age": sf.Int(0, 110)},
    )
    with sf.Session(table, budget=sf.Budget(12), ledger=ledger) as session:
        if not processes:
            open(f"{ledger}.{mine}", "w").close()  # all are ready before the first asks
            while len(glob.glob(f"{ledger}.[0-9]")) < 3:
                time.sleep(0.001)
            given = session.sql("SELECT AVG(age * 2) AS n FROM people").release(epsilon=1)
            chosen = session.most_common("age", epsilon=1, among=range(30, 40))
            print(given.table["n"][0], chosen.value, flush=True)
            print("paid" if not given.free else "free", "paid" if not chosen.free else "free", flush=True)
            return
        for age in range(mine, 110, processes):
            query = session.sql(f"SELECT COUNT(*) AS n FROM people WHERE age > {age}")
            try:
                print("answer", query.release(epsilon=1).table["n"][0], flush=True)
            except sf.errors.BudgetExceeded:
                print("refused", flush=True)
                break


if __name__ == "__main__":
    main()
