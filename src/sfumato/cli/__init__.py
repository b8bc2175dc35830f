"""The command line: thin commands over the package, one file a group."""

try:
    from sfumato.cli.app import app, main
except KeyboardInterrupt:  # while loading: nothing was begun, and a traceback helps nobody
    raise SystemExit(130) from None

__all__ = ["app", "main"]
