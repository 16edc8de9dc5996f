"""muster-shim stays the small thing that it is: libc and nothing else."""

import errno
import os
import socket
import struct
import subprocess

import pytest


def test_the_shim_links_only_libc(programs):
    listed = subprocess.run(["ldd", programs / "muster-shim"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].rsplit("/", 1)[-1].split(".so")[0] for line in listed.splitlines()}
    assert names <= {"linux-vdso", "libc", "ld-linux-x86-64", "ld-linux-aarch64", "ld-linux"}, listed


def test_the_shim_started_by_hand_says_so(programs):
    done = subprocess.run([programs / "muster-shim"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "muster run" in done.stderr


SPAWN, STOP, STARTED, STOPPED = 2, 4, 103, 105
MAGIC, VERSION = 0x4D485331, 4


@pytest.fixture
def shim(programs):
    """The controller's socket of a muster-shim."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [programs / "muster-shim", str(theirs.fileno()), "test", "100", "0"], pass_fds=[theirs.fileno()]
    )
    theirs.close()
    ours.settimeout(30)
    yield ours
    ours.close()
    assert process.wait(timeout=30) == 0


def spawn(rank: int, extra: int = 0, zygote: int = 0) -> bytes:
    return struct.pack("=IHHQIIIIQIiII", MAGIC, VERSION, SPAWN, 7, rank, zygote, extra, 0o22, 0, 0, 0, 0, 0)


def started(control) -> tuple[int, int, int]:
    """Generation, rank and errno of the next answer to a Spawn."""
    while True:
        packet = control.recv(512)
        if struct.unpack_from("=IHH", packet)[2] == STARTED:
            return struct.unpack_from("=8xQIii", packet)[:2] + struct.unpack_from("=8xQIii", packet)[3:]


@pytest.mark.parametrize(
    "packet, descriptors, error",
    [
        (spawn(3), 0, "Too many open files"),
        (spawn(3), 2, "Invalid argument"),
        (spawn(3, extra=9), 6, "Invalid argument"),
        (spawn(3)[:20], 6, "Invalid argument"),
        (spawn(3, zygote=1), 6, "No such process"),
    ],
)
def test_every_request_is_answered(shim, packet, descriptors, error):
    with open(os.devnull) as null:
        socket.send_fds(shim, [packet], [null.fileno()] * descriptors)
    generation, rank, number = started(shim)
    assert (generation, rank, os.strerror(number)) == (7, 3, error)


def stop(generation: int) -> bytes:
    return struct.pack("=IHHiIQQ", MAGIC, VERSION, STOP, 15, 0, 0, generation)


def stopped(control) -> int:
    """The generation of the next answer to a Stop."""
    while True:
        packet = control.recv(512)
        if struct.unpack_from("=IHH", packet)[2] == STOPPED:
            return struct.unpack_from("=8xIIqQ", packet)[3]


def test_a_stop_that_comes_twice_does_not_stand_in_the_way_of_the_next_start(shim):
    shim.send(stop(6))
    assert stopped(shim) == 6
    shim.send(stop(6))
    with open(os.devnull) as null:
        socket.send_fds(shim, [spawn(3)], [null.fileno()] * 6)
    answers = []
    while len(answers) < 2:
        packet = shim.recv(512)
        kind = struct.unpack_from("=IHH", packet)[2]
        if kind == STARTED:
            answers.append(struct.unpack_from("=8xQIii", packet)[3])
        elif kind == STOPPED:
            answers.append(("stopped", struct.unpack_from("=8xIIqQ", packet)[3]))
    assert ("stopped", 6) in answers
    assert errno.ECANCELED not in answers
