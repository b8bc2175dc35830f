"""Whether declarations fit the data, for the steward alone: what does not fit, and what limits would cut.

What it reads and tells is exact and paid for by nobody. It stores nothing, and no question depends on it.
"""

from sfumato.validation.report import Change, ColumnReport, Lines, TableReport, Units, Validation
from sfumato.validation.run import validate

__all__ = ["Change", "ColumnReport", "Lines", "TableReport", "Units", "Validation", "validate"]
