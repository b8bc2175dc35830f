"""What came before: k-anonymity and its kin, measured and enforced.

```python
import sfumato as sf

print(sf.anonymity.measure("people.csv", quasi=["zip", "age"], sensitive="score"))
```

Steward-only: everything here reads the truth, and nothing pays for it. None of it is differential privacy: the
figures tell how a table fares against somebody who knows the quasi-identifiers and nothing else, and two
tables that are anonymous each may not be so together.
"""

from __future__ import annotations

from sfumato.anonymity.measure import Anonymity, Diversity, measure
from sfumato.anonymity.uniqueness import ColumnSet, Uniqueness, classes, uniqueness

__all__ = [
    "Anonymity",
    "ColumnSet",
    "Diversity",
    "Uniqueness",
    "classes",
    "measure",
    "uniqueness",
]
