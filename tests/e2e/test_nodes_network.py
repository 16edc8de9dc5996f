"""Several nodes, each in a network of its own: agents behind links of which a test pulls the plug."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

SCRIPT = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
me = f"{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}"
(folder / f"rank-{me}").touch()
end = time.monotonic() + 120
while time.monotonic() < end and not (folder / "enough").exists():
    (folder / f"alive-{me}").write_text(str(time.monotonic()))
    time.sleep(0.02)
"""
LEASE = 15.0


def ip(*words, namespace=None):
    where = ["-n", namespace] if namespace else []
    done = subprocess.run(["ip", *where, *map(str, words)], capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise OSError(f"ip {' '.join(map(str, words))}: {done.stderr.strip()}")


class Network:
    """A bridge on this host, the coordinator's, and hosts behind it that are network namespaces."""

    def __init__(self, tag: str, subnet: int):
        self.tag, self.subnet = tag, subnet
        self.bridge = f"mt{tag}"
        self.hosts: list[str] = []
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    @property
    def address(self) -> str:
        return f"10.213.{self.subnet}.1"

    def add_host(self) -> str:
        number = len(self.hosts) + 1
        host, cable = f"mt{self.tag}n{number}", self.cable(number)
        ip("netns", "add", host)
        self.hosts.append(host)
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("link", "set", cable, "master", self.bridge, "up")
        ip("addr", "add", f"10.213.{self.subnet}.{10 + number}/24", "dev", "eth0", namespace=host)
        for device in ("eth0", "lo"):
            ip("link", "set", device, "up", namespace=host)
        return host

    def cable(self, number: int) -> str:
        return f"mt{self.tag}v{number}"

    def set_link(self, host: str, state: str):
        ip("link", "set", self.cable(self.hosts.index(host) + 1), state)

    def remove(self):
        for number, host in enumerate(self.hosts, 1):
            for words in (["link", "del", self.cable(number)], ["netns", "del", host]):
                with contextlib.suppress(OSError):
                    ip(*words)
        with contextlib.suppress(OSError):
            ip("link", "del", self.bridge)


@pytest.fixture
def network():
    if os.geteuid() != 0:
        pytest.skip("network namespaces are made by root only")
    if not shutil.which("ip") or not shutil.which("nsenter"):
        pytest.skip("no ip or no nsenter on this host")
    # A name and a subnet that no other test on this host has: making the bridge fails if one does.
    first = os.getpid() % 200
    net = None
    for subnet in itertools.islice(itertools.cycle(range(1, 251)), first, first + 20):
        try:
            net = Network(f"{os.getpid() % 100000}s{subnet}", subnet)
            break
        except OSError as error:
            why = error
    if net is None:
        pytest.skip(f"no bridge can be made here: {why}")
    try:
        net.add_host()
    except OSError as error:
        net.remove()
        pytest.skip(f"no network namespace can be made here: {error}")
    yield net
    net.remove()


def remove_groups(run):
    """What a node leaves of which every process was killed at once: nobody of it is there to remove its empty groups."""
    run_id = json.loads((run.folder / "run.json").read_text())["id"]
    for group in pathlib.Path("/sys/fs/cgroup").glob(f"**/muster-{run_id}-*"):
        for path in sorted([*group.glob("**/"), group], reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()


def tree_of(pid: int) -> list[int]:
    found = [pid]
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                found += tree_of(int(child))
    return found


@pytest.fixture
def nodes(network, start, script, python, bin_with_stepper, tmp_path, wait_until):
    """nodes(*NAMES) → a run of two nodes with two ranks each, and {NAME: agent}; each agent is a host of the network.

    The first of the names works on the run, the others are spares."""
    agents = []

    def begin(*names, wait=True):
        flags = ["--nnodes", 2, "--listen", f"{network.address}:0"]
        run = start(python, script(SCRIPT), tmp_path, flags=flags)
        run.wait((run.folder / "run.json").exists, "the run")
        by_name = {}
        for name in names:
            by_name[name] = join(run, name)
            if wait:
                run.wait_event("node_joined", node=name)
        return run, by_name

    def join(run, name, url=None):
        host = network.hosts[len(agents)] if len(agents) < len(network.hosts) else network.add_host()
        url = url or (run.folder / "join-url").read_text().strip()
        words = ["agent", "--join", url, "--token-file", run.folder / "join-token", "--name", name]
        agent = subprocess.Popen(
            ["nsenter", f"--net=/var/run/netns/{host}", str(bin_with_stepper / "muster"), *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env=os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")},
        )
        agents.append(agent)
        agent.host = host
        return agent

    begin.join = join
    yield begin
    for agent in agents:
        if agent.poll() is None:
            agent.kill()
        agent.communicate()


def wait_started(run, folder, count):
    for rank in range(4):
        run.wait((folder / f"rank-{rank}.{count}").exists, f"rank {rank}, started again {count} times")


def pids_on(run, ranks, generation=1):
    return [run.pid(rank, generation) for rank in ranks]


def end(run, folder, agents):
    (folder / "enough").touch()
    assert run.end() == 0, run.err
    for name, agent in agents.items():
        assert agent.wait(timeout=30) == 0, name


def test_a_spare_takes_over_from_a_host_of_which_every_process_is_killed(nodes, tmp_path):
    run, agents = nodes("other", "spare")
    wait_started(run, tmp_path, 0)
    lost = agents.pop("other")
    for pid in tree_of(lost.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_started(run, tmp_path, 1)
    assert [event["node"] for event in run.events("node_lost")] == ["other"]
    end(run, tmp_path, agents)
    assert run.result()["restarts"] == 1
    assert lost.wait(timeout=30) == -signal.SIGKILL
    remove_groups(run)
    run.assert_nothing_left()


def test_a_link_that_is_down_for_less_than_the_lease_changes_nothing(nodes, network, tmp_path):
    run, agents = nodes("other", "spare")
    wait_started(run, tmp_path, 0)
    before = pids_on(run, range(4))
    network.set_link(agents["other"].host, "down")
    still = tmp_path / "alive-2.0"
    there = float(still.read_text() or 0)
    run.wait(lambda: float(still.read_text() or 0) > there + LEASE / 3, "a third of the lease")
    network.set_link(agents["other"].host, "up")
    there = float(still.read_text() or 0)
    run.wait(lambda: float(still.read_text() or 0) > there + LEASE / 3, "as long again")
    end(run, tmp_path, agents)
    assert run.events("node_lost") == []
    assert run.result()["restarts"] == 0
    assert pids_on(run, range(4)) == before
    run.assert_nothing_left()


def test_who_comes_back_after_the_lease_loses_its_workers_and_joins_as_a_spare(nodes, network, tmp_path):
    run, agents = nodes("other", "spare")
    wait_started(run, tmp_path, 0)
    old = pids_on(run, (2, 3))
    away = agents["other"]
    network.set_link(away.host, "down")
    wait_started(run, tmp_path, 1)
    assert [(event["node"], event["first_rank"]) for event in run.events("node_lost")] == [("other", 2)]
    assert away.poll() is None  # it cannot know
    network.set_link(away.host, "up")
    run.wait_event("node_joined", node="other", count=2)
    assert not set(old) & set(run.processes())
    new = pids_on(run, range(4), generation=2)
    assert set(new) <= set(run.processes())  # nothing of it reached those that took over
    end(run, tmp_path, agents)
    assert run.result()["restarts"] == 1
    run.assert_nothing_left()


@pytest.mark.parametrize("cut", [False, True])
def test_the_coordinator_is_followed_under_the_same_identity(nodes, network, tmp_path, cut):
    """Also when the link to a host is down at that moment: within the lease it finds the one that followed."""
    run, agents = nodes("other", "spare")
    wait_started(run, tmp_path, 0)
    before = pids_on(run, range(4))
    if cut:
        network.set_link(agents["other"].host, "down")
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    if cut:
        network.set_link(agents["other"].host, "up")
    late = agents["late"] = nodes.join(run, "late")
    run.wait_event("node_joined", node="late")
    assert pids_on(run, range(4)) == before
    run.kill(2)
    wait_started(run, tmp_path, 1)
    end(run, tmp_path, agents)
    # A spare that had just joined may come to nothing: no rank is lost with it.
    assert [event for event in run.events("node_lost") if event["ranks"]] == []
    assert run.result()["restarts"] == 1 and late.returncode == 0
    run.assert_nothing_left()


def test_an_agent_that_expects_another_certificate_does_not_join(nodes, tmp_path):
    run, _ = nodes()
    url = (run.folder / "join-url").read_text().strip()
    token = (run.folder / "join-token").read_text().strip()
    last = "0" if url[-1] != "0" else "1"
    stranger = nodes.join(run, "stranger", url=url[:-1] + last)
    out, _ = stranger.communicate(timeout=30)
    assert stranger.returncode == 4, out
    assert "nothing was sent" in out
    assert token not in out
    other = nodes.join(run, "other")
    wait_started(run, tmp_path, 0)
    end(run, tmp_path, {"other": other})
    assert [event["node"] for event in run.events("node_joined")] == ["other"]
    assert token not in json.dumps(run.events())
    run.assert_nothing_left()
