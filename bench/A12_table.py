"""How long does a new table take to 2,000 agents over 2,000 real connections, until all have acknowledged it?

agents_table: the coordinator's own gang, hub and peers over TLS on loopback, and in another process 2,000 agents' links,
each with connections of its own. An agent gets its part of the table (the start of its 8 of 16,000 ranks) and says that
it has begun. The median of A12_ROUNDS (7) rounds; one before them opens the connections. There is no other arm.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

BUILD = pathlib.Path(os.environ["MUSTER_BUILD"])
AGENTS = int(os.environ.get("A12_AGENTS", "2000"))
RANKS = 8
ROUNDS = int(os.environ.get("A12_ROUNDS", "7"))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def rounds_of(kind: str) -> list[dict]:
    command = [BUILD / "bench" / "agents_table", str(AGENTS), str(RANKS), str(ROUNDS + 1), kind]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=400)
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    if len(rounds) != ROUNDS + 1:
        raise SystemExit(f"{len(rounds)} rounds of {ROUNDS + 1}")
    return rounds[1:]


def median(rounds: list[dict], key: str) -> float:
    return statistics.median(one[key] for one in rounds)


def main() -> None:
    say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    rounds = rounds_of("tls")
    say("rounds: " + ", ".join(f"{one['table_s']:.3f} s" for one in rounds))
    parts = {key: f"{median(rounds, key):.3f} s" for key in rounds[0]}
    say("medians: " + ", ".join(f"{key[:-2]} {value}" for key, value in parts.items()))
    print(f"RESULT A12.table.seconds {median(rounds, 'table_s'):.4g} s")


if __name__ == "__main__":
    main()
