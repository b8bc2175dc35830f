"""What a hostile server may answer: every document that a client reads, spoilt in every field in every way.

The documents are recorded from a server that really runs. Then another one, over real sockets, gives them
again, one of them spoilt, and a client asks all that it can ask and shows what it got. Run by itself, it
prints each reply after which the client did not end in one of Sfumato's errors with a sentence.
"""

from __future__ import annotations

import base64
import json
import random
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

import sfumato as sf
from served import house, known, started
from sfumato.errors import SfumatoError
from sfumato.server.http.app import make_app

TOKEN = "token-of-ada"
TEXTS = (
    "SELECT country, COUNT(*) AS n, AVG(amount) AS spend FROM visits WHERE amount > 3 GROUP BY country",
    "SELECT city, COUNT(*) AS n, MEDIAN(amount) AS m FROM visits GROUP BY city ORDER BY n DESC LIMIT 5",
)
KINDS = {
    r"/api/session": "session",
    r"/api/session/balance/[^/]+": "balance",
    r"/api/session/balance/[^/]+/losses": "losses",
    r"/api/session/quote": "quote",
    r"/api/session/release": "release",
    r"/api/session/receipts/\d+": "reread",
    r"/api/receipts": "receipts",
}
SECONDS, BYTES = 20, 3 << 30
"""How long one case may take before it counts as endless, and how much memory all of them may have."""

Spoilt = tuple[str, bytes]
"""In which way, and the reply."""


def kind_of(path: str) -> str:
    """Which document an address gives."""
    path = path.partition("?")[0]
    return next(kind for pattern, kind in KINDS.items() if re.fullmatch(pattern, path))


class Recorded:
    """The honest replies to one question, by kind of document."""

    def __init__(self, url: str, text: str) -> None:
        self.text, self.replies = text, dict[str, Any]()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            asked = {"sql": text, "epsilon": "1"}
            self._keep("session", client.get("/api/session"))
            self._keep("quote", client.post("/api/session/quote", json=asked))
            self._keep("release", client.post("/api/session/release", json=asked))
            self._keep("receipts", client.get("/api/receipts", params={"after": 0, "most": 1000}))
            number = self.replies["release"]["receipt"]["number"]
            self._keep("reread", client.get(f"/api/session/receipts/{number}"))
            self._keep("balance", client.get("/api/session/balance/visits"))
            self._keep("losses", client.get("/api/session/balance/visits/losses"))

    def _keep(self, kind: str, response: httpx.Response) -> None:
        assert response.status_code == 200, response.text
        self.replies[kind] = response.json()


@contextmanager
def recorded() -> Iterator[list[Recorded]]:
    """What a server that runs says to each question."""
    with house(epsilon=1000, rows=2000) as place, started(make_app(place, known)) as url:
        yield [Recorded(url, text) for text in TEXTS]


# ── ways to spoil a value; each gives JSON as text, so that it may be none

HERE = "\ue000"  # a letter for the place that is spoilt


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


WRONG = ("null", "true", "0", '""', '"x"', "[]", "{}", "[[]]", '{"of": "Scan", "with": []}')
HUGE = ("-1", str(10**18), str(10**400), "9" * 5000, "1e308", "1e999", "-0.5", "NaN", "Infinity")
LONG = ('"1e999999999"', '"' + "9" * 100_000 + '"', '"1/' + "3" * 4000 + '"', '"' + "x" * 100_000 + '"')
ODD = (
    r'"\ud800"',
    r'"\u001b[2J"',
    '"nan"',
    '"inf"',
    '"0x1p9999"',
    '"-1/3"',
    '"9999-12-31T23:59:59"',
    '"1/0"',
)
DEEP = (deep(100), deep(190), deep(1_000), deep(100_000), '{"of":' * 150 + "1" + "}" * 150)
WAYS = (*WRONG, *HUGE, *LONG, *ODD, *DEEP)


def doubling(levels: int) -> list[Any]:
    """An expression of a few parts that stands for 2**levels."""
    return [["column", "amount"], *(["call", "add", [place, place]] for place in range(levels))]


def places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a document are; of a long list the first and the last."""
    yield at
    if isinstance(document, dict):
        for name, value in document.items():
            yield from places(value, (*at, name))
    elif isinstance(document, list):
        for place in sorted({0, len(document) - 1} if len(document) > 12 else range(len(document))):
            yield from places(document[place], (*at, place))


def held(document: Any, at: tuple[Any, ...]) -> Any:
    for step in at:
        document = document[step]
    return document


def changed(document: Any, at: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """A copy in which what holds the last step of a place was changed."""
    copy = json.loads(json.dumps(document))
    change(held(copy, at[:-1]), at[-1])
    return copy


def put(value: Any) -> Callable[[Any, Any], None]:
    def change(inside: Any, step: Any) -> None:
        inside[step] = value

    return change


def drop(inside: Any, step: Any) -> None:
    del inside[step]


def twice(inside: Any, step: Any) -> None:
    inside[step] = [inside[step], inside[step]] if not isinstance(inside[step], list) else inside[step] * 2


def again(inside: Any, step: Any) -> None:
    if isinstance(inside, list):
        inside.insert(step, inside[step])
    else:
        inside[f"{step}_"] = inside[step]


def spoilt(document: Any) -> Iterator[Spoilt]:
    """The document in every wrong way: a value is another one, is missing, or is there twice."""
    for at in places(document):
        if not at:
            for way in WAYS:
                yield f"all = {way[:30]}", way.encode()
            continue
        name = ".".join(map(str, at))
        text = json.dumps(changed(document, at, put(HERE)), ensure_ascii=False)
        for way in WAYS:
            yield f"{name} = {way[:30]}", text.replace(f'"{HERE}"', way).encode()
        for word, change in (("missing", drop), ("doubled", twice), ("again", again)):
            yield f"{name} {word}", json.dumps(changed(document, at, change)).encode()
        if at[-1] == "expression":
            for levels in (16, 40, 300, 5_000):
                yield (
                    f"{name} doubling {levels}",
                    json.dumps(changed(document, at, put(doubling(levels)))).encode(),
                )


def replies(kind: str, document: Any) -> Iterator[Spoilt]:
    """All that is tried for one kind of document; of an answer also what it holds in base64."""
    yield from spoilt(document)
    if kind in ("release", "reread"):
        line, _, behind = base64.b64decode(document["answer"]).partition(b"\n")
        rest = b"\n" + behind if behind else b""
        for way, inner in spoilt(json.loads(line)):
            packed = base64.b64encode(inner + rest).decode()
            yield f"answer: {way}", json.dumps({**document, "answer": packed}).encode()


# ── a server that gives them, and a client that asks


class Hostile:
    """A server that answers as it was told; `spoilt` is given in place of the document of its kind."""

    def __init__(self) -> None:
        self.honest, self.spoilt = dict[str, bytes](), dict[str, bytes]()
        told = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                told.answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                told.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        kind = kind_of(handler.path)
        body = self.spoilt.get(kind, self.honest[kind])
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def tour(session: Any, text: str, kind: str) -> None:
    """Asks what gives one kind of document, and shows all of it."""
    match kind:
        case "quote":
            quote = session.sql(text).quote(epsilon=1)
            show(quote, quote.to_dict(), quote._repr_html_(), quote.loss, quote.error())
        case "release" | "reread":
            release = session.sql(text).release(epsilon=1) if kind == "release" else session.reread(1)
            show(
                release,
                release._repr_html_(),
                release.table,
                release.error(0.9),
                release.quote,
                release.state,
            )
            show(release.to_pandas(errors=True), release.interval(0.8), release.counted, release.first)
            show_receipt(release.receipt)
        case "receipts":
            for receipt in session.releases():
                show_receipt(receipt)
        case "balance" | "losses":
            balance = session.balance()
            show(session, balance, balance.to_dict(), balance.left(), balance.retrospective)
        case "session":
            show(session, session.tables, *session.tables.values())
            show(session.sql(text).report)


def show_receipt(receipt: Any) -> None:
    show(receipt, receipt.to_dict(), receipt.purpose, receipt.loss, receipt.counts, receipt.windows)


def show(*values: Any) -> None:
    for value in values:
        str(value).encode("utf-8", "backslashreplace")


def fault(ask: Callable[[], None], seconds: int = SECONDS) -> str:
    """What is wrong with how it ended; empty: it ended well, or in one sentence of ours."""
    signal.alarm(seconds)
    try:
        ask()
    except SfumatoError as error:
        said = str(error)
        return (
            ""
            if said.rstrip().endswith((".", "?")) and 10 < len(said) < 20_000
            else f"no sentence: {said[:80]!r}"
        )
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
        return f"{type(error).__name__}: {str(error)[:80]}{where}"
    finally:
        signal.alarm(0)
    return ""


class Endless(BaseException):
    """It does not end."""


def search(every: int, seed: int) -> tuple[int, list[str]]:
    """How many cases were tried, one of so many, and what is wrong."""

    def over(*_: object) -> None:
        raise TimeoutError("endless")

    signal.signal(signal.SIGALRM, over)
    picked, faults, tried = random.Random(seed), [], 0
    server = Hostile()
    with recorded() as honest:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        for one in honest:
            server.honest = {kind: json.dumps(document).encode() for kind, document in one.replies.items()}
            server.spoilt = {}
            with sf.connect(server.url, token=TOKEN) as session:
                for kind in one.replies:
                    if kind != "session":
                        tour(session, one.text, kind)  # so it is with an honest server
                for kind, document in one.replies.items():
                    for way, body in replies(kind, document):
                        if picked.randrange(every):
                            continue
                        tried += 1
                        server.spoilt = {kind: body}
                        wrong = fault(partial(asked, server.url, session, one.text, kind))
                        if wrong:
                            faults.append(f"{kind}: {way}: {wrong}")
    server.close()
    return tried, faults


def asked(url: str, session: Any, text: str, kind: str) -> None:
    if kind != "session":
        tour(session, text, kind)
        return
    with sf.connect(url, token=TOKEN) as other:
        tour(other, text, kind)


if __name__ == "__main__":
    count, found = search(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(found))
    print(f"{count} replies, {len(found)} faults")
    sys.exit(bool(found))
