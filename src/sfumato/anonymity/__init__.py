"""k-anonymity and related ideas from before differential privacy, measured and enforced.

```python
import sfumato as sf

print(sf.anonymity.measure("people.csv", quasi=["zip", "age"], sensitive="score"))
```

Steward-only: everything here reads the truth, and nothing pays for it. None of it is differential privacy:
the figures tell how a table fares against somebody who knows the quasi-identifiers and nothing else, and two
tables that are anonymous each may not be so together.
"""

from __future__ import annotations

from sfumato.anonymity.anonymized import Anonymized
from sfumato.anonymity.crowds import crowds
from sfumato.anonymity.deidentify import Deidentified, deidentify, roles
from sfumato.anonymity.generalize import generalize, suggest
from sfumato.anonymity.hierarchy import Hierarchy
from sfumato.anonymity.measure import Anonymity, Diversity, measure
from sfumato.anonymity.mondrian import mondrian
from sfumato.anonymity.uniqueness import ColumnSet, Uniqueness, classes, uniqueness
from sfumato.anonymity.utility import Utility, utility

__all__ = [
    "Anonymity",
    "Anonymized",
    "ColumnSet",
    "Deidentified",
    "Diversity",
    "Hierarchy",
    "Uniqueness",
    "Utility",
    "classes",
    "crowds",
    "deidentify",
    "generalize",
    "measure",
    "mondrian",
    "roles",
    "suggest",
    "uniqueness",
    "utility",
]
