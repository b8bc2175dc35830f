"""The command line: thin commands over the package, one file a group."""

from sfumato.cli.app import app, main

__all__ = ["app", "main"]
