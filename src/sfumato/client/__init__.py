"""A session over HTTP: the same questions, quotes, answers and errors, with the data on another machine.

```python
s = sf.connect("https://answers.example.org", token="sfu_…")
r = s.sql("SELECT country, COUNT(*) AS n FROM visits GROUP BY country").release(epsilon=0.3)
```

Questions are understood here, by what is declared about the tables; the server decides, reads and pays. What
comes back is what the ledger keeps of an answer, so that bars, intervals and pictures are made here, free.
"""

from sfumato.client.query import RemoteQuery
from sfumato.client.session import RemoteSession, connect

__all__ = ["RemoteQuery", "RemoteSession", "connect"]
