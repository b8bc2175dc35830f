"""Pictures by night: dark pages show x-dark.svg in place of x.svg, and x-dark.png in place of x-light.png."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class Twins(SphinxTransform):
    """Adds the dark twin of each picture that has one; the theme shows one of the two.

    It runs before Sphinx collects the pictures of a page, so that both are copied to the site.
    """

    default_priority = 600

    def apply(self) -> None:
        """Look at all pictures of one page."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        pictures = list(self.document.findall(nodes.image))
        both = {picture["uri"] for picture in pictures}  # where a page shows the dark one itself, both stay
        for picture in pictures:
            light = Path(picture["uri"])
            dark = light.with_name(f"{light.stem.removesuffix('-light')}-dark{light.suffix}")
            if ":" not in picture["uri"] and dark.as_posix() not in both and (folder / dark).is_file():
                twin = picture.deepcopy()
                twin["uri"] = dark.as_posix()
                twin["classes"] = [*picture["classes"], "only-dark"]
                picture["classes"] = [*picture["classes"], "only-light"]
                picture.parent.insert(picture.parent.index(picture) + 1, twin)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at pages after they are read."""
    app.add_transform(Twins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
