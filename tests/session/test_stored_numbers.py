"""Numbers in what is kept or sent: one that would take longer to read than its text is long is refused."""

import json
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import LedgerUnusable
from sfumato.fits.kept import Kept
from sfumato.ledger import Budget, Memo, Receipt
from sfumato.plan.intervals.noise import Noise
from sfumato.session.carried.values import pack, unpack
from sfumato.session.choices import KeptChoice
from sfumato.session.payload import Answer
from sfumato.session.written import Manifest

HUGE = ["1e5000", "1e-5000", "9" * 5000, "1/" + "9" * 5000]
HALF = Fraction(1, 2)
RECEIPT = Receipt(
    1, "t", "debit", "ada", datetime(2026, 1, 1, tzinfo=UTC), None, {"epsilon": HALF}, {}, {}, "", None
)
ANSWER = Answer(
    (np.array([3]),), (Noise("laplace", 1.0, 0.0, True, 0.0),), HALF, HALF, "laplace", selection=(HALF, HALF),
    groups=((1,),), extras=((HALF, (np.array([1.0]),)),),
)  # fmt: skip


def spoilt(data: bytes | dict, text: str):
    """The same with a text in the place of each half, one at a time."""
    written = data.decode() if isinstance(data, bytes) else json.dumps(data)
    pieces = written.split('"1/2"')
    assert len(pieces) > 1
    for place in range(1, len(pieces)):
        other = '"1/2"'.join(pieces[:place]) + json.dumps(text) + '"1/2"'.join(pieces[place:])
        yield other.encode() if isinstance(data, bytes) else json.loads(other)


READERS = {
    "receipt": (RECEIPT.to_dict(), Receipt.from_dict),
    "totals": ({**RECEIPT.to_dict(), "totals": {"epsilon": "1/2"}}, Receipt.from_dict),
    "answer": (ANSWER.to_bytes(), Answer.from_bytes),
    "budget": (Budget(HALF, "1e-6").to_dict(), Budget.from_dict),
    "fraction": (pack(HALF), unpack),
    "decimal": ({"decimal": "1/2"}, unpack),
    "choice": (KeptChoice((1,), HALF).to_bytes(), KeptChoice.from_bytes),
    "files": (Manifest("f", "d", (), HALF, HALF, "laplace").to_bytes(), Manifest.from_bytes),
    "model": (Kept({}, HALF, HALF, {"x": (HALF, HALF)}).to_bytes(), Kept.from_bytes),
}


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:8])
@pytest.mark.parametrize("kind", READERS)
def test_a_number_that_is_too_long_is_refused_wherever_it_stands(kind, text):
    data, read = READERS[kind]
    for other in spoilt(data, text):
        if kind == "decimal" and (text.startswith("9") or "/" in text):
            continue
        with pytest.raises((LedgerUnusable, ValueError)):
            read(other)


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:8])
@pytest.mark.parametrize("name", ["epsilon", "delta", "asked"])
def test_a_memo_that_anybody_may_have_written_is_read_without_it(name, text):
    memo = Memo.of(
        {"spender": "sql", "words": "x", "epsilon": "1/2", "delta": "0", "asked": "1/2", name: text}
    )
    assert getattr(memo, name) is None
    assert memo.words == "x"


def test_what_earlier_versions_wrote_is_read():
    memo = Memo.of({"sql": "x", "epsilon": 0.25, "delta": "1e-06", "asked": " 1/3 "})
    assert (memo.epsilon, memo.delta, memo.asked) == (Fraction(1, 4), Fraction(1, 10**6), Fraction(1, 3))
