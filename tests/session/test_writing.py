"""Noise that is drawn part by part: once, from keys of its own, for each group as `release` draws it."""

import os
import pickle
import threading

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from parted import Parted
from sfumato import random
from sfumato.engines import parts
from sfumato.engines.parts import digest_of, write_part
from sfumato.engines.prepare import prepare
from sfumato.errors import EngineFailed, InvalidParameter, LedgerUnusable, QueryRefused
from sfumato.session.drawing import Drawing
from sfumato.session.written import Manifest
from sfumato.sql.write.lower import UNITS

SEED = bytes(range(32))
ROWS = pa.table({"who": list(range(600)), "g": [f"g{at % 6}" for at in range(600)], "x": [1.5] * 600})
SCHEMA = {"g": sf.Text(), "x": sf.Float(0, 2), "at": sf.Timestamp(), "n": sf.Int(0, 9)}


def table(source=ROWS):
    unit = sf.PrivacyUnit("who", max_groups=2, max_rows=4)
    if isinstance(source, pa.Table):
        source = source.append_column("at", pa.array([None] * 600, pa.timestamp("s")))
        source = source.append_column("n", pa.array([3] * 600))
    return sf.PrivateTable("t", source=source, unit=unit, schema=SCHEMA)


@pytest.fixture(scope="module")
def session():
    with sf.Session(table(), budget=sf.Budget(10**6, "0.1")) as made:
        yield made


def drawing(session, text="SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=4, errors=False, seed=SEED):
    quote = session.sql(text).quote(epsilon, delta="1e-6", bounding="choose")
    return Drawing(quote, session.vault.kinds(quote.measured), seed, errors)


def lines(work, keys, count):
    """Groups as an engine gives them, all of the same size."""
    names = [f"m{place}" for place in range(len(work.quote.measured.measurements))]
    columns = {"k0": pa.array(keys)} | {name: pa.array([count] * len(keys), pa.int64()) for name in names}
    return pa.table(columns | {UNITS: pa.array([count] * len(keys), pa.int64())})


def drawn(work, part, table, size=1000):
    return pa.concat_tables(list(work(part, iter(table.to_batches(size))))).to_pydict()


def test_a_part_that_is_tried_again_draws_the_same_and_another_part_something_else(session, tmp_path):
    work = drawing(session)
    some = lines(work, [f"k{at:05d}" for at in range(3000)], 50)
    again = pickle.loads(pickle.dumps(work))
    assert drawn(work, 0, some) == drawn(again, 0, some)
    files = [write_part(each, work.schema, tmp_path, 0, iter(some.to_batches(999))) for each in (work, again)]
    assert files[0].digest == files[1].digest
    assert files[0].name != files[1].name
    others = [drawn(work, part, some)["n"] for part in (1, 2)] + [
        drawn(drawing(session, seed=bytes(32)), 0, some)["n"]
    ]
    first = drawn(work, 0, some)["n"]
    for other in others:
        assert len(other) == len(first) == 3000
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.1  # 5 standard deviations


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_noise_of_parts_is_that_of_the_quote(session, law):
    query = session.sql("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g")
    quote = query.quote(4, delta="1e-6", mechanism=law, bounding="choose")
    work = Drawing(quote, session.vault.kinds(quote.measured), SEED, errors=True)
    some = lines(work, [f"k{at:05d}" for at in range(4000)], 10**6)
    shown = drawn(work, 3, some)
    for name in ("n", "s"):
        width = quote.error(0.9)[name]
        values = np.array(shown[name], float)
        noise = values - values.mean()
        assert abs(np.mean(np.abs(noise) <= width) - 0.9) < 0.03
        assert np.allclose(shown[f"{name}_error"], quote.error(0.95)[name], rtol=0.1)  # values are rounded


def test_small_groups_are_left_out_as_the_selection_says(session):
    work = drawing(session)
    selection = work.quote.selection
    for count in (1, selection.least(0.5), selection.certain * 2):
        some = lines(work, [f"k{at:05d}" for at in range(2000)], count)
        share = len(drawn(work, 0, some)["g"]) / 2000
        assert abs(share - selection.keep_probability(count)) < 0.06


def test_groups_of_rows_in_a_file_tell_nothing_of_groups_left_out(session, tmp_path, monkeypatch):
    """Lines come some at a time; were each such lot written by itself, its size would be in the file."""
    monkeypatch.setattr(parts, "_ROWS", 100)
    work = drawing(session)
    keys = [f"k{at:05d}" for at in range(1000)]
    large = work.quote.selection.certain * 2
    counts = [large if at % 3 or at < 500 else 0 for at in range(1000)]
    some = lines(work, keys, large)
    for name in (UNITS, "m0"):
        some = some.set_column(some.column_names.index(name), name, pa.array(counts, pa.int64()))
    written = write_part(work, work.schema, tmp_path, 0, iter(some.to_batches(70)))
    file = pq.ParquetFile(tmp_path / written.name)
    sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert written.rows == sum(sizes) == sum(count > 0 for count in counts)
    assert sizes == [100] * (written.rows // 100) + [written.rows % 100][: bool(written.rows % 100)]
    nothing = write_part(work, work.schema, tmp_path, 1, iter(()))
    assert (nothing.rows, digest_of(tmp_path / nothing.name)) == (0, nothing.digest)


@pytest.mark.parametrize(
    ("key", "kind"),
    [("g", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("s")), ("x > 1", pa.bool_())],
)
@pytest.mark.parametrize("errors", [True, False])
def test_the_schema_is_that_of_a_release(session, key, kind, errors):
    text = f"SELECT {key} AS k, AVG(x) AS m, COUNT(*) / 2 AS h FROM t GROUP BY {key}"
    if key in ("n", "x > 1"):
        text = text.replace(key, "CAST(g AS INTEGER)" if key == "n" else "g")
        kind = pa.int64() if key == "n" else pa.string()
    quote = session.sql(text).quote(4, delta="1e-6", bounding="choose")
    work = Drawing(quote, session.vault.kinds(quote.measured), SEED, errors)
    released = session.sql(text).release(4, delta="1e-6", bounding="choose").to_arrow(errors=errors)
    assert work.schema.field("k").type == kind
    assert work.schema == released.schema.remove_metadata()


REFUSED = {
    "SELECT n, COUNT(*) AS c FROM t GROUP BY n": "public",
    "SELECT COUNT(*) AS c FROM t": "public",
    "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g": "Quantiles",
    "SELECT g, COUNT(*) AS c FROM t GROUP BY g HAVING COUNT(*) > 3": "HAVING",
    "SELECT g, COUNT(*) AS c FROM t GROUP BY g ORDER BY c LIMIT 3": "ORDER BY",
    "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS c FROM t GROUP BY g": "OVER",
    "SELECT g, n, COUNT(*) AS c FROM t GROUP BY ROLLUP (g, n)": "Totals",
    "SELECT g, COUNT(*) AS c FROM t GROUP BY g": "engine is Spark",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_needs_all_groups_in_one_place_is_refused_unpaid(session, tmp_path, text):
    before = session.balance()
    with pytest.raises(QueryRefused, match=REFUSED[text]):
        session.sql(text).write(tmp_path / "out", epsilon=1, delta="1e-6")
    assert session.balance() == before
    assert list(tmp_path.iterdir()) == []


def test_a_stream_with_a_key_draws_the_same_and_ends_with_its_block():
    def some():
        return [random.integers(10**9), *random.discrete_laplace(3, 4).tolist(), random.bernoulli(1 / 3)]

    outside = random.current()
    with random.drawing_from(random.Keyed(SEED)):
        first = some()
    assert random.current() is outside
    with random.drawing_from(random.Keyed(SEED)):
        assert some() == first
    with random.drawing_from(random.Keyed(SEED[::-1])):
        assert some() != first
    assert some() != first
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(random.Keyed(SEED))
    with pytest.raises(InvalidParameter, match="32 bytes"):
        random.Keyed(b"short")


def test_a_manifest_is_read_back_and_another_version_is_told():
    kept = Manifest("/a", "/.a", (parts.Part(0, "x", 3, "ab"),), 1, 0, "laplace")
    assert Manifest.from_bytes(kept.to_bytes()) == kept
    for other in (b"{}", b"no", kept.to_bytes().replace(b"written/1", b"written/2")):
        with pytest.raises(LedgerUnusable, match="another version"):
            Manifest.from_bytes(other)


# Files, from the draft to their place.

BY_GROUP = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


@pytest.fixture
def parted():
    with Parted() as engine, sf.Session(table(), budget=sf.Budget(100, "0.1"), engine=engine) as made:
        yield made


def write(session, folder, text=BY_GROUP, epsilon=4):
    return session.sql(text).write(folder, epsilon=epsilon, delta="1e-6", bounding="choose")


def test_drafts_are_for_one_user_and_the_answer_is_as_open_as_other_folders(parted, tmp_path):
    (tmp_path / "other").mkdir()
    written = write(parted, tmp_path / "out")
    assert parted._engine.modes == [0o700]
    assert written.folder.stat().st_mode == (tmp_path / "other").stat().st_mode
    assert {path.name for path in tmp_path.iterdir()} == {"out", "other"}
    assert len(written.files) == Parted.many
    copied = write(parted, tmp_path / "copy")
    assert copied.free
    assert copied.folder.stat().st_mode == written.folder.stat().st_mode
    assert copied.table().equals(written.table())
    assert {path.name for path in tmp_path.iterdir()} == {"out", "other", "copy"}


@pytest.mark.parametrize("places", [["out"] * 6, [f"out{at}" for at in range(6)], ["a", "b"] * 3])
def test_of_many_who_ask_at_once_one_pays_and_all_have_the_same_files(parted, tmp_path, places):
    found, together = list[object](), threading.Barrier(len(places))

    def ask(name):
        together.wait()
        try:
            written = write(parted, tmp_path / name)
            found.append((written.free, written.table().to_pydict(), written.receipt.number))
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=ask, args=(name,)) for name in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(one, tuple) for one in found), found
    assert sorted(free for free, *_ in found) == [False] + [True] * (len(places) - 1)
    assert all(one[1:] == found[0][1:] for one in found)
    assert parted._engine.reads == 1
    assert parted.balance().spent == 4
    assert {path.name for path in tmp_path.iterdir()} == set(places)


def test_two_questions_for_one_folder_lose_nothing(parted, tmp_path):
    """The second one is paid by the time that the folder has the files of the first."""
    place, own = tmp_path / "out", Parted.in_parts

    def in_parts(*facts, **more):
        found = own(parted._engine, *facts, **more)
        place.mkdir()
        (place / "something").touch()
        return found

    parted._engine.in_parts = in_parts
    with pytest.raises(InvalidParameter, match="on record"):
        write(parted, place)
    spent = parted.balance().spent
    again = write(parted, tmp_path / "free")
    assert (again.free, parted.balance().spent) == (True, spent)
    assert again.table().num_rows > 0
    assert {path.name for path in tmp_path.iterdir()} == {"out", "free"}
    assert [path.name for path in place.iterdir()] == ["something"]


def test_files_of_a_process_that_died_before_they_were_in_place_are_found(parted, tmp_path, monkeypatch):
    monkeypatch.setattr(Manifest, "put", lambda *_: None)
    lost = write(parted, tmp_path / "out")
    assert not lost.folder.exists()
    monkeypatch.undo()
    found = write(parted, tmp_path / "out")
    assert (found.free, len(os.listdir(found.folder))) == (True, Parted.many + 1)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_read_that_fails_leaves_nothing_and_stays_paid(parted, tmp_path):
    def in_parts(*_, **__):
        raise sf.errors.EngineFailed("It broke.")

    parted._engine.in_parts = in_parts
    with pytest.raises(sf.errors.EngineFailed):
        write(parted, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert parted.balance().spent == 4


# Prepared tables.


def prepared(tmp_path, group_by):
    """The same rows, of few people, in a prepared file."""
    few = ROWS.set_column(0, "who", pa.array([at % 40 for at in range(600)]))
    return prepare(table(few), tmp_path / "t.duckdb", salt=b"a salt", group_by=group_by).path


@pytest.mark.duckdb
@pytest.mark.parametrize("group_by", [(), ("g",)])
def test_of_a_prepared_table_is_written_what_would_be_released(tmp_path, group_by):
    budget, path = sf.Budget(10**6, "0.1"), prepared(tmp_path, group_by)
    with Parted() as engine, sf.Session(table(path), budget=budget, engine=engine) as session:
        asked = session.sql(BY_GROUP)
        written = asked.write(tmp_path / "out", epsilon=1000, delta="1e-6")
        released = asked.release(epsilon=1000, delta="1e-6").table
    assert written.table().sort_by("g").equals(released.sort_by("g"))
    assert written.rows == 6


@pytest.mark.duckdb
def test_a_prepared_table_that_somebody_wrote_to_is_not_written(tmp_path):
    """What ranks leave of a unit is counted before anything is drawn, as for `release`."""
    path = prepared(tmp_path, "g")
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO t SELECT t.* FROM t, range(50)")
    with Parted() as engine, sf.Session(table(path), budget=sf.Budget(100, "0.1"), engine=engine) as session:
        with pytest.raises(EngineFailed, match="not as it was written"):
            session.sql(BY_GROUP).write(tmp_path / "out", epsilon=4, delta="1e-6")
        assert session.balance().spent == 4
        assert engine.modes == [0o700]  # it came that far
    assert [each.name for each in tmp_path.iterdir()] == ["t.duckdb"]
