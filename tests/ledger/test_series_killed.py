"""Kill -9 at every named point of a step: no point twice, none lost, one charge, and the same noise."""

from __future__ import annotations

import functools
import signal
from collections import Counter

import pytest

from published import FEW, FORMS, MOST, POINTS, RECORDED, advanced, noise_of_secret, session_of, values_of
from sfumato.ledger import Ledger
from sfumato.ledger.series import SeriesOf
from sfumato.session.series import points

SHORT, LONG = 3, 20


@functools.cache
def undisturbed(horizon, form="public"):
    """The points of a series that nobody disturbs."""
    with pytest.MonkeyPatch.context() as patch, Ledger.open() as ledger, session_of(ledger, form) as session:
        patch.setattr(SeriesOf, "secret", SeriesOf.secret)  # both are put back afterwards
        patch.setattr(points, "_EVERY", points._EVERY)
        noise_of_secret()
        return values_of(advanced(session, horizon, horizon, form))


def killed(place, crew, point, deaths, horizon, form="public"):
    """Dies at each of these steps, looks at what is on record, and lets another process finish."""
    for step in deaths if point != "after debit" else deaths[:1]:  # nobody pays a second time
        ((status, shown),) = crew.run(["series", place.where, place.state, point, step, horizon, form])
        assert status == -signal.SIGKILL
        assert shown == []
        recorded = 0 if "debit" in point else step + (point in RECORDED)
        with place.open() as ledger:
            debits = [each for each in ledger.entries() if each.kind == "debit"]
            assert len(debits) == (point != "before debit")
            assert [ledger.series.length(each) for each in debits] == [recorded] * len(debits)
            assert ledger.verify().ok
    ((status, (shown,)),) = crew.run(["series", place.where, place.state, "never", 0, horizon, form])
    assert status == 0
    return shown


def sound(place, horizon):
    with place.open() as ledger:
        (debit,) = (each for each in ledger.entries() if each.kind == "debit")
        assert [each.facts["point"] for each in rows(ledger)] == list(range(horizon))
        assert len(ledger.series.points(debit)) == horizon
        assert float(ledger.balance("visits").spent) == 0.5
        assert ledger.verify().ok
        assert place.inspect().ok


def rows(ledger):
    return list(ledger._journal.rows(10**9, dataset="visits", kind="point"))


@pytest.mark.parametrize("point", POINTS)
def test_a_series_goes_on_after_a_kill_at_any_point(place, crew, point):
    assert killed(place, crew, point, [1], SHORT) == undisturbed(SHORT)
    sound(place, SHORT)


ONE, OTHER = (pytest.mark.parametrize("place", [kind], indirect=True) for kind in ("sqlite", "postgres"))
"""Both kinds of ledgers have all points in `make stats`."""


@ONE
@pytest.mark.parametrize("point", POINTS)
def test_steps_that_are_read_together_go_on_after_a_kill_at_any_point(place, crew, point):
    shown = killed(place, crew, point, deaths_of("at once", point, [1]), SHORT, "at once")
    assert shown == undisturbed(SHORT, "at once") == undisturbed(SHORT)
    sound(place, SHORT)


def deaths_of(form, point, steps):
    """The steps in which to die; what is read together is read at its first step."""
    return [0 for _ in steps] if form == "at once" and "read" in point else steps


@ONE
@pytest.mark.parametrize("point", POINTS)
def test_no_group_is_found_twice_or_lost_by_a_kill_at_any_point(place, crew, point):
    shown = killed(place, crew, point, [1], SHORT, "found")
    assert shown == undisturbed(SHORT, "found")
    groups = [tuple(group) for _, new, _ in shown for group in new]
    assert len(groups) == len({*groups})
    assert [len(units[0]) for units, _, _ in shown] == [
        sum(len(new) for _, new, _ in shown[: step + 1]) for step in range(SHORT)
    ]
    assert any(new for _, new, _ in shown[1:])
    sound(place, SHORT)


@OTHER
@pytest.mark.parametrize("point", FEW)
def test_nobody_counts_in_a_step_more_after_a_kill_at_any_point(place, crew, point):
    shown = killed(place, crew, point, [1, 2], SHORT, "few")
    assert shown == undisturbed(SHORT, "few")
    steps = Counter(name for _, _, names in shown for name in names)
    assert max(steps.values()) == MOST
    sound(place, SHORT)


@pytest.mark.stats
@pytest.mark.parametrize(
    ("form", "point"),
    [(form, point) for form in FORMS for point in (FEW if form == "few" else POINTS)],
)
def test_a_series_goes_on_after_twenty_kills(place, crew, form, point):
    shown = killed(place, crew, point, deaths_of(form, point, range(LONG)), LONG, form)
    assert shown == undisturbed(LONG, form)
    steps = Counter(name for _, _, names in shown for name in names)
    assert max(steps.values(), default=0) == (MOST if form == "few" else 0)
    sound(place, LONG)


@pytest.mark.parametrize("form", ["at once", "found"])
def test_of_several_who_go_on_at_once_each_shows_the_same_series(place, crew, form):
    jobs = [["series", place.where, place.state, "together", 3, SHORT, form] for _ in range(3)]
    answers = crew.run(*jobs)
    assert [status for status, _ in answers] == [0] * 3
    assert [shown for _, (shown,) in answers] == [undisturbed(SHORT, form)] * 3
    sound(place, SHORT)
