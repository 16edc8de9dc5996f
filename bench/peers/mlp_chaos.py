"""The script of bar A11: an MLP whose gradients are one flat buffer that gloo adds up, AdamW, a checkpoint every EVERY
steps by rank 0, loaded at the start. Nothing in it knows of Muster. The buffer's layout is the same after every start, so a
run that was hurt ends with the bits of one that was not. (DDP orders its buckets anew after a first step, and with them
the order of the additions.)

Every rank appends "attempt step time" to DIR/rank-R.steps after each step, the time being CLOCK_MONOTONIC. A file
DIR/hang-R is taken by rank R, which then waits for a lock for ever. At the end rank 0 leaves DIR/weights.

    torchrun --standalone --nproc-per-node 8 mlp_chaos.py DIR STEPS EVERY
"""

import contextlib
import os
import pathlib
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

WIDTH, CLASSES, BATCH = 128, 10, 32


def flat_gradients(model: nn.Module) -> torch.Tensor:
    """One buffer; every parameter's gradient is a part of it."""
    parameters = list(model.parameters())
    buffer = torch.zeros(sum(p.numel() for p in parameters))
    at = 0
    for parameter in parameters:
        parameter.grad = buffer[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
    return buffer


def hang_if_asked(folder: pathlib.Path, rank: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        (folder / f"hang-{rank}").unlink()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()


def main():
    folder, steps, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    log = os.open(folder / f"rank-{rank}.steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    torch.manual_seed(0)
    layers = [nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    gradients = flat_gradients(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoint, step = folder / "checkpoint.pt", 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    while step < steps:
        generator = torch.Generator().manual_seed(step * world + rank)
        inputs = torch.randn(BATCH, 64, generator=generator)
        labels = torch.randint(CLASSES, (BATCH,), generator=generator)
        gradients.zero_()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        dist.all_reduce(gradients)
        gradients /= world
        optimizer.step()
        step += 1
        os.write(log, f"{attempt} {step} {time.monotonic_ns()}\n".encode())
        if rank == 0 and step % every == 0:
            part = checkpoint.with_suffix(".part")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, part)
            os.replace(part, checkpoint)
        hang_if_asked(folder, rank)
    if rank == 0:
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        (folder / "weights").write_bytes(flat.numpy().tobytes())


main()
