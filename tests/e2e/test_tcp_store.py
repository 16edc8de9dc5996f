"""The TCPStore that `muster run` serves: to torch's own client it behaves as torch's own server, and strangers cost nothing."""

import random
import re
import signal
import socket
import struct

import pytest

# Every operation of torch's client on torch's server and on ours; what they answer must be the same.
COMPARE = """
import os, random, sys
from datetime import timedelta
import torch.distributed as dist

theirs = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
def client(port):
    return dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=30))
stores = [client(theirs.port), client(int(os.environ["MASTER_PORT"]))]
soon = timedelta(milliseconds=10)
rng = random.Random(int(sys.argv[1]))
keys = ["a", "b", "c", "count", "q1", "q2", "bar", ""]
def value():
    return rng.choice(["", "7", "-3", "x" * rng.choice([1, 100, 100_000])])
def one(key):
    number = rng.randrange(-5, 5)
    two = [rng.choice(keys), rng.choice(keys)]
    v, w = value(), value()
    return rng.choice([
        ("set", lambda s: s.set(key, v)),
        ("get", lambda s: s.get(key) if s.check([key]) and not key.startswith("q") else None),
        ("add", lambda s: s.add("count", number)),
        ("check", lambda s: s.check(two)),
        ("wait", lambda s: s.wait(two, soon)),
        ("num_keys", lambda s: s.num_keys()),
        ("delete_key", lambda s: s.delete_key(key)),
        ("append", lambda s: s.append(key, v)),
        ("multi_set", lambda s: s.multi_set(two, [v, w])),
        ("multi_get", lambda s: s.multi_get(["a", "b"]) if s.check(["a", "b"]) else None),
        ("compare_set", lambda s: s.compare_set(key, v, w)),
        ("queue_push", lambda s: s.queue_push(rng_queue, v)),
        ("queue_pop", lambda s: s.queue_pop(rng_queue, False)),
        ("queue_len", lambda s: s.queue_len(rng_queue)),
        ("list_keys", lambda s: sorted(s.list_keys())),
        ("barrier", lambda s: s.barrier("bar", 1 + abs(number) % 2, soon)),
    ])
def outcome(operation, store):
    try:
        return operation(store)
    except Exception as error:
        return type(error).__name__
compared = 0
for turn in range(150):
    key, rng_queue = rng.choice(keys[:3]), rng.choice(["q1", "q2"])
    name, operation = one(key)
    answers = [outcome(operation, store) for store in stores]
    assert answers[0] == answers[1], (turn, name, key, answers)
    compared += 1
print("compared", compared, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_torchs_client_finds_no_difference_to_torchs_server(start, script, torch_python, seed):
    run = start(torch_python, script(COMPARE), seed, ranks=1, flags=["--max-restarts", 0])
    assert run.end(limit=120) == 0, run.err
    assert run.log(0) == b"compared 150\n"


WAITS = """
import os, socket, struct, sys, time
print(os.environ["MASTER_PORT"], os.environ["TORCHELASTIC_USE_AGENT_STORE"], flush=True)
link = socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))
def text(value): return struct.pack("<Q", len(value)) + value
link.sendall(b"\\0\\xCE\\xF7\\x85\\x3C\\x06" + struct.pack("<Q", 1) + text(b"go"))
print(link.recv(1), flush=True)
"""


def has_port(run, rank: int, generation: int = 1) -> bool:
    log = run.folder / "logs" / f"rank-{rank}" / f"gen-{generation}.stdout.log"
    return log.exists() and log.read_bytes().endswith(b"True\n")


def test_a_stranger_who_breaks_the_protocol_disturbs_nobody(start, python):
    run = start(python, "-c", WAITS, ranks=2)
    run.wait(lambda: has_port(run, 0) and has_port(run, 1), "both ranks")
    port = int(run.log(0).split()[0])
    rng = random.Random(5)
    for turn in range(60):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
            greeting = b"\0\xce\xf7\x85\x3c" if turn % 2 else b""
            stranger.sendall(greeting + rng.randbytes(rng.choice([0, 1, 30, 70_000])))
    set_go = b"\x01" + struct.pack("<Q", 2) + b"go" + struct.pack("<Q", 1) + b"1"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as friend:
        friend.sendall(b"\0\xce\xf7\x85\x3c" + set_go)
        assert run.end() == 0, run.err
    assert run.log(0).endswith(b"b'\\x00'\n") and run.log(1).endswith(b"b'\\x00'\n")


def test_the_store_of_a_generation_ends_with_it(start, python):
    run = start(python, "-c", WAITS, ranks=1)
    run.wait(lambda: has_port(run, 0), "its port")
    port = int(run.log(0).split()[0])
    run.kill(0)
    run.wait(lambda: has_port(run, 0, 2), "the next generation")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    assert re.match(rb"\d+ True\n", run.log(0, 2)) and int(run.log(0, 2).split()[0]) != port
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
