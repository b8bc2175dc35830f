"""The HTTP front: datasets, quotes, releases, balances and receipts for whoever has a token."""
