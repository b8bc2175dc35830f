"""An analyst's process gets no row, no path of the data and no key: nothing of them passes to it."""

from __future__ import annotations

import psycopg
import pytest

import sfumato as sf
from knocking import relayed
from tour import SQL, Tour


@pytest.fixture(scope="module")
def tour(nursery, tmp_path_factory):
    made = Tour(nursery, tmp_path_factory.mktemp("held"))
    yield made
    made.close()


def assert_none_passed(tour, heard):
    passed = b"".join(heard)
    assert len(passed) > 1_000
    for secret in tour.secrets():
        assert secret.encode() not in passed
        assert secret.encode("utf-16-le") not in passed


def test_nothing_of_it_passes_to_a_session_over_http(tour):
    heard = []
    with (
        relayed(tour.life.port, heard=heard) as port,
        sf.connect(f"http://127.0.0.1:{port}", token=tour.tokens["ada"]) as session,
    ):
        query = session.sql(SQL)
        quote, release = query.quote(epsilon="0.5"), query.release(epsilon="0.5")
        assert release.free
        assert session.reread(release.receipt).table == release.table
        session.table("visits").group_by("country").agg(n=sf.count()).quote(epsilon=1)
        shown = [session, quote, release, release.table, session.balance(), session.releases()]
        with pytest.raises(sf.errors.QueryRefused):
            session.sql("SELECT city FROM visits").release(epsilon=1)
        assert not any(secret in f"{each!r} {each}" for secret in tour.secrets() for each in shown)
    assert_none_passed(tour, heard)


def test_nothing_of_it_passes_to_a_client_of_postgresql(tour):
    heard = []
    with (
        relayed(tour.life.pg_port, heard=heard) as port,
        psycopg.connect(
            f"postgresql://127.0.0.1:{port}/sfumato", user="ada", password=tour.tokens["ada"], autocommit=True
        ) as wire,
    ):
        wire.execute("SET sfumato.epsilon = 0.5")
        assert len(wire.execute(SQL).fetchall()) == 2
        wire.execute(f"EXPLAIN {SQL}")
        wire.execute("SHOW ALL")
        for table in ("pg_class", "pg_attribute", "pg_settings", "pg_description"):
            wire.execute(f"SELECT * FROM pg_catalog.{table}")
        with pytest.raises(psycopg.Error):
            wire.execute("SELECT city FROM visits")
    assert_none_passed(tour, heard)
    assert tour.tokens["ada"].encode() not in b"".join(heard)  # a password is proved, not sent
