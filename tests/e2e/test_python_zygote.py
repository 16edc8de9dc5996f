"""A Python worker that is copied from a loaded interpreter is, to its script, one that was executed.

Each script runs twice, forked and executed, and what it found, wrote and ended with must be equal."""

import os
import pathlib
import re
import zipapp

import pytest

# Everything that a program may find out about how it was started.
FACTS = """
import __main__, atexit, os, resource, signal, sys, threading
print(sorted(globals()), type(__builtins__), __name__, __package__, __spec__ and __spec__.name, type(__loader__))
print(globals().get("__file__"), globals().get("__cached__"), __main__ is sys.modules["__main__"], vars(__main__) is globals())
print(sys.argv, sys.orig_argv[1:], sys.path, sys.flags, sys.executable, sys.warnoptions, sys.prefix)
differ = ("MASTER_PORT", "MUSTER_", "TORCHELASTIC_")
print(os.getcwd(), sorted(k + "=" + v for k, v in os.environ.items() if not k.startswith(differ)))
print([str(signal.getsignal(n)) for n in sorted(signal.valid_signals())], signal.pthread_sigmask(0, []))
print(sorted(os.listdir("/proc/self/fd")), sys.stdout.line_buffering, sys.stdout.write_through, sys.stdout.encoding)
print(resource.getrlimit(resource.RLIMIT_NOFILE), os.getsid(0) == os.getpid(), threading.main_thread().native_id == os.getpid())
print(open("/proc/self/comm").read(), threading.active_count(), len(os.listdir("/proc/self/task")))
old = os.umask(0); os.umask(old); print(old)
class Here: pass
print(Here.__module__, __import__("pickle").loads(__import__("pickle").dumps(Here())).__class__ is Here)
atexit.register(print, "the end")
"""


# Every way to see the frames that a program runs in, at its top, in a function, in a thread, a signal handler and behind
# a caught exception.
FRAMES = """
import faulthandler, inspect, os, signal, sys, threading, traceback, warnings
def deep(n, look): return look() if n == 0 else deep(n - 1, look)
def look():
    traceback.print_stack()
    print([frame.f_code.co_name for frame, _ in traceback.walk_stack(sys._getframe())])
    print([(info.function, info.filename) for info in inspect.stack()])
    # Where the main thread stands while another looks is a matter of time.
    faulthandler.dump_traceback(all_threads=threading.current_thread() is threading.main_thread())
    for level in (1, 2, 3, 4, 20):
        warnings.warn("level", stacklevel=level)
    try:
        sys._getframe(20)
    except ValueError as error:
        print(error)
warnings.simplefilter("always")
traceback.print_stack()
print(sys._getframe().f_back, traceback.extract_stack())
faulthandler.dump_traceback()
warnings.warn("at the top", stacklevel=2)
look()
deep(3, look)
try:
    deep(2, lambda: 1 / 0)
except ZeroDivisionError as error:
    print(traceback.format_exc(), [frame.name for frame in traceback.extract_tb(error.__traceback__)])
    look()
signal.signal(signal.SIGUSR1, lambda number, frame: look())
os.kill(os.getpid(), signal.SIGUSR1)
thread = threading.Thread(target=deep, args=(1, look), name="T")
thread.start()
thread.join()
print(len(sys._current_frames()), {f.f_code.co_filename for f in sys._current_frames().values()})
import atexit
atexit.register(look)
sys.setrecursionlimit(200)
def endless(): endless()
try:
    endless()
except RecursionError as error:
    print(error)
def generator():
    traceback.print_stack()
    yield 1
print(list(generator()))
import asyncio
async def work(): traceback.print_stack()
asyncio.run(work())
"""


@pytest.fixture
def both(start, python):
    """Runs a command forked and executed; what it wrote in each, and the exit codes. One rank: another's end could cut its
    words short."""

    def run_both(*words, flags=(), interpreter=python):
        found = []
        for preload in ("json", "none"):
            run = start(interpreter, *words, ranks=1, flags=["--max-restarts", 0, "--preload", preload, *flags])
            code = run.end()
            assert {e["how"] for e in run.events("worker_started")} == {"fork" if preload == "json" else "exec"}, (
                run.err
            )
            found.append((code, run.log(0).decode(), run.log(0, stream="stderr").decode()))
        return found

    return run_both


def test_a_script_finds_nothing_different(both, script):
    forked, executed = both("-X", "utf8", "-W", "once", script(FACTS), "one", "-x", "")
    assert forked == executed
    assert forked[0] == 0 and "the end" in forked[1]


@pytest.mark.parametrize("end", ["", "raise ValueError('at the end')", "import sys; sys.exit(look())"])
def test_nor_does_it_see_other_frames(both, script, tmp_path, end):
    path = script(FRAMES + end)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "frames.py").write_text(FRAMES + end)
    for words in ([path], ["-m", "pkg.frames"], ["-c", FRAMES + end]):
        forked, executed = (
            (found[0], *(re.sub(r"0x[0-9a-f]+", "0x", text) for text in found[1:])) for found in both(*words)
        )
        assert forked == executed
        assert "Current thread 0x" in forked[2] and "level" in forked[2]


def test_nor_does_a_script_named_from_the_working_folder(both, script):
    script(FACTS, "here.py")
    forked, executed = both("./here.py")
    assert forked == executed


def test_nor_does_a_module(both, tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("loaded = __name__\n")
    (tmp_path / "pkg" / "work.py").write_text(FACTS + "\nfrom . import loaded\nprint(loaded)\n")
    forked, executed = both("-m", "pkg.work", "arg")
    assert forked == executed
    assert "pkg.work" in forked[1]


def test_nor_does_code(both):
    forked, executed = both("-c", FACTS, "arg")
    assert forked == executed


def test_nor_does_an_isolated_script(both, script):
    forked, executed = both("-I", script(FACTS))
    assert forked == executed


@pytest.mark.parametrize(
    "body",
    [
        "def f(): raise ValueError('no')\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e",
        "import sys; sys.exit(3)",
        "import sys; sys.exit('a reason')",
        "import sys; sys.exit()",
        "raise SystemExit(None)",
        "raise KeyboardInterrupt",
        "import os; os._exit(7)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "def f(:\n",
        "import sys\nsys.excepthook = lambda t, e, tb: print('hook', t.__name__, tb.tb_lineno)\nraise OSError(5)",
        "import sys\ndef bad(*_): raise TypeError('in the hook')\nsys.excepthook = bad\nraise OSError(5)",
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\nraise ValueError",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T'); t.start(); t.join()",
        "import sys; print('no newline', end=''); sys.stderr.write('x'); sys.exit(1)",
        "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
        "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
        "    for way in ('fork', 'spawn', 'forkserver'):\n"
        "        with m.get_context(way).Pool(2) as p: print(p.map(f, [1, 2, 3]))",
        "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(5)'], capture_output=True).stdout)",
        "import concurrent.futures as c\nwith c.ThreadPoolExecutor(4) as p: print(sum(p.map(abs, range(-100, 0))))",
    ],
)
def test_every_end_is_the_same(both, script, body):
    forked, executed = both(script(body))

    def plain(found):
        # Numbers of threads and addresses differ between any two processes.
        return found[0], found[1], re.sub(r"0x[0-9a-f]+|Thread-\d+", "", found[2])

    assert plain(forked) == plain(executed)


@pytest.mark.parametrize("preload", ["json", "none"])
def test_a_missing_script_is_refused_with_the_one_that_was_meant(start, script, python, preload):
    script("print('ran')", "train.py")
    run = start(python, "-u", "trian.py", "--lr", 1, flags=["--preload", preload])
    assert run.end() == 3
    assert re.search(r"no script at .*/trian\.py: did you mean train\.py\?", run.err), run.err
    assert "nothing was created" in run.err
    assert not run.folder.exists()


def test_who_waits_for_an_import_is_told_for_what(start, script, python):
    script("import time; time.sleep(5.5)", "early.py")
    run = start(python, script("print('ran')"), flags=["--preload", "early"])
    assert run.end() == 0, run.err
    said = re.findall(r"muster: the ranks wait for pid (\d+), .* loading early for 5 s; --preload none", run.err)
    assert said == [str(run.events("zygote_ready")[0]["pid"])], run.err
    assert run.log(0) == b"ran\n"


def test_copies_draw_different_random_numbers(start, script, python):
    source = """
import random, secrets, multiprocessing
print(random.random(), secrets.token_hex(8), multiprocessing.current_process().authkey.hex())
"""
    run = start(python, script(source), ranks=3, flags=["--preload", "random,multiprocessing"])
    assert run.end() == 0, run.err
    drawn = [run.log(rank).split() for rank in range(3)]
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == 3


def test_the_command_line_that_ps_shows_is_the_scripts(start, script, python):
    path = script("import time; time.sleep(60)")
    run = start(python, path, "--lr", 1, flags=["--preload", "json"])
    shown = pathlib.Path(f"/proc/{run.pid(0)}/cmdline")
    run.wait(lambda: shown.read_text().rstrip("\0") == f"{python} {path} --lr 1", "its title")
    titles = {pathlib.Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0") for pid in run.processes()}
    assert f"muster-zygote: {python} {path} --lr 1" in titles


@pytest.mark.parametrize(
    "module, why",
    [
        (
            "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
            "it has threads",
        ),
        ("kept = open('kept.log', 'w')", "kept.log open"),
        ("raise ImportError('libcuda.so.1: cannot open')", "ImportError: libcuda.so.1"),
        ("import os; os._exit(9)", "exit code 9"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_what_cannot_be_preloaded_means_exec_and_says_why(start, script, python, module, why):
    script(module, "early.py")
    run = start(python, script("print('ran')"), flags=["--preload", "early"])
    assert run.end() == 0, run.err
    assert run.log(0) == b"ran\n"
    assert {e["how"] for e in run.events("worker_started")} == {"exec"}
    assert run.result()["restarts"] == 0
    lines = [line for line in run.err.splitlines() if "workers are executed from now on" in line]
    assert len(lines) == 1 and why in lines[0], run.err


def test_a_zygote_that_grew_a_thread_refuses_and_workers_are_executed(start, script, python):
    # From its first copy on.
    source = """
import os, threading, time
start = lambda: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
os.register_at_fork(after_in_parent=start)
"""
    script(source, "grows.py")
    run = start(python, script("print('ran')"), ranks=3, flags=["--preload", "grows"])
    assert run.end() == 0, run.err
    assert run.log(2, 2) == b"ran\n"
    assert "the fork server cannot copy itself" in run.err


def test_an_archive_and_a_folder_run_as_they_are(start, python, tmp_path):
    app = tmp_path / "app"
    app.mkdir()
    (app / "__main__.py").write_text("import torch_free as t\nprint(t.value, __spec__ is not None)\n")
    (app / "torch_free.py").write_text("value = 7\n")
    zipapp.create_archive(app, tmp_path / "app.pyz")
    for program in (app, tmp_path / "app.pyz"):
        run = start(python, program, flags=["--preload", "json", "--max-restarts", 0])
        assert run.end() == 0, run.err
        assert run.log(0) == b"7 True\n"


def test_the_locale_is_the_one_that_python_chooses(both, monkeypatch):
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    forked, executed = both("-c", "import os; print(os.environ.get('LC_CTYPE'))")
    assert forked == executed


@pytest.mark.parametrize("preload", ["", "a b", ",", "a,,b", "../x"])
def test_a_bad_list_of_modules_is_refused(start, python, preload):
    run = start(python, "-c", "0", flags=["--preload", preload])
    assert run.end() == 2
    assert "--preload" in run.err and not run.folder.exists()


def test_preload_is_for_python(start):
    run = start("/bin/true", flags=["--preload", "torch"])
    assert run.end() == 2
    assert "the command is not python" in run.err


@pytest.mark.slow
def test_torch_in_a_copy_is_as_in_a_program_of_its_own(start, script, torch_python):
    body = """
import os, torch, numpy
import torch.nn.functional as F
print(torch.get_num_threads(), torch.get_num_interop_threads(), torch.random.default_generator.device)
print(torch.distributed.is_initialized(), torch.is_grad_enabled(), torch.get_default_dtype())
torch.set_num_threads(2); torch.manual_seed(0)
x = torch.randn(512, 512, requires_grad=True, generator=torch.Generator().manual_seed(1))
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad(); loss = model(x).square().mean(); loss.backward(); optimizer.step(); print(loss.item())
a = numpy.ones((600, 600)); print((a @ a).sum())
data = torch.utils.data.DataLoader(torch.arange(64).float(), batch_size=8, num_workers=2)
print(sum(batch.sum() for batch in data))
print(torch.compile(lambda v: v * 2, backend="eager")(torch.ones(2)))
"""
    found = []
    for preload in ("auto", "none"):
        run = start(torch_python, script(body), flags=["--max-restarts", 0, "--preload", preload], OMP_NUM_THREADS="2")
        assert run.end(limit=120) == 0, run.err
        assert {e["how"] for e in run.events("worker_started")} == {"fork" if preload == "auto" else "exec"}, run.err
        found.append(run.log(1))
    assert found[0] == found[1]
    seeds = "import numpy, torch; print(numpy.random.rand(), torch.initial_seed(), torch.rand(1).item())"
    run = start(torch_python, "-c", seeds, flags=["--preload", "torch"])
    assert run.end(limit=120) == 0, run.err
    assert all(a != b for a, b in zip(run.log(0).split(), run.log(1).split(), strict=True))
    assert os.path.getsize(run.folder / "logs" / "zygote.log") == 0
