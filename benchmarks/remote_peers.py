"""What the peers of the second environment do, by that environment's interpreter: see `remote.py`.

A line of JSON is a question, a line of JSON its answer, until the pipe closes. This file imports nothing of
the others, and each peer only where it is used: one that is missing leaves the others alone.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

DISTRIBUTIONS = (
    "pure-ldp",
    "multi-freq-ldpy",
    "pycanon",
    "anjana",
    "numpy",
    "pandas",
    "scipy",
    "numba",
    "xxhash",
)


def _nothing(_: Any) -> None:
    return None


@dataclass(frozen=True)
class Ready:
    """A call, the reports or rows it takes, what it is in words, bytes a report, how to read its result."""

    call: Callable[[], Any]
    count: int
    operation: str
    bytes: int | None = None
    read: Callable[[Any], Any] = _nothing


# ── local reports: values are numbers from 0 on, and one call takes a list of them ──


def pure_kary(values: list[int], epsilon: float, domain: int) -> Ready:
    client = _pure().DEClient(epsilon, domain, index_mapper=_same)
    return _one_by_one(client, values, "DEClient.privatise, a value a call, pseudorandom (random)")


def pure_hashing(values: list[int], epsilon: float, domain: int) -> Ready:
    client = _pure().LHClient(epsilon, domain, use_olh=True, index_mapper=_same)
    words = "LHClient(use_olh=True).privatise, a value a call: xxHash in C, pseudorandom (numpy's legacy)"
    return _one_by_one(client, values, words)


def pure_hadamard(values: list[int], epsilon: float, domain: int) -> Ready:
    module = importlib.import_module("pure_ldp.frequency_oracles.hadamard_response")
    server = module.HadamardResponseServer(epsilon, domain, index_mapper=_same)
    client = module.HadamardResponseClient(epsilon, domain, server.get_hash_funcs(), index_mapper=_same)
    words = "HadamardResponseClient.privatise, a value a call: the bits of an index in Python"
    return _one_by_one(client, values, words)


def pure_unary(values: list[int], epsilon: float, domain: int) -> Ready:
    client = _pure().UEClient(epsilon, domain, use_oue=True, index_mapper=_same)
    words = "UEClient(use_oue=True).privatise, a value a call: numpy.random.choice, an int64 for each bit"
    return _one_by_one(client, values, words)


def pure_aggregate(values: list[int], epsilon: float, domain: int) -> Ready:
    oracles = _pure()
    client = oracles.LHClient(epsilon, domain, use_olh=True, index_mapper=_same)
    server = oracles.LHServer(epsilon, domain, use_olh=True, index_mapper=_same)
    reports = [client.privatise(value) for value in values]
    words = "LHServer(use_olh=True).aggregate_all: each value of the domain hashed for each report"
    return Ready(lambda: server.aggregate_all(reports), len(values), words)


def multi_aggregate(values: list[int], epsilon: float, domain: int) -> Ready:
    module = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.LH")
    reports = [module.LH_Client(value, domain, epsilon, True) for value in values]
    words = (
        "LH_Aggregator_MI(optimal=True): each value of the domain hashed for each report, then the estimate"
    )
    return Ready(lambda: module.LH_Aggregator_MI(reports, domain, epsilon, True), len(values), words)


def multi_unary(values: list[int], epsilon: float, domain: int) -> Ready:
    client = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.UE").UE_Client
    size = client(values[0], domain, epsilon, True).nbytes  # the first call compiles
    words = "UE_Client(optimal=True), a value a call, compiled by Numba, pseudorandom, a float64 for each bit"
    return Ready(lambda: [client(value, domain, epsilon, True) for value in values], len(values), words, size)


def _pure() -> Any:
    return importlib.import_module("pure_ldp.frequency_oracles")


def _same(index: int) -> int:
    return index


def _one_by_one(client: Any, values: list[int], words: str) -> Ready:
    """Reports have no wire format: an array counts as long as it is, others as their longest pickle."""
    some = [client.privatise(value) for value in values[:64]]
    if hasattr(some[0], "nbytes"):
        size = some[0].nbytes
    else:
        size, words = max(len(pickle.dumps(each)) for each in some), f"{words}; its bytes are a pickle's"
    return Ready(lambda: [client.privatise(value) for value in values], len(values), words, size)


# ── anonymity: the table is a CSV file ──


def pycanon_k(path: str, quasi: list[str]) -> Ready:
    call = importlib.import_module("pycanon.anonymity").k_anonymity
    frame = _frame(path)
    return Ready(lambda: call(frame, quasi), len(frame), "k_anonymity of a pandas frame", read=int)


def pycanon_t(path: str, quasi: list[str], sensitive: str, rows: int) -> Ready:
    call = importlib.import_module("pycanon.anonymity").t_closeness
    frame = _frame(path).head(rows)
    words = "t_closeness of a pandas frame, equal distances: a filter for each class and value"
    return Ready(lambda: call(frame, quasi, [sensitive]), len(frame), words, read=float)


def anjana_k(
    path: str, quasi: list[str], k: int, suppressed: float, hierarchies: dict[str, list[list[Any]]]
) -> Ready:
    call = importlib.import_module("anjana.anonymity").k_anonymity
    numpy = importlib.import_module("numpy")
    frame = _frame(path)[quasi]
    levels = {
        name: {level: numpy.array(values) for level, values in enumerate(each)}
        for name, each in hierarchies.items()
    }

    def read(result: Any) -> dict[str, int]:
        sizes = result.groupby(quasi, observed=True).size().tolist() if len(result) else []
        kept = sum(sizes)
        # A suppressed row cannot be told from any other, as in our own figure.
        cost = sum(size * size for size in sizes) + (len(frame) - kept) * len(frame)
        return {"k": min(sizes, default=0), "classes": len(sizes), "rows": kept, "discernibility": cost}

    words = f"k_anonymity: levels of whole columns (no Mondrian), at most {suppressed:g} % of rows suppressed"
    return Ready(lambda: call(frame, [], quasi, k, suppressed, levels), len(frame), words, read=read)


@cache
def _frame(path: str) -> Any:
    return importlib.import_module("pandas").read_csv(path, keep_default_na=False)


TASKS: dict[tuple[str, str], Callable[..., Ready]] = {
    ("pure-ldp", "k-ary response"): pure_kary,
    ("pure-ldp", "local hashing"): pure_hashing,
    ("pure-ldp", "Hadamard response"): pure_hadamard,
    ("pure-ldp", "unary encoding"): pure_unary,
    ("pure-ldp", "aggregate"): pure_aggregate,
    ("multi-freq-ldpy", "aggregate"): multi_aggregate,
    ("multi-freq-ldpy", "unary encoding"): multi_unary,
    ("pycanon", "k"): pycanon_k,
    ("pycanon", "t"): pycanon_t,
    ("anjana", "k-anonymity"): anjana_k,
}


# ── questions and answers ──


def timed(ready: Ready) -> tuple[dict[str, float], Any]:
    """Seconds of one call, without garbage collection, and what its result says."""
    gc.collect()
    gc.disable()
    cpu, wall = time.process_time(), time.perf_counter()
    result = ready.call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    gc.enable()
    return {"wall": wall, "cpu": cpu}, ready.read(result)


def installed() -> dict[str, str]:
    """The version of each package here, or "not installed"."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def answer(request: dict[str, Any], kept: list[Ready], said: dict[int, Any]) -> dict[str, Any]:
    """Answer one question; what was made ready and what it said last stay in the two collections."""
    if request["do"] == "versions":
        return dict(installed())
    if request["do"] == "run":
        seconds, said[request["key"]] = timed(kept[request["key"]])
        return dict(seconds)
    if request["do"] == "answer":
        return {"answer": said[request["key"]]}
    try:
        ready = TASKS[request["who"], request["task"]](**request["given"])
    except ImportError as error:
        return {"missing": str(error)}
    kept.append(ready)
    return {
        "key": len(kept) - 1,
        "count": ready.count,
        "operation": ready.operation,
        "bytes": ready.bytes,
    }


def main() -> None:
    # The peers print; answers go to what was the output before, and everything else to the errors.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    kept: list[Ready] = []
    said: dict[int, Any] = {}
    for line in sys.stdin:
        try:
            made = answer(json.loads(line), kept, said)
        except Exception as error:
            traceback.print_exc()
            made = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(made) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
