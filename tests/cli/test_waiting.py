"""What is shown in a terminal while a long work goes on."""

import io
import time

from sfumato.cli import output


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def opened(monkeypatch):
    """A terminal in which little time goes by until something is shown."""
    shown = Terminal()
    monkeypatch.setattr(output.sys, "stderr", shown)
    monkeypatch.setattr(output, "is_terminal", lambda stream=None: stream is shown)
    monkeypatch.setattr(output, "_SOON", 0.005)
    monkeypatch.setattr(output, "_AGAIN", 0.002)
    return shown


def lines(terminal):
    return [line for line in terminal.getvalue().split("\r\x1b[2K") if line]


def wait_for(terminal, word):
    for _ in range(2000):
        if any(word in line for line in lines(terminal)):
            return
        time.sleep(0.001)
    raise AssertionError(f"never saw {word}: {lines(terminal)[-1:]}")


def test_a_bar_grows_and_is_wiped(monkeypatch):
    terminal = opened(monkeypatch)
    with output.progress_bar("reading") as tell:
        wait_for(terminal, "  0 %  reading")
        for done, what in ((0.5, "the middle"), (7.0, "the end")):
            tell(done, what)
            wait_for(terminal, what)
    assert any("█" * 12 + "·" * 12 + "  50 %  the middle, " in line for line in lines(terminal))
    assert any("█" * 24 + " 100 %  the end, " in line for line in lines(terminal))
    assert terminal.getvalue().endswith("\r\x1b[2K")
    assert all(len(line) < output.width() for line in lines(terminal))


def test_stages_come_one_after_the_other(monkeypatch):
    terminal = opened(monkeypatch)
    names = "first", "second", "third"
    with output.stages(*names) as begin:
        for name in names:
            wait_for(terminal, name)
            begin()
    seen = [next(name for name in names if name in line) for line in lines(terminal)]
    assert seen == sorted(seen, key=names.index)


def test_nothing_is_written_to_a_pipe_or_beside_json(monkeypatch):
    terminal = opened(monkeypatch)
    for quiet in (True, False):
        with output.progress_bar("reading", quiet=quiet) as tell, output.spinner("asking", quiet=quiet):
            time.sleep(0.03)
            tell(0.5, "half")
        assert not terminal.getvalue()
        monkeypatch.setattr(output, "is_terminal", lambda stream=None: False)
