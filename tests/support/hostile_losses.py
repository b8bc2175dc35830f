"""What a hostile server may say was paid: every kind of loss, with every parameter far beyond use.

Run by itself, in a process whose memory has a limit, it prints each reply whose hindsight a client does not
tell in time, or that ends in no sentence of Sfumato's.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from hostile_replies import fault
from sfumato.client.hindsight import looking_back, paid_of
from sfumato.ledger import Balance
from sfumato.numeric.exact import read_fraction
from sfumato.session.carried.balances import unpack_balance

Loss = dict[str, Any]
BYTES = 3 << 30
"""How much memory all of them may have, what Python and its libraries map included."""
SECONDS = 120
"""How long one may take: the figure of a hard but honest composition takes seconds."""
POWERS = (0, 3, 4, 5, 6, 7, 8, 9, 10, 12, 18, 100, 300)
COUNTS = (1, 2, 17, 1_000, 10**12)
DELTAS = ("1/1000000", "1/" + str(10**300), "999/1000", "0")
LAPLACE: Loss = {"loss": "laplace.1", "pure": "2/5"}
PURE: Loss = {"loss": "pure.1", "pure": "1/10"}
MATES: tuple[list[Any], ...] = (
    [],
    [[LAPLACE, 1]],
    [[PURE, 2], [{"loss": "gaussian.1", "rho": "1/100", "point": None}, 5], [LAPLACE, 10]],
    [[LAPLACE, 1_000], [PURE, 1_000]],
)


def gaussian(rho: str) -> Loss:
    return {"loss": "gaussian.1", "rho": rho, "point": None}


def of_one(number: str, whole: int) -> Iterator[Loss]:
    """Every kind of loss with a number in the place of each of its parameters, where it may be."""
    few: Loss = {"loss": "composed.1", "parts": [[LAPLACE, 3], [PURE, 2]]}
    many: Loss = {"loss": "composed.1", "parts": [[LAPLACE, 20], [PURE, whole]]}
    for kind in ("pure.1", "laplace.1", "bounded-range.1"):
        yield {"loss": kind, "pure": number}
    yield {"loss": "response.1", "pure": number, "categories": 3}
    yield {"loss": "response.1", "pure": "1/2", "categories": whole + 1}
    yield {"loss": "discrete-laplace.1", "rate": number, "sensitivity": 1}
    yield {"loss": "discrete-laplace.1", "rate": "1/10", "sensitivity": whole}
    yield {"loss": "discrete-laplace.1", "rate": f"1/{whole}", "sensitivity": whole}
    yield {"loss": "approximate.1", "point": [number, "1/100000000"]}
    yield {"loss": "concentrated.1", "concentrated": [number, "0/1"]}
    yield {"loss": "concentrated.1", "concentrated": [number, "1/100000000"]}
    yield {"loss": "concentrated.2", "concentrated": ["1/10", "0/1"], "point": [number, "1/1000"]}
    yield {"loss": "renyi.1", "orders": ["2/1", "8/1"], "values": [number, number]}
    yield {
        "loss": "renyi.1",
        "orders": [f"{n + 2}/1" for n in range(min(whole, 3_000))],
        "values": ["1/1"] * min(whole, 3_000),
    }
    yield gaussian(number)
    yield gaussian("1/2") | {"point": [number, "1/1000"]}
    for scalar in (True, False):
        yield {"loss": "discrete-gaussian.1", "variance": number, "sensitivity": "1/1", "scalar": scalar}
        yield {
            "loss": "discrete-gaussian.1",
            "variance": "100/1",
            "sensitivity": f"{whole}/1",
            "scalar": scalar,
        }
    for inner in (
        {"loss": "laplace.1", "pure": number},
        gaussian(number),
        LAPLACE,
        gaussian("1/2"),
        few,
        many,
    ):
        for rate in ("1/10", f"1/{whole + 1}", f"{whole}/{whole + 1}"):
            yield {"loss": "sampled.1", "inner": inner, "rate": rate, "scheme": "poisson"}
            yield {"loss": "sampled.1", "inner": inner, "rate": rate, "scheme": "fixed"}
            yield {"loss": "sampled-exchange.1", "inner": inner, "rate": rate}
        yield {"loss": "group.1", "inner": inner, "size": min(whole, 10**12) + 1}
        yield {"loss": "adjacent.1", "inner": inner, "neighbours": "exchange"}
        for adjacency in ("add-remove", "exchange"):
            parts = [inner, PURE, *({**LAPLACE, "pure": f"1/{n + 3}"} for n in range(min(whole, 2_000)))]
            yield {"loss": "parallel.1", "parts": parts, "adjacency": adjacency}
    for known in (
        {"loss": "renyi.1", "orders": ["2/1"], "values": ["1/1"]},
        {"loss": "approximate.1", "point": ["1/2", "1/100000000"]},
    ):
        yield {"loss": "group.1", "inner": known, "size": min(whole, 10**12) + 1}
    yield {"loss": "allocated.1", "inner": gaussian("1/2"), "bins": min(whole, 10**7) + 1}
    yield {"loss": "allocated.1", "inner": gaussian(number), "bins": 100}


def documents() -> Iterator[tuple[str, list[Any]]]:
    """Such losses, large and small, alone and among others, once and often; and many at once."""
    for power in POWERS:
        for number in (f"{10**power}/1", f"1/{10**power}"):
            for loss in of_one(number, 10 ** min(power, 18)):
                for count in COUNTS:
                    for place, mates in enumerate(MATES):
                        name = f"{loss}"[:200].replace(str(10**power), f"10^{power}")
                        yield f"{name} x {count} with mates {place}", [[loss, count], *mates]
    for many in (100, 1_000, 5_000):
        yield f"{many} Laplace", [[{**LAPLACE, "pure": f"{n}/{many}"}, n] for n in range(1, many)]
        yield f"{many} large", [[{**LAPLACE, "pure": f"{4096 * n}/{many}"}, 1] for n in range(1, many)]
        yield f"{many} Gaussian", [[gaussian(f"{n}/{many}"), n] for n in range(1, many)]
        yield f"{many} primes", [[{**PURE, "pure": f"{10**3000}/{10**3000 + n + 1}"}, 1] for n in range(many)]
        sample = {"loss": "sampled.1", "rate": "1/10", "scheme": "poisson"}
        yield f"{many} samples", [[{**sample, "inner": gaussian(f"{n}/{many}")}, 10] for n in range(1, many)]


def balance_of(losses: list[Any], delta: str = "1/1000000", spent: str = "3") -> Balance:
    """A balance as a client has it, of a server that says so."""
    number = {"fraction": spent}
    data = dict.fromkeys(("epsilon", "spent", "remaining", "spent_delta", "remaining_delta"), number)
    said = {"dataset": "visits", "analyst": "ada", "accountant": "basic", "entries": 1}
    flags = dict.fromkeys(("open", "closed", "limited", "shared"), True)
    whole = {**said, **data, **flags, "delta": {"fraction": delta}, "gate": {"map": []}}
    return looking_back(unpack_balance(whole, lambda: paid_of(losses)))


def told(losses: list[Any], delta: str) -> None:
    """Looks back, and shows it."""
    balance = balance_of(losses, delta)
    assert 0 <= balance.retrospective <= read_fraction("3")
    str(balance)


def search(every: int, seed: int) -> tuple[int, list[str]]:
    """How many were tried, one of so many, and what is wrong."""

    def over(*_: object) -> None:
        raise TimeoutError("endless")

    signal.signal(signal.SIGALRM, over)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    picked, faults, tried = random.Random(seed), [], 0
    for name, losses in documents():
        if picked.randrange(every):
            continue
        tried, delta, begun = tried + 1, picked.choice(DELTAS), time.monotonic()
        wrong = fault(lambda losses=losses, delta=delta: told(losses, delta), SECONDS)  # type: ignore[misc]
        if wrong:
            faults.append(f"{name} at {delta[:12]}, {time.monotonic() - begun:.0f} s: {wrong}")
            print(faults[-1], flush=True)
    return tried, faults


if __name__ == "__main__":
    count, found = search(int(sys.argv[1]), int(sys.argv[2]))
    print(f"{count} replies, {len(found)} faults")
    sys.exit(bool(found))
