"""One way to pay: whatever is read for an answer is recalled, debited, read, made private and recorded here.

```
Purchase(loss, fingerprint, answer, write, read_back)
   │ buy
   ├─► recall ──► on record and good enough: free, unread; another's counts toward the reader's limit
   └─► turn ──► recall ──► debit ──► answer(right) ──► record
        │                              └─ one read at a time, each once; or right.steps(filter)
        └─ one thread of one process; the others wait for the record, and pay themselves if none comes
```

SQL, selection, games, training and synthesis are spenders: each says what it costs, which question it
answers, what it reads once it may, and how its answer is kept. A fit whose next step depends on the last one
makes one debit for the loss of a filter and takes each step from it (`Right.steps`). What makes several
purchases in a row asks first whether all of them will be admitted (`Forecast`).
"""

from sfumato.purchase.buying import (
    Bought,
    Purchase,
    buy,
    check_access,
    is_no_dearer,
    known,
    on_record,
    summed,
)
from sfumato.purchase.forecast import Forecast

__all__ = [
    "Bought",
    "Forecast",
    "Purchase",
    "buy",
    "check_access",
    "is_no_dearer",
    "known",
    "on_record",
    "summed",
]
