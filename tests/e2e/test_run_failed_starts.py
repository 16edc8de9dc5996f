"""A run that could not start says why and leaves no folder, or one that the next try takes."""

import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest


def again(start, folder):
    run = start("/bin/true", folder=folder)
    assert run.end() == 0, run.err


@pytest.mark.parametrize("limit", [5, 8, 12, 16, 20])
def test_without_descriptors(start, limit):
    run = start("/bin/true", prefix=["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"])
    assert run.end() not in (0, -signal.SIGABRT), run.err
    assert limit < 8 or "ulimit -Hn" in run.err, run.err
    again(start, run.folder)


def test_without_a_working_folder(start, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()

    def leave():
        os.chdir(gone)
        gone.rmdir()

    run = start("/bin/true", prepare=leave)
    assert run.end() == 1
    assert "working folder" in run.err and "nothing was made" in run.err
    assert not run.folder.exists()


def test_a_path_that_is_too_long_leaves_no_folder(start, tmp_path):
    top = tmp_path / "top"
    run = start("/bin/true", folder=top / "/".join(["x" * 100] * 42))
    assert run.end() == 2
    assert "shorter --run-dir" in run.err
    assert not top.exists()


def test_a_signal_at_any_early_moment(start):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(16):
        run = start("muster-train", "--steps", 100000)
        time.sleep(draw.uniform(0, 0.08))  # the moment is what is tested
        run.process.send_signal(signal.SIGTERM)
        assert run.end() in (143, -signal.SIGTERM), run.err
        run.assert_nothing_left()
        if not (run.folder / "result.json").exists():
            again(start, run.folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without processes")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 8, 20])
def test_without_processes(programs, limit):
    user = 61000 + os.getpid() % 1000
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-", dir="/tmp"))
    try:
        for name in ("muster", "muster-shim"):
            shutil.copy2(programs / name, folder / name)
        shutil.chown(folder, user, user)

        def become():
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

        words = [folder / "muster", "run", "-n", "2", "--run-dir", folder / "run", "--", "/bin/sleep", "0.1"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, preexec_fn=become, cwd=folder)
        assert done.returncode in ((0,) if limit == 20 else (0, 1, 6, 93)), done.stderr
        assert done.returncode == 0 or "ulimit -u" in done.stderr, done.stderr
        if not (folder / "run" / "run.json").exists():
            assert "can be used again" in done.stderr
            subprocess.run(words, check=True, timeout=60, cwd=folder)
    finally:
        shutil.rmtree(folder)


def test_a_limit_of_file_sizes_is_told_before_anything_is_made(start):
    run = start("/bin/true", prefix=["/bin/sh", "-c", 'ulimit -f 3000; exec "$@"', "sh"], ranks=1)
    assert run.end() == 1, run.err
    assert "the limit of file sizes is" in run.err and "ulimit -f unlimited" in run.err
    assert not run.folder.exists()


def test_workers_find_the_signal_of_the_file_size_limit_as_it_was(start):
    run = start("/bin/cat", "/proc/self/status", ranks=1)
    assert run.end() == 0, run.err
    ignored = next(line for line in run.log(0).decode().splitlines() if line.startswith("SigIgn:"))
    assert not int(ignored.split()[1], 16) >> (signal.SIGXFSZ - 1) & 1


def contents(folder):
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in [folder, *folder.rglob("*")]
    }


def test_a_folder_of_the_users_is_left_as_it_is(start, tmp_path):
    project = tmp_path / "project"
    (project / "steps").mkdir(parents=True)
    project.chmod(0o755)
    job = project / "job.yaml"
    job.write_text("apiVersion: muster/v1\nkind: Job\nmetadata: {name: x}\nspec: {command: [/bin/true]}\n")
    for name in ("lock", "result.json", "generation", "events.jsonl"):
        (project / name).write_text(f"my {name}\n")
    before = contents(project)
    run = start(folder=project, job=job)
    assert run.end() == 5, run.err
    assert "holds what is not of a run: events.jsonl, generation, job.yaml and 3 more" in run.err
    assert "nothing was changed" in run.err
    assert contents(project) == before


def test_an_empty_folder_of_the_users_is_used_and_keeps_its_mode(start, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    folder.chmod(0o755)
    run = start("/bin/true", folder=folder)
    assert run.end() == 0, run.err
    assert folder.stat().st_mode & 0o777 == 0o755
