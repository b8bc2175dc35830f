"""Scheduled releases: what a file lists, published window by window, with files that anybody may have.

```
release.toml ── read ──► ReleaseFile: series, and questions that are asked about each window
   │ Agenda.of:  which windows are over and not published; refuses whatever could be refused, unpaid
   ▼ publish
 Entry, for each: pays, reads and records what is due ──► Published: one table, its price, its receipts
   ▼ write
 NAME.csv, NAME.parquet, index.html, manifest.json: the same bytes each time
```
"""

from __future__ import annotations

from sfumato.publishing.agenda import Agenda
from sfumato.publishing.entries import Entry, Published
from sfumato.publishing.outlook import Outlook, outlooks
from sfumato.publishing.wanted import KEYS, FileUnusable, ReleaseFile, Wanted, read
from sfumato.publishing.writing import Folder

__all__ = [
    "KEYS",
    "Agenda",
    "Entry",
    "FileUnusable",
    "Folder",
    "Outlook",
    "Published",
    "ReleaseFile",
    "Wanted",
    "outlooks",
    "read",
]
