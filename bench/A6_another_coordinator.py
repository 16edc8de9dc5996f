"""How long is a job without the process that steers it, or a node without its agent, when that is killed?

coordinator  `muster run` of muster-train vit on two ranks; the coordinator (not the supervisor that the user started) gets
             SIGKILL, and the clock runs until a step that began behind the kill stands in steps/ for every rank.
agent        `muster run --nnodes 2` of a script that writes the time as fast as a log is read, one node on loopback; the
             process that leads that node gets SIGKILL, and the clock runs until a line written behind the kill stands in
             the log of each of its ranks: their pipes are read again.
steps_lost   what ranks of both did twice or not at all, or in another process.

Three kills a job, two seconds apart: a fourth within a minute would be one too many. No peer: torchrun's agent takes its
job along, or leaves it as orphans. A6_JOBS (2) jobs of each.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from killed_rank import BUILD, VENV, coordinator_of, pack_images

JOBS = int(os.environ.get("A6_JOBS", "2"))
KILLS, APART, LIMIT = 3, 2.0, 60.0
STEPS = 800
SCRIPT = """
import os, pathlib, sys, time
folder, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
with open(folder / f"rank-{rank}.steps", "a") as steps:
    step = 0
    while not (folder / "enough").exists():
        step += 1
        print(time.monotonic_ns(), flush=True)
        steps.write(f"{os.environ['TORCHELASTIC_RESTART_COUNT']} {step}\\n")
        steps.flush()
        time.sleep(0.001)
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def until(condition, what: str):
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.001)
    raise RuntimeError(f"not within {LIMIT:.0f} s: {what}")


def lines_of(path: pathlib.Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def last_of(path: pathlib.Path) -> str:
    """The last whole line; a file is read from its end."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().split(b"\n")
    return lines[-2].decode() if len(lines) > 2 else ""


def leader_of(agent: subprocess.Popen) -> int:
    children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    return next(int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "muster\n")


def kill_some(victim, stamps) -> list[float]:
    """`victim()` is whom to kill; `stamps()` are the newest times that ranks wrote and that were taken up."""
    times = []
    for _ in range(KILLS):
        time.sleep(APART)
        pid, began = victim(), time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)
        until(lambda began=began: all(stamp > began for stamp in stamps()), "a rank that is seen again")
        times.append((time.monotonic_ns() - began) / 1e9)
    return times


def doubled_or_missing(steps: list[int]) -> int:
    return len(steps) - len(set(steps)) + (max(steps) - len(set(steps)))


def kill_coordinators(work: pathlib.Path) -> tuple[list[float], int]:
    run = work / "run"
    words = [BUILD / "bin" / "muster", "run", "-n", "2", "--quiet", "--run-dir", run, "--"]
    words += [
        BUILD / "bin" / "muster-train",
        "vit",
        "--data",
        pack_images(work),
        "--steps",
        str(STEPS),
        "--checkpoint-every",
        "500",
    ]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    paths = [run / "steps" / f"rank-{rank}.jsonl" for rank in range(2)]

    def stamps() -> list[int]:
        last = [last_of(path) for path in paths]
        return [json.loads(line)["begin_ns"] if line else 0 for line in last]

    until(lambda: all(stamps()), "the first steps")
    times = kill_some(lambda: coordinator_of(run), stamps)
    if process.wait(600) != 0:
        raise RuntimeError(f"the run ended with exit code {process.returncode}")
    lost = sum(doubled_or_missing([json.loads(line)["step"] for line in lines_of(path)]) for path in paths)
    return times, lost


def kill_agents(work: pathlib.Path) -> tuple[list[float], int]:
    run, script = work / "run", work / "script.py"
    script.write_text(SCRIPT)
    muster, python = BUILD / "bin" / "muster", pathlib.Path(VENV) / "bin" / "python"
    words = [muster, "run", "--nnodes", "2", "--nproc-per-node", "2", "--listen", "127.0.0.1:0", "--quiet"]
    words += ["--run-dir", run, "--preload", "none", "--", python, script, work]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    leading = subprocess.Popen([str(word) for word in words], **quiet)
    url = until(lambda: (run / "join-url").exists() and (run / "join-url").read_text().strip(), "where to join")
    words = [muster, "agent", "--join", url, "--token-file", run / "join-token", "--name", "other"]
    agent = subprocess.Popen([str(word) for word in words], **quiet)
    logs = [run / "logs" / f"rank-{rank}" / "gen-1.stdout.log" for rank in (2, 3)]

    def stamps() -> list[int]:
        return [int(last_of(log) or 0) for log in logs]

    until(lambda: all(stamps()), "the first lines")
    times = kill_some(lambda: leader_of(agent), stamps)
    (work / "enough").touch()
    if (leading.wait(60), agent.wait(60)) != (0, 0):
        raise RuntimeError(f"the job ended with {leading.returncode}, its agent with {agent.returncode}")
    lost = 0
    for rank in range(4):
        steps = [line.split() for line in lines_of(work / f"rank-{rank}.steps")]
        lost += sum(restarts != "0" for restarts, _ in steps) + doubled_or_missing([int(step) for _, step in steps])
    return times, lost


def shown(times: list[float]) -> str:
    return ", ".join(f"{t * 1e3:.0f}" for t in times) + " ms"


def main() -> int:
    results = {}
    for what, job in (("coordinator", kill_coordinators), ("agent", kill_agents)):
        times, lost = [], 0
        for _ in range(JOBS):
            with tempfile.TemporaryDirectory(prefix="muster-a6-") as work:
                more, missing = job(pathlib.Path(work))
            times, lost = times + more, lost + missing
        say(f"{what}: {shown(times)}; steps lost or done twice: {lost}")
        results[what] = (statistics.median(times), lost)
    print(f"RESULT A6.agent.readopt.seconds {results['agent'][0]:.3f} s")
    print(f"RESULT A6.agent.steps_lost.count {results['agent'][1] + results['coordinator'][1]} count")
    print(f"RESULT A6.coordinator.back.seconds {results['coordinator'][0]:.3f} s")
    return 0


sys.exit(main())
