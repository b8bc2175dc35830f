"""What a client computes of the losses that a server says were paid: none that costs too much."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from hostile_losses import LAPLACE, PURE, balance_of, gaussian, of_one
from hostile_replies import TEXTS, TOKEN, Hostile, Recorded
from served import house, known, started
from sfumato.client.hindsight import paid_of
from sfumato.loss import PrivacyLoss
from sfumato.server.http.app import make_app

ROOT = Path(__file__).parents[2]
RENYI = {"loss": "renyi.1", "orders": ["2/1"], "values": ["1/1"]}


def composed(losses, **said):
    """What would be composed, or None where what is spent is told in its place."""
    paid = balance_of(losses, **said)._losses()
    return None if any(loss.pure == 10**300 for loss, _ in paid) else paid


def sampled(inner):
    return {"loss": "sampled.1", "inner": inner, "rate": "1/10", "scheme": "poisson"}


def together(*parts):
    return {"loss": "composed.1", "parts": [list(part) for part in parts]}


def pair(parts, adjacency="exchange"):
    return {"loss": "parallel.1", "parts": parts, "adjacency": adjacency}


def different(many):
    return [{**LAPLACE, "pure": f"1/{place + 3}"} for place in range(many)]


@pytest.mark.parametrize(
    "losses",
    [
        [[{**LAPLACE, "pure": 10**18}, 1], [LAPLACE, 1]],
        [[together((LAPLACE, 1), ({**PURE, "pure": "4097/1"}, 1)), 1]],
        [[gaussian("4097/1"), 1]],
        [[sampled({**LAPLACE, "pure": "1000000/1"}), 1]],
        [[{"loss": "adjacent.1", "inner": {**PURE, "pure": "5000/1"}, "neighbours": "exchange"}, 1]],
        [[{"loss": "discrete-laplace.1", "rate": "1/10", "sensitivity": 10**12}, 1]],
        [[{"loss": "discrete-gaussian.1", "variance": "1/10000", "sensitivity": "1/1", "scalar": True}, 1]],
        [[{"loss": "group.1", "inner": sampled(LAPLACE), "size": 4_097}, 1]],
        [[{"loss": "group.1", "inner": RENYI, "size": 2}, 1]],
        [[LAPLACE, 10**6], [PURE, 1]],
        [[together((LAPLACE, 10**4)), 101]],
        [[sampled(gaussian(f"1/{place + 2}")), 1] for place in range(65)],
        [[sampled(together((LAPLACE, 15), (PURE, 2))), 1]],
        [[pair(different(9)), 1]],
        [[pair(different(65), "add-remove"), 1]],
        [[{**PURE, "pure": f"{10**3000}/{10**3000 + place + 1}"}, 1] for place in range(20)],
    ],
)  # fmt: skip
def test_what_costs_too_much_to_compose_is_told_as_spent(losses):
    assert composed(losses) is None
    assert balance_of(losses).retrospective == 3


@pytest.mark.parametrize("delta", ["1/" + str(10**31), "2/3"])
def test_deltas_of_no_budget_are_told_as_spent(delta):
    assert composed([[LAPLACE, 2]], delta=delta) is None
    assert balance_of([[LAPLACE, 2]], delta).retrospective == 3


@pytest.mark.parametrize(
    "losses",
    [
        [[LAPLACE, 999_999], [PURE, 1]],
        [[{**LAPLACE, "pure": "4096/1"}, 200], [gaussian("4096/1"), 10]],
        [[{"loss": "discrete-laplace.1", "rate": f"1/{2**40}", "sensitivity": 2**40}, 7]],
        [[sampled(gaussian(f"1/{place + 2}")), 10_000] for place in range(64)],
        [[sampled(together((gaussian("1/2"), 100), (gaussian("1/3"), 5))), 1]],
        [[sampled(together((LAPLACE, 14), (PURE, 2))), 1]],
        [[pair(different(8)), 1]],
        [[pair(different(40), "add-remove"), 1]],
        [[loss, 1] for loss in different(5_000)],
        [],
    ],
)
def test_what_budgets_are_spent_on_is_composed(losses):
    assert composed(losses) == [(PrivacyLoss.from_dict(loss), count) for loss, count in losses]


def test_a_ledger_may_hold_what_is_not_composed():
    """Whoever set such a budget is given balances and receipts, and what is spent as the figure."""
    with (
        house(epsilon=10**9) as place,
        started(make_app(place, known)) as url,
        sf.connect(url, token=TOKEN) as session,
    ):
        release = session.sql(TEXTS[0]).release(epsilon=10**6)
        balance = session.balance()
        assert release.receipt.loss.pure == session.releases()[-1].loss.pure == 10**6
        assert balance.spent == balance.retrospective == 10**6
        assert balance.dataset in str(balance)


def test_no_kind_of_loss_is_left_out():
    """Whatever kind a ledger keeps, in every order of size, it is weighed."""
    kinds = set()
    for power in (0, 4, 18, 300):
        for number in (f"{10**power}/1", f"1/{10**power}"):
            for loss in of_one(number, 10):
                kinds.add(loss["loss"])
                paid_of([[loss, 1]])
    newest = {
        kind.wire for kind in PrivacyLoss.__subclasses__() if kind.wire and "sfumato" in kind.__module__
    }
    assert newest <= kinds | {name.replace(".1", ".2") for name in kinds} | {"composed.1"}


@pytest.mark.parametrize(
    "wrong", [{}, [1], [[1, 1]], [[{}, 1]], [[{"loss": "composed.1"}, 1]], [[LAPLACE, "x"]], None]
)
def test_what_is_no_list_of_losses_is_one_sentence(wrong, honest):
    server = Hostile()
    server.honest = {kind: json.dumps(document).encode() for kind, document in honest.replies.items()}
    server.spoilt = {"losses": json.dumps(wrong).encode()}
    try:
        with sf.connect(server.url, token=TOKEN) as session:
            balance = session.balance()
            if wrong == {}:
                assert balance.retrospective == 0
            else:
                with pytest.raises(sf.errors.ServerUnreachable, match="connect anew"):
                    _ = balance.retrospective
            server.spoilt = {"losses": json.dumps([[{**LAPLACE, "pure": 10**18}, 1], [LAPLACE, 1]]).encode()}
            assert session.balance().retrospective == float(Fraction(balance.spent))
    finally:
        server.close()


@pytest.fixture(scope="module")
def honest():
    with house() as place, started(make_app(place, known)) as address:
        yield Recorded(address, TEXTS[0])


@pytest.mark.stats
@pytest.mark.parametrize("seed", [1, 2])
def test_no_losses_take_the_memory_of_a_client(seed):
    paths = os.pathsep.join(str(ROOT / one) for one in ("src", "tests/support", "tests"))
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "support" / "hostile_losses.py", "1000", str(seed)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
