"""What .ci/progress.py makes of ninja's output: a line a minute, and nothing of what compilers say is lost.

The minute is a fraction of a second here, by a small program that sets it before it calls main()."""

import importlib.util
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOON = 20.0  # seconds that nothing here should take
PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("progress", sys.argv[1])
progress = importlib.util.module_from_spec(spec)
spec.loader.exec_module(progress)
progress.EVERY_S = float(sys.argv[2])
progress.main()
"""


@pytest.fixture
def progress():
    """progress(EVERY_S) → the program, with its three pipes."""
    started = []

    def start(every: float = 60) -> subprocess.Popen:
        words = [sys.executable, "-c", PROGRAM, str(ROOT / ".ci" / "progress.py"), str(every)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen(words, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_ninjas_own_lines_are_swallowed_and_all_others_pass_as_they_are(progress):
    said = [
        b"[0/3] Building a.cc\n",
        b"FAILED: a.o\n",
        b"a.cc:1:1: error: no \xff\n",
        b"  1 | [1/2] in a source\n",
        b"ninja: no work to do.\n",
        b"[3/3] Linking a\n",
        b"no newline",
    ]
    out, err = progress().communicate(b"".join(said), timeout=SOON)
    assert out == said[1] + said[2] + said[3] + said[6]
    assert err == b""


def test_what_a_compiler_says_is_not_kept_until_the_end(progress):
    process = progress()
    process.stdin.write(b"[1/2] a\na.cc: warning\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"a.cc: warning\n"
    assert process.poll() is None


def test_a_line_a_minute_says_how_far_it_is_though_nothing_comes(progress):
    process = progress(every=0.05)
    assert process.stderr.readline() == b"  build: begun, 0 min\n"
    process.stdin.write(b"[1/9] a\n[7/9] b\n")
    process.stdin.flush()
    deadline = time.monotonic() + SOON
    while (line := process.stderr.readline()) != b"  build: 7 of 9, 0 min\n":
        assert line in (b"  build: begun, 0 min\n", b"  build: 1 of 9, 0 min\n")
        assert time.monotonic() < deadline
    assert process.stderr.readline() == b"  build: 7 of 9, 0 min\n"


def test_it_ends_with_ninja_and_not_a_minute_later(progress):
    began = time.monotonic()
    process = progress(every=600)
    assert process.communicate(b"[1/1] a\n", timeout=SOON) == (b"", b"")
    assert process.returncode == 0 and time.monotonic() - began < SOON


def test_a_ctrl_c_is_ninjas_and_its_last_words_are_passed_on(progress):
    process = progress()
    process.stdin.write(b"a first line\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"a first line\n"  # by now it ignores the signal
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(b"ninja: build stopped: interrupted by user.\n", timeout=SOON)
    assert (out, process.returncode) == (b"ninja: build stopped: interrupted by user.\n", 0)


def test_it_says_so_in_minutes(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("progress", ROOT / ".ci" / "progress.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    told = module.Progress()
    told.take(b"[12/345] c\n")
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        now[0] += seconds
        return len(waits) > 2

    monkeypatch.setattr(told.done, "wait", wait)
    told.tell()
    assert waits == [60, 60, 60]
    assert capsys.readouterr().err == "  build: 12 of 345, 1 min\n  build: 12 of 345, 2 min\n"
