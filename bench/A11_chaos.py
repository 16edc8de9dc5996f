"""How much of its time does a job work when something is hit every 15 seconds, and does it end with the same weights?

16 ranks of an unchanged PyTorch script (peers/mlp_chaos.py, gloo) on four nodes of five, network namespaces that `muster
run --nodes` reaches by a stand-in for ssh; the fifth is a spare. First undisturbed for A11_SECONDS (600), then the same
steps with a fault every 15 s, ten at a time shuffled by A11_SEED:

  4 of 10  a rank gets SIGKILL, SIGSEGV or SIGABRT
  2 of 10  an agent or the coordinator gets SIGKILL
  2 of 10  every process of a node gets SIGKILL, or its link is taken down for 10 s; the lease is 2 s
  2 of 10  a rank hangs: SIGSTOP, or it waits for a lock for ever; --hang-limit is 2 s

goodput        steps × the undisturbed run's time for a step / time from the first step to the end of the last
weights_equal  the final weights are those of the undisturbed run, bit by bit

Needs root and iproute2. A11_PER_NODE (4) ranks, A11_APART (15) seconds from a fault to the next.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from killed_rank import BUILD, PEERS, START_LIMIT, VENV, coordinator_of, run_events, script_steps, start
from node_network import LEADER, Network, ip, is_possible, kill_node, pids_of, wait_for_nodes, write_ssh

SECONDS = float(os.environ.get("A11_SECONDS", "600"))
PER_NODE = int(os.environ.get("A11_PER_NODE", "4"))
APART = float(os.environ.get("A11_APART", "15"))
SEED = int(os.environ.get("A11_SEED", str(random.SystemRandom().randrange(10**6))))
NODES, LEASE, EVERY, WARM = 4, 2, 10, 40
RANKS = NODES * PER_NODE
UNPLUGGED_S = 10.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def command_of(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def parent_of(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class Job:
    """One run of the script, and what can be done to it."""

    def __init__(self, folder: pathlib.Path, network: Network, steps: int):
        self.folder, self.network, self.run = folder, network, folder / "run"
        words = [BUILD / "bin" / "muster", "run", "--nodes", ",".join(network.nodes), "--nnodes", NODES, "-n", PER_NODE]
        words += ["--ssh", write_ssh(folder), "--listen", f"{LEADER}:0", "--quiet", "--run-dir", self.run]
        words += ["--max-restarts", 10**6, "--hang-limit", 2, "--node-lease", LEASE, "--"]
        words += [VENV / "bin" / "python", PEERS / "mlp_chaos.py", folder, steps, EVERY]
        self.process = start(words, OMP_NUM_THREADS="1")

    def wait_for_steps(self, count: int) -> None:
        deadline = time.monotonic() + START_LIMIT
        while any(len(script_steps(self.folder, rank)) < count for rank in range(RANKS)):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"the job did not get going: exit code {self.process.poll()}")
            time.sleep(0.2)

    def pids(self) -> dict[int, int]:
        """Of the newest start of each rank."""
        return {event["rank"]: event["pid"] for event in run_events(self.run, "worker_started")}

    def agents(self, node: str) -> list[int]:
        """The processes that lead the node: children of the `muster agent` that ssh started."""
        agents = [pid for pid in pids_of(node) if command_of(pid)[1:2] == ["agent"]]
        return [pid for pid in agents if parent_of(pid) in agents]

    def busy_nodes(self) -> list[str]:
        found = set()
        for pid in self.pids().values():
            with contextlib.suppress(OSError):
                found.add(self.network.node_of(pid))
        return sorted(found)

    def times(self) -> tuple[int, int, int]:
        """Steps, and when the first and the last step of the slowest rank ended, in ns."""
        records = [script_steps(self.folder, rank) for rank in range(RANKS)]
        steps = min(max(step for _, step, _ in record) for record in records)
        return steps, max(record[0][2] for record in records), max(record[-1][2] for record in records)


class Chaos:
    """Faults that a seed draws."""

    def __init__(self, job: Job):
        self.job, self.rng, self.plugged_at, self.deck = job, random.Random(SEED), {}, []

    def strike(self) -> str:
        if not self.deck:  # ten in a row are the mix that is promised
            self.deck = [self.kill_rank] * 4 + [self.kill_controller] * 2 + [self.lose_node] * 2 + [self.hang_rank] * 2
            self.rng.shuffle(self.deck)
        return self.deck.pop()()

    def mend(self) -> None:
        """Links that were down long enough come back."""
        for node, when in list(self.plugged_at.items()):
            if time.monotonic() > when:
                ip("link", "set", f"{node}h", "up")
                del self.plugged_at[node]

    def kill_rank(self) -> str:
        rank, number = self.rng.randrange(RANKS), self.rng.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
        os.kill(self.job.pids()[rank], number)
        return f"{number.name} to rank {rank}"

    def kill_controller(self) -> str:
        if self.rng.random() < 0.5:
            os.kill(coordinator_of(self.job.run), signal.SIGKILL)
            return "SIGKILL to the coordinator"
        node = self.rng.choice(self.job.busy_nodes())
        for pid in self.job.agents(node):
            os.kill(pid, signal.SIGKILL)
        return f"SIGKILL to the agent of {node}"

    def lose_node(self) -> str:
        node = self.rng.choice(self.job.busy_nodes())
        if self.rng.random() < 0.5:
            kill_node(node)
            return f"node {node} dies"
        self.job.network.unplug(node)
        self.plugged_at[node] = time.monotonic() + UNPLUGGED_S
        return f"the link of {node} is down for {UNPLUGGED_S:.0f} s"

    def hang_rank(self) -> str:
        rank = self.rng.randrange(RANKS)
        if self.rng.random() < 0.5:
            os.kill(self.job.pids()[rank], signal.SIGSTOP)
            return f"SIGSTOP to rank {rank}"
        (self.job.folder / f"hang-{rank}").touch()
        return f"rank {rank} waits for a lock"


def run_to_the_end(folder: pathlib.Path, steps: int, hurt: bool) -> Job:
    with Network(NODES + 1) as network:
        job = Job(folder, network, steps)
        chaos = Chaos(job) if hurt else None
        try:
            job.wait_for_steps(WARM)
            if chaos:
                wait_for_nodes(job.run, NODES + 1)
            began = following = time.monotonic()
            while job.process.poll() is None:
                if chaos:
                    chaos.mend()
                    if time.monotonic() > following:
                        following += APART
                        with contextlib.suppress(ProcessLookupError):  # who was to be hit is being replaced
                            say(f"{time.monotonic() - began:6.1f} s  {chaos.strike()}")
                time.sleep(0.05)
        finally:
            if job.process.poll() is None:
                job.process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.process.wait(timeout=60)
                job.process.kill()
        if job.process.returncode != 0:
            raise RuntimeError(f"the run ended with {job.process.returncode}: {(job.run / 'result.json').read_text()}")
        return job


def steps_for(work: pathlib.Path) -> int:
    """How many steps take A11_SECONDS here when nothing happens."""
    folder = work / "trial"
    folder.mkdir()
    job = run_to_the_end(folder, 400, hurt=False)
    steps, began, ended = job.times()
    return max(WARM * 2, int(SECONDS * 1e9 / (ended - began) * steps))


def main() -> int:
    if not is_possible():
        say("network namespaces need root and iproute2: no result")
        return 0
    with tempfile.TemporaryDirectory(prefix="muster-a11-") as name:
        work = pathlib.Path(name)
        steps = steps_for(work)
        say(f"seed {SEED}, {RANKS} ranks, {steps} steps")
        times, jobs = {}, {}
        for what in ("calm", "hurt"):
            (work / what).mkdir()
            jobs[what] = run_to_the_end(work / what, steps, hurt=what == "hurt")
            done, began, ended = jobs[what].times()
            times[what] = (ended - began) / 1e9
            say(f"{what}: {done} steps in {times[what]:.1f} s, {times[what] / done * 1e3:.1f} ms each")
        for event in run_events(jobs["hurt"].run, "fault", "recovered", "node_lost", "coordinator_back"):
            say(f"  {event}")
        equal = (work / "calm" / "weights").read_bytes() == (work / "hurt" / "weights").read_bytes()
    print(f"RESULT A11.goodput.fraction {times['calm'] / times['hurt']:.3f} 1")
    print(f"RESULT A11.weights_equal.count {int(equal)} count")
    return 0


sys.exit(main())
