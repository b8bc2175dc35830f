"""Short scenes that show why exact answers harm and what privacy costs: `sfumato lab`, and notebooks.

A scene is a page of text with Python in it. Told in a terminal it is the text and what the code prints; as a
notebook it is both.
"""

from __future__ import annotations

from sfumato.lab.notebook import notebook
from sfumato.lab.perform import Cell, perform, play
from sfumato.lab.portrait import dots, portrait
from sfumato.lab.scene import Scene, scene, scenes
from sfumato.lab.town import Town, town
from sfumato.lab.trial import trial

__all__ = [
    "Cell",
    "Scene",
    "Town",
    "dots",
    "notebook",
    "perform",
    "play",
    "portrait",
    "scene",
    "scenes",
    "town",
    "trial",
]
