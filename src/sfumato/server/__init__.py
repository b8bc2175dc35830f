"""The server: many analysts, one budget, behind a door that untrusted people may knock on."""

from __future__ import annotations

__all__: list[str] = []
