"""Watch: budgets, the ledger, and what stewards decide.

```
section     /watch: budgets (standing), charts (history), the ledger (searching; told: in words), checks
deciding    /watch/acts: the steward's acts on budgets
staff       /watch/accounts: on accounts
```
"""
