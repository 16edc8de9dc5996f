"""`muster logs`: what the ranks wrote, merged by time, filtered, and followed until the run is over."""

import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess

import pytest

TORTURE = bytes(range(256)) + b"\r\n\rbar\r" + b"\xff\xfe\x00\x1b[2J\xc2\x9b31m no newline at all"

# Rank 1 dies once in the middle; every rank says what it does in order.
DIES_ONCE = """
import os, time
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
for i in range(12):
    print("line", i, flush=True)
    time.sleep(0.02)
    if first and i == 6 and os.environ["RANK"] == "1":
        while not os.path.exists("six"):
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
    while first and i == 6 and os.environ["RANK"] == "0":
        open("six", "w").close()
        time.sleep(1)
"""


@pytest.fixture
def make_run(tmp_path):
    """Writes a run folder: {(rank, gen, stream): [(t_ns or None, bytes)]} → its path."""

    def make(logs: dict, ranks=2, name="made") -> pathlib.Path:
        folder = tmp_path / name
        folder.mkdir()
        facts = {"format": "muster-run/1", "id": "x", "name": "x", "version": "0", "host": "h", "pid": 1}
        facts |= {"created_utc": "2026-11-29T10:00:00.000Z", "created_ns": 1_000_000_000, "ranks": ranks}
        (folder / "run.json").write_text(json.dumps(facts))
        for (rank, generation, stream), pieces in logs.items():
            log = folder / "logs" / f"rank-{rank}" / f"gen-{generation}.{stream}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            offset = 0
            with log.open("wb") as text, log.with_suffix(".idx").open("wb") as index:
                for t_ns, data in pieces:
                    if t_ns is not None:
                        index.write(struct.pack("<QQ", t_ns, offset))
                    text.write(data)
                    offset += len(data)
        return folder

    return make


@pytest.fixture
def raw(programs, tmp_path):
    """Bytes that `muster logs WORDS…` prints."""

    def run(*words) -> bytes:
        done = subprocess.run([programs / "muster", "logs", *map(str, words)], cwd=tmp_path, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def follow(bin_with_stepper, tmp_path):
    """Starts `muster logs -f WORDS…`, which is ended with the test."""
    started = []

    def begin(*words) -> subprocess.Popen:
        command = [bin_with_stepper / "muster", "logs", "-f", *map(str, words)]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_restart_is_followed_to_the_end_of_the_run(start, follow, python, script):
    run = start(python, script(DIES_ONCE), ranks=2)
    run.wait_event("worker_started", rank=0)
    process = follow(run.folder)
    out, err = process.communicate(timeout=60)
    assert run.end() == 0
    assert (process.returncode, err) == (0, "")
    lines = out.splitlines()
    for rank, generation, count in ((0, 1, 7), (1, 1, 7), (0, 2, 12), (1, 2, 12)):
        mine = [line for line in lines if line.startswith(f"[{rank} {generation}] ")]
        assert mine == [f"[{rank} {generation}] line {i}" for i in range(count)], out
    assert sorted(lines) == sorted(subprocess_lines(run, "logs", run.folder))


def subprocess_lines(run, *words) -> list[str]:
    program = run.process.args[0]
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_run_has_times_that_since_goes_by(start, python, script, wait_until):
    text = "import time\nprint('early', flush=True)\ntime.sleep(0.4)\nprint('late', flush=True)"
    run = start(python, script(text), ranks=1)
    assert run.end() == 0
    index = (run.folder / "logs" / "rank-0" / "gen-1.stdout.idx").read_bytes()
    marks = list(struct.iter_unpack("<QQ", index))
    assert [offset for _, offset in marks] == [0, len(b"early\n")]
    assert 0.2e9 < marks[1][0] - marks[0][0] < 10e9
    lines = subprocess_lines(run, "logs", run.folder, "--timestamps")
    stamps = [line.split(" ")[0] for line in lines]
    assert [line.split(" ", 1)[1] for line in lines] == ["early", "late"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp) for stamp in stamps)
    # A millisecond: the stamp is rounded.
    between = stamps[0][:-1] + "999Z"
    assert subprocess_lines(run, "logs", run.folder, "--since", between) == ["late"]
    assert subprocess_lines(run, "logs", run.folder, "--since", "1h") == ["early", "late"]
    assert subprocess_lines(run, "logs", run.folder, "--since", "1ms") == []


def test_ctrl_c_ends_following_with_130(start, follow, python, script):
    run = start(python, script("import time\nprint('here', flush=True)\ntime.sleep(60)"), ranks=1)
    run.wait_event("worker_started", rank=0)
    process = follow(run.folder)
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process = follow(run.folder, "--json")
    assert process.stdout.readline().startswith('{"run":')
    assert json.loads(process.stdout.readline())["text"] == "here"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "]}\n"
    assert process.wait(30) == 130


def test_following_ends_when_nobody_reads(start, follow, python, script):
    run = start(python, script("import time\nprint('here', flush=True)\ntime.sleep(60)"), ranks=1)
    run.wait_event("worker_started", rank=0)
    process = follow(run.folder)
    assert process.stdout.readline() == "here\n"
    process.stdout.close()
    assert process.wait(30) == 0
    process.stdout = None


def test_what_muster_run_left_when_it_was_killed_is_shown(start, muster, python, script):
    run = start(python, script("import time\nprint('here', flush=True)\ntime.sleep(60)"), ranks=1)
    run.wait(lambda: run.log_exists(0) and run.log(0).endswith(b"\n"), "a whole line")
    run.kill_all()
    run.end()
    for words in ([], ["-f"]):
        assert muster("logs", run.folder, *words).out == "here\n"


def test_one_rank_s_lines_are_its_bytes(make_run, raw):
    folder = make_run({(0, 1, "stdout"): [(2, TORTURE)], (1, 1, "stdout"): [(1, b"x" * 200_000 + b"\n")]})
    assert raw(folder, "--rank", 0) == TORTURE
    merged = raw(folder)
    assert merged.startswith(b"[1 1] " + b"x" * 200_000 + b"\n[0 1] \x00\x01") and merged.endswith(b"at all\n")
    assert merged.replace(b"[0 1] ", b"").count(b"\xff\xfe\x00") == 1


def test_nothing_of_a_log_drives_the_terminal(make_run, programs):
    folder = make_run({(0, 1, "stdout"): [(2, TORTURE)]}, ranks=1)
    master, slave = pty.openpty()
    process = subprocess.Popen([programs / "muster", "logs", folder], stdout=slave)
    os.close(slave)
    shown = b""
    try:
        while block := os.read(master, 65536):
            shown += block
    except OSError:  # the other side is closed
        pass
    os.close(master)
    assert process.wait() == 0
    text = shown.decode().replace("\r\n", "\n")
    assert "no newline at all" in text
    assert not [c for c in text if ord(c) < 0x20 and c not in "\n\t" or 0x7F <= ord(c) < 0xA0]


def test_it_chooses_lines(make_run, muster):
    folder = make_run(
        {
            (0, 1, "stdout"): [(10, b"a loss=1\n"), (30, b"c loss=nan\n")],
            (0, 1, "stderr"): [(20, b"b warning\n")],
            (1, 2, "stdout"): [(40, b"d loss=2\n")],
        }
    )

    def out(*words):
        done = muster("logs", folder, *words)
        assert (done.code, done.err) == (0, "")
        return [line.split("] ")[-1][0] for line in done.out.splitlines()]

    assert out() == ["a", "b", "c", "d"]
    assert out("--rank", 0, "--rank", 1, "--stream", "stdout") == ["a", "c", "d"]
    assert out("--rank", 0, "--stream", "stderr") == ["b"]
    assert out("--gen", 2) == ["d"]
    assert out("--grep", "loss=(nan|2)$") == ["c", "d"]
    assert out("--tail", 2) == ["c", "d"]
    assert out("--tail", 1, "--grep", "loss=[0-9]", "--rank", 0) == ["a"]
    assert out("--since", "2026-11-29T09:59:59") == ["a", "b", "c", "d"]
    assert out("--since", "2026-11-29 10:00:00.5") == []


def test_json_is_one_document(make_run, muster):
    folder = make_run({(0, 1, "stdout"): [(1_500_000_000, b"\xffa\n")], (1, 1, "stderr"): [(None, b"b")]})
    document = muster("logs", folder, "--json").json()
    assert document["run"] == str(folder)
    assert document["lines"] == [
        {
            "rank": 1,
            "gen": 1,
            "stream": "stderr",
            "t_ns": None,
            "time": None,
            "continued": False,
            "text": "b",
        },
        {
            "rank": 0,
            "gen": 1,
            "stream": "stdout",
            "t_ns": 1_500_000_000,
            "time": "2026-11-29T10:00:00.500Z",
            "continued": False,
            "text": "\ufffda",
        },
    ]
    assert muster("logs", folder, "--json", "--grep", "zzz").json()["lines"] == []
    refused = muster("logs", folder, "--json", "--rank", 5)
    assert refused.code == 3 and refused.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (["--rank", "2"], 3, "there is no rank 2 in", "it has ranks 0 and 1"),
        (["--gen", "3"], 3, "no log of generation 3 in", "generation 1"),
        (["--grep", "(?=x)"], 2, "--grep: look-ahead", ""),
        (["--since", "yesterday"], 2, "--since is 'yesterday', no duration and no time", "5m"),
        (["--stream", "out"], 2, "--stream takes stdout, stderr or both, not 'out'", ""),
    ],
)
def test_what_cannot_be_shown_is_refused_with_what_can(make_run, muster, words, code, message, hint):
    folder = make_run({(0, 1, "stdout"): [(1, b"a\n")]})
    done = muster("logs", folder, *words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("muster: ") and message in done.err and hint in done.err, done.err


def test_a_run_without_logs_and_a_folder_without_a_run(make_run, muster, tmp_path):
    folder = make_run({})
    assert muster("logs", folder) == muster("logs", folder, "-f")
    assert muster("logs", folder).code == 0
    done = muster("logs", tmp_path / "mad")
    assert done.code == 3 and "did you mean made?" in done.err
    (tmp_path / "empty").mkdir()
    done = muster("logs", tmp_path / "empty")
    assert done.code == 3 and "is no run folder" in done.err


def test_a_log_without_an_index_is_shown_whole(make_run, muster):
    folder = make_run({(0, 1, "stdout"): [(None, b"a\nb\n")]})
    done = muster("logs", folder, "--since", "1h")
    assert done.out == "[0 1] a\n[0 1] b\n"
    assert "1 log without times" in done.err


def test_the_tail_of_a_large_log_is_there_at_once(make_run, raw):
    folder = make_run({(0, 1, "stdout"): [(None, b"")]}, ranks=1)
    log = folder / "logs" / "rank-0" / "gen-1.stdout.log"
    with log.open("wb") as file:
        file.truncate(10 << 30)  # sparse: reading all of it would take minutes
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    assert raw(folder, "--tail", 2) == b"last but one\nlast\n"
