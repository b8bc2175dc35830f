"""Exact laws as functions of a stream of fair bits; the source of the bits is `sfumato.random`."""
