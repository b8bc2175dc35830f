"""The ledger: budgets that cannot be overdrawn, receipts that cannot be rewritten unnoticed.

`Ledger.open` gives one in an SQLite file, in PostgreSQL or in memory. `register` a dataset with its `Budget`,
`debit` before any row is read, which gives the right to read once; `record` the answer, `recall` it for free.
`verify` reads everything again. `sfumato.purchase` does all of this in order. `Steward(ledger)` raises,
limits and closes; a `Counter` is what an analyst has of a ledger.
"""

from __future__ import annotations

from sfumato.ledger.balance import Balance
from sfumato.ledger.budget import Budget
from sfumato.ledger.counter import Counter
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.memo import Memo
from sfumato.ledger.receipt import Dataset, Receipt
from sfumato.ledger.right import Right, Steps
from sfumato.ledger.steward import Steward
from sfumato.ledger.verification import Verification

__all__ = [
    "Balance",
    "Budget",
    "Counter",
    "Dataset",
    "Ledger",
    "Memo",
    "Receipt",
    "Right",
    "Steps",
    "Steward",
    "Verification",
]
