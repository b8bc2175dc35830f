"""The real command in processes of its own: pipes, locales, terminals, races, signals."""

import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from commands import forked
from sfumato.cli.commands import COMMANDS

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
COMMAND = [sys.executable, "-m", "sfumato"]


def test_version(process):
    assert re.fullmatch(r"sfumato \d+\.\d+\.\d+\S*\n", process("--version").out)


def test_help_and_completion_load_nothing_heavy():
    code = """
import atexit, sys
from sfumato.cli import main
atexit.register(lambda: print(*sys.modules))
main()
"""
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("\n")[-2].split())
    heavy = {"numpy", "scipy", "duckdb", "pyarrow", "sqlglot", "matplotlib", "flint", "pydantic", "rich"}
    assert not heavy & loaded
    ours = {name for name in loaded if name.startswith("sfumato.") and not name.startswith("sfumato.cli.")}
    assert ours == {"sfumato._lazy", "sfumato.cli", "sfumato.errors", "sfumato.render"}
    assert not {f"sfumato.cli.{module}" for module, _ in COMMANDS.values()} & loaded


def test_the_shell_can_complete(process):
    env = {"_SFUMATO_COMPLETE": "complete_bash", "COMP_WORDS": "sfumato led", "COMP_CWORD": "1"}
    assert process(env=env).out.split() == ["ledger"]


@pytest.mark.parametrize(
    "locale",
    [
        {"LANG": "C", "LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    ],
    ids=["C", "ascii"],
)
def test_a_locale_without_symbols_does_not_crash(process, hospital, locale):
    answer = process("query", BY_CITY, "--epsilon", "0.5", env=locale)
    assert answer.code == 0
    assert answer.err == ""
    strict = "PYTHONIOENCODING" in locale
    assert ("+/-" if strict else "±") in answer.out
    if strict:
        assert answer.out.isascii()
        assert "?" not in answer.out
        assert forked(["explain", "1"], folder=hospital, env=locale)[0][0] == 0


def test_a_reader_that_goes_away_is_no_crash(hospital):
    shell = f'"{sys.executable}" -m sfumato quote "{BY_CITY}" --epsilon 0.5 | head -n 1'
    done = subprocess.run(shell, shell=True, cwd=hospital, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def in_terminal(folder, *arguments, forks=False, **env):
    """What a person sees: the command in a terminal of 80 columns."""
    parent, child = pty.openpty()
    env = {"TERM": "xterm-256color", "COLUMNS": "80", **env}
    with ThreadPoolExecutor(1) as reader:
        seen = reader.submit(_all_of, parent)
        if forks:
            ((code, _),) = forked(list(arguments), folder=folder, env=env, terminal=os.ttyname(child))
        else:
            streams = dict.fromkeys(("stdin", "stdout", "stderr"), child)
            env = {**os.environ, **env}
            code = subprocess.run(
                [*COMMAND, *arguments], cwd=folder, env=env, timeout=120, **streams
            ).returncode
        os.close(child)
        text = seen.result(timeout=120).decode()
    os.close(parent)
    return code, text


def _all_of(terminal):
    seen = b""
    while True:
        ready, _, _ = select.select([terminal], [], [], 120)
        try:
            chunk = os.read(terminal, 65536) if ready else b""
        except OSError:  # nobody has the terminal any more
            return seen
        if not chunk:
            return seen
        seen += chunk


def bare(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_terminal_gets_colours_and_all_columns_and_digits_within_80_columns(hospital):
    many = ", ".join(f"COUNT(*) * {10**place} AS n{place}" for place in range(3, 8))
    wide = f"SELECT city, {many} FROM visits GROUP BY city"
    code, text = in_terminal(hospital, "query", wide, "--epsilon", "0.5")
    lines = bare(text).replace("\r\n", "\n").split("\n")
    assert code == 0
    assert "\x1b[" in text
    assert "──" in text
    assert max(len(line.split("\r")[-1]) for line in lines) <= 80
    piped = forked(["query", wide, "--epsilon", "0.5"], folder=hospital)[0][1]
    table = [line for line in piped.split("\n") if " ± " in line and "holds" not in line]
    assert len(table) > 4
    assert all(line in lines for line in table[1:] if "noise" not in line)
    # Colours are off where nobody wants them, and the words stay.
    code, plain = in_terminal(hospital, "query", wide, "--epsilon", "0.5", forks=True, NO_COLOR="1")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)
    assert "Answered again from the ledger, free" in " ".join(bare(plain).split())
    code, dumb = in_terminal(hospital, "query", wide, "--epsilon", "0.5", forks=True, TERM="dumb")
    assert code == 0
    assert "\x1b[" not in dumb


def test_many_at_once_never_overdraw(hospital):
    """Six processes each want two fifths of the budget: two get it."""
    texts = [f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in range(6)]
    done = forked(*(["query", text, "--epsilon", "0.4", "--json"] for text in texts), folder=hospital)
    assert sorted(code for code, _ in done) == [0] * 2 + [3] * 4


def test_the_same_question_at_once_is_answered_alike(hospital):
    command = ["query", BY_CITY, "--epsilon", "0.25", "--json"]
    answers = [json.loads(out) for _, out in forked(*[command] * 3, folder=hospital)]
    paid = sum(not answer["free"] for answer in answers)
    ((code, again),) = forked(command, folder=hospital)
    assert code == 0
    assert json.loads(again)["left"]["epsilon"] == 1 - 0.25 * paid


def _interrupted(folder, question, debits):
    """What a query says that is interrupted once the ledger has so many debits."""
    started = subprocess.Popen(
        [*COMMAND, "query", question, "--epsilon", "0.25"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _debited(folder / "sfumato.ledger") < debits:
        time.sleep(0.005)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    return started.returncode, out, err


def test_ctrl_c_during_the_read_is_charged_and_says_so(data, process):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 12_000_000
    table = pa.table(
        {"patient_id": np.random.default_rng(0).integers(0, rows // 3, rows), "age": np.arange(rows) % 100}
    )
    pq.write_table(table, data / "visits.parquet", compression="none")
    (data / "sfumato.toml").write_text(
        "[engine]\nthreads = 1\n[datasets.visits]\nepsilon = 1\n[tables.visits]\nsource = 'visits.parquet'\n"
        "unit = 'patient_id'\n[tables.visits.columns]\nage = { type = 'int', lower = 0, upper = 100 }\n"
    )
    for tried in (1, 2, 3):  # on a busy machine a read may end before it is seen to have begun
        code, out, err = _interrupted(data, f"SELECT SUM(age) AS s FROM visits WHERE age >= -{tried}", tried)
        if code:
            break
    assert code == 130, err
    assert out == ""
    assert "its price stays paid" in err
    shown = json.loads(process("ledger", "show", "--json").out)
    assert shown["balances"][0]["spent"] == 0.25 * tried


def _debited(path):
    """How many debits a ledger has."""
    if not path.exists():
        return 0
    try:
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return len(database.execute("SELECT 1 FROM sfumato_receipts WHERE kind = 'debit'").fetchall())
        finally:
            database.close()
    except sqlite3.Error:
        return 0


@pytest.mark.parametrize("module", ["app", "ask"])
def test_an_interrupt_while_loading_ends_quietly(module):
    code = f"""
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "sfumato.cli.{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from sfumato.cli import main
main()
"""
    command = [sys.executable, "-c", code, "query", BY_CITY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_spelled_out_and_narrow_text_keeps_the_width(hospital):
    sql = "SELECT city, COUNT(*) AS n, AVG(age) AS mean_age FROM visits GROUP BY city"
    for columns in ("80", "60"):
        env = {"PYTHONIOENCODING": "ascii", "COLUMNS": columns}
        commands = (["quote", sql, "--epsilon", "0.3"], ["query", sql, "--epsilon", "0.3"])
        for code, text in forked(*commands, folder=hospital, env=env):
            assert code == 0
            assert "+/-" in text
            assert text.isascii()
            assert "?" not in text
            assert max(map(len, text.splitlines())) <= int(columns)
