"""Exact laws as functions of a stream of fair bits. No source of randomness lives here: see `sfumato.random`."""
