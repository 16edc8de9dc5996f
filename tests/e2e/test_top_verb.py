"""`muster top`: the ranks as they stand, on a terminal, line by line when piped, once, and of any run folder."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import unicodedata

import pytest

HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u009b31m\rfaked\nfaked line\x7f"
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A terminal of the test's own with `muster top` on it."""

    def __init__(self, program, *words, rows=24, columns=80, cwd=None):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        command = [program, "top", *map(str, words)]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE, cwd=cwd)
        self.shown = b""
        os.set_blocking(self.master, False)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> bytes:
        try:
            while block := os.read(self.master, 65536):
                self.shown += block
        except (BlockingIOError, OSError):
            pass
        return self.shown

    def frames(self) -> list[list[str]]:
        """What was drawn, frame by frame, as lines; a frame is there when it has cleared what is below it."""
        text = [frame for frame in self.read().split(b"\x1b[H")[1:] if b"\x1b[J" in frame]
        return [[line.split(b"\x1b")[0].decode() for line in frame.split(b"\r\n")] for frame in text]

    def end(self) -> int:
        code = self.process.wait(30)
        self.read()
        return code

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before and self.shown.count(ENTER) == self.shown.count(LEAVE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(programs):
    opened = []

    def begin(*words, **options) -> Terminal:
        opened.append(Terminal(programs / "muster", *words, **options))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


@pytest.fixture
def long_run(start):
    run = start("muster-train", "--steps", 100000, "--step-ms", 5, "--every", 100000, ranks=2)
    run.wait_step(3, rank=1)
    return run


def test_a_terminal_shows_frames_until_q(long_run, terminal, wait_until):
    top = terminal(long_run.folder)
    frames = wait_until(lambda: top.frames()[2:], "three frames")
    assert "(" in frames[-1][0] and "running for" in frames[-1][0]
    assert "generation 1, step" in frames[-1][1] and "2 ranks: 2 running" in frames[-1][1]
    assert [line.split()[:3] for line in frames[-1][4:6]] == [["0", "running", "1"], ["1", "running", "1"]]
    assert all(len(frame) <= 24 and all(len(line) <= 80 for line in frame) for frame in frames)
    os.write(top.master, b"q")
    assert top.end() == 0
    assert top.is_as_before()


def test_a_resize_is_drawn_at_once(long_run, terminal, wait_until):
    top = terminal(long_run.folder)
    wait_until(lambda: top.frames(), "a frame")
    top.resize(5, 30)
    wait_until(lambda: len(top.frames()[-1]) <= 5 and max(map(len, top.frames()[-1])) <= 30, "a small frame")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_puts_the_terminal_back(long_run, terminal, wait_until, number):
    top = terminal(long_run.folder)
    wait_until(lambda: top.frames(), "a frame")
    top.process.send_signal(number)
    assert top.end() == 128 + number
    assert top.is_as_before()


def test_ctrl_z_puts_the_terminal_back_until_it_goes_on(long_run, terminal, wait_until):
    top = terminal(long_run.folder)
    wait_until(lambda: top.frames(), "a frame")
    top.process.send_signal(signal.SIGTSTP)
    wait_until(lambda: os.waitpid(top.process.pid, os.WUNTRACED | os.WNOHANG)[0], "it is stopped")
    top.read()
    assert top.is_as_before()
    top.process.send_signal(signal.SIGCONT)
    wait_until(lambda: top.read().count(ENTER) == 2, "the screen again")
    os.write(top.master, b"q")
    assert top.end() == 0
    assert top.is_as_before()


def test_a_fault_and_its_recovery_are_told_as_they_happen(start, programs):
    run = start("muster-train", "--steps", 400, "--step-ms", 5, "--every", 100000, ranks=3)
    run.wait_step(20, rank=1)
    top = subprocess.Popen([programs / "muster", "top", run.folder], stdout=subprocess.PIPE, text=True)
    first = [top.stdout.readline() for _ in range(3)]
    assert [line.split(",")[0].rsplit(" ", 1)[0] for line in first] == [f"rank {rank} step" for rank in range(3)]
    run.kill(1)
    out, _ = top.communicate(timeout=60)
    assert run.end() == 0
    assert top.returncode == 0
    lines = out.splitlines()
    told = [line.split(": ", 1)[1] for line in lines if not line.startswith("rank ")]
    assert told[0].startswith("rank 1 killed by SIGKILL at step ")
    assert "generation 2 started" in told[1]
    assert told[-1] == "the run ended: SUCCEEDED, exit code 0"
    for rank in range(3):
        (last,) = [line for line in lines if line.startswith(f"rank {rank} finished")]
        assert f"rank {rank} finished step 400," in last and last.endswith("generation 2")


def test_on_a_terminal_the_last_picture_stays(start, terminal):
    run = start("muster-train", "--steps", 60, "--step-ms", 5, "--every", 100000, ranks=2)
    run.wait_step(3)
    top = terminal(run.folder)
    assert run.end() == 0
    assert top.end() == 0
    assert top.is_as_before()
    after = top.shown.split(LEAVE)[1].decode() if LEAVE in top.shown else top.shown.decode()
    assert "SUCCEEDED after" in after and "finished" in after


def test_without_a_name_it_is_the_newest_run(start, muster, tmp_path):
    done = muster("top", "--once")
    assert done.code == 3 and f"there is no run in {tmp_path / 'runs'}" in done.err
    for name in ("old", "new"):
        assert start("true", ranks=1, folder=tmp_path / "runs" / name).end() == 0
    running = start("sleep", "60", ranks=1, folder=tmp_path / "runs" / "going")
    running.wait_event("worker_started")
    assert start("true", ranks=1, folder=tmp_path / "runs" / "last").end() == 0
    run_id = json.loads((tmp_path / "runs" / "going" / "run.json").read_text())["id"]
    assert muster("top", "--json").json()["id"] == run_id
    running.process.send_signal(signal.SIGTERM)
    running.end()
    run_id = json.loads((tmp_path / "runs" / "last" / "run.json").read_text())["id"]
    done = muster("top", "--once")
    assert done.code == 0 and run_id in done.out


def test_a_program_without_steps_is_told_as_far_as_is_known(start, muster, python, script):
    run = start(python, script("import sys; sys.exit(3)"), ranks=1, flags=["--max-restarts", 0])
    assert run.end() == 3
    document = muster("top", run.folder, "--json").json()
    assert document["state"] == "FAILED"
    rank = {"rank": 0, "state": "failed", "gen": 1, "step": None, "step_s": None, "lag": None, "loss": None}
    assert document["ranks"] == [rank | {"exit": "exit 3"}]
    table = muster("top", run.folder, "--once").out.splitlines()
    assert "FAILED after" in table[0] and table[4].split()[:3] == ["0", "failed", "1"]
    assert muster("top", run.folder).out.splitlines()[-1] == "rank 0 failed (exit 3), generation 1"


def test_a_run_that_broke_off_is_called_that(long_run, muster):
    long_run.kill_all()
    long_run.end()
    done = muster("top", long_run.folder)
    assert done.code == 0 and "rank 1 step" in done.out
    assert "broke off" in muster("top", long_run.folder, "--once").out.splitlines()[0]


def test_a_folder_that_is_none_is_refused(muster, tmp_path):
    (tmp_path / "empty").mkdir()
    done = muster("top", "empty")
    assert done.code == 3 and "is no run folder" in done.err
    done = muster("top", "emty", "--json")
    assert done.code == 3 and "did you mean empty?" in done.json()["error"]["message"]


def write_hostile(folder):
    folder.mkdir()
    (folder / "steps").mkdir()
    facts = {"format": "muster-run/1", "id": HOSTILE, "name": HOSTILE, "host": HOSTILE, "created_ns": 1, "ranks": 2}
    (folder / "run.json").write_text(json.dumps(facts))
    result = {"format": "muster-result/1", "state": "FAILED", "exit_code": 1, "reason": HOSTILE, "ended_ns": 2}
    (folder / "result.json").write_text(json.dumps(result))
    events = [
        {"t_ns": 1, "event": "worker_exited", "gen": 1, "rank": 0, "signal": HOSTILE, "cause": "fault"},
        {"t_ns": 2, "event": "fault", "gen": 1, "rank": 0, "cause": HOSTILE},
        {"t_ns": 3, "event": "log_rule", "gen": 1, "rank": 1, "rule": HOSTILE, "why": HOSTILE},
        {"t_ns": 3, "event": "hang", "gen": 1, "rank": 1, "what": HOSTILE},
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events) + '{"torn')
    (folder / "steps" / "rank-1.jsonl").write_bytes(b"\xff\x00\n{}\n" + b"x" * 100_000)
    return folder


def test_nothing_of_a_run_folder_drives_the_terminal(muster, terminal, tmp_path):
    folder = write_hostile(tmp_path / "run")
    for words in ([], ["--once"]):
        done = muster("top", folder, *words)
        assert done.code == 0
        assert not [c for c in done.out if unicodedata.category(c) == "Cc" and c != "\n"], repr(done.out)
        assert not [line for line in done.out.splitlines() if line.startswith("faked")]
    top = terminal(folder)
    assert top.end() == 0
    shown = top.shown.replace(ENTER, b"").replace(LEAVE, b"").replace(b"\x1b[?25l\x1b[2J", b"")
    text = shown.replace(b"\x1b[?25h", b"").replace(b"\r\n", b"\n").decode()
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"], repr(text)
