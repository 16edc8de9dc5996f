"""What does keeping the logs of 64 workers cost, does it lose a byte, and does a slow disk slow a worker down?

log_keeper_bench, the log keeper alone. flood: 64 processes write 7 MiB each as fast as they can, long lines, CR, NUL and
invalid UTF-8 among them, and die by SIGKILL behind their last write; CPU is that of the keeper's process, both threads.
slow: each of 64 processes writes a line every 10 ms for 10 s by turns into its pipe and into /dev/null, while every
write of the keeper takes 100 ms. Medians of A8_ROUNDS (5) for CPU; the worst for the other two. There is no other arm:
torchrun lets workers write into the file themselves.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["MUSTER_BUILD"])
ROUNDS = int(os.environ.get("A8_ROUNDS", "5"))
WORKERS, FLOOD_BYTES, SLOW_SECONDS = 64, 7 << 20, 10


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(mode: str, amount: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="muster-a8-") as folder:
        command = [BUILD / "bench" / "log_keeper_bench", mode, f"{folder}/logs", WORKERS, amount]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True, timeout=300)
    result = json.loads(done.stdout)
    say(f"{mode}: {result}")
    return result


def main() -> None:
    say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    flood = [measure("flood", FLOOD_BYTES) for _ in range(ROUNDS)]
    slow = [measure("slow", SLOW_SECONDS) for _ in range(min(ROUNDS, 3))]
    speed = statistics.median(one["bytes"] / one["cpu_s"] for one in flood)
    print(f"RESULT A8.per_core.bytes_per_second {speed:.3g} B/s")
    print(f"RESULT A8.lost.bytes {max(one['lost'] for one in flood + slow)} B")
    worst = max(one["pipe_p999_s"] - one["null_p999_s"] for one in slow)
    print(f"RESULT A8.blocked_p999.over_control.seconds {worst:.4g} s")


if __name__ == "__main__":
    main()
