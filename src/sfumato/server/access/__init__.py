"""Who may do what: accounts, their tokens, and logins over HTTP and PostgreSQL's protocol.

```
accounts = Accounts.open(ledger, state=state)
account = accounts.check(token, address=peer)                  HTTP; 1,000 a second need no query each

login = accounts.login(user, address=peer, binding=hash)       PostgreSQL: the password is the token
login.first(…), login.final(…)                                 SCRAM-SHA-256, with or without PLUS
account = accounts.current(login.token)                        before each statement: not revoked since

account.needs(Act.SPEND)                                       or AccessDenied
```

All that fails at a login is one `LoginFailed`, which does not say what was wrong, or `TooManyTries`.
"""

from __future__ import annotations

from sfumato.server.access.accounts import FRESH, LIVE_TOKENS, Accounts, Listed, TokenInfo, Witness
from sfumato.server.access.login import Login
from sfumato.server.access.logins import Logins
from sfumato.server.access.roles import Account, Act, Role
from sfumato.server.access.scram import Exchange, ScramKeys, ScramVerifier, end_point, mechanisms
from sfumato.server.access.tries import Tries

__all__ = [
    "FRESH",
    "LIVE_TOKENS",
    "Account",
    "Accounts",
    "Act",
    "Exchange",
    "Listed",
    "Login",
    "Logins",
    "Role",
    "ScramKeys",
    "ScramVerifier",
    "TokenInfo",
    "Tries",
    "Witness",
    "end_point",
    "mechanisms",
]
