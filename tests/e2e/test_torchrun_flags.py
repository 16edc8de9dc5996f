"""muster run in torchrun's place: every flag of the installed torch is known, and the same words give the same workers."""

import json
import os
import subprocess

import pytest

DUMP = """
import json, os, pathlib, sys
facts = {
    "argv": sys.argv, "name": __name__, "file": __file__, "path": sys.path[0], "python": sys.executable,
    "folder": os.getcwd(), "environment": dict(os.environ),
}
(pathlib.Path(os.environ["DUMP"]) / (os.environ["RANK"] + ".json")).write_text(json.dumps(facts))
"""

# What differs, as docs/guide/from-torchrun.md says. The first five are names that each launcher makes up.
MADE_UP = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "DUMP"}
DIFFERENT = {"OMP_NUM_THREADS", "PYTHONUNBUFFERED", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_SIGNALS_TO_HANDLE"}

FACTS = """
import json
from torch.distributed.run import get_args_parser
print(json.dumps([
    {"names": a.option_strings, "dest": a.dest, "switch": a.nargs == 0, "choices": a.choices,
     "type": getattr(a.type, "__name__", None), "variable": type(a).__name__ in ("env", "check_env")}
    for a in get_args_parser()._actions if a.option_strings and a.dest != "help"]))
"""


def value_for(flag: dict) -> str:
    if flag["choices"]:
        return flag["choices"][0]
    return {"nnodes": "1:1"}.get(flag["dest"], "1")


@pytest.fixture(scope="module")
def flags(root) -> list[dict]:
    """What the installed torchrun takes."""
    python = os.environ.get("MUSTER_VENV", root / ".venv")
    return json.loads(subprocess.check_output([f"{python}/bin/python", "-c", FACTS], text=True, timeout=120))


@pytest.mark.slow
def test_every_flag_of_the_installed_torchrun_is_known(muster, flags, root):
    guide = (root / "docs" / "guide" / "from-torchrun.md").read_text()
    assert len(flags) >= 29
    for flag in flags:
        for name in flag["names"]:
            value = [] if flag["switch"] else [value_for(flag)]
            for words in ([name, *value], ["=".join([name, *value])] if name.startswith("--") else [name, *value]):
                done = muster("run", *words)
                # Known, and nothing is left of the line.
                assert (done.code, done.err.splitlines()[0][:22]) == (2, "muster: nothing to run"), (words, done.err)
        assert any(f"`{name}`" in guide for name in flag["names"]), f"the guide explains {flag['names']}"
    assert {flag["dest"] for flag in flags if not flag["variable"]} == {"logs_specs", "numa_binding"}


@pytest.mark.slow
def test_variables_of_the_installed_torchrun_are_read(muster, flags):
    for flag in flags:
        if flag["type"] not in ("int", "float") and not flag["switch"]:
            continue
        variable = "PET_" + flag["dest"].upper()
        done = muster("run", "--", "true", **{variable: "many"})
        refused = done.code == 2 and done.err.startswith(f"muster: {variable} takes ")
        assert refused == flag["variable"], (variable, done.err)


@pytest.fixture
def workers(tmp_path, programs, torch_python):
    """workers("muster" | "torchrun", words, environment) → what each rank found."""
    (tmp_path / "dump.py").write_text(DUMP)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "dump.py").write_text(DUMP)
    # Ranks of such a script are forked from an interpreter that has imported torch.
    (tmp_path / "pkg" / "model.py").write_text("import torch\n" + DUMP)
    (tmp_path / "model.py").write_text("import torch\n" + DUMP)
    (tmp_path / "dump.sh").write_text(f'#!/bin/sh\nexec {torch_python} dump.py "$@"\n')
    (tmp_path / "dump.sh").chmod(0o755)
    launchers = {
        "muster": [str(programs / "muster"), "run"],
        "torchrun": [torch_python, "-m", "torch.distributed.run"],
    }

    def run(launcher, words, environment):
        out = tmp_path / launcher
        out.mkdir()
        # Both start from few variables; Python sets LC_CTYPE in a C locale, in the launcher or in the worker.
        few = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "PYTHON_EXEC": torch_python}
        done = subprocess.run(
            [*launchers[launcher], *words],
            cwd=tmp_path,
            env=few | {"DUMP": str(out)} | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(path.read_text()) for path in sorted(out.iterdir())]

    return run


def assert_alike(ours: dict, theirs: dict, words: list[str]):
    own, expected = ours.pop("environment"), theirs.pop("environment")
    own = {name: value for name, value in own.items() if not name.startswith("MUSTER_")}
    if "--run-path" in words:  # There torchrun copies itself instead of executing Python.
        theirs["path"] = ours["path"]
    assert ours == theirs
    assert own.keys() ^ expected.keys() <= DIFFERENT
    named = {"--rdzv-id": "TORCHELASTIC_RUN_ID", "--max_restarts=2": "TORCHELASTIC_MAX_RESTARTS"}
    compared = own.keys() - MADE_UP - DIFFERENT | {variable for flag, variable in named.items() if flag in words}
    for name in compared:
        assert own[name] == expected[name], name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "environment"),
    [
        ("--standalone --nproc-per-node 2 dump.py --lr 1", {}),
        ("--nproc_per_node=2 --role trainer --max_restarts=2 dump.py --role x -- --json -h", {}),
        ("--nproc-per 2 -mt3 pkg.dump a -m b", {}),
        ("--nproc-per-node 2 --virtual-local-rank dump.py", {}),
        ("--nproc-per-node 2 --virtual_local_rank dump.py", {"CUDA_VISIBLE_DEVICES": "5,3"}),
        ("--nproc-per-node 2 --rdzv-backend=c10d --rdzv-endpoint localhost:0 --rdzv-id job7 dump.py", {}),
        ("--nproc-per-node 2 --no-python ./dump.sh one 'two'", {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}),
        ("--nproc-per-node 2 -r 0:1,1:3 --log-dir logs --local-ranks-filter=0 -- dump.py -- x", {}),
        ("--standalone --nproc-per-node 2 --role r --virtual-local-rank model.py --lr 1", {}),
        ("--nproc-per-node 2 -m pkg.model --lr 1", {"OMP_NUM_THREADS": "3"}),
        ("--nproc-per-node=2 --run-path {folder}/dump.py x", {}),
        ("dump.py", {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "r", "PET_STANDALONE": "1"}),
        ("--nproc-per-node=2 pkg.dump", {"PET_NPROC_PER_NODE": "3", "PET_MODULE": "1", "OMP_NUM_THREADS": "7"}),
    ],
)
def test_workers_find_what_they_find_under_torchrun(workers, tmp_path, line, environment):
    words = line.format(folder=tmp_path).split()
    if "--" in words and words.index("--") < words.index("dump.py"):
        # Behind "--" muster run expects a program; for torchrun it ends the options.
        ours = [word for i, word in enumerate(words) if i != words.index("--")]
    else:
        ours = words
    found, expected = workers("muster", ours, environment), workers("torchrun", words, environment)
    assert len(found) == len(expected) == 2
    for own, their in zip(found, expected, strict=True):
        assert_alike(own, their, words)


def test_a_scripts_own_options_are_its_own(muster, script, python):
    path = script("import sys; print(sys.argv[1:])")
    done = muster("run", "--standalone", path, "--json", "--help", "-n", "7", PYTHON_EXEC=python)
    assert done.code == 0 and "[0 1] ['--json', '--help', '-n', '7']\n" in done.out, done.err


def test_the_active_environments_python_is_taken(muster, script, tmp_path, python):
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").write_text(f'#!/bin/sh\necho active "$@"\nexec {python} "$@"\n')
    (folder / "python").chmod(0o755)
    path = script("print('ran')")
    done = muster("run", "--preload", "none", path, VIRTUAL_ENV=str(tmp_path / "venv"))
    assert f"[0 1] active -u {path}\n[0 1] ran\n" in done.out, done.err


def test_what_python_cannot_run_is_run_as_it_stands(muster, tmp_path):
    (tmp_path / "go.sh").write_text('#!/bin/sh\necho sh "$1" $RANK\n')
    (tmp_path / "go.sh").chmod(0o755)
    (tmp_path / "go.py").write_text("#!/usr/bin/env -S uv run\nprint('python')\n")
    (tmp_path / "go.py").chmod(0o755)
    assert muster("run", "./go.py").out == "[0 1] python\n"
    for words in (["go.sh", "-x"], ["./go.sh", "-x"], ["--no-python", "./go.sh", "-x"], ["--", "./go.sh", "-x"]):
        assert "[0 1] sh -x 0\n" in muster("run", *words).out, words
    assert "[0 1] -x --json\n" in muster("run", "printf", "%s %s\\n", "-x", "--json").out


def test_a_script_that_is_not_there_starts_nothing(muster, tmp_path):
    done = muster("run", "--nproc-per-node", "2", "tarin.py")
    assert done.code == 3 and f"there is no script at {tmp_path / 'tarin.py'}" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], "0 out, 0 err, 1 out, 1 err"),
        (["-r", "3"], ""),
        (["-r", "3", "-t", "0:1"], "0 out"),
        (["--redirects=1:2"], "0 out, 0 err, 1 out"),
        (["--local-ranks-filter", "1"], "1 out, 1 err"),
        (["--quiet", "--tee", "3"], ""),
    ],
)
def test_redirects_tee_and_the_filter_choose_what_is_shown(muster, tmp_path, words, shown):
    command = "echo $RANK out; echo $RANK err >&2"
    done = muster("run", "-n", "2", "--log-dir", "logs", *words, "--", "sh", "-c", command)
    lines = [line[6:] for line in (done.out + done.err).splitlines() if line.startswith("[")]
    assert sorted(lines) == sorted(shown.split(", ") if shown else []), done.err
    # The files hold everything, below --log-dir.
    (folder,) = (tmp_path / "logs").iterdir()
    for rank in "01":
        for stream in ("out", "err"):
            log = folder / "logs" / f"rank-{rank}" / f"gen-1.std{stream}.log"
            assert log.read_text() == f"{rank} {stream}\n"


@pytest.mark.parametrize(
    "ours", ["-n 2 --nproc-per-node 2", "--grace 5 --shutdown-timeout 7", "--run-dir a --log-dir b"]
)
def test_a_flag_beside_torchruns_own_for_the_same_is_refused(muster, tmp_path, ours):
    done = muster("run", *ours.split(), "--", "true")
    assert done.code == 2 and "; both were given" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--local-ranks-filter", "0,7,5"], "--local-ranks-filter names ranks 5, 7, and there are ranks 0 to 1\n"),
        (
            ["--local-ranks-filter=2"],
            "--local-ranks-filter names rank 2, and there are ranks 0 to 1: nothing is shown\n",
        ),
        (["-r", "0:1,2:3"], "--redirects names rank 2, and there are ranks 0 to 1\n"),
        (["-r3", "-t", "9:3"], "--tee names rank 9, and there are ranks 0 to 1\n"),
        (["-r", "0:1", "--local-ranks-filter=0"], ""),
    ],
)
def test_a_rank_that_is_not_there_is_told(muster, words, told):
    done = muster("run", "-n", "2", *words, "--", "true")
    lines = "".join(line for line in done.err.splitlines(keepends=True) if " names rank" in line)
    assert (done.code, lines) == (0, told and f"muster: {told}")


def test_a_rank_that_is_not_there_is_told_by_the_variable_that_names_it(muster):
    done = muster("run", "--", "true", PET_LOCAL_RANKS_FILTER="3")
    assert done.code == 0 and "muster: PET_LOCAL_RANKS_FILTER names rank 3, and there is only rank 0" in done.err


def test_a_line_prefix_is_torchruns_where_it_is_asked_for(muster):
    form = "[${role_name}${rank}]:"
    done = muster("run", "--role", "w", "--", "echo", "hi", TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=form)
    assert done.out == "[w0]:hi\n", done.err
    done = muster("run", "--line-prefix", "${rank}> ", "--", "echo", "hi", TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=form)
    assert done.out == "0> hi\n", done.err


def test_what_has_no_meaning_is_said_in_one_line_and_restarts_too(muster):
    done = muster("run", "--rdzv-backend=c10d", "--start-method", "fork", "--master_port", "1", "--", "true")
    first, second = done.err.splitlines()[:2]
    for name in ("--rdzv-backend", "--start-method", "--master-port"):
        assert name in first
    assert first.startswith("muster: without a meaning here: ")
    assert second.startswith("muster: unlike under torchrun, a rank that dies is started again, up to 7 times")
    assert "torchrun" not in muster("run", "-n", "1", "--", "true").err
    assert "torchrun" not in muster("run", "--standalone", "--max-restarts=0", "--", "true").err


def test_variables_do_not_change_a_job_file_but_flags_do(muster, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(
        "apiVersion: muster/v1\nkind: Job\nmetadata: {name: j}\nspec: {command: [sh, -c, 'echo $WORLD_SIZE']}\n"
    )
    assert muster("run", job, PET_NPROC_PER_NODE="3", PET_NNODES="2").out == "[0 1] 1\n"
    assert muster("run", job, "--nproc_per_node", "2").out.count("1] 2\n") == 2
    assert muster("run", "--", "sh", "-c", "echo $WORLD_SIZE", PET_NPROC_PER_NODE="3").out.count("1] 3\n") == 3


def test_the_shutdown_timeout_is_the_grace(muster):
    refused = muster("run", "--shutdown-timeout", "-1", "--", "true")
    assert refused.code == 2 and "--shutdown-timeout takes a whole number from 0, not '-1'" in refused.err
    stubborn = "trap '' TERM; if [ $RANK = 0 ]; then sleep 0.3; exit 7; fi; while :; do sleep 0.05; done"
    words = ["--nproc-per-node=2", "--max-restarts=0", "--", "sh", "-c", stubborn]
    done = muster("run", *words, TORCH_ELASTIC_SHUTDOWN_TIMEOUT="0", timeout=20)
    assert done.code == 7, done.err


def test_a_rank_that_dies_is_started_again_and_the_code_is_its_own(muster, script, python):
    path = script(
        "import os, signal, sys\n"
        "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "if sys.argv[1] == 'dies' and os.environ['RANK'] == attempt == '0': os.kill(os.getpid(), signal.SIGKILL)\n"
        "if sys.argv[1] == 'fails': sys.exit(42)\n"
        "print('attempt', attempt, 'of', os.environ['TORCHELASTIC_MAX_RESTARTS'])\n"
    )
    words = ["run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "3", path]
    done = muster(*words, "dies", PYTHON_EXEC=python)
    assert (done.code, done.out.count("2] attempt 1 of 3\n")) == (0, 2), done.err
    assert muster("run", "--max_restarts=0", path, "fails", PYTHON_EXEC=python).code == 42
    assert muster("run", path, "fails", PYTHON_EXEC=python, PET_MAX_RESTARTS="0").code == 42
