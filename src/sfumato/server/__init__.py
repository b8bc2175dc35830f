"""Many analysts, one budget: a session behind doors that untrusted analysts may knock on.

```
HTTP ──► http.guard: token, size ──┐
                                   ├──► House.session(analyst) ──► quote, release: the same as in one process
wire ──► SCRAM over TLS ───────────┘
```
"""
