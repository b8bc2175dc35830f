"""The page: what people see of a house in a browser. Server-rendered; a few small scripts make it quicker.

```
app         the page over a house: all sections behind one hall, and how what fails is shown
ask         a question, its quote while it is typed, the answer as a picture and as files
feel        what an epsilon does, on a made-up answer and to an attacker
watch       budgets, the ledger, checks, and what stewards decide
show        cards, dossiers and releases for others
start       from a file to a table that can be asked
hall        logins as cookies, and what every request passes
common      what the sections share
looks       templates, and what all of them know
forms       what forms say; once: a form is done once
rest        what is left of a budget, in words
drawing     charts as SVG, from plain numbers
```

Each section is a room with a class and `add_to(app)`, as the addresses of the API are, and knows nothing of
the others. Nothing here reads data, decides on a price or writes to the ledger by itself: it calls what the
API calls, in the asker's own name.
"""
