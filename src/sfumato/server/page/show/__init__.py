"""Show: cards, dossiers and releases for others.

```
section     /show, and /public without a login
released    a release as one file, and where those that are public lie
```
"""
