"""How long until every rank steps again after a whole node was lost?

Three network namespaces are nodes (veth to one bridge, an address each); `muster run --nodes a,b,c --nnodes 2` leads from
this one and reaches them by a stand-in for ssh that enters the namespace, over TLS. An unchanged PyTorch script (DDP on
gloo, no Muster import; peers/mlp_ddp.py), 2 ranks a node. Every process of one node is killed with SIGKILL: the agent,
the shim, the fork server, the ranks; or its link is taken down, and the clock begins.

spare   the node with ranks 2 and 3, node c waits as a spare
shrink  the same without node c: the job may do with one node, and its two ranks step again
rank0   the node with ranks 0 and 1, the same
silent  the link of the node with ranks 2 and 3: the time beyond the lease of 15 s

Needs root and iproute2. A3_REPEATS (5) of each, A3_CASES ("spare shrink rank0 silent") makes it shorter.
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

import killed_rank
from killed_rank import BUILD, PEERS, VENV, Job, muster_pid, script_steps, start, stop, wait_until_all_step
from node_network import LEADER, Network, is_possible, kill_node, wait_for_nodes, write_ssh

REPEATS = int(os.environ.get("A3_REPEATS", "5"))
RANKS, WARM, EVERY, LEASE = 4, 30, 20, 15.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_job(folder: pathlib.Path, nodes: list[str], number: str, ssh: pathlib.Path) -> Job:
    run = folder / "run"
    words = [BUILD / "bin" / "muster", "run", "--nodes", ",".join(nodes), "--nnodes", number, "-n", 2, "--ssh", ssh]
    words += ["--listen", f"{LEADER}:0", "--quiet", "--run-dir", run, "--max-restarts", 3, "--"]
    words += [VENV / "bin" / "python", PEERS / "mlp_ddp.py", folder, 10**6, EVERY]
    process = start(words, OMP_NUM_THREADS="1")
    return Job(process, lambda rank: script_steps(folder, rank), lambda rank: muster_pid(run, rank))


def once(victim_rank: int, silent: bool, shrinks: bool) -> float | None:
    nodes = 2 if shrinks else 3
    with tempfile.TemporaryDirectory(prefix="muster-a3-") as name, Network(nodes) as network:
        folder = pathlib.Path(name)
        job = run_job(folder, network.nodes, "1:2" if shrinks else "2", write_ssh(folder))
        try:
            wait_until_all_step(job, RANKS, WARM)
            wait_for_nodes(folder / "run", nodes)
            node = network.node_of(job.pid_of(victim_rank))
            began = time.monotonic_ns()
            if silent:
                network.unplug(node)
            else:
                kill_node(node)
            deadline = time.monotonic() + killed_rank.GIVE_UP
            while time.monotonic() < deadline:
                end = killed_rank.first_steps_after(job, RANKS // 2 if shrinks else RANKS, began)
                if end is not None:
                    return (end - began) / 1e9
                time.sleep(0.01)
            return None
        finally:
            stop(job)


def main() -> int:
    if not is_possible():
        say("network namespaces need root and iproute2: no result")
        return 0
    for what in os.environ.get("A3_CASES", "spare shrink rank0 silent").split():
        rank = 0 if what == "rank0" else 3
        silent = what == "silent"
        times = [once(rank, silent, what == "shrink") for _ in range(REPEATS)]
        say(f"{what}: {killed_rank.shown(times)}")
        if any(t is None for t in times):
            say(f"{what}: the run did not come back each time: no result")
        elif silent:
            print(f"RESULT A3.silent.over_lease.seconds {statistics.median(times) - LEASE:.3f} s")
        else:
            print(f"RESULT A3.{what}.seconds {statistics.median(times):.3f} s")
    return 0


sys.exit(main())
