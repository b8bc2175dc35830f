"""Tests of one `xdist_group` run in one process: pytest 9.2 no longer reads what pytest-xdist 3.8 sets."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Put the name of its group behind each test's id, where the scheduler looks for it."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        groups = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
        suffix = f"@{'_'.join(sorted(groups))}"
        if groups and not item.nodeid.endswith(suffix):
            item._id = type(item._id).parse(item.nodeid + suffix)
