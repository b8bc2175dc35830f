"""Pictures from plain arrays: released values with their noise, budgets, attacks, bounds, groups.

Every function returns a matplotlib figure that belongs to the caller alone, and writes a .png or .svg if a
path is given. Needs the extra `plots`: `pip install 'sfumato[plots]'`.
"""

from __future__ import annotations

from sfumato.plots.anonymity import before_after, utility_curve
from sfumato.plots.attacks import reconstruction_curve, success_rates
from sfumato.plots.bands import noise_bands, noise_panels
from sfumato.plots.bounds import against_bound
from sfumato.plots.budget import budget_bar
from sfumato.plots.columns import column_counts
from sfumato.plots.curves import deployments_chart, tradeoff_curve
from sfumato.plots.densities import density_curves, neighbouring_densities
from sfumato.plots.fidelity import Curves, Rates, Whiskers, fidelity_page
from sfumato.plots.groups import group_figures
from sfumato.plots.raster import pixels
from sfumato.plots.shares import share_maps

__all__ = [
    "Curves",
    "Rates",
    "Whiskers",
    "against_bound",
    "before_after",
    "budget_bar",
    "column_counts",
    "density_curves",
    "deployments_chart",
    "fidelity_page",
    "group_figures",
    "neighbouring_densities",
    "noise_bands",
    "noise_panels",
    "pixels",
    "reconstruction_curve",
    "share_maps",
    "success_rates",
    "tradeoff_curve",
    "utility_curve",
]
