"""Synthetic tables: rows of the same shape as a private table's, which anyone may have.

```python
from sfumato import synth

people = synth.fit(session, "people", epsilon=1, delta=1e-9)
people.sample(1000)                                         # an Arrow table
people.marginal(["age", "sex"])                             # the model's own counts, with error bars
people.estimate("SELECT AVG(age) FROM people")              # the same for questions
```

The whole fit is one purchase; rows are drawn from it free, as often as one likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

if TYPE_CHECKING:
    from sfumato.synth.checked import CheckQuote, SynthCheck
    from sfumato.synth.checking import check, quote_check
    from sfumato.synth.constraints import Determines, Never, Totals
    from sfumato.synth.estimates import Estimated
    from sfumato.synth.files import load, load_tables, save
    from sfumato.synth.fitting import SynthQuote, fit, quote
    from sfumato.synth.leveling import LevelCounts, LevelsQuote, levels, quote_levels
    from sfumato.synth.linked import TablesQuote, quote_tables, tables
    from sfumato.synth.linked_tables import SyntheticTables
    from sfumato.synth.methods import METHODS
    from sfumato.synth.synthesizer import Synthesizer

# Loaded on first use.
_HOMES = {
    "checked": "CheckQuote SynthCheck",
    "checking": "check quote_check",
    "constraints": "Determines Never Totals",
    "estimates": "Estimated",
    "files": "load load_tables save",
    "fitting": "SynthQuote fit quote",
    "leveling": "LevelCounts LevelsQuote levels quote_levels",
    "linked": "TablesQuote quote_tables tables",
    "linked_tables": "SyntheticTables",
    "methods": "METHODS",
    "synthesizer": "Synthesizer",
}

__all__ = [
    "METHODS",
    "CheckQuote",
    "Determines",
    "Estimated",
    "LevelCounts",
    "LevelsQuote",
    "Never",
    "SynthCheck",
    "SynthQuote",
    "Synthesizer",
    "SyntheticTables",
    "TablesQuote",
    "Totals",
    "check",
    "fit",
    "levels",
    "load",
    "load_tables",
    "quote",
    "quote_check",
    "quote_levels",
    "quote_tables",
    "save",
    "tables",
]

__getattr__, __dir__ = lazy(globals(), _HOMES)
