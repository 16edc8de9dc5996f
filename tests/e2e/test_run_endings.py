"""However a run ends, it says why and leaves no process, no shared memory and no cgroup."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
POLITE = r"""
import os, signal, sys, time
def leave(number, frame):
    os.write(1, b"saved on %s\n" % signal.Signals(number).name.encode())
    sys.exit(0)
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, leave if number == signal.SIGTERM else lambda n, f: print("usr1", flush=True))
os.write(1, b"up\n")
while True:
    time.sleep(0.05)
"""
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("main is done", flush=True)
"""


def wait_up(run, ranks=2):
    for rank in range(ranks):
        run.wait(lambda rank=rank: b"up" in run.log(rank), "the worker says it is up")


def wait_log(run, rank=0):
    path = run.folder / "logs" / f"rank-{rank}" / "gen-1.stdout.log"
    run.wait(path.exists, "its log")


def started(start, python, code, **options):
    run = start(python, "-c", code, **options)
    for rank in range(2):
        wait_log(run, rank)
    return run


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
def test_a_signal_ends_the_run_with_its_code(start, number, code):
    run = start("muster-train", "--steps", 100000)
    run.wait_step(5)
    run.process.send_signal(number)
    assert run.end() == code
    run.assert_nothing_left()
    assert run.result()["state"] == "FAILED"


def test_a_hangup_that_nohup_ignores_does_not_end_the_run(start):
    run = start("muster-train", "--steps", 100000, ignored=[signal.SIGHUP])
    run.wait_step(5)
    run.process.send_signal(signal.SIGHUP)
    run.wait_step(50)
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 143
    run.assert_nothing_left()


def test_workers_are_asked_before_they_are_killed(start, python):
    run = started(start, python, POLITE)
    wait_up(run)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert run.log(0) == b"up\nsaved on SIGTERM\n"
    run.assert_nothing_left()


def test_who_ignores_term_is_killed_after_the_grace(start, python):
    run = started(start, python, STUBBORN, flags=["--grace", "0.3"])
    wait_up(run)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert {e["signal"] for e in run.events("worker_exited")} == {"SIGKILL"}
    run.assert_nothing_left()


def test_a_second_interrupt_kills_at_once(start, python):
    run = started(start, python, STUBBORN, flags=["--grace", "500"])
    wait_up(run)
    run.process.send_signal(signal.SIGINT)
    run.wait_event("signal")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    run.assert_nothing_left()


def test_usr1_reaches_who_handles_it_and_spares_who_does_not(start, python):
    run = started(start, python, POLITE)
    wait_up(run)
    run.process.send_signal(signal.SIGUSR1)
    run.wait(lambda: b"usr1" in run.log(0) and b"usr1" in run.log(1), "both got it")
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 143
    run = start("muster-train", "--steps", 400)
    run.wait_step(5)
    run.process.send_signal(signal.SIGUSR1)
    assert run.end() == 0, run.err


def test_interrupts_at_any_moment_end_the_run(start):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for round_number in range(10):
        run = start("muster-train", "--steps", 100000, "--step-ms", 1)
        time.sleep(draw.uniform(0, 0.3))  # the moment is what is tested
        if round_number % 2 == 1 and run.events("worker_started"):
            run.kill(draw.randrange(2))
        run.process.send_signal(signal.SIGINT)
        if draw.random() < 0.5:
            run.process.send_signal(signal.SIGINT)
        assert run.end() in (130, -signal.SIGINT), run.err
        run.assert_nothing_left()


def test_sigkill_of_muster_run_at_any_moment_leaves_nothing(start):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for round_number in range(24):
        run = start("muster-train", "--steps", 100000, "--step-ms", 1)
        time.sleep(draw.uniform(0, 0.4))  # the moment is what is tested
        if round_number % 3 == 2 and run.events("worker_started"):
            run.kill(draw.randrange(2))
        run.process.kill()
        run.end()
        run.assert_nothing_left()


def test_sigkill_of_muster_run_ends_stubborn_workers_and_their_daemons(start, python):
    code = DAEMON.replace("print", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print")
    run = started(start, python, code + "\ntime.sleep(600)", flags=["--grace", "0.2"])
    run.wait(lambda: len(run.processes()) == 4, "two workers, two daemons")
    run.process.kill()
    run.end()
    run.assert_nothing_left()


def test_a_shim_that_dies_as_it_is_told_to_stop_leaves_nothing(start, python):
    run = started(start, python, DAEMON + "\ntime.sleep(600)")
    run.wait(lambda: len(run.processes()) == 4, "two workers, two daemons")
    shim = run.shim()
    run.freeze()
    run.process.send_signal(signal.SIGINT)
    run.wait_pending(signal.SIGINT)  # it is read before the end of the shim's socket
    os.kill(shim, signal.SIGKILL)
    run.thaw()
    assert run.end() == 130
    run.assert_nothing_left()


def test_a_shim_that_does_not_answer_does_not_hold_the_end(start, python):
    run = started(start, python, DAEMON + "\ntime.sleep(600)", flags=["--grace", "0.1"])
    run.wait(lambda: len(run.processes()) == 4, "two workers, two daemons")
    os.kill(run.shim(), signal.SIGSTOP)
    run.process.send_signal(signal.SIGTERM)
    assert run.end(limit=25) == 143
    run.assert_nothing_left()


def test_a_second_interrupt_does_not_wait_for_a_shim_that_does_not_answer(start):
    run = start("muster-train", "--steps", 100000, flags=["--grace", "500"])
    run.wait_step(5)
    os.kill(run.shim(), signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    run.wait_event("signal")
    run.process.send_signal(signal.SIGINT)
    assert run.end(limit=8) == 130
    assert "which did not answer and was killed" in run.err
    run.assert_nothing_left()


def test_sigkill_of_muster_run_wakes_a_stopped_shim_which_clears_up(start, python):
    run = started(start, python, DAEMON + "\ntime.sleep(600)", flags=["--grace", "0.2"])
    run.wait(lambda: len(run.processes()) == 4, "two workers, two daemons")
    os.kill(run.shim(), signal.SIGSTOP)
    run.process.kill()
    run.end()
    run.assert_nothing_left()


NEST = """
import os, pathlib, time
own = next(line[3:] for line in open("/proc/self/cgroup").read().splitlines() if line.startswith("0::"))
for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
    group = pathlib.Path(root + own)
    if "muster-" in own and (group / "cgroup.procs").exists():
        inner = group / f"sub{os.environ['RANK']}" / "deeper"
        inner.mkdir(parents=True)
        (group.parent / f"beside{os.environ['RANK']}").mkdir()
        (inner / "cgroup.procs").write_text(str(os.getpid()))
        print("nested", flush=True)
print("up", flush=True)
"""


@pytest.mark.parametrize("how", ["by itself", "SIGTERM", "SIGKILL of the shim"])
def test_groups_that_workers_make_below_ours_go_with_it(start, python, how):
    run = start(python, "-c", NEST + ("" if how == "by itself" else "time.sleep(600)"), flags=["--max-restarts", 0])
    if how != "by itself":
        for rank in range(2):
            wait_log(run, rank)
        wait_up(run)
        if b"nested" not in run.log(0):
            pytest.skip("no writable cgroup here")
        if how == "SIGTERM":
            run.process.send_signal(signal.SIGTERM)
        else:
            os.kill(run.shim(), signal.SIGKILL)
    assert run.end() == {"by itself": 0, "SIGTERM": 143}.get(how, 137), run.err
    run.assert_nothing_left(limit=3)


def test_signals_in_the_last_moments_do_not_cost_the_result(start):
    run = start("muster-train", "--steps", 100000, flags=["--json"])
    run.wait_step(20)
    while run.process.poll() is None:
        run.process.send_signal(signal.SIGTERM)
        run.process.send_signal(signal.SIGHUP)
    assert run.end() in (143, 129)
    assert json.loads(run.out)["state"] == "FAILED"
    run.assert_nothing_left()


def test_crashes_share_one_wait_for_their_last_words(start, python):
    # Each leaves a process that holds its stderr, so that the last words end with the wait.
    code = "import os,subprocess,sys; subprocess.Popen(['sleep', '600'], start_new_session=True); sys.exit(3)"
    run = start(python, "-S", "-c", code, ranks=16, flags=["--max-restarts", 0])
    assert run.end() == 3
    died = min(event["t_ns"] for event in run.events("worker_exited"))
    assert run.events("pause")[0]["t_ns"] - died < 1_500_000_000
    run.assert_nothing_left()


def test_a_daemon_that_holds_the_pipe_does_not_hold_the_end(start, python):
    run = start(python, "-c", DAEMON)
    assert run.end(limit=15) == 0, run.err
    assert run.log(0) == b"main is done\n"
    run.assert_nothing_left()


def test_a_worker_without_descriptors_left_is_a_fault_like_any_other(start, python):
    code = "import os\nwhile True: os.open('/dev/null', os.O_RDONLY)"
    run = start(python, "-c", code, flags=["--max-restarts", 0])
    assert run.end() == 1
    assert "Too many open files" in run.fault()["exception"]
    run.assert_nothing_left()


def test_a_worker_has_its_own_descriptors_and_no_others(start, python):
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], os.getsid(0) == os.getpid())"
    run = start(python, "-c", code)
    assert run.end() == 0
    assert run.log(0) == b"[0, 1, 2, 3, 4, 5] True\n"


def test_two_runs_in_one_folder_the_second_is_refused(start, wait_until):
    first = start("muster-train", "--steps", 100000)
    wait_until(lambda: first.events("checkpoint"), "a checkpoint to go on from")
    second = start("muster-train", folder=first.folder)
    assert second.end() == 5
    assert f"process {first.process.pid}" in second.err and "in use by" in second.err
    first.process.send_signal(signal.SIGTERM)
    assert first.end() == 143
    third = start("muster-train", folder=first.folder)
    assert third.end() == 5
    assert "holds an earlier run" in third.err
    again = f"muster run {first.folder}/job.yaml --checkpoint-dir {first.folder}/checkpoints"
    assert again in third.err
    assert "to go on from step" in first.err
    assert len(first.events("run_started")) == 1


def test_a_run_that_broke_off_says_what_to_type_to_go_on(start, bin_with_stepper, tmp_path):
    run = start("muster-train", "--steps", 300, "--step-ms", 3, "--every", 10)
    run.wait_step(50)
    run.kill_all()
    run.end()
    run.assert_nothing_left()

    def typed(line: str) -> subprocess.CompletedProcess:
        path = f"{bin_with_stepper}{os.pathsep}{os.environ['PATH']}"
        words = ["/bin/sh", "-c", line]
        return subprocess.run(
            words, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60
        )

    shown = typed(f"muster show {run.folder.name}").stdout
    assert shown.startswith("UNFINISHED")
    again = typed(re.search(r"to go on +(.*)", shown)[1])
    assert again.returncode == 0, again.stderr
    total = sum(step * (rank + 1) for step in range(1, 301) for rank in range(2))
    assert f"sum {total}" in again.stdout
    (steps,) = (tmp_path / "runs").glob("*/steps/rank-0.jsonl")
    assert json.loads(steps.read_text().splitlines()[0])["step"] > 40


def test_two_runs_that_begin_at_once_in_one_folder_know_of_each_other(start, tmp_path):
    for number in range(4):
        runs = [start("/bin/sleep", 0.5, folder=tmp_path / f"shared-{number}") for _ in range(2)]
        codes = [run.end() for run in runs]
        assert sorted(codes) == [0, 5], [run.err for run in runs]
        winner, loser = sorted(runs, key=lambda run: run.process.returncode)
        assert f"process {winner.process.pid} on host" in loser.err


@pytest.mark.parametrize(
    ("command", "options", "code", "text"),
    [
        (["no-such-program"], {}, 3, "no-such-program"),
        (["./missing.sh"], {}, 3, "missing.sh"),
        (["true"], {"ranks": 0}, 2, "--ranks is 0"),
        (["true"], {"ranks": -1}, 2, "--ranks"),
        (["true"], {"ranks": 4294967297}, 2, "--ranks"),
        (["true"], {"flags": ["--grace", "nan"]}, 2, "--grace is nan"),
        (["true"], {"flags": ["--grace", "inf"]}, 2, "--grace is inf"),
        (["true"], {"flags": ["--grace", "1e300"]}, 2, "0 to 3600 seconds"),
        (["true"], {"flags": ["--grace=-1"]}, 2, "0 to 3600 seconds"),
        (["true"], {"flags": ["--grace", "4000"]}, 2, "0 to 3600 seconds"),
        (["true"], {"flags": ["--max-restarts=-1"]}, 2, "--max-restarts"),
        (["true"], {"flags": ["--max-restarts", "4294967295"]}, 2, "--max-restarts"),
        (["true"], {"ranks": 100000}, 2, "at most"),
        (["/dev/null"], {}, 2, "/dev/null"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_made(start, tmp_path, command, options, code, text):
    run = start(*command, **options)
    assert run.end() == code, run.err
    assert text in run.err
    assert not run.folder.exists() and not (tmp_path / "runs").exists()


def test_a_missing_interpreter_ends_at_once_with_127(start, script):
    path = script("#!/no/such/python\n", "tool")
    path.chmod(0o755)
    run = start(path)
    assert run.end() == 127
    assert f"{path} exists, but its interpreter /no/such/python does not" in run.err
    assert len(run.events("generation_started")) == 1
    run.assert_nothing_left()


def test_a_script_without_an_interpreter_is_told_to_name_one(start, script):
    path = script("echo hi\n", "tool")
    path.chmod(0o755)
    run = start(path)
    assert run.end() == 126
    assert "#!/bin/sh" in run.err and str(path) in run.err


def test_a_run_folder_that_is_moved_away_loses_neither_fault_nor_reason(start, tmp_path, python):
    run = started(start, python, "import time; print('up', flush=True); time.sleep(600)")
    wait_up(run)
    moved = tmp_path / "moved"
    run.folder.rename(moved)
    old, run.folder = run.folder, moved
    run.kill(1)
    run.folder = old
    assert run.end() == 1
    assert "rank 1 killed by SIGKILL" in run.err and f"moved to {moved}" in run.err
    assert json.loads((moved / "fault-1.json").read_text())["cause"] == "killed by SIGKILL"
    assert "killed by SIGKILL" in json.loads((moved / "result.json").read_text())["reason"]
    assert not run.folder.exists()
    run.assert_nothing_left()


def test_a_run_folder_that_is_removed_does_not_come_back(start):
    run = start("muster-train", "--steps", 400, "--step-ms", 5, "--every", 5)
    run.wait_step(30)

    def removed() -> bool:
        with contextlib.suppress(OSError):  # a rank may have saved into it meanwhile
            shutil.rmtree(run.folder)
        return not run.folder.exists()

    run.wait(removed, "the removed folder")
    run.end()
    assert not run.folder.exists()
    assert f"the run folder {run.folder} is gone, and the run's record with it" in run.err
    assert "muster report" not in run.err and "logs in" not in run.err and "to go on" not in run.err


def test_the_end_names_where_a_run_folder_went(start, tmp_path, python, muster):
    run = started(start, python, "import time; print('up', flush=True); time.sleep(600)")
    wait_up(run)
    moved = tmp_path / "moved"
    run.folder.rename(moved)
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 143
    assert f"the run folder was moved to {moved}\n" in run.err
    assert "logs in moved/logs\n" in run.err and "muster report moved\n" in run.err
    assert json.loads((moved / "result.json").read_text())["run"] == str(moved)
    assert muster("show", moved).out.startswith("INTERRUPTED by SIGTERM")
    assert not run.folder.exists()


def test_records_are_private_and_hide_the_users_variables(start, python):
    run = start(python, "-c", "raise SystemExit(3)", flags=["--max-restarts", 0], MY_TOKEN="hunter2")
    assert run.end() == 3
    assert run.folder.stat().st_mode & 0o777 == 0o700
    for name in ["fault.json", "fault-1.json", "logs/rank-0/gen-1.stderr.log"]:
        assert (run.folder / name).stat().st_mode & 0o777 == 0o600, name
    assert "MY_TOKEN=<redacted>" in run.fault()["environment"]
    assert not any(b"hunter2" in path.read_bytes() for path in run.folder.rglob("*") if path.is_file())


def test_a_ctrl_c_is_no_failure_and_points_at_no_log(start, python, muster):
    run = start(python, "-c", "import time; print('at work', flush=True); time.sleep(600)")
    run.wait_event("worker_started", 2)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert re.search(r"^muster: interrupted by SIGINT after [0-9.]+ m?s$", run.err, re.M), run.err
    assert "failed" not in run.err and "what rank" not in run.err
    assert run.result()["state"] == "FAILED"
    assert muster("show", run.folder).out.startswith("INTERRUPTED by SIGINT after ")


def test_the_log_that_is_named_says_something(start, python):
    code = "import os, sys; sys.exit(0 if os.environ['RANK'] == '0' else print('only here') or 3)"
    run = start(python, "-c", code, flags=["--max-restarts", 0])
    assert run.end() == 3
    assert "what rank 1 wrote" in run.err and "logs/rank-1/gen-1.stdout.log" in run.err, run.err
    silent = start("/bin/sh", "-c", "exit 3", flags=["--max-restarts", 0])
    assert silent.end() == 3
    assert "what rank" not in silent.err and "muster: logs in " in silent.err


def test_a_module_that_is_missing_names_the_python_that_lacks_it(start, python):
    run = start(python, "-c", "import no_such_module", flags=["--max-restarts", 0])
    assert run.end() == 1
    assert f"muster: the python was {python}; activate the environment that has no_such_module" in run.err, run.err


def test_a_checkpoint_that_nobody_lived_to_tell_of_is_found(start, muster):
    run = start("muster-train", "--steps", 100, "--every", 20, "--die-behind-save", 40, flags=["--max-restarts", 0])
    assert run.end() == 137
    assert "muster: to go on from step 40: " in run.err, run.err
    assert [event["step"] for event in run.events("checkpoint")] == [20, 40]
    report = json.loads(muster("report", run.folder, "--json").out)
    assert [checkpoint["step"] for checkpoint in report["checkpoints"]] == [20, 40]
