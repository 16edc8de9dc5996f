"""Hosts of a benchmark: network namespaces with an address each, on one bridge; `muster run` leads from this one.

An agent gets there by a stand-in for ssh that enters the namespace. Needs root and iproute2.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from killed_rank import START_LIMIT, run_events

LEADER = "10.77.0.254"


def is_possible() -> bool:
    return os.geteuid() == 0 and shutil.which("ip") is not None


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stderr=subprocess.PIPE, text=True)


class Network:
    """The bridge and the namespaces; gone at the end, whatever happened."""

    def __init__(self, count: int):
        self.tag = f"mus{os.getpid() % 10000}"
        self.bridge = f"{self.tag}br"
        self.nodes = [f"{self.tag}{chr(ord('a') + number)}" for number in range(count)]

    def __enter__(self):
        self.__exit__()
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{LEADER}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for number, node in enumerate(self.nodes):
            ip("netns", "add", node)
            for _ in range(500):  # the namespace of before is gone a moment earlier than its link
                if not pathlib.Path(f"/sys/class/net/{node}h").exists():
                    break
                time.sleep(0.01)
            ip("link", "add", f"{node}h", "type", "veth", "peer", "name", "eth0", "netns", node)
            ip("link", "set", f"{node}h", "master", self.bridge, "up")
            for words in (
                ("link", "set", "lo", "up"),
                ("addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
            ):
                ip("-n", node, *words)

    def __exit__(self, *_):
        for node in self.nodes:
            kill_node(node)
            subprocess.run(["ip", "netns", "del", node], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", self.bridge], stderr=subprocess.DEVNULL)

    def unplug(self, node: str) -> None:
        ip("link", "set", f"{node}h", "down")

    def node_of(self, pid: int) -> str:
        namespace = os.stat(f"/proc/{pid}/ns/net").st_ino
        return next(node for node in self.nodes if os.stat(f"/run/netns/{node}").st_ino == namespace)


def pids_of(node: str) -> list[int]:
    found = subprocess.run(["ip", "netns", "pids", node], capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split()]


def kill_node(node: str) -> None:
    """As when its power goes: all stand still first, or one could still tell of another's death."""
    found = pids_of(node)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def wait_for_nodes(run: pathlib.Path, count: int) -> None:
    """So many have joined, and their fork servers have loaded torch."""
    deadline = time.monotonic() + START_LIMIT
    while len(run_events(run, "node_joined")) < count:
        if time.monotonic() > deadline:
            raise RuntimeError("a node did not join")
        time.sleep(0.1)
    time.sleep(15)  # an import of torch by all nodes on this machine


def write_ssh(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "ssh"
    path.write_text(f'#!/bin/sh\nSSH_CONNECTION="{LEADER} 1 0 1" exec ip netns exec "$1" sh -c "exec $2"\n')
    path.chmod(0o755)
    return path
