"""Start: from a file to a table that can be asked.

```
section     /start: its steps (screens), what is decided so far (drafting), files that are sent (uploading)
started     /start/done: the first question, and the first account
```
"""
