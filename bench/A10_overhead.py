"""What do the processes cost that stand beside 64 workers?

`muster run -n 64` of the tests' stepper, which does a step each half second, so that every heartbeat stands still for long
enough to be looked at in /proc. Once every rank has stepped, for A10_SECONDS (60): CPU time of the supervisor, the
coordinator with its log keeper, the store and the shim, as a fraction of one core; at the end their PSS, with that of the
fork server beside it. Then `heartbeat_cost`: one step written into the page.

No peer: torchrun's agent is one Python process of some 200 MB that looks ten times a second whether a worker is dead.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from killed_rank import BUILD, stepper_programs

RANKS, SECONDS = 64, float(os.environ.get("A10_SECONDS", "60"))
TICKS = os.sysconf("SC_CLK_TCK")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def children_of(pid: int) -> list[int]:
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def pss_of(pid: int) -> int:
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[1])


def cpu_of(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def beside_workers(supervisor: int) -> tuple[dict[int, str], int]:
    """The processes that count, by pid, and the fork server."""
    ours, zygote = {supervisor: "supervisor"}, 0
    for pid in children_of(supervisor):
        ours[pid] = "store" if name_of(pid) == "muster-store" else "coordinator"
    for pid in [pid for pid, name in ours.items() if name == "coordinator"]:
        for child in children_of(pid):
            ours[child] = name_of(child)
            if name_of(child) == "muster-shim":
                zygote = next((p for p in children_of(child) if b"--zygote" in command_of(p)), 0)
    return ours, zygote


def command_of(pid: int) -> bytes:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()


def measure(folder: pathlib.Path) -> tuple[int, float]:
    programs = stepper_programs(folder / "bin")
    words = [programs / "muster", "run", "-n", RANKS, "--quiet", "--run-dir", folder / "run", "--"]
    words += ["muster-train", "--steps", 10**9, "--step-ms", 500, "--every", 10**9]
    process = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        files = [folder / "run" / "steps" / f"rank-{rank}.jsonl" for rank in range(RANKS)]
        while not all(file.exists() and file.stat().st_size for file in files):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError("the ranks do not step")
            time.sleep(0.1)
        ours, zygote = beside_workers(process.pid)
        before, began = sum(map(cpu_of, ours)), time.monotonic()
        time.sleep(SECONDS)
        fraction = (sum(map(cpu_of, ours)) - before) / (time.monotonic() - began)
        sizes = {name: pss_of(pid) for pid, name in ours.items()}
        shown = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes.items())
        say(f"PSS in MB: {shown}; beside it the fork server {pss_of(zygote) / 1e6 if zygote else 0:.1f}")
        return sum(sizes.values()), fraction
    finally:
        process.terminate()
        process.wait(60)


def heartbeat() -> float | None:
    done = subprocess.run([BUILD / "bench" / "heartbeat_cost"], capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    found = re.search(r"^RESULT A10\.heartbeat\.seconds (\S+) s$", done.stdout, re.MULTILINE)
    return float(found[1]) if found else None


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="muster-a10-") as name:
        pss, fraction = measure(pathlib.Path(name))
    print(f"RESULT A10.pss.bytes {pss} B")
    print(f"RESULT A10.cpu.fraction {fraction:.5f} 1")
    step = heartbeat()
    if step is not None:
        print(f"RESULT A10.heartbeat.seconds {step:.3g} s")
    return 0


sys.exit(main())
