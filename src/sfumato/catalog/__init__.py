"""`sfumato.toml`: which tables may be asked, whose privacy is protected, within which bounds, at what price.

`Catalog.read` reads one, `draft` writes a commented first one from column names and types alone.
"""

from sfumato.catalog.read import Catalog, EngineLimits
from sfumato.catalog.write import Decided, DraftTable, draft, write_new
from sfumato.schema.classify import Role, role_of

__all__ = ["Catalog", "Decided", "DraftTable", "EngineLimits", "Role", "draft", "role_of", "write_new"]
