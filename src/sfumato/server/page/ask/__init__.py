"""Ask: a question, its price, the answer.

```
section     /ask: a question, its quote while it is typed (quoting), refusals as buttons (repairs)
answered    /ask/receipts, /ask/history: answers on record (past), pictures (charts) and files (downloads)
building    /ask/build: a question by choosing (picking: from the form; wording: to SQL and words)
declared    what may be asked, in words
```
"""
