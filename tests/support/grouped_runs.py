"""How two processes share the tests: groups stay together, the longest begin, and so they end together."""

from __future__ import annotations

from collections import Counter

import pytest

from durations import measured

_LONG = 0.5  # seconds: a test that runs by itself


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Put the name of its group behind each test's id, where the scheduler looks for it; longest first.

    pytest 9.2 no longer reads what pytest-xdist 3.8 sets.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        groups = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
        suffix = f"@{'_'.join(sorted(groups))}"
        if groups and not item.nodeid.endswith(suffix):
            item._id = type(item._id).parse(item.nodeid + suffix)
    seconds: Counter[str] = Counter()
    for item in items:
        known = measured(item.nodeid)
        seconds[_unit_of(item.nodeid)] += known.mean if known else 0
    items.sort(key=lambda item: -seconds[_unit_of(item.nodeid)])


def _unit_of(test: str) -> str:
    """What runs in one process, one after another: a group, a slow test, or the fast tests of a file."""
    if test.rfind("@") > test.rfind("]"):
        return test.rsplit("@", 1)[1]
    known = measured(test)
    return test if known and known.longest > _LONG else test.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _unit_of(nodeid)

    config.option.loadscopereorder = False
    return Scheduling(config, log)
