"""The data path: a question is priced, paid for, read, made private and answered, in that order.

```
Session.sql / .table ──► Query ──► quote                                                   free, pure
                           │
                           └─► buy: Ledger.debit ──► Vault.read ──► noise ──► Ledger.record ──► Release
```
"""

from sfumato.session.attaching import declaration_of
from sfumato.session.query import Query
from sfumato.session.release import Release
from sfumato.session.session import Session
from sfumato.session.vault import Vault

__all__ = ["Query", "Release", "Session", "Vault", "declaration_of"]
