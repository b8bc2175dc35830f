"""Pictures from plain arrays: released values with their noise, budgets, attackers, published deployments.

Every function returns a matplotlib figure that belongs to the caller alone, and writes a .png or .svg if a
path is given. Needs the extra `plots`: `pip install 'sfumato[plots]'`.
"""

from __future__ import annotations

from sfumato.plots.bands import noise_bands, noise_panels

__all__ = ["noise_bands", "noise_panels"]
