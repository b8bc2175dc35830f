"""The page: what people see of a house in a browser. Server-rendered; a few small scripts make it quicker.

```
entering    /login, /logout: a token becomes a sealed cookie, which lasts a working day
hall        what each request passes: the cookie, who asks, how much is sent, where a form came from
looks       templates, and what all of them know
drawing     charts as SVG, from plain numbers
ask         /ask: a question, its quote while it is typed (quoting), refusals as buttons (repairs)
answered    /ask/receipts, /ask/history: answers on record (past), pictures (charts) and files (downloads)
declared    what may be asked, and rest, what is left, both in words
watch       budgets, the ledger, checks: standing (gauges), history (charts), searching, told (receipts)
deciding    the steward's acts on budgets; staff: on accounts; once: a form is done once
badges      how many alerts there are, beside the name of a section
show        /show, /public: cards, dossiers and releases for others (released: a release as one file)
build       /ask/build: a question by choosing (picking: from the form; wording: to SQL and words)
feel        /feel: what an epsilon does, on a made-up answer (mock) and to an attacker (meaning)
```

Every section is a class with `add_to(app)`, as the addresses of the API are. Nothing here reads data, decides
on a price or writes to the ledger by itself: it calls what the API calls, in the asker's own name.
"""
