"""Workers' output is kept byte for byte, and no disk, terminal or flood stops a worker or a run."""

import os
import pathlib
import pty
import re
import signal
import subprocess

import pytest

TORTURE = bytes(range(256)) + b"\r\n\rbar\r" + b"\xff\xfe\x00 no newline at all"


def test_bytes_are_kept_as_they_are(start, python):
    run = start(python, "-c", f"import os; os.write(1, {TORTURE!r}); os.write(2, {TORTURE[::-1]!r})")
    assert run.end() == 0
    assert run.log(1) == TORTURE
    assert run.log(1, stream="stderr") == TORTURE[::-1]


def test_a_flood_without_newline_is_kept_and_shown_in_pieces(start, python):
    size = 5_000_000
    run = start(python, "-c", f"import sys; sys.stdout.write('x' * {size})", ranks=1)
    assert run.end() == 0
    assert run.log(0) == b"x" * size
    lines = run.out.splitlines()
    assert lines[0].startswith("[0 1] x") and all(len(line) < 70_000 for line in lines)


def test_what_a_script_prints_is_kept_without_a_flush(start, python):
    run = start(
        python,
        "-c",
        "import os, signal; print('seen'); os.kill(os.getpid(), signal.SIGKILL)",
        ranks=1,
        flags=["--max-restarts", 0],
    )
    assert run.end() == 137
    assert run.log(0) == b"seen\n" and "seen" in run.out
    run = start(python, "-c", "import os; print(os.environ['PYTHONUNBUFFERED'])", ranks=1, PYTHONUNBUFFERED="0")
    assert run.end() == 0
    assert run.log(0) == b"0\n"


def test_what_was_written_before_sigkill_is_kept(start, python):
    code = "import os; [os.write(1, b'line %06d\\n' % i) for i in range(20000)]; os.kill(os.getpid(), 9)"
    run = start(python, "-c", code, ranks=1, flags=["--max-restarts", 0])
    assert run.end() == 137
    assert run.log(0).splitlines()[-1] == b"line 019999"
    assert run.fault()["stdout_tail"].endswith("line 019999\n")
    assert len(run.fault()["stdout_tail"]) == 65536


def test_console_lines_are_limited_and_counted(start, python):
    run = start(python, "-c", "for i in range(50000): print(i)", ranks=1)
    assert run.end() == 0
    shown = [line for line in run.out.splitlines() if line.startswith("[0 1] ")]
    hidden = [int(line.split()[1]) for line in run.err.splitlines() if "lines not shown" in line]
    assert len(shown) + sum(hidden) == 50000 and sum(hidden) > 0
    assert run.log(0).count(b"\n") == 50000


def test_a_console_that_nobody_reads_does_not_stop_the_run(bin_with_stepper, tmp_path, python):
    read, write = os.pipe()
    code = "for i in range(100000): print('y' * 100)"
    process = subprocess.Popen(
        [bin_with_stepper / "muster", "run", "--run-dir", tmp_path / "run", "--", python, "-c", code],
        stdout=write,
        stderr=write,
    )
    os.close(write)
    assert process.wait(timeout=60) == 0
    os.close(read)
    log = tmp_path / "run" / "logs" / "rank-0" / "gen-1.stdout.log"
    assert log.stat().st_size == 100000 * 101


def test_a_terminal_that_nobody_reads_does_not_stop_the_run(start, python):
    master, slave = pty.openpty()
    code = "for i in range(20000): print('y' * 100)\nimport os; os.kill(os.getpid(), 9)"
    run = start(python, "-c", code, console=slave, ranks=1, flags=["--max-restarts", 1])
    os.close(slave)
    assert run.end() == 93
    assert run.log(0, 2).count(b"\n") == 20000
    os.close(master)


def test_a_closed_console_does_not_stop_the_run(bin_with_stepper, tmp_path, wait_until):
    command = f"{bin_with_stepper}/muster run --run-dir {tmp_path}/run -- muster-train --steps 200 2>&1 | head -1"
    subprocess.run(["bash", "-c", command], check=True, timeout=60, capture_output=True)
    wait_until((tmp_path / "run" / "result.json").exists, "the result")


@pytest.fixture
def tiny_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no right to mount a small tmpfs: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_ends_no_run_and_is_told(start, python, tiny_disk):
    code = "import sys\nfor i in range(60000): print('z' * 100)\nprint('done', file=sys.stderr)"
    run = start(python, "-c", code, folder=tiny_disk / "run", flags=["--quiet"])
    assert run.end() == 0, run.err
    # Who wrote first may have filled it alone.
    assert any(run.log(rank).startswith(b"z" * 100) for rank in (0, 1))
    assert re.search(r"muster: the disk had no room for [0-9.]+ [KM]iB of what rank [01] wrote to its stdout", run.err)
    assert "result.json is missing" in run.err or run.result()["state"] == "SUCCEEDED"
    run.assert_nothing_left()


def test_a_restart_on_a_full_disk_still_gets_its_generation(start, tiny_disk):
    run = start("muster-train", "--steps", 400, "--step-ms", 2, "--every", 100000, folder=tiny_disk / "run")
    run.wait_step(10)
    filler = pathlib.Path(tiny_disk / "filler")
    try:
        with filler.open("wb") as file:
            while True:
                file.write(b"f" * 4096)
                file.flush()
    except OSError:
        pass
    run.kill(1)
    run.wait(lambda: (run.folder / "generation").read_text() == "2\n", "the generation on disk")
    filler.unlink()
    assert run.end() == 0, run.err
    assert run.result()["restarts"] == 1


def fill(folder: pathlib.Path) -> pathlib.Path:
    """Takes the last free byte of the disk."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"f" * 4096)
    except OSError:
        pass
    return filler


def read_to_step(run, step: int):
    """Reads the console of a run of one rank until it shows that step."""
    for line in run.process.stdout:
        if line.startswith("[0 1] step ") and int(line.split()[3]) >= step:
            return
    raise AssertionError("the console ended")


def test_a_disk_that_has_room_again_is_written_again(start, tiny_disk):
    run = start("muster-train", "--steps", 100000, "--every", 1000000, folder=tiny_disk / "run", ranks=1)
    run.wait_step(10)
    filler = fill(tiny_disk)
    full_at = len(run.steps(0))
    read_to_step(run, full_at + 500)  # some 60 KB of steps
    assert len(run.steps(0)) < full_at + 100
    filler.unlink()
    run.wait_step(full_at + 1000)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    steps = [record["step"] for record in run.steps(0)]
    assert steps == list(range(1, len(steps) + 1)), "every step is there, and once"
    assert [run.events(name)[0]["event"] for name in ("signal", "log_dropped", "run_ended")]
    assert not run.events("records_lost")
    log = run.log(0).decode().splitlines()
    missing = [int(line.split()[1]) for line in log if "bytes are missing here]" in line]
    assert sum(missing) == sum(event["bytes"] for event in run.events("log_dropped")) > 0
    assert f"step {full_at + 1000} loss" in "\n".join(log)
    run.assert_nothing_left()


def test_what_a_full_disk_never_took_is_told(start, tiny_disk):
    run = start("muster-train", "--steps", 600, "--every", 1000000, folder=tiny_disk / "run", ranks=1)
    run.wait_step(10)
    fill(tiny_disk)
    assert run.end() == 0, run.err
    assert "muster: the disk had no room for" in run.err and "of steps/" in run.err


def test_the_report_says_of_a_full_disk_that_it_was_full(start, tiny_disk, script, python, muster):
    text = "import os, time\nprint('up', flush=True)\n"
    text += f"while not os.path.exists('{tiny_disk.parent}/go'): time.sleep(0.01)\nprint('z' * 30000)\n"
    run = start(python, script(text), folder=tiny_disk / "run", ranks=1)
    run.wait(lambda: run.log_exists(0) and run.log(0) == b"up\n", "its line")
    fill(tiny_disk)
    (tiny_disk.parent / "go").touch()
    assert run.end() == 0, run.err
    (tiny_disk / "filler").unlink()
    assert "muster: the disk had no room for" in run.err and "of what rank 0 wrote to its stdout" in run.err
    assert "faster than" not in run.err + muster("show", tiny_disk / "run").out
