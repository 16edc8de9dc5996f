"""How many lines a second do ten log rules judge on one core, and how soon does a bad line reach the coordinator?

Lines: rules_bench, 1 M lines as trainers print them (one in five is a step's, which four rules read), framed from
64 KiB reads and judged by ten rules; CPU time of its thread, median of A9_SAMPLES (5) rounds.
Fault: a rank under `muster run` prints the time and then `loss=nan`; until `log_rule` is in the coordinator's events,
median of as many jobs, nothing else on the machine's mind but what is there anyway (its load is printed).
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["MUSTER_BUILD"])
SAMPLES = int(os.environ.get("A9_SAMPLES", "5"))

SCRIPT = """
import os, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    sys.exit(0)
for step in range(200):
    print("step", step, "loss=%.3f" % (2 - step / 200), flush=True)
    time.sleep(0.002)
if os.environ["RANK"] == "1":
    print("at", time.monotonic_ns(), flush=True)
    print("step 200 loss=nan", flush=True)
time.sleep(60)
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def lines_per_second() -> list[float]:
    bench = BUILD / "bench" / "rules_bench"
    done = subprocess.run([bench, str(SAMPLES)], stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    if any(one["firings"] or one["losses"] != one["lines"] // 5 for one in rounds):
        raise SystemExit(f"the rules did not see what is there: {rounds[0]}")
    say(
        f"lines of {rounds[0]['bytes'] / rounds[0]['lines']:.0f} bytes; rounds: "
        + shown([one["seconds"] for one in rounds])
    )
    return [one["lines"] / one["seconds"] for one in rounds]


def shown(times: list[float]) -> str:
    return ", ".join(f"{time:.4g} s" for time in times)


def fault_seconds(folder: pathlib.Path) -> float:
    folder.mkdir()
    rules = [{"name": "loss", "pattern": r"loss=(\S+)"}]
    spec = {"command": ["python3", "-c", SCRIPT], "ranksPerNode": 2, "logRules": rules}
    job = {"apiVersion": "muster/v1", "kind": "Job", "metadata": {"name": "a9"}, "spec": spec}
    (folder / "job.yaml").write_text(json.dumps(job))
    words = [
        BUILD / "bin" / "muster",
        "run",
        folder / "job.yaml",
        "--run-dir",
        folder / "run",
        "--grace",
        "1",
        "--quiet",
    ]
    subprocess.run(
        [*words, "--preload", "none"], check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    log = (folder / "run" / "logs" / "rank-1" / "gen-1.stdout.log").read_text()
    began = next(int(line.split()[1]) for line in log.splitlines() if line.startswith("at "))
    events = [json.loads(line) for line in (folder / "run" / "events.jsonl").read_text().splitlines()]
    fired = next(event for event in events if event["event"] == "log_rule")
    exited = next(event for event in events if event["event"] == "worker_exited" and event["rank"] == 1)
    say(
        f"printed, known {(fired['t_ns'] - began) / 1e6:.2f} ms later, dead {(exited['t_ns'] - began) / 1e6:.2f} ms later"
    )
    return (fired["t_ns"] - began) / 1e9


def main() -> None:
    say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    rates = lines_per_second()
    with tempfile.TemporaryDirectory() as work:
        faults = [fault_seconds(pathlib.Path(work) / str(number)) for number in range(SAMPLES)]
    say(f"load {os.getloadavg()[0]:.1f} at the end")
    print(f"RESULT A9.per_core.lines_per_second {statistics.median(rates):.4g} 1/s")
    print(f"RESULT A9.fault.seconds {statistics.median(faults):.4g} s")


if __name__ == "__main__":
    main()
