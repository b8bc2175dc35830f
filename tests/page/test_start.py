"""Start: a newcomer goes from a file to a private answer; files are taken from stewards alone, and safely."""

import contextlib
import re
import socket
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from chromium import PATIENCE, violations

WARDS = ("cardiology", "emergency", "maternity")
CSV = "patient_id,visit_date,ward,age,cost\n" + "".join(
    f"{row % 400},2024-03-{1 + row % 28:02d},{WARDS[row % 3]},{row % 90},{row % 700}.5\n"
    for row in range(1200)
)
MOST = 1  # MiB that a file may have here
STEPS = ("whose", "columns", "bounds", "budget", "look")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("start")
    (made.parent / "outside.csv").write_text(CSV)
    return made


@pytest.fixture(scope="module")
def begun(serving, folder):
    with serving(str(folder), "--max-upload", str(MOST), by="start") as made:
        yield made


def gone_on(page, step):
    page.click("main button.main")
    page.wait_for_url(f"**/start/{step}")


@pytest.fixture(scope="module")
def registered(begun, folder, browser):
    """What a newcomer does with a browser, from the first page to the first answer."""
    context = browser.new_context(base_url=begun.address)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: (
            wrong.append(said.text) if said.type == "error" and "status of 4" not in said.text else None
        ),
    )
    page.goto("/")
    page.fill("#token", begun.tokens["steward"])
    page.click("main button")
    page.wait_for_url("**/start")  # there is nothing else to do yet
    assert httpx.get(f"{begun.address}/ready", timeout=60).status_code == 503
    for path in ("/ask", "/feel", "/show"):
        page.goto(path)
        assert "nothing to ask yet" in page.inner_text("[role=alert]")
    page.goto("/watch")
    page.goto("/start")
    assert violations(page) == []
    page.set_input_files("#file", {"name": "visits.csv", "mimeType": "text/csv", "buffer": CSV.encode()})
    page.click("#upload button")
    page.wait_for_url("**/start/whose")
    assert page.get_by_label("patient_id").is_checked()
    assert violations(page) == []
    gone_on(page, "columns")
    assert page.get_by_label("What patient_id is").input_value() == "identifier"
    assert page.get_by_label("Type of cost").input_value() == "float"
    assert violations(page) == []
    gone_on(page, "bounds")
    assert page.get_by_role("group", name="age").get_by_label("Greatest").input_value() == "120"
    page.get_by_label("ward").fill("\n".join(WARDS))
    assert violations(page) == []
    gone_on(page, "budget")
    assert violations(page) == []
    gone_on(page, "look")
    page.click("summary")
    shown = page.inner_text("pre.text")
    assert violations(page) == []
    assert not (folder / "sfumato.toml").exists()
    gone_on(page, "done")
    assert violations(page) == []
    assert "epsilon 0.2 of 1" in page.inner_text("main")
    page.click("main button.main")
    page.wait_for_url("**/start/done?receipt=*")
    answer = page.inner_text("main")
    page.reload()  # nothing is sent again
    assert page.inner_text("main") == answer
    page.go_back()
    assert urlsplit(page.url).query == ""
    page.go_forward()
    assert page.inner_text("main") == answer
    assert violations(page) == []
    page.fill("#analyst", "ada <script>alert(1)</script>")
    page.click("text=Make a token")
    token = page.inner_text("pre.token")
    expect(page.locator(".note.good")).to_contain_text("ada <script>alert(1)</script>")
    context.close()
    assert wrong == []
    begun.tokens["ada"] = token
    return {"shown": shown, "answer": answer}


@pytest.fixture
def steward(begun, registered):
    with begun.entered("steward") as client:
        yield client
        client.post("/start/drop", headers={"X-Form": form_of(client)})


def form_of(client):
    return re.search(r'data-form="([0-9a-f]{64})"', client.get("/start").text)[1]


def sent(client, name, data, form=None, **more):
    """Sends a file as a form does."""
    headers = {"X-Form": form_of(client) if form is None else form}
    return client.post("/start/upload", files={"file": (name, data)}, headers=headers, **more)


def left_in(folder):
    return {each.name for each in folder.iterdir() if not each.name.startswith("sfumato.")}


def test_a_newcomer_goes_from_a_csv_to_a_private_answer(registered, begun, folder):
    assert "It cost epsilon 0.2; 0.8 of 1 is left" in registered["answer"]
    counts = re.findall(r"(?:cardiology|emergency|maternity)\s+([\d,]+) ± (\d+)", registered["answer"])
    assert len(counts) == 3
    assert all(abs(int(n.replace(",", "")) - 400) < 8 * int(error) for n, error in counts)
    assert (folder / "sfumato.toml").read_text().strip() == registered["shown"].strip()
    assert (folder / "visits.csv").read_text() == CSV
    assert (folder / "visits.csv").stat().st_mode & 0o777 == 0o600
    with begun.api("steward") as api:
        debits = [each for each in api.get("/api/receipts?most=1000").json() if each["kind"] == "debit"]
    assert {each["analyst"] for each in debits} == {"steward"}


def test_a_second_table_is_dropped_on_the_page_and_an_analyst_asks_it(registered, begun, folder, visit):
    rows = pa.table(
        {"employee_id": [*range(500)], "office": ["Bonn", "Köln"] * 250, "<b>age</b>": [30] * 500}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    before = (folder / "sfumato.toml").read_text()
    page = visit("steward", "/start", at=begun)
    data = page.evaluate_handle(
        """bytes => { const all = new DataTransfer();
           all.items.add(new File([new Uint8Array(bytes)], "staff.parquet")); return all; }""",
        list(sink.getvalue().to_pybytes()),
    )
    page.dispatch_event("#upload", "drop", {"dataTransfer": data})
    page.wait_for_url("**/start/whose")
    page.fill("#rows", "1")
    gone_on(page, "columns")
    expect(page.get_by_role("rowheader", name="<b>age</b>")).to_be_visible()
    gone_on(page, "bounds")
    page.get_by_label("office").fill("Bonn, Köln")
    gone_on(page, "budget")
    assert page.get_by_label("No: a budget of its own").is_checked()
    page.get_by_label("Another one").check()
    page.fill("#epsilon", "40")
    gone_on(page, "look")
    with begun.api("ada") as api:
        asked = {"sql": "SELECT office, COUNT(*) AS n FROM staff GROUP BY office", "epsilon": 20}
        assert api.get("/api/datasets").json() == ["visits"]
        assert api.post("/api/release", json=asked).status_code == 422
        page.click("main button.main")
        page.wait_for_url("**/start/done")
        assert api.get("/api/datasets").json() == ["staff", "visits"]
        answer = api.post("/api/release", json=asked).json()
        assert {each["office"]: round(each["n"], -1) for each in answer["rows"]} == {"Bonn": 250, "Köln": 250}
        assert api.get("/ready", timeout=60).status_code == 200
    after = (folder / "sfumato.toml").read_text()
    assert after.startswith(before.rstrip())
    told = tomllib.loads(after)
    assert {name: told["tables"][name] for name in ("visits",)} == tomllib.loads(before)["tables"]


def test_it_works_without_scripts(registered, begun, visit):
    page = visit("steward", "/start", at=begun, java_script_enabled=False)
    page.set_input_files("#file", {"name": "plain.csv", "mimeType": "text/csv", "buffer": CSV.encode()})
    page.click("#upload button")
    for step in STEPS[:-1]:
        page.wait_for_url(f"**/start/{step}")
        page.click("main button.main")
    page.wait_for_url("**/start/look")
    page.goto("/start")
    page.click("text=Drop it")
    expect(page.locator("text=You have begun")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../x.csv", "x.csv"),
        ("..\\..\\x.csv", "x.csv"),
        ("/etc/x.csv", "x.csv"),
        (".hidden.csv", "hidden.csv"),
        ("..csv", "data.csv"),
        ("a\0b.csv", None),
        ("n" * 300 + ".csv", "n" * 60 + ".csv"),
        ("<script>alert(1)</script>.csv", "script.csv"),
        ("sfumato.toml", None),
        ("visits.csv", "visits_2.csv"),
        ("x.csv.exe", None),
        ("über maß.TSV", "ber_ma.tsv"),
    ],
)
def test_a_file_gets_a_name_of_ours(steward, folder, name, kept):
    before = left_in(folder)
    answer = sent(steward, name, CSV)
    new = left_in(folder) - before
    if kept is None and "\0" not in name:
        assert (answer.status_code, new) == (422, set())
        return
    assert answer.headers["location"] == "/start/whose"
    (found,) = new
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,62}\.(csv|tsv)", found)
    assert kept is None or found == kept
    assert "<script>alert" not in steward.get("/start").text
    assert "<script>alert" not in steward.get("/start/columns").text


def test_a_draft_that_is_dropped_takes_its_file_along(steward, folder):
    before = left_in(folder)
    sent(steward, "gone.csv", CSV)
    sent(steward, "other.csv", CSV)
    assert left_in(folder) - before == {"other.csv"}
    steward.post("/start/drop", headers={"X-Form": form_of(steward)})
    assert left_in(folder) == before
    assert steward.get("/start/columns").headers["location"] == "/start?lost="
    assert "This draft is gone" in steward.get("/start?lost=").text


def test_files_are_taken_from_stewards_alone_and_from_this_page(steward, begun, folder):
    before = left_in(folder)
    with begun.entered("ada") as analyst:
        form = form_of(analyst)
        assert sent(analyst, "x.csv", CSV, form=form).status_code == 403
        assert analyst.get("/start").status_code == 403
        assert analyst.post("/start/source", data={"source": "visits.csv", "form": form}).status_code == 403
    assert sent(steward, "x.csv", CSV, form="").status_code == 403
    assert sent(steward, "x.csv", CSV, form="0" * 64).status_code == 403
    with httpx.Client(base_url=begun.address, timeout=60) as nobody:
        assert sent(nobody, "x.csv", CSV, form="").headers["location"] == "/login"
    assert left_in(folder) == before


def test_what_is_too_large_is_not_kept(steward, folder):
    before = left_in(folder)
    answer = sent(steward, "x.csv", b"a" * (MOST * 2**20 + 1))
    assert answer.status_code == 413
    assert "larger than the 1 MiB" in answer.text

    def parts():
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n'
        for _ in range(20):
            yield b"a" * 100_000

    headers = {"X-Form": form_of(steward), "Content-Type": "multipart/form-data; boundary=x"}
    with contextlib.suppress(httpx.WriteError):  # it stopped listening
        assert steward.post("/start/upload", content=parts(), headers=headers).status_code == 413
    assert left_in(folder) == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nothing",
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\r\n',
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--x--\r\n',
        2 * b'--x\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na\r\n'
        + b"--x--\r\n",
        b"--x\r\n" + b"a" * 20_000 + b": b\r\n\r\nx\r\n--x--\r\n",
    ],
)
def test_what_is_no_form_with_one_file_leaves_nothing(steward, folder, body):
    before = left_in(folder)
    headers = {"X-Form": form_of(steward), "Content-Type": "multipart/form-data; boundary=x"}
    answer = steward.post("/start/upload", content=body, headers=headers)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert left_in(folder) == before


def test_a_file_that_is_half_sent_leaves_nothing(steward, folder):
    before, where = left_in(folder), urlsplit(str(steward.base_url))
    cookie = "; ".join(f"{each.name}={each.value}" for each in steward.cookies.jar)
    head = (
        f"POST /start/upload HTTP/1.1\r\nHost: {where.netloc}\r\nCookie: {cookie}\r\n"
        f"Content-Length: 500000\r\nX-Form: {form_of(steward)}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        '--x\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n'
    )
    with socket.create_connection((where.hostname, where.port)) as connection:
        connection.sendall(head.encode() + b"a" * 100_000)
        until(lambda: len(left_in(folder)) > len(before))
    until(lambda: left_in(folder) == before)


def until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    "name",
    [
        "../outside.csv",
        "{above}/outside.csv",
        "link.csv",
        "sub/../../outside.csv",
        "sfumato.toml",
        "sfumato.ledger.key",
        "a\0b.csv",
        ".secret.csv",
        "x" * 600,
        "",
        ".",
    ],
)
def test_a_source_outside_the_folder_is_refused(steward, folder, name):
    link = folder / "link.csv"
    if not link.is_symlink():
        link.symlink_to(folder.parent / "outside.csv")
        (folder / ".secret.csv").write_text(CSV)
    asked = {"source": name.format(above=folder.parent), "form": form_of(steward)}
    answer = steward.post("/start/source", data=asked)
    assert answer.status_code == 422
    assert "in the catalog&#39;s folder" in answer.text
    assert str(folder) not in answer.text


def test_a_source_in_the_folder_is_taken_and_stays_when_its_draft_is_dropped(steward, folder):
    (folder / "mine.csv").write_text("Müller;70\nSchmidt;30\n")
    form = form_of(steward)
    asked = steward.post("/start/source", data={"source": "mine.csv", "form": form})
    assert asked.headers["location"] == "/start/whose"
    shown = steward.get("/start/whose").text
    assert "Does the first line name the columns?" in shown
    assert not re.search("Müller|Schmidt", shown)
    steward.post("/start/header", data={"header": "yes", "form": form})
    assert "Müller" in steward.get("/start/whose").text  # it is a name: the steward says so
    steward.post("/start/drop", data={"form": form})
    assert (folder / "mine.csv").exists()


@pytest.mark.parametrize(("said", "columns"), [("yes", "Köln"), ("no", "c1")])
def test_nobody_goes_on_before_they_say_what_the_first_line_is(steward, folder, said, columns):
    (folder / "doubtful.csv").write_text("Köln;70\nBonn;30\n")
    form = form_of(steward)
    steward.post("/start/source", data={"source": "doubtful.csv", "form": form})
    shown = steward.get("/start/whose").text
    assert "Go on" not in shown
    assert shown.count('name="header"') == 2
    early = steward.post("/start/whose", data={"form": form, "unit": "row"})
    assert early.status_code == 422
    assert "Say first whether the first line" in early.text
    assert steward.get("/start/columns").headers["location"] == "/start/whose"
    steward.post("/start/header", data={"form": form, "header": said})
    assert "Go on" in steward.get("/start/whose").text
    assert steward.post("/start/whose", data={"form": form, "unit": "row"}).status_code == 303
    assert columns in steward.get("/start/columns").text


def test_what_cannot_be_is_told_on_its_own_screen(steward, folder):
    form = form_of(steward)
    sent(steward, "told.csv", CSV)
    assert steward.get("/start/look").headers["location"] == "/start/whose"

    def post(step, **fields):
        return steward.post(f"/start/{step}", data={"form": form, **fields})

    for step, wrong, said, right in (
        ("whose", {"unit": "99"}, "Choose whose privacy", {"unit": "0", "rows": "3"}),
        ("whose", {"unit": "0", "rows": "many"}, "whole number", {"unit": "0", "rows": "3"}),
        ("columns", {"name": "visits"}, "already", {"name": "told"}),
        ("columns", {"name": "a b"}, "letters, digits", {"name": "told"}),
        ("bounds", {"low3": "1"}, "age: give both ends", {}),
        ("bounds", {"low3": "9", "high3": "1"}, "age: ", {}),
        ("bounds", {"low4": "nan", "high4": "1"}, "cost: write a bound with a point", {}),
        ("budget", {"choice": "other", "epsilon": "-1"}, "epsilon", {"choice": "1", "delta": "0"}),
        ("budget", {"dataset": "nothing"}, "no such budget", {"choice": "1", "delta": "0"}),
        ("look", {"seen": "0" * 64}, "has changed since you looked", None),
    ):
        answer = post(step, **wrong)
        assert answer.status_code >= 400, step
        assert said in answer.text
        if right is not None:
            assert post(step, **right).status_code == 303
    assert "told" not in (folder / "sfumato.toml").read_text()


@pytest.mark.parametrize(
    ("comma", "days", "row"),
    [
        (",", "31.12.2024", "{0};1,5;24.12.2024;24.12.2024 18:30\n"),
        (".", "12/31/2024", "{0};1.5;12/24/2024;12/24/2024 18:30:59\n"),
        (".", "2024-12-31", "{0};1.5;2024-12-24;2024-12-24 18:30\n"),
    ],
)
def test_numbers_and_days_are_read_as_the_steward_says_they_are_written(steward, begun, comma, days, row):
    name = f"written_{'point' if comma == '.' else 'comma'}_{days[:2]}"
    text = "patient_id;cost;visit_date;seen_at\n" + "".join(row.format(place) for place in range(400))
    form = form_of(steward)
    sent(steward, f"{name}.csv", text)
    steward.post("/start/whose", data={"form": form, "unit": "row"})
    shown = steward.get("/start/columns").text
    assert '<option value="," selected>' in shown  # since semicolons separate the columns
    assert "<option selected>2024-12-31</option>" in shown
    said = {"decimal": comma, "days": days, "type2": "date", "type3": "timestamp"}
    kept = {f"what{place}": "plain" for place in range(1, 4)}
    steward.post("/start/columns", data={"form": form, "name": name, "type1": "float", **said, **kept})
    assert f"<option selected>{days}</option>" in steward.get("/start/columns").text
    ends = {"low2": "2024-01-01", "high2": "2024-12-31", "low3": "2024-01-01", "high3": "2024-12-31"}
    steward.post("/start/bounds", data={"form": form, "low1": "0", "high1": "10", **ends})
    steward.post("/start/budget", data={"form": form, "choice": "other", "epsilon": "400", "delta": "0"})
    shown = steward.get("/start/look").text
    assert f"1234{comma}5 and {days}, as the file writes them" in shown
    assert "Not yet summed" not in shown
    steward.post("/start/look", data={"form": form, "seen": seen_at(steward, "look")})
    asked = (
        f"SELECT COUNT(*) AS n, SUM(cost) AS cost FROM {name} "
        "WHERE visit_date = DATE '2024-12-24' AND seen_at > TIMESTAMP '2024-12-24 18:00:00'"
    )
    with begun.api("steward") as api:
        (answer,) = api.post("/api/release", json={"sql": asked, "epsilon": 200}).json()["rows"]
    assert (round(answer["n"], -1), round(answer["cost"], -1)) == (400, 600)


def test_what_has_no_bounds_yet_is_told_before_it_is_written(steward):
    form = form_of(steward)
    sent(steward, "open.csv", CSV)
    for step in STEPS[:-1]:
        steward.post(f"/start/{step}", data={"form": form, "unit": "0", "name": "open", "choice": "1"})
    told = re.search(r"Not yet summed or grouped by</dt><dd>([^<]*)", steward.get("/start/look").text)[1]
    assert "cost" in told
    assert "ward" in told
    assert "patient_id" not in told


@pytest.mark.parametrize("step", ["whose", "columns", "bounds", "budget", "header"])
def test_a_form_about_one_file_decides_nothing_about_another(steward, step):
    """Two tabs: the first still shows the file that was chosen before."""
    form, screen = form_of(steward), "whose" if step == "header" else step
    right = {"unit": "row", "name": "other", "choice": "1", "delta": "0", "header": "yes"}

    def passed(name):
        sent(steward, name, CSV)
        for each in STEPS[: STEPS.index(screen)]:
            assert steward.post(f"/start/{each}", data={"form": form, **right}).status_code == 303
        page = steward.get(f"/start/{screen}").text
        return re.search(r'name="draft" value="(\w+)"', page)[1]

    before, now = passed("first.csv"), passed("second.csv")
    answer = steward.post(f"/start/{step}", data={"form": form, "draft": before, **right})
    assert (answer.status_code, "about another file" in answer.text) == (409, True)
    assert steward.post(f"/start/{step}", data={"form": form, "draft": now, **right}).status_code == 303


def seen_at(client, step):
    return re.search(r'name="seen" value="(\w+)"', client.get(f"/start/{step}").text)[1]


def made(client, name, form, epsilon):
    """Registers a table, and gives what its first answer is released with."""
    sent(client, f"{name}.csv", CSV)
    for step in STEPS[:-1]:
        fields = {"unit": "row", "name": name, "choice": "other", "epsilon": epsilon, "delta": "0"}
        client.post(f"/start/{step}", data={"form": form, **fields})
    client.post("/start/look", data={"form": form, "seen": seen_at(client, "look")})
    return seen_at(client, "done")


def test_pressed_twice_it_is_registered_and_paid_once(steward, begun, folder):
    form = form_of(steward)
    sent(steward, "twice.csv", CSV)
    for step in STEPS[:-1]:
        fields = {"unit": "row", "name": "twice", "choice": "1", "delta": "0"}
        steward.post(f"/start/{step}", data={"form": form, **fields})
    seen = seen_at(steward, "look")
    for _ in range(2):
        answer = steward.post("/start/look", data={"form": form, "seen": seen})
        assert answer.headers["location"] == "/start/done"
    assert (folder / "sfumato.toml").read_text().count("[tables.twice]") == 1
    paid = {"form": form, "seen": seen_at(steward, "done")}
    with ThreadPoolExecutor(4) as pool:  # a second click comes while the first is under way
        answers = [*pool.map(lambda _: steward.post("/start/answer", data=paid), range(4))]
    assert {each.status_code for each in answers} == {303}
    (where,) = {each.headers["location"] for each in answers}
    assert where.startswith("/start/done?receipt=")
    with begun.api("steward") as api:
        debits = api.get("/api/datasets/twice/balance").json()["debits"]
        first, again = (steward.get(where).text for _ in range(2))
        assert "It cost epsilon 0.1" in first
        numbers = r"([\d,]+) <span class=\"soft\">±"
        assert re.findall(numbers, first) == re.findall(numbers, again) != []
        back = {"form": form, "seen": seen_at(steward, "done")}  # the way back, and pressed once more
        assert steward.post("/start/answer", data=back).headers["location"] == where
        assert "It cost epsilon 0.1" in steward.get(where).text
        assert api.get("/api/datasets/twice/balance").json()["debits"] == debits == 1
    steward.post("/start/drop", data={"form": form})
    number = where.partition("=")[2]
    assert steward.get(where).headers["location"] == f"/show/releases/{number}"
    for odd in ("", "-1", "x", "9" * 40):
        assert steward.get(f"/start/done?receipt={odd}").headers["location"] == "/start?lost="


def test_nothing_is_paid_but_what_was_seen(steward, begun):
    form = form_of(steward)
    one = made(steward, "seen_one", form, "1")
    other = made(steward, "seen_other", form, "5")  # in another tab
    with begun.api("steward") as api:
        for seen in (one, "", "0" * 64):
            answer = steward.post("/start/answer", data={"form": form, "seen": seen})
            assert (answer.status_code, "Nothing was paid" in answer.text) == (409, True)
        raised = {"epsilon": "9", "delta": "0", "reason": "a test"}
        api.put("/api/datasets/seen_other/budget", json=raised).raise_for_status()
        assert steward.post("/start/answer", data={"form": form, "seen": other}).status_code == 409
        for name in ("seen_one", "seen_other"):
            assert api.get(f"/api/datasets/{name}/balance").json()["debits"] == 0
    now = {"form": form, "seen": seen_at(steward, "done")}
    where = steward.post("/start/answer", data=now).headers["location"]
    assert "It cost epsilon 0.9" in steward.get(where).text


def test_what_was_seen_is_no_more_seen_once_another_pays_for_the_answer(steward, begun):
    """Reading it would count what it cost them, which may be more than the price that was shown."""
    form = form_of(steward)
    seen = made(steward, "seen_early", form, "1")
    with begun.api("steward") as api:
        sql = 'SELECT COUNT(*) AS rows_in_all FROM "seen_early"'
        quote = api.post("/api/quote", json={"sql": sql, "epsilon": "0.1"}).json()["quote"]
        assert not quote["standing"]
        api.post("/api/accounts", json={"name": "early"}).raise_for_status()
        token = api.post("/api/accounts/early/tokens", json={"days": 1}).json()["token"]
        dear = {"sql": sql, "epsilon": "0.6"}
        other = {"Authorization": f"Bearer {token}"}
        assert httpx.post(f"{begun.address}/api/release", json=dear, headers=other).status_code == 200
        answer = steward.post("/start/answer", data={"form": form, "seen": seen})
        assert answer.status_code == 409
        assert "counts epsilon 0.6" in answer.text
        assert not [each for each in api.get("/api/receipts").json() if each["kind"] == "read"]
