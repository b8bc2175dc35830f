"""One picture of each mechanism: python examples/pictures/mechanisms.py [NAME …]

They are written to docs/pictures/mechanisms, each as NAME.svg and, for dark pages, NAME-dark.svg.
"""

from __future__ import annotations

from choices import CHOICES
from look import main
from noise import NOISE
from selections import SELECTIONS

PICTURES = (*NOISE, *CHOICES, *SELECTIONS)

if __name__ == "__main__":
    main(PICTURES, "mechanisms")
