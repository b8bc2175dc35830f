"""The steward's promise: which columns a table has, within which bounds, and whose privacy is protected.

`PrivateTable` is about people and names them by its `PrivacyUnit`: a column, a single row, or the owner of a
row in another table. `PublicTable` is about no one. `owners` follows a table's units to the table that names
them, `dataset_of` says whose budget pays.
"""

from sfumato.schema.columns import (
    Bool,
    ColumnType,
    Date,
    Enum,
    Float,
    Int,
    Kind,
    Text,
    Time,
    Timestamp,
    column_from_dict,
)
from sfumato.schema.keys import Keys
from sfumato.schema.owners import Tables, dataset_of, owners, pointers_of
from sfumato.schema.states import State
from sfumato.schema.tables import PrivateTable, PublicTable
from sfumato.schema.unit import Adjacency, PrivacyUnit
from sfumato.schema.windows import Windows

__all__ = [
    "Adjacency",
    "Bool",
    "ColumnType",
    "Date",
    "Enum",
    "Float",
    "Int",
    "Keys",
    "Kind",
    "PrivacyUnit",
    "PrivateTable",
    "PublicTable",
    "State",
    "Tables",
    "Text",
    "Time",
    "Timestamp",
    "Windows",
    "column_from_dict",
    "dataset_of",
    "owners",
    "pointers_of",
]
